// Package keptlog keeps logs of VMs that would else be lost, whatever provider the VM has: it stands around every
// provider. The logs of a VM that could not be made or started are always kept, those of a VM that is removed if the
// user asks for it. What cannot be kept never fails a step.
package keptlog

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"vmctl/providers"
	"vmctl/spec"
)

// Wrap returns the type with logs that are kept.
func Wrap(t providers.Type) providers.Type {
	open := t.Open
	if _, ok := t.Kinds[spec.VM]; !ok || open == nil {
		return t
	}
	t.Open = func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
		p, err := open(ctx, s)
		if err != nil || s.Logs == "" {
			return p, err
		}
		return &wrapper{Provider: p, folder: s.Logs}, nil
	}
	return t
}

// wrapper is a provider whose VMs leave their logs.
type wrapper struct {
	providers.Provider
	folder string
}

var _ providers.Wrapper = (*wrapper)(nil)

// Unwrap returns the provider.
func (w *wrapper) Unwrap() providers.Provider { return w.Provider }

// Do lets the provider do its step, and keeps the logs of the VM if they are due.
func (w *wrapper) Do(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	switch {
	case work.Address.Kind != spec.VM || work.Provision != "":
		return w.Provider.Do(ctx, work, log)
	case work.Phase == providers.PhaseRemove && work.KeepLogs:
		return w.remove(ctx, work, log)
	case slices.Contains([]providers.Phase{providers.PhaseMake, providers.PhaseUp, providers.PhaseReady}, work.Phase):
		return w.bring(ctx, work, log)
	default:
		return w.Provider.Do(ctx, work, log)
	}
}

// remove copies the logs before the step, and keeps the copies if it has removed the VM: until then nobody knows
// whether it is vmctl's.
func (w *wrapper) remove(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	d := w.draft(work)
	d.copy(ctx)
	r, err := w.Provider.Do(ctx, work, log)
	if err != nil || !r.Gone || r.How == providers.AlreadyGone {
		_ = os.RemoveAll(d.temp) //nolint:errcheck // the next draft of the VM replaces it
		return r, err
	}
	r.Evidence = append(r.Evidence, d.keep()...)
	return r, nil
}

// copyLimit is the time to copy the logs of a VM whose own time is up.
const copyLimit = time.Minute

// bring keeps the logs of a VM that does not come up, with the progress of the step.
func (w *wrapper) bring(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	said := progress{next: log}
	r, err := w.Provider.Do(ctx, work, said.log)
	var p *providers.Problem
	if !errors.As(err, &p) || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r, err
	}
	switch p.Outcome {
	case providers.Unsafe, providers.Stale: // nothing was begun
		return r, err
	case providers.Failed, providers.Timeout:
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyLimit)
	defer cancel()
	d := w.draft(work)
	d.copy(own)
	d.write(work.Op+suffix, strings.NewReader(strings.Join(said.lines, "")))
	p.Seen = append(slices.Clone(p.Seen), d.keep()...)
	return r, err
}

// progress collects the lines of a step.
type progress struct {
	next  providers.Log
	mu    sync.Mutex
	lines []string
}

func (p *progress) log(line providers.Progress) {
	if line.Text != "" {
		p.mu.Lock()
		p.lines = append(p.lines, line.Text+"\n")
		p.mu.Unlock()
	}
	if p.next != nil {
		p.next(line)
	}
}
