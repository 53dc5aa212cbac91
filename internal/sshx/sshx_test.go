package sshx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
)

// known is a target whose server lets it in and shows the key that is pinned.
func known(t *testing.T, s sshtest.Server) sshx.Target {
	t.Helper()
	dir := t.TempDir()
	identity := filepath.Join(dir, "id_ed25519")
	line, err := sshx.EnsureKey(identity, "me")
	if err != nil {
		t.Fatal(err)
	}
	if s.Authorized == nil {
		s.Authorized = parse(t, line)
	}
	if s.HostKey == nil {
		s.HostKey = sshtest.NewKey(t)
	}
	hosts := filepath.Join(dir, "known_hosts")
	if err := sshx.Pin(hosts, "dev", string(ssh.MarshalAuthorizedKey(s.HostKey.PublicKey()))); err != nil {
		t.Fatal(err)
	}
	return sshx.Target{
		Address: "127.0.0.1", Port: s.Start(t), User: "root", IdentityFile: identity, Alias: "dev", KnownHosts: hosts,
	}
}

func parse(t *testing.T, line string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestProbe(t *testing.T) {
	if err := sshx.Probe(t.Context(), known(t, sshtest.Server{})); err != nil {
		t.Errorf("a server that lets in: %v", err)
	}
}

// A forwarded port accepts a connection before anything listens behind it.
func TestProbeOfASilentServer(t *testing.T) {
	target := known(t, sshtest.Server{Silent: true})
	target.Banner = time.Millisecond
	err := sshx.Probe(t.Context(), target)
	// On a busy machine connecting alone may take longer than that.
	for ; unconnected(err); err = sshx.Probe(t.Context(), target) {
		target.Banner *= 2
	}
	wantError(t, err, "port open, no SSH banner yet")
}

// unconnected reports whether a probe ended before it had a connection.
func unconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func TestProbeWhenTheContextEnds(t *testing.T) {
	target := known(t, sshtest.Server{Silent: true})
	target.Banner = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("told to stop"))
	if err := sshx.Probe(ctx, target); err == nil {
		t.Error("a probe with an ended context succeeded")
	}
}

func TestProbeRefused(t *testing.T) {
	target := known(t, sshtest.Server{Authorized: sshtest.NewKey(t).PublicKey()})
	err := sshx.Probe(t.Context(), target)
	var refused *sshx.AuthError
	if !errors.As(err, &refused) {
		t.Fatalf("got %T: %v", err, err)
	}
	wantError(t, err, "the server does not let root in with "+target.IdentityFile)
}

// row A47
func TestHostKeyThatChanged(t *testing.T) {
	target := known(t, sshtest.Server{})
	other := sshtest.NewKey(t).PublicKey()
	if err := sshx.Pin(target.KnownHosts, "dev", string(ssh.MarshalAuthorizedKey(other))); err != nil {
		t.Fatal(err)
	}
	for _, accept := range []bool{false, true} {
		target.AcceptNew = accept
		err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Sleep: never(t)})
		var key *sshx.HostKeyError
		if !errors.As(err, &key) {
			t.Fatalf("got %T: %v", err, err)
		}
		if !slices.Equal(key.Known, []string{ssh.FingerprintSHA256(other)}) || !strings.HasPrefix(key.Shown, "SHA256:") {
			t.Errorf("shown %q, known %q", key.Shown, key.Known)
		}
		wantError(t, err, fmt.Sprintf("dev shows the host key %s instead of %s, which %s pins", key.Shown, key.Known[0], target.KnownHosts))
	}
}

// row A47
func TestHostKeyOfAStranger(t *testing.T) {
	target := known(t, sshtest.Server{})
	if err := os.Remove(target.KnownHosts); err != nil {
		t.Fatal(err)
	}
	err := sshx.Probe(t.Context(), target)
	var key *sshx.HostKeyError
	if !errors.As(err, &key) || len(key.Known) != 0 {
		t.Fatalf("got %T: %v", err, err)
	}
	wantError(t, err, fmt.Sprintf("dev shows the host key %s, and %s knows no key of it", key.Shown, target.KnownHosts))

	target.AcceptNew = true
	if err := sshx.Probe(t.Context(), target); err != nil {
		t.Fatalf("accept a new host: %v", err)
	}
	target.AcceptNew = false
	if err := sshx.Probe(t.Context(), target); err != nil {
		t.Errorf("what was accepted is not known: %v", err)
	}
}

func TestPinKeepsOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known_hosts")
	a, b, c := line(t), line(t), line(t)
	for _, pin := range [][2]string{{"a", a}, {"b", b}, {"a", c}} {
		if err := sshx.Pin(path, pin[0], pin[1]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("b "+b+"\na "+c+"\n", read(t, path)); diff != "" {
		t.Errorf("known_hosts (-want +got):\n%s", diff)
	}
}

func TestWait(t *testing.T) {
	target := known(t, sshtest.Server{})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late := target
	late.Port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reasons []string
	attempts := 0
	err = sshx.Wait(ctx, late, sshx.WaitOptions{
		Log: func(reason string) { reasons = append(reasons, reason) },
		Sleep: func(ctx context.Context, _ time.Duration) error {
			if attempts++; attempts == 3 {
				cancel()
			}
			return ctx.Err()
		},
	})
	var wait *sshx.WaitError
	if !errors.As(err, &wait) {
		t.Fatalf("got %T: %v", err, err)
	}
	refused := fmt.Sprintf("dial tcp 127.0.0.1:%d: connect: connection refused", late.Port)
	wantError(t, err, "no login over SSH in time: "+refused)
	if diff := cmp.Diff([]string{refused}, reasons); diff != "" {
		t.Errorf("each reason is said once (-want +got):\n%s", diff)
	}
}

// attempts returns a sleep that ends a wait after so many attempts.
func attempts(limit int) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error {
		if limit--; limit <= 0 {
			return errors.New("too many attempts")
		}
		return nil
	}
}

// A connection that a forwarder accepted before the guest listened is never answered: each attempt
// is a connection of its own.
func TestWaitConnectsAnew(t *testing.T) {
	target := known(t, sshtest.Server{Deaf: 3})
	target.Banner = time.Second
	if err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Sleep: attempts(100)}); err != nil {
		t.Error(err)
	}
}

// A server that is slower than the first attempts is waited for.
func TestWaitOutlastsASlowServer(t *testing.T) {
	target := known(t, sshtest.Server{Delay: 100 * time.Millisecond})
	target.Banner = 500 * time.Millisecond
	if err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Sleep: attempts(100)}); err != nil {
		t.Error(err)
	}
}

// A server that begins to listen while an attempt waits answers a new connection.
func TestWaitConnectsBesideAnAttempt(t *testing.T) {
	target := known(t, sshtest.Server{Deaf: 1})
	target.Banner = 24 * time.Hour
	if err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Every: time.Millisecond, Sleep: never(t)}); err != nil {
		t.Error(err)
	}
}

// A server that is slower than the short connections is waited for by the attempt itself.
func TestWaitKeepsTheFirstConnection(t *testing.T) {
	target := known(t, sshtest.Server{Delay: 100 * time.Millisecond})
	target.Banner = 24 * time.Hour
	if err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Every: time.Millisecond, Sleep: never(t)}); err != nil {
		t.Error(err)
	}
}

func TestNextBanner(t *testing.T) {
	var got []time.Duration
	for d := time.Duration(0); len(got) < 8; {
		d = sshx.NextBanner(d, 5*time.Second)
		got = append(got, d.Round(time.Millisecond))
	}
	if text := fmt.Sprint(got); text != "[500ms 750ms 1.125s 1.688s 2.531s 3.797s 5s 5s]" {
		t.Error(text)
	}
}

// A guest that boots within seconds is found within half a second; one that needs minutes is not kept
// busy by the connections that look for it.
func TestInterval(t *testing.T) {
	var got []string
	for _, waited := range []time.Duration{0, 6 * time.Second, 20 * time.Second, time.Minute, 100 * time.Second, time.Hour} {
		got = append(got, sshx.Interval(500*time.Millisecond, waited).String())
	}
	if diff := cmp.Diff("500ms 500ms 1s 3s 5s 5s", strings.Join(got, " ")); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
}

func TestWaitEndsWhenTheGuestDoes(t *testing.T) {
	target := known(t, sshtest.Server{Authorized: sshtest.NewKey(t).PublicKey()})
	err := sshx.Wait(t.Context(), target, sshx.WaitOptions{
		Check: func(context.Context) error { return errors.New("the guest is shut off (crashed)") },
		Sleep: never(t),
	})
	wantError(t, err, "the guest is shut off (crashed)")
}

// What watches the guest may fail because the time is up: that is no news of the guest.
func TestWaitEndsWithItsTime(t *testing.T) {
	target := known(t, sshtest.Server{Authorized: sshtest.NewKey(t).PublicKey()})
	ctx, cancel := context.WithCancel(t.Context())
	err := sshx.Wait(ctx, target, sshx.WaitOptions{
		Check: func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	var late *sshx.WaitError
	if !errors.As(err, &late) {
		t.Errorf("wait: %v, want a *sshx.WaitError", err)
	}
}

// A guest may write down who may log in only after its server listens.
func TestWaitOutlastsARefusedLogin(t *testing.T) {
	refuses := known(t, sshtest.Server{Authorized: sshtest.NewKey(t).PublicKey()})
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := sshx.Wait(ctx, refuses, sshx.WaitOptions{Sleep: func(context.Context, time.Duration) error {
		if tries++; tries == 2 {
			cancel()
		}
		return ctx.Err()
	}})
	var refused *sshx.AuthError
	if !errors.As(err, &refused) || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// A guest that is still being set up may get its host key after its server listens; one that is set up
// has the wrong one for good.
func TestWaitForTheHostKey(t *testing.T) {
	target := known(t, sshtest.Server{})
	target.HostKey, target.HostKeyFrom, target.AcceptNew = line(t), "the owner mark", false
	tries := 0
	err := sshx.Wait(t.Context(), target, sshx.WaitOptions{
		Settling: func() bool { return tries < 2 },
		Sleep:    func(context.Context, time.Duration) error { tries++; return nil },
	})
	var key *sshx.HostKeyError
	if !errors.As(err, &key) || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestWaitWithAnUnusableKey(t *testing.T) {
	target := known(t, sshtest.Server{})
	if err := os.WriteFile(target.IdentityFile, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := sshx.Wait(t.Context(), target, sshx.WaitOptions{Sleep: never(t)})
	var identity *sshx.IdentityError
	if !errors.As(err, &identity) {
		t.Errorf("got %T: %v", err, err)
	}
}

func TestShellWithoutATerminal(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, []byte("typed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // only read
	var requests requestLog
	var out, errs bytes.Buffer
	target := known(t, sshtest.Server{Shell: "cat", Seen: requests.add})
	status, err := sshx.Shell(t.Context(), target, sshx.Terminal{In: in, Out: &out, Err: &errs})
	if err != nil || status != 0 {
		t.Fatalf("status %d: %v", status, err)
	}
	if diff := cmp.Diff("shell", requests.String()); diff != "" || out.String() != "typed\n" {
		t.Errorf("requests (-want +got):\n%s\noutput %q", diff, &out)
	}
}

// requestLog writes down what a server is asked for.
type requestLog struct {
	mu  sync.Mutex
	all []string
}

func (l *requestLog) add(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, request)
}

func (l *requestLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, " ")
}

// row L60
func TestConfig(t *testing.T) {
	got := sshx.Config(sshx.Target{
		Address: "127.0.0.1", Port: 40022, User: "root", Alias: "quickstart.dev",
		IdentityFile: `/home/me/my keys/100%/id`, KnownHosts: `/home/me/my "keys"/known_hosts`,
	}, "vm.dev")
	want := `Host vm.dev
  HostName 127.0.0.1
  Port 40022
  User root
  IdentityFile "/home/me/my keys/100%%/id"
  IdentitiesOnly yes
  HostKeyAlias quickstart.dev
  UserKnownHostsFile "/home/me/my \"keys\"/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stanza (-want +got):\n%s", diff)
	}
	if got := sshx.Config(sshx.Target{AcceptNew: true}, "x"); !strings.Contains(got, "StrictHostKeyChecking accept-new\n") {
		t.Errorf("accept-new is lost:\n%s", got)
	}
}

func line(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey())))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	got := "no error"
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func never(t *testing.T) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error {
		t.Error("it waits where it should end at once")
		return errors.New("waited")
	}
}
