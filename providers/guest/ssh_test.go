//go:build unix

package guest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/guest"
)

func echo(g providers.Guest, t *testing.T) string {
	t.Helper()
	var out strings.Builder
	o, err := g.Run(t.Context(), providers.Command{Args: []string{"echo", "hello"}, Stdout: &out})
	return fmt.Sprintf("%d %q %v", o.Status, &out, err)
}

const hello = `0 "hello\n" <nil>`

func TestAThousandCommandsUseOneConnection(t *testing.T) {
	s := serve(t, sshtest.Server{MaxSessions: 10})
	g := s.enter(t, guest.Keepalive{})
	const callers, each = 8, 125
	var wait sync.WaitGroup
	var wrong atomic.Int64
	for range callers {
		wait.Go(func() {
			for range each {
				if got := echo(g, t); got != hello {
					wrong.Add(1)
					t.Error(got)
				}
			}
		})
	}
	wait.Wait()
	if n := s.connections(); n != 1 || wrong.Load() > 0 {
		t.Errorf("%d commands used %d connections, and %d failed", callers*each, n, wrong.Load())
	}
}

// hold runs so many commands at the same time, until the returned function is called.
func hold(t *testing.T, g providers.Guest, n int) (release func()) {
	t.Helper()
	var inputs []*io.PipeWriter
	var wait sync.WaitGroup
	var begun sync.WaitGroup
	for range n {
		r, w := io.Pipe()
		inputs = append(inputs, w)
		begun.Add(1)
		once := sync.OnceFunc(begun.Done)
		wait.Go(func() {
			defer once()
			o, err := g.Run(t.Context(), providers.Command{
				Args: []string{"sh", "-c", "echo begun; cat"}, Stdin: r, Stdout: writer(func([]byte) { once() }),
			})
			if err != nil || o.Status != 0 {
				t.Errorf("status %d, %v", o.Status, err)
			}
		})
	}
	begun.Wait()
	return func() {
		for _, w := range inputs {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		wait.Wait()
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// A server that limits the sessions of a connection runs more commands at a time than that.
func TestMoreCommandsThanAConnectionHasSessions(t *testing.T) {
	s := serve(t, sshtest.Server{MaxSessions: 3})
	g := s.enter(t, guest.Keepalive{})
	hold(t, g, 14)()
	if n := s.connections(); n < 5 || n > 14 {
		t.Errorf("14 commands at a time, 3 on each connection, used %d connections", n)
	}
	before := s.connections()
	for range 20 {
		if got := echo(g, t); got != hello {
			t.Error(got)
		}
	}
	if n := s.connections(); n != before {
		t.Errorf("commands one by one opened %d more connections", n-before)
	}
}

// A server that sets no limit, or a larger one than OpenSSH's, still has ten sessions of a connection at a time at most:
// some servers end a connection that has many.
func TestTenSessionsShareAConnection(t *testing.T) {
	for _, limit := range []int{0, 24} {
		s := serve(t, sshtest.Server{MaxSessions: limit})
		hold(t, s.enter(t, guest.Keepalive{}), 21)()
		if n := s.connections(); n != 3 {
			t.Errorf("21 commands at a time used %d connections, with room for %d sessions on each (0: any number)", n, limit)
		}
	}
}

// A server that serves no sessions is an answer, and no reason to try for ever.
func TestAServerWithoutSessions(t *testing.T) {
	s := serve(t, sshtest.Server{MaxSessions: -1})
	g := s.enter(t, guest.Keepalive{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if got := echo(g, t); !strings.HasPrefix(got, `0 "" run "echo": it did not begin: the server opens no session: `) {
				t.Error(got)
			}
		})
	}
	wait.Wait()
}

// frozen is a connection whose server hangs once it is told to, as the server of a VM that is
// paused, or whose network is gone.
type frozen struct {
	net.Conn
	freeze <-chan struct{}
	thawed <-chan struct{}
}

func (f frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.freeze:
		<-f.thawed
		return 0, io.EOF
	default:
		return n, err
	}
}

func (f frozen) Write(b []byte) (int, error) {
	select {
	case <-f.freeze:
		<-f.thawed
		return 0, io.ErrClosedPipe
	default:
		return f.Conn.Write(b)
	}
}

// row A03, of commands: nobody knows what a command did whose guest went away
func TestAGuestThatFallsSilentIsNoticed(t *testing.T) {
	freeze, thawed := make(chan struct{}), make(chan struct{})
	var execs atomic.Int64
	first := true
	s := serve(t, sshtest.Server{
		Accept: func(c net.Conn) net.Conn {
			if !first {
				return c
			}
			first = false
			return frozen{c, freeze, thawed}
		},
		Seen: func(request string) {
			if request == "exec" {
				execs.Add(1)
			}
		},
	})
	t.Cleanup(func() { close(thawed) }) // before the server ends
	g := s.enter(t, guest.Keepalive{Every: time.Millisecond, Patience: 500 * time.Millisecond})
	o, err := g.Run(t.Context(), providers.Command{
		Args: []string{"sh", "-c", "echo begun >>begun; echo begun; cat"}, Stdin: pending(t), Stdout: writer(func([]byte) { close(freeze) }),
	})
	var fate *providers.FateError
	if !errors.As(err, &fate) || err.Error() != `run "sh": it is unknown what it did: the connection was lost: the guest gave no sign of life for 500ms` {
		t.Errorf("status %d, %v", o.Status, err)
	}
	if n := execs.Load(); n != 1 {
		t.Errorf("the server was told %d times to run it", n)
	}
	if got := echo(g, t); got != hello {
		t.Errorf("the next command: %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(s.home, "begun")); err != nil || string(text) != "begun\n" {
		t.Errorf("it began %q, %v", text, err)
	}
}

func pending(t *testing.T) io.Reader {
	r, w := io.Pipe()
	closeAfter(t, w)
	return r
}

// A connection that was lost while nobody used it is opened again, for whatever comes next.
func TestALostConnectionIsOpenedAgain(t *testing.T) {
	s := serve(t, sshtest.Server{})
	g := s.enter(t, guest.Keepalive{})
	for i := 1; i <= 3; i++ {
		if got := echo(g, t); got != hello {
			t.Error(got)
		}
		if n := s.connections(); n != i {
			t.Errorf("%d connections, want %d", n, i)
		}
		s.cut(t)
	}
	if _, err := g.Dial(t.Context(), "unix", "no.sock"); err == nil || s.connections() != 4 {
		t.Errorf("dialed with %d connections, want 4: %v", s.connections(), err)
	}
}

// The end of ctx reaches the server as a signal, and not only as the end of the input.
func TestTheEndOfCtxIsASignal(t *testing.T) {
	signalled := make(chan struct{})
	s := serve(t, sshtest.Server{Seen: func(request string) {
		if request == "signal" {
			close(signalled)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	g := s.enter(t, guest.Keepalive{})
	_, err := g.Run(ctx, providers.Command{Args: []string{"sh", "-c", "echo begun; cat"}, Stdin: pending(t), Stdout: writer(func([]byte) { cancel() })})
	if !errors.As(err, new(*providers.FateError)) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-signalled
}

// Neither the arguments nor the variables of a command are in an argument of a shell.
func TestNothingOfACommandIsInAnArgument(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	login := filepath.Join(t.TempDir(), "login")
	script := "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'" + log + "'\nexec /bin/sh \"$@\"\n"
	if err := os.WriteFile(login, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	s := serve(t, sshtest.Server{Login: []string{login, "-c"}})
	var out strings.Builder
	o, err := s.enter(t, guest.Keepalive{}).Run(t.Context(), providers.Command{
		Args: []string{"sh", "-c", `tr '\0' '\n' </proc/$PPID/cmdline; printf %s "$SECRET"`}, Env: []string{"SECRET=hidden word"}, Dir: "/", Stdout: &out,
	})
	if err != nil || o.Status != 0 || !strings.Contains(out.String(), "hidden word") {
		t.Errorf("status %d, %v: %s", o.Status, err, &out)
	}
	got, err := os.ReadFile(log)
	want := `-c exec /bin/sh -c 'IFS= read -r _vmctl_line && eval "$_vmctl_line"'` + "\n"
	if string(got) != want || err != nil {
		t.Errorf("the login shell got %s, %v, want %s", got, err, want)
	}
}

// Whatever variables the guest exports, the program does not get the script.
func TestTheScriptIsInNoVariable(t *testing.T) {
	t.Setenv("_vmctl_line", "x") // the server's commands get it
	t.Setenv("_vmctl_lf", "x")
	var out strings.Builder
	o, err := serve(t, sshtest.Server{}).enter(t, guest.Keepalive{}).Run(t.Context(), providers.Command{Args: []string{"env"}, Env: []string{"V=a\nb"}, Stdout: &out})
	if err != nil || o.Status != 0 || !strings.Contains(out.String(), "V=a\nb\n") {
		t.Errorf("status %d, %v", o.Status, err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "_vmctl") {
			t.Errorf("the program got %s", line)
		}
	}
}

// The shell that the user has in the guest may be any, and may write at its start.
func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "fish", "tcsh", "busybox", "mksh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		login := []string{path, "-c"}
		if shell == "busybox" {
			login = []string{path, "sh", "-c"}
		}
		g := serve(t, sshtest.Server{Login: login}).enter(t, guest.Keepalive{})
		word := "it's $HOME !! \"x\"\n\\ ä"
		var out bytes.Buffer
		o, err := g.Run(t.Context(), providers.Command{
			Args: []string{"sh", "-c", `printf '%s|%s|' "$0" "$V"; cat`, word}, Env: []string{"V=" + word}, Dir: "/", Stdin: strings.NewReader("in"), Stdout: &out,
		})
		if want := word + "|" + word + "|in"; err != nil || o.Status != 0 || out.String() != want {
			t.Errorf("%s: status %d, %v, %q, want %q", shell, o.Status, err, &out, want)
		}
	}
}

// login returns a login shell that runs a script.
func login(t *testing.T, script string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "login")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return []string{path, "-c"}
}

func TestStartupFilesThatWrite(t *testing.T) {
	g := serve(t, sshtest.Server{Login: login(t, `echo "Welcome!"; printf "last login: today"; exec /bin/sh "$@"`)}).enter(t, guest.Keepalive{})
	if got := echo(g, t); got != hello {
		t.Error(got)
	}
}

// Without a proof that the command began, nothing that a shell answers is its result.
//
// row A03, of commands
func TestALoginShellThatRunsNothing(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":                         "the login shell ended with status 0",
		"echo 'Account locked.'; exit 1": "the login shell ended with status 1 and said: Account locked.",
		"echo; echo why >&2; exit 255":   "the login shell ended with status 255 and said: why",
		"cat":                            "the login shell ended with status 0 and said: ",
	} {
		g := serve(t, sshtest.Server{Login: login(t, script)}).enter(t, guest.Keepalive{})
		if got := echo(g, t); !strings.HasPrefix(got, `0 "" run "echo": it did not begin: `+want) {
			t.Errorf("%s: %s", script, got)
		}
	}
	g := serve(t, sshtest.Server{Login: login(t, "cat /dev/zero")}).enter(t, guest.Keepalive{})
	if got := echo(g, t); !strings.Contains(got, "the login shell writes without end before the command begins") {
		t.Error(got)
	}
}

// row A47, of commands
func TestAnotherHostKeyRunsNothing(t *testing.T) {
	s := serve(t, sshtest.Server{})
	s.target.HostKey = string(ssh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey()))
	_, err := s.enter(t, guest.Keepalive{}).Run(t.Context(), providers.Command{Args: []string{"true"}})
	if !errors.As(err, new(*sshx.HostKeyError)) || errors.As(err, new(*providers.FateError)) {
		t.Error(err)
	}
}

// A server that runs no commands is not asked again and again.
func TestAServerThatRefusesCommands(t *testing.T) {
	var execs atomic.Int64
	s := serve(t, sshtest.Server{Refuses: "exec", Seen: func(request string) {
		if request == "exec" {
			execs.Add(1)
		}
	}})
	if got := echo(s.enter(t, guest.Keepalive{}), t); got != `0 "" run "echo": it did not begin: the server refuses to run a command` || execs.Load() != 1 {
		t.Errorf("%s, asked %d times", got, execs.Load())
	}
}

// Dropbear closes a session that has not begun when the command of another one ends.
func TestSessionsThatEndBeforeTheCommand(t *testing.T) {
	for ends, want := range map[int]string{
		1: hello, 5: hello, 1000: `0 "" run "echo": it did not begin: the server ends each session before it runs a command`,
	} {
		g := serve(t, sshtest.Server{Ends: ends}).enter(t, guest.Keepalive{})
		if got := echo(g, t); got != want {
			t.Errorf("after %d sessions that ended: %s, want %s", ends, got, want)
		}
	}
}

// A connection that is lost before the shell got the command is no reason to fail: nothing began.
func TestAConnectionThatIsLostBeforeTheCommand(t *testing.T) {
	for losses := range 3 {
		var s *server
		var execs atomic.Int64
		s = serve(t, sshtest.Server{Seen: func(request string) {
			if request == "exec" && execs.Add(1) <= int64(losses) {
				s.cut(t)
			}
		}})
		got, want := echo(s.enter(t, guest.Keepalive{}), t), hello
		if losses == 2 {
			want = `0 "" run "echo": it did not begin: the connection was lost`
		}
		if got != want {
			t.Errorf("after %d losses: %s, want %s", losses, got, want)
		}
	}
}
