package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
