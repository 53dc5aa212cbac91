package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"vmctl/providers"
)

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
