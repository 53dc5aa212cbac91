package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// report returns the report on the output of an agent, whether or not that is kept on this host; nil: it is no agent's.
func (w *GuestWorker) report(ctx context.Context, r Record) (*Report, error) {
	a := AgentOf(r.Agent)
	if a == nil || w.unkept["stdout"] == nil {
		return w.Store.ReportOf(r)
	}
	out, err := w.inside(ctx, guestRead, "stdout", "1")
	if err != nil {
		return nil, fmt.Errorf("read the output of job %s: %w", w.ID, err)
	}
	report, err := Judge(a, bytes.NewReader(out))
	return &report, err
}

// copyOutputs adds to the files of this host what the command has written since, and reports whether
// that was anything. An output that cannot be kept decides nothing.
func (w *GuestWorker) copyOutputs(ctx context.Context, l look) (more bool, err error) {
	for _, name := range []string{"stdout", "stderr"} {
		more = more || l.sizes[name] > w.sizes[name]
		have := int64(0)
		if info, err := os.Stat(w.Store.Path(w.ID, name)); err == nil && info.Mode().IsRegular() {
			have = info.Size()
		}
		if l.sizes[name] <= have || w.unkept[name] != nil {
			continue
		}
		part, err := w.inside(ctx, guestRead, name, strconv.FormatInt(have+1, 10))
		if err != nil {
			return more, err
		}
		if err := w.keep(name, part); err != nil {
			w.unkept[name] = err
		}
	}
	w.sizes = l.sizes
	return more, nil
}

// unkeptWarnings says which outputs are not kept, and where they are whole.
func (w *GuestWorker) unkeptWarnings(r Record) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(w.unkept)) {
		warnings = append(warnings, fmt.Sprintf("its %s is not kept: %v; it is whole in ~/.vmctl/jobs/%s in %s", name, w.unkept[name], w.ID, r.Inside))
	}
	return warnings
}

// remove removes the folder of the job inside the guest, unless an output is whole only there.
func (w *GuestWorker) remove(ctx context.Context) error {
	if len(w.unkept) > 0 {
		return nil
	}
	_, err := w.inside(ctx, guestRemove)
	return err
}

// keep adds to an output on this host.
func (w *GuestWorker) keep(name string, part []byte) error {
	f, err := os.OpenFile(w.Store.Path(w.ID, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(part)
	return errors.Join(err, f.Close())
}
