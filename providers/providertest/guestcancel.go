package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"vmctl/providers"
)

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
