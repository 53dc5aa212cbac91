package job

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// unkept is an output of a command that cannot be kept: it is counted, and that of an agent is understood.
type unkept struct {
	output *os.File // the end that is read
	size   atomic.Int64
	report Report
	ended  chan struct{}
}

// Read implements io.Reader.
func (u *unkept) Read(p []byte) (int, error) {
	n, err := u.output.Read(p)
	u.size.Add(int64(n))
	return n, err
}

// drain returns the end of an output to which the command writes, and reads the other one until nobody writes to it any more.
func (w *Worker) drain(r Record, name string) (*os.File, error) {
	output, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	u := &unkept{output: output, ended: make(chan struct{})}
	go func() {
		defer close(u.ended)
		if a := AgentOf(r.Agent); a != nil && name == "stdout" {
			u.report, _ = Judge(a, u) //nolint:errcheck // what was understood counts
		}
		_, _ = io.Copy(io.Discard, u) //nolint:errcheck // nobody needs it
	}()
	if w.unkept == nil {
		w.unkept = map[string]*unkept{}
	}
	w.unkept[name] = u
	return in, nil
}

// drained returns once all that the command has written is read. A process that could not be ended may hold an output: nobody
// waits for it long.
func (w *Worker) drained(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, forceWait)
	defer cancel()
	for _, u := range w.unkept {
		stop := context.AfterFunc(limit, func() {
			_ = u.output.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it ends the wait below
		})
		<-u.ended
		stop()
		_ = u.output.Close() //nolint:errcheck // it is only read
	}
}

// reportFrom returns the report on what an agent has written from a byte on, whether or not that is kept; nil: it is no agent's.
func (w *Worker) reportFrom(ctx context.Context, r Record, from int64) (*Report, error) {
	w.drained(ctx)
	if u := w.unkept["stdout"]; u != nil && AgentOf(r.Agent) != nil {
		return &u.report, nil
	}
	return w.Store.reportFrom(r, from)
}
