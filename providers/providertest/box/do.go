package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// timeout limits a step.
const timeout = time.Minute

// Do implements providers.Provider.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Provider) Begin(_ context.Context, w providers.Work, _ providers.Log) (guard.Task, func() error, error) {
	if p.strike != nil {
		if err := p.strike(w.Op); err != nil {
			return nil, nil, p.Failure(err, "%s %s", w.Op, w.Address)
		}
	}
	return &job{Work: w, p: p}, func() error { return nil }, nil
}

// Failure implements guard.Driver.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "box", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err),
	}
}

// job is one step on a box.
type job struct {
	providers.Work
	p    *Provider
	seen *file
}

// Guard implements guard.Task.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.p.settings.Project, Thing: "box", Look: func(now guard.Seen) string {
		return fmt.Sprintf("%s in %s", now.Name, j.p.settings.Via.Address)
	}}
}

// Look implements guard.Task.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	all, err := j.p.files(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", j.Op, j.Address, err)
	}
	j.seen = nil
	label := ctyread.Text(j.Want, "label")
	for _, f := range all {
		switch {
		case f.ID == j.Object:
			j.seen = &f
		case j.Op == opMake && f.Label == label:
			return nil, &providers.Problem{
				Outcome: providers.Unsafe, Code: "label_taken", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: %s has a box %s already (%s)", j.Op, j.Address, j.p.settings.Via.Address, label, f.ID),
			}
		}
	}
	if j.seen == nil {
		return nil, nil
	}
	return &guard.Seen{ID: j.seen.ID, Name: j.seen.Name, Mark: j.seen.Owner.mark(), Fingerprint: j.p.fingerprint(*j.seen), Running: &j.seen.Open}, nil
}

// Values implements guard.Task.
func (j *job) Values(context.Context) (map[string]cty.Value, error) {
	return map[string]cty.Value{"id": cty.StringVal(string(j.seen.ID))}, nil
}

// Verb implements guard.Task.
func (j *job) Verb() (guard.Verb, error) {
	isOpen := func(open bool) func() bool { return func() bool { return j.seen != nil && j.seen.Open == open } }
	switch j.Op {
	case opMake:
		return guard.Verb{Need: guard.Making, Done: guard.If(j.isWanted, "it is as wanted"), Act: j.put("new", j.wanted)}, nil
	case opWrite:
		return guard.Verb{Need: guard.Expected, Done: guard.If(j.isWanted, "it is as wanted"), Act: j.put("old", j.wanted)}, nil
	case opOpen:
		return guard.Verb{Done: guard.If(isOpen(true), "it is open"), Act: j.put("old", j.changed(func(f *file) { f.Open = true }))}, nil
	case opClose:
		return guard.Verb{Done: guard.If(isOpen(false), "it is closed"), Act: j.put("old", j.changed(func(f *file) { f.Open = false }))}, nil
	case opCheck:
		return guard.Verb{Need: guard.Present, Act: j.check}, nil
	case opRemove:
		return guard.Verb{Need: guard.Removing, Act: j.remove}, nil
	case guard.OpUnmark:
		unmarked := func() bool { return j.seen == nil || j.seen.Owner == nil }
		return guard.Verb{Done: guard.If(unmarked, "it bears no mark"), Act: j.put("old", j.changed(func(f *file) { f.Owner = nil }))}, nil
	default:
		panic("unknown operation " + j.Op)
	}
}

// wanted returns the box as the step is to write it.
func (j *job) wanted() file {
	p := j.p.settings.Project
	f := file{ID: j.Object, Label: ctyread.Text(j.Want, "label"), Name: j.Name}
	if j.seen != nil {
		f = *j.seen
	}
	f.Content, f.Paint = ctyread.Text(j.Want, "content"), ctyread.Text(j.Want, "paint")
	f.Owner = &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: f.ID, Generation: j.Generation}
	return f
}

func (j *job) isWanted() bool {
	if j.seen == nil || j.seen.Owner == nil {
		return false
	}
	now, want := *j.seen, j.wanted()
	sameOwner := *now.Owner == *want.Owner
	now.Owner, want.Owner = nil, nil
	return sameOwner && now == want
}

// changed returns the box as it is, with a change.
func (j *job) changed(change func(*file)) func() file {
	return func() file {
		f := *j.seen
		change(&f)
		return f
	}
}

// put returns an act that writes a box.
func (j *job) put(how string, box func() file) func(context.Context) (*guard.Outcome, error) {
	return func(ctx context.Context) (*guard.Outcome, error) {
		if j.Op == opWrite && j.seen.Open && j.seen.Paint != ctyread.Text(j.Want, "paint") {
			return nil, errors.New("an open box cannot be painted")
		}
		f := box()
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		o, _, err := j.p.run(ctx, put, append(line, '\n'), f.Label, string(f.ID), how)
		if err == nil && o.Status != 0 {
			err = fmt.Errorf("status %d: %s", o.Status, o.Stderr)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", j.Op, j.Address, err)
		}
		done := guard.Did(providers.Done)
		if j.Op == opClose {
			done.How = providers.Graceful
		}
		done.NotGone = j.Op == guard.OpUnmark
		return done, nil
	}
}

func (j *job) check(context.Context) (*guard.Outcome, error) {
	if j.seen.Work != "" {
		return nil, fmt.Errorf("there is work in it: %s", j.seen.Work)
	}
	return guard.Did(providers.AlreadyTrue), nil
}

func (j *job) remove(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	o, _, err := j.p.run(ctx, remove, nil, j.seen.Label, string(j.seen.ID))
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("status %d: %s", o.Status, o.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", j.Op, j.Address, err)
	}
	return guard.Did(providers.Done), nil
}
