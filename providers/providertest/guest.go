package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
)

// GuestScene is a guest for the tests of Guests.
type GuestScene struct {
	Guest providers.Guest
	// Listen starts a server inside that sends back what it gets and ends when its client does,
	// and returns the address for Dial. network is "tcp" or "unix".
	Listen func(t *testing.T, network string) (address string)
	// TCPOnly says that Listen knows the network tcp alone.
	TCPOnly bool
	// Lose ends what the guest needs while a command runs: the VM or the connection.
	Lose func(t *testing.T)
	// Slow says that a command takes long: of a search, only its first cases are tried.
	Slow bool
	// Returns says that the guest can be used again after Lose.
	Returns bool
}

// Guests tests that a guest is one, as providers.Guest describes. enter returns a guest that no other
// test uses, and closes it with the test. Inside are sh and the usual programs of POSIX.
func Guests(t *testing.T, enter func(t *testing.T) GuestScene) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, GuestScene)
	}{
		{"the exit status", guestStatus},
		{"a program that cannot be run", guestUnrunnable},
		{"input", guestInput},
		{"input that nobody reads", guestInputLeft},
		{"input that fails", guestInputFails},
		{"output", guestOutput},
		{"output that cannot be written", guestOutputFails},
		{"standard error", guestStderr},
		{"arguments", guestArguments},
		{"variables", guestVariables},
		{"the directory", guestDirectory},
		{"what a command leaves running", guestBackground},
		{"a command that is cancelled", guestCancel},
		{"a command that ctx ended before", guestCancelled},
		{"commands side by side", guestTogether},
		{"connections", guestDial},
		{"a guest that is closed", guestClose},
		{"a guest that is lost", guestLost},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, enter(t)) })
	}
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// output runs a command that succeeds, and returns its standard output.
func (s GuestScene) output(ctx context.Context, t failer, c providers.Command) string {
	t.Helper()
	var out bytes.Buffer
	c.Stdout = &out
	o, err := s.Guest.Run(ctx, c)
	if err != nil || o.Status != 0 {
		t.Fatalf("%q: status %d, %v\n%s", c.Args, o.Status, err, o.Stderr)
	}
	return out.String()
}

func sh(script string) providers.Command {
	return providers.Command{Args: []string{"sh", "-c", script}}
}

// ended returns the end of a command in words.
func ended(o providers.Output, err error) string {
	var fate *providers.FateError
	switch {
	case errors.As(err, &fate):
		return "unknown"
	case err != nil:
		return "did not begin"
	}
	return fmt.Sprint("status ", o.Status)
}

func guestStatus(t *testing.T, s GuestScene) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		o, err := s.Guest.Run(t.Context(), sh(script))
		if err != nil || o.Status != want {
			t.Errorf("%s: status %d, %v, want %d", script, o.Status, err, want)
		}
	}
	if _, err := s.Guest.Run(t.Context(), providers.Command{}); err == nil {
		t.Error("no command ran")
	}
}

func guestUnrunnable(t *testing.T, s GuestScene) {
	for _, test := range []struct {
		program string
		want    string
	}{
		{"no-such-program", "status 127"},
		{"/no/such program", "status 127"},
		{"./none", "status 127"},
		{"-n", "status 127"},
		{"A=1", "status 127"},
		{"if", "status 127"},
		{"/etc/passwd", "status 126"},
	} {
		var stderr strings.Builder
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{test.program, "x"}, Stderr: &stderr})
		if got := ended(o, err); got != test.want || o.Stderr == "" || o.Stderr != stderr.String() {
			t.Errorf("%s: %s, %v, want %s; standard error %q and %q", test.program, got, err, test.want, o.Stderr, &stderr)
		}
	}
}

// someMB is the size of a large input or output.
const someMB = 3 << 20

func large() []byte {
	b := make([]byte, someMB)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func guestInput(t *testing.T, s GuestScene) {
	all := large()
	got := s.output(t.Context(), t, providers.Command{Args: []string{"cat"}, Stdin: bytes.NewReader(all)})
	if got != string(all) {
		t.Errorf("of %d bytes came back %d", len(all), len(got))
	}
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"cat"}}); got != "" {
		t.Errorf("without an input, it read %q", got)
	}
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"cat"}, Stdin: strings.NewReader("")}); got != "" {
		t.Errorf("of an empty input, it read %q", got)
	}
}

// endless is an input without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func guestInputLeft(t *testing.T, s GuestScene) {
	for _, stdin := range []io.Reader{endless{}, silence(t)} {
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"sh", "-c", "exit 3"}, Stdin: stdin})
		if err != nil || o.Status != 3 {
			t.Errorf("input %T: status %d, %v", stdin, o.Status, err)
		}
	}
}

// silence returns an input that nobody writes until the test ends.
func silence(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var errTorn = errors.New("torn")

// An input that is cut off must not look like one that is complete.
func guestInputFails(t *testing.T, s GuestScene) {
	_, _ = s.Guest.Run(t.Context(), sh("rm -f torn")) //nolint:errcheck // as a rule there is none
	o, err := s.Guest.Run(t.Context(), providers.Command{
		Args:  []string{"sh", "-c", "cat >part && mv part torn"},
		Stdin: io.MultiReader(strings.NewReader("the first half"), brokenReader{}),
	})
	if got := ended(o, err); got != "unknown" || !errors.Is(err, errTorn) {
		t.Errorf("%s, %v, want unknown, %v", got, err, errTorn)
	}
	if o, err := s.Guest.Run(t.Context(), sh("test -e torn")); err != nil || o.Status != 1 {
		t.Errorf("the command took a part for the whole: status %d, %v", o.Status, err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errTorn }

func guestOutput(t *testing.T, s GuestScene) {
	script := fmt.Sprintf("head -c %d /dev/zero; echo end", someMB)
	if got, want := s.output(t.Context(), t, sh(script)), strings.Repeat("\x00", someMB)+"end\n"; got != want {
		t.Errorf("of %d bytes came %d", len(want), len(got))
	}
	o, err := s.Guest.Run(t.Context(), sh(script)) // for nobody
	if err != nil || o.Status != 0 || o.Stderr != "" {
		t.Errorf("output that nobody wants: status %d, %v, %q", o.Status, err, o.Stderr)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errTorn }

func guestOutputFails(t *testing.T, s GuestScene) {
	for _, test := range []struct {
		name    string
		command providers.Command
	}{
		{"standard output, of a command that ends", providers.Command{Args: []string{"echo", "x"}, Stdout: brokenWriter{}}},
		{"standard output without end", providers.Command{Args: []string{"cat", "/dev/zero"}, Stdout: brokenWriter{}}},
		{"standard error without end", providers.Command{Args: []string{"sh", "-c", "cat /dev/zero >&2"}, Stderr: brokenWriter{}}},
	} {
		o, err := s.Guest.Run(t.Context(), test.command)
		if got := ended(o, err); got != "unknown" || !errors.Is(err, errTorn) {
			t.Errorf("%s: %s, %v, want unknown, %v", test.name, got, err, errTorn)
		}
	}
}

func guestStderr(t *testing.T, s GuestScene) {
	const size = 3 * providers.StderrLimit
	var stderr strings.Builder
	c := sh(fmt.Sprintf("head -c %d /dev/zero >&2; echo the end >&2; exit 1", size))
	c.Stderr = &stderr
	o, err := s.Guest.Run(t.Context(), c)
	if err != nil || o.Status != 1 {
		t.Fatalf("status %d, %v", o.Status, err)
	}
	all := strings.Repeat("\x00", size) + "the end\n"
	if stderr.String() != all {
		t.Errorf("of %d bytes came %d", len(all), stderr.Len())
	}
	if want := all[len(all)-providers.StderrLimit:]; o.Stderr != want {
		t.Errorf("kept are %d bytes that end in %q, want %d", len(o.Stderr), o.Stderr[max(0, len(o.Stderr)-20):], len(want))
	}
}

// shellWords returns generated words, of which many mean something to a shell.
func shellWords() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ -~\n\t\r]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{
			"", "-n", "--", "-", "A=1", "=x", "%1", "!", "!!", "x;touch trap", "$(touch trap)", "`touch trap`", "a\ntouch trap\n", "\n", "\n\n", "'", "''", "\"", "\\", "\\\n", "\\0", "$", "$0", "${_vmctl_line}",
			"*", "~", "&", "|touch trap", "#", "{a,b}", "\xff\xfe", "\x81\x82", "ä", "\x01\x7f", "\r\n", "é\n\\'\"",
		}),
	).Filter(func(w string) bool { return !strings.ContainsRune(w, 0) })
}

// search checks a property of the guest.
func (s GuestScene) search(t *testing.T, check func(*rapid.T)) {
	t.Helper()
	const slow = 15
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		if tried++; s.Slow && tried > slow {
			return
		}
		check(rt)
	})
}

// row A42
func guestArguments(t *testing.T, s GuestScene) {
	s.search(t, func(rt *rapid.T) {
		words := append([]string{"first"}, rapid.SliceOfN(shellWords(), 0, 6).Draw(rt, "words")...)
		got := s.output(t.Context(), rt, providers.Command{Args: append([]string{"printf", `%s\0`}, words...)})
		if d := cmp.Diff(words, strings.Split(strings.TrimSuffix(got, "\x00"), "\x00")); d != "" {
			rt.Fatalf("arguments (-want +got):\n%s", d)
		}
	})
	if o, err := s.Guest.Run(t.Context(), sh("test -e trap")); err != nil || o.Status != 1 {
		t.Errorf("a word ran as a command: status %d, %v", o.Status, err)
	}
	size := 30000
	if s.Slow { // a shell reads it byte by byte
		size /= 20
	}
	long := strings.Repeat("a'\n", size)
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"printf", "%s", long}}); got != long {
		t.Errorf("of an argument of %d bytes came %d", len(long), len(got))
	}
}

func guestVariables(t *testing.T, s GuestScene) {
	s.search(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`V_[A-Za-z0-9_]{0,5}`).Draw(rt, "name")
		value := shellWords().Draw(rt, "value")
		got := s.output(t.Context(), rt, providers.Command{
			Args: []string{"sh", "-c", `printf %s "$` + name + `|$OTHER"`}, Env: []string{name + "=not this one", "OTHER=other", name + "=" + value},
		})
		if got != value+"|other" {
			rt.Fatalf("%s is %q, want %q", name, got, value+"|other")
		}
	})
	plain := s.output(t.Context(), t, providers.Command{Args: []string{"env"}})
	added := s.output(t.Context(), t, providers.Command{Args: []string{"env"}, Env: []string{"ADDED=1"}})
	if d := cmp.Diff(append(lines(plain), "ADDED=1"), lines(added), sorted()); d != "" {
		t.Errorf("one more variable changes the environment (-want +got):\n%s", d)
	}
	// BusyBox runs its own programs whatever the PATH is.
	home := strings.TrimSpace(s.output(t.Context(), t, sh("printf '#!/bin/sh\nexit 5\n' >own && chmod 700 own && pwd")))
	for path, want := range map[string]string{home: "status 5", "/nowhere": "status 127"} {
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"own"}, Env: []string{"PATH=" + path}})
		if got := ended(o, err); got != want {
			t.Errorf("with PATH=%s: %s, %v, want %s", path, got, err, want)
		}
	}
}

// lines returns the lines of an environment, but for those that a shell changes by itself.
func lines(env string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(env), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "_=") || strings.HasPrefix(line, "SSH_CONNECTION=") || strings.HasPrefix(line, "SSH_CLIENT=")
	})
}

func sorted() cmp.Option {
	return cmp.Transformer("sorted", func(all []string) map[string]int {
		set := map[string]int{}
		for _, line := range all {
			set[line]++
		}
		return set
	})
}

func guestDirectory(t *testing.T, s GuestScene) {
	home := s.output(t.Context(), t, sh("cd && pwd -P"))
	if got := s.output(t.Context(), t, sh("pwd -P")); got != home {
		t.Errorf("without a directory, it ran in %q and not in the home %q", got, home)
	}
	for _, dir := range []string{"sub", "-P", "a b'$(id)\n", "~", "sub/.."} {
		s.output(t.Context(), t, providers.Command{Args: []string{"mkdir", "-p", "--", dir}})
		want := s.output(t.Context(), t, providers.Command{Args: []string{"sh", "-c", `cd "./$0" && pwd -P`, dir}})
		if got := s.output(t.Context(), t, providers.Command{Args: []string{"sh", "-c", "pwd -P"}, Dir: dir, Env: []string{"CDPATH=/:/tmp"}}); got != want {
			t.Errorf("in %q, it ran in %q, want %q", dir, got, want)
		}
	}
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"pwd"}, Dir: "/"}); got != "/\n" {
		t.Errorf("in /, it ran in %q", got)
	}
	for _, dir := range []string{"none", "/no/where", "/etc/passwd"} {
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"touch", "trap"}, Dir: dir})
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("in %s, which is no directory: %s, %v", dir, got, err)
		}
		o, err = s.Guest.Run(t.Context(), providers.Command{Args: []string{"no-such-program"}, Dir: dir})
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("a missing program in %s, which is no directory: %s, %v", dir, got, err)
		}
	}
}

// A process that holds no output is nobody's business once its parent has ended.
func guestBackground(t *testing.T, s GuestScene) {
	pid := strings.TrimSpace(s.output(t.Context(), t, sh("sleep 3600 </dev/null >/dev/null 2>&1 & echo $!")))
	s.output(t.Context(), t, providers.Command{Args: []string{"kill", pid}})
}

// watched is an output that tells its first line.
type watched struct {
	mu    sync.Mutex
	text  []byte
	first chan string
	told  bool
}

func newWatched() *watched { return &watched{first: make(chan string, 1)} }

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	if line, _, found := strings.Cut(string(w.text), "\n"); found && !w.told {
		w.told = true
		w.first <- line
	}
	return len(b), nil
}

// running is a command that does not end by itself.
type running struct {
	pid  string
	done chan struct{}
	o    providers.Output
	err  error
}

// begin starts a command that does not end by itself, and returns once it runs. It marks its beginning
// in a file.
func (s GuestScene) begin(ctx context.Context, t *testing.T) *running {
	t.Helper()
	r := &running{done: make(chan struct{})}
	out := newWatched()
	c := providers.Command{Args: []string{"sh", "-c", "echo begun >>begun; echo $$; exec sleep 3600"}, Stdin: silence(t), Stdout: out}
	go func() {
		defer close(r.done)
		r.o, r.err = s.Guest.Run(ctx, c)
	}()
	select {
	case r.pid = <-out.first:
	case <-r.done:
		t.Fatalf("it ended before it was to: %s, %v", ended(r.o, r.err), r.err)
	}
	return r
}

// wait returns the end of the command.
func (r *running) wait() (string, error) {
	<-r.done
	return ended(r.o, r.err), r.err
}

var errEnough = errors.New("enough")

func guestCancel(t *testing.T, s GuestScene) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := s.begin(ctx, t)
	s.output(t.Context(), t, providers.Command{Args: []string{"kill", "-0", r.pid}}) // or the proof below proves nothing
	cancel(errEnough)
	if got, err := r.wait(); got != "unknown" || !errors.Is(err, errEnough) {
		t.Errorf("%s, %v, want unknown, %v", got, err, errEnough)
	}
	for { // the server of a VM may take its time
		o, err := s.Guest.Run(t.Context(), sh("kill -0 "+r.pid+" 2>/dev/null"))
		if err != nil {
			t.Fatalf("the process of the command: %v", err)
		}
		if o.Status != 0 {
			return
		}
	}
}

func guestCancelled(t *testing.T, s GuestScene) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	o, err := s.Guest.Run(ctx, providers.Command{Args: []string{"touch", "trap"}})
	if got := ended(o, err); got != "did not begin" || !errors.Is(err, errEnough) {
		t.Errorf("%s, %v", got, err)
	}
	if o, err := s.Guest.Run(t.Context(), sh("test -e trap")); err != nil || o.Status != 1 {
		t.Errorf("it ran: status %d, %v", o.Status, err)
	}
}

func guestTogether(t *testing.T, s GuestScene) {
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			var out bytes.Buffer
			text := fmt.Sprintf("command %d", i)
			o, err := s.Guest.Run(t.Context(), providers.Command{
				Args: []string{"sh", "-c", "cat; echo \"$V\" >&2; exit $1", "sh", fmt.Sprint(i)}, Env: []string{"V=" + text}, Stdin: strings.NewReader(text), Stdout: &out,
			})
			if err != nil || o.Status != i || out.String() != text || o.Stderr != text+"\n" {
				t.Errorf("%s: status %d, %v, %q, %q", text, o.Status, err, &out, o.Stderr)
			}
		})
	}
	wait.Wait()
}

func guestDial(t *testing.T, s GuestScene) {
	networks := []string{"tcp", "unix"}
	if s.TCPOnly {
		networks = networks[:1]
	}
	for _, network := range networks {
		address := s.Listen(t, network)
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				if err := echoes(t.Context(), s.Guest, network, address, fmt.Sprintf("%d%s", i, strings.Repeat("x", 100_000))); err != nil {
					t.Errorf("%s %s: %v", network, address, err)
				}
			})
		}
		wait.Wait()
	}
	for network, address := range map[string]string{"tcp": "127.0.0.1:1", "unix": "no.sock", "udp": "127.0.0.1:1"} {
		if c, err := s.Guest.Dial(t.Context(), network, address); err == nil || !strings.HasPrefix(err.Error(), "connect to "+address+": ") {
			t.Errorf("%s %s: %v, %v", network, address, c, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := s.Guest.Dial(ctx, "tcp", "127.0.0.1:1"); err == nil {
		t.Errorf("with an ended context: %v", c)
	}
}

// echoes sends a text to an echo server inside, and reads it back.
func echoes(ctx context.Context, g providers.Guest, network, address, text string) (err error) {
	dialing, cancel := context.WithCancel(ctx)
	conn, err := g.Dial(dialing, network, address)
	cancel() // which limits dialing only
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("a %T has no CloseWrite", conn)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, text)
		sent <- errors.Join(err, half.CloseWrite())
	}()
	back, err := io.ReadAll(conn)
	if err = errors.Join(err, <-sent); err != nil || string(back) != text {
		return fmt.Errorf("of %d bytes came back %d: %w", len(text), len(back), err)
	}
	return nil
}

func guestClose(t *testing.T, s GuestScene) {
	r := s.begin(t.Context(), t)
	conn, err := s.Guest.Dial(t.Context(), "tcp", s.Listen(t, "tcp"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Guest.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := r.wait(); got != "unknown" || !errors.Is(err, net.ErrClosed) {
		t.Errorf("the command that ran: %s, %v", got, err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	o, err := s.Guest.Run(t.Context(), sh("true"))
	if got := ended(o, err); got != "did not begin" || !errors.Is(err, net.ErrClosed) {
		t.Errorf("a command after it: %s, %v", got, err)
	}
	if _, err := s.Guest.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection after it: %v", err)
	}
}

func guestLost(t *testing.T, s GuestScene) {
	if s.Lose == nil {
		t.Skip("this guest cannot be lost")
	}
	r := s.begin(t.Context(), t)
	s.Lose(t)
	if got, err := r.wait(); got != "unknown" {
		t.Errorf("the command that ran: %s, %v", got, err)
	}
	if !s.Returns {
		o, err := s.Guest.Run(t.Context(), sh("true"))
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("a command after it: %s, %v", got, err)
		}
		return
	}
	// The next command is served again, and the last one was not repeated.
	if got := s.output(t.Context(), t, sh("cat begun")); got != "begun\n" {
		t.Errorf("it began more than once: %q", got)
	}
}

// Echo starts a server that sends back what it gets, on this host until the test ends, and returns
// its address. For a unix socket, address is its path; for "tcp" it is not used.
func Echo(t *testing.T, network, address string) string {
	t.Helper()
	if network == "tcp" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c) //nolint:errcheck // the client sees what is missing
				_ = c.Close()        //nolint:errcheck // see above
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return l.Addr().String()
}
