package fault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// Wrap returns the provider with the faults that its settings ask for. kinds lists the kinds of
// its objects. counts is the path of the file that counts the faults, also for other processes.
func Wrap(p providers.Provider, s providers.Settings, kinds map[spec.Kind]map[string]providers.Attribute, counts string) (providers.Provider, error) {
	w := &wrapper{Provider: p, kinds: kinds, counts: counts}
	if h, ok := p.(Helper); ok {
		w.helper, w.ops = h, h.FaultOps()
	}
	var err error
	if w.faults, err = decode(ctyread.Attr(s.Attrs, "fault"), w.ops); err != nil || len(w.faults) == 0 {
		return p, err
	}
	return w, nil
}

// wrapper is a provider with faults.
type wrapper struct {
	providers.Provider
	helper Helper // nil: the provider helps with none
	ops    map[string][]string
	faults []Fault
	kinds  map[spec.Kind]map[string]providers.Attribute
	counts string
}

var _ providers.Wrapper = (*wrapper)(nil)

// Unwrap returns the provider without faults.
func (w *wrapper) Unwrap() providers.Provider { return w.Provider }

// Observe observes, unless a fault strikes.
func (w *wrapper) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	why, err := w.observing(spec.Address{}).observe(ctx)
	if err == nil && why == "" {
		var inv providers.Inventory
		if inv, err = w.Provider.Observe(ctx, q); err == nil {
			err = w.blind(ctx, &inv)
		}
		return inv, err
	}
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	for kind := range w.kinds {
		inv.Partial[kind] = providers.Unread(errors.New(why))
	}
	return inv, err
}

// Do carries out one step, unless a fault strikes.
func (w *wrapper) Do(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	f, err := w.strike(work.Op, work.Address)
	if err != nil {
		return providers.Result{}, problem(work, providers.Failed, "host", "%w", err)
	}
	if slices.Contains(w.ops[f.Kind], f.Op) {
		return w.helper.DoStruck(ctx, work, log, f)
	}
	switch f.Kind {
	case Hang:
		<-ctx.Done()
		return providers.Result{}, problem(work, providers.Timeout, "no_answer", "the host gave no answer within %s", work.Timeout)
	case Fail:
		return providers.Result{}, f.Injected(work)
	case Unreadable:
		return providers.Result{}, problem(work, providers.Failed, "unreadable", "%s cannot be read: injected fault: %s", work.Name, f.Kind)
	case Slow:
		if err := clock.Sleep(ctx, f.Delay); err != nil {
			return providers.Result{}, problem(work, providers.Timeout, "no_answer", "%w", err)
		}
	}
	return w.Provider.Do(ctx, work, log)
}

// strike finds the fault that strikes a step now, and counts it. Its kind is "" if none does.
func (w *wrapper) strike(op string, a spec.Address) (Fault, error) {
	for _, f := range w.faults {
		if f.Op != op || f.Address != (spec.Address{}) && f.Address != a {
			continue
		}
		if f.Times == 0 {
			return f, nil
		}
		if counted, err := w.count(f); err != nil || counted {
			return f, err
		}
	}
	return Fault{}, nil
}

// count uses up one of the times of a fault, also across processes: each appends a line of its
// own to one file, and the order of the lines decides.
func (w *wrapper) count(f Fault) (bool, error) {
	used, err := w.lines(f)
	if err != nil || uint64(len(used)) >= f.Times {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(w.counts), 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(w.counts, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, err
	}
	mine := rand.Text()
	_, err = fmt.Fprintf(file, "%q\n", f.key+" "+mine)
	if err = errors.Join(err, file.Close()); err != nil {
		return false, err
	}
	used, err = w.lines(f)
	place := slices.IndexFunc(used, func(line string) bool { return strings.Contains(line, mine) })
	return uint64(place) < f.Times, err
}

// lines returns the lines that count a fault.
func (w *wrapper) lines(f Fault) ([]string, error) {
	text, err := os.ReadFile(w.counts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, strings.TrimSuffix(fmt.Sprintf("%q", f.key+" "), `"`)) {
			all = append(all, line)
		}
	}
	return all, nil
}
