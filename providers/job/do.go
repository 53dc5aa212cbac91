package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// Do implements providers.Provider.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Provider) Begin(_ context.Context, w providers.Work, _ providers.Log) (guard.Task, func() error, error) {
	return &task{Work: w, p: p}, guard.NoEnd, nil
}

// Failure implements guard.Driver.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "job", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err),
	}
}

type task struct {
	providers.Work
	p      *Provider
	newest *Record // nil: the block never ran
}

// Guard implements guard.Task.
func (t *task) Guard() guard.Guard {
	return guard.Guard{Work: t.Work, Project: t.p.settings.Project, Thing: "job", Look: func(guard.Seen) string { return "vmctl job list" }}
}

// Look implements guard.Task.
func (t *task) Look(ctx context.Context) (*guard.Seen, error) {
	all, _, err := t.p.store.List()
	o := t.p.host.Observer()
	if t.newest = newest(all, func(r Record) bool { return o.isRunOf(ctx, r, t.Address) }); err != nil || t.newest == nil {
		return nil, err
	}
	id := t.id()
	return &guard.Seen{ID: id, Name: t.Name, Mark: t.p.settings.Project.MarkOf(t.Address, id), Fingerprint: fingerprint(id, *t.newest)}, nil
}

func (t *task) id() providers.ID {
	return providers.ID(blockID(t.p.settings.Project.Lineage(), t.Address))
}

// Values implements guard.Task.
func (t *task) Values(context.Context) (map[string]cty.Value, error) {
	return map[string]cty.Value{"id": cty.StringVal(string(t.id()))}, nil
}

// Verb implements guard.Task.
func (t *task) Verb() (guard.Verb, error) {
	switch t.Op {
	case opStart:
		return guard.Verb{Need: guard.Expected, Done: t.ran, Act: t.start}, nil
	case opAwait:
		return guard.Verb{Need: guard.Present, Done: t.await, Act: func(context.Context) (*guard.Outcome, error) {
			return nil, errors.New("it never ran")
		}}, nil
	default:
		panic("unknown operation " + t.Op)
	}
}

// ran reports that the block has run with these triggers and this command.
func (t *task) ran(context.Context) (*guard.Outcome, error) {
	digest, err := digestOf(t.Want, t.p.settings.Digest)
	if err != nil || t.newest == nil || digest == "" || t.newest.Digest != digest {
		return nil, err
	}
	return guard.Did(providers.AlreadyTrue, fmt.Sprintf("job %s is a run of it", t.newest.ID)), nil
}

// start starts the job. Once a worker was started it counts as run, however that went: await tells. A job that was not
// launched does not.
func (t *task) start(ctx context.Context) (*guard.Outcome, error) {
	run, err := BlockRunOf(t.Address, t.Want, t.Policy, t.p.settings.Digest)
	if err != nil {
		return nil, err
	}
	run.Mask = t.Mask
	r, err := t.p.host.Start(ctx, run)
	var (
		active  *ActiveError
		unknown *UnknownJobError
	)
	switch {
	case errors.As(err, &unknown):
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "job_unknown", Err: fmt.Errorf("start %s: %w", t.Address, unknown), Next: providers.Say(unknown.Next()),
		}
	case errors.As(err, &active):
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "job_active", Err: fmt.Errorf("start %s: %w", t.Address, active),
			Next: append(providers.SayVmctl("wait for its end: ", "job", "wait", string(active.Active.ID)),
				providers.SayVmctl("or end it: ", "job", "cancel", string(active.Active.ID))...),
		}
	case err != nil && r.Revision == 0:
		return nil, err
	}
	return guard.Did(providers.Done, "job "+string(r.ID)), nil
}

// lookEach is the time between two looks at a job that runs.
const lookEach = 200 * time.Millisecond

// await waits until the newest job of the block has ended, and fails unless it has completed. An interrupt ends the wait, and
// not the job.
func (t *task) await(ctx context.Context) (*guard.Outcome, error) {
	if t.newest == nil {
		return nil, nil
	}
	id := t.newest.ID
	for {
		r, err := t.p.store.Read(id)
		if err != nil {
			return nil, err
		}
		r, d := t.p.store.Look(ctx, r, t.p.host.Observer())
		switch {
		case d.Status == Completed:
			return guard.Did(providers.Done, fmt.Sprintf("job %s completed", id)), nil
		case d.Status.IsTerminal():
			f := finding(r, d)
			return nil, &providers.Problem{
				Outcome: providers.Failed, Code: "job_" + string(d.Status), Next: f.Next, Err: fmt.Errorf("run %s: %s", t.Address, f.Evidence[0]),
			}
		}
		if err := t.p.host.TakeUp(ctx, t.p.store, r); err != nil {
			return nil, err
		}
		if err := clock.Sleep(ctx, lookEach); err != nil {
			return nil, &providers.Problem{
				Outcome: providers.Timeout, Code: "job_runs", Err: fmt.Errorf("wait for the end of job %s of %s: it runs on: %w", id, t.Address, err),
				Next: providers.SayVmctl("wait for its end: ", "job", "wait", string(id)),
			}
		}
	}
}
