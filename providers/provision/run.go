package provision

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // run.sh
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// runScript runs scripts in a guest.
//
//go:embed run.sh
var runScript string

// run carries out the step of a script.
func (w *wrapper) run(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	t := &task{
		wrapper: w, work: work, script: scriptOf(work.Want, work.Provision), step: rand.Text(), digest: work.Digest,
		copy: newCopier(w.log(work.Address, work.Provision), work, log),
	}
	t.script.fresh = work.Fresh
	r, err := guard.Do(ctx, t)
	r.Digest = t.digest
	var p *providers.Problem
	if err == nil || errors.As(err, &p) {
		return r, err
	}
	return r, t.problem(providers.Failed, "provision", err)
}

// task is the step of a script.
type task struct {
	*wrapper
	work   providers.Work
	script script
	step   string // the guest knows by it the run that this step started
	copy   *copier
	object *providers.Object // as it was looked at last; nil: it is not there

	run      *begun   // the run whose end the step waits for; nil: none yet
	mayRun   bool     // a script may run in the guest
	digest   string   // of the script that ran
	evidence []string // of a run that ended well
}

var _ guard.Task = (*task)(nil)

// Guard implements guard.Task.
func (t *task) Guard() guard.Guard {
	return guard.Guard{
		Work: t.work, Project: t.settings.Project, Thing: t.typ + " " + string(t.work.Address.Kind),
		Look: func(now guard.Seen) string { return "vmctl status (" + now.Name + ")" },
	}
}

// Look implements guard.Task.
func (t *task) Look(ctx context.Context) (*guard.Seen, error) {
	t.object = nil
	inv, err := t.Observe(ctx, providers.Query{Known: []providers.Known{{
		Address: t.work.Address, Kind: t.work.Address.Kind, ID: t.work.Object, Name: t.work.Name, Prior: t.work.Prior, Want: t.work.Want,
	}}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool { return o.Kind == spec.VM && o.ID == t.work.Object })
	if i < 0 {
		for _, u := range inv.Unknown {
			if u.Kind == spec.VM && (u.ID == t.work.Object || u.Name == t.work.Name) {
				return nil, fmt.Errorf("%s could not be read: %s", t.work.Name, u.Reason)
			}
		}
		if why := inv.Partial[spec.VM]; why != nil {
			return nil, why
		}
		return nil, nil
	}
	t.object = &inv.Objects[i]
	o := t.object
	return &guard.Seen{ID: o.ID, Name: o.Name, Mark: o.Owner, Fingerprint: o.Fingerprint, Running: o.Running}, nil
}

// Values implements guard.Task: a script changes none that vmctl knows.
func (t *task) Values(context.Context) (map[string]cty.Value, error) { return nil, nil }

// Verb implements guard.Task.
func (t *task) Verb() (guard.Verb, error) {
	return guard.Verb{Act: func(ctx context.Context) (*guard.Outcome, error) { return t.act(ctx) }}, nil
}

// act runs the script to its end.
func (t *task) act(ctx context.Context) (*guard.Outcome, error) {
	how, err := t.insist(ctx)
	if failed := t.copy.close(); failed != nil {
		seen := "its log on this machine is not whole: " + failed.Error()
		if p := (*providers.Problem)(nil); errors.As(err, &p) {
			p.Seen = append(p.Seen, seen)
		} else if err == nil {
			how.Evidence = append(how.Evidence, seen)
		}
	}
	return how, err
}

// insist visits the guest until the script has ended. It gives up once the guest was out of reach for as long
// as it may take to become ready.
func (t *task) insist(ctx context.Context) (*guard.Outcome, error) {
	patience, reached := machine.DecodePolicy(t.work.Policy).Ready, t.settings.Now()
	for {
		how, err := t.visit(ctx)
		var away *awayError
		switch {
		case !errors.As(err, &away):
			return how, err
		case ctx.Err() != nil:
			return nil, t.stopped(ctx, away)
		case away.reached:
			reached = t.settings.Now()
		case t.settings.Now().Sub(reached) >= patience:
			return nil, t.unreachable(fmt.Sprintf("the guest was out of reach for %s", patience), away)
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil, t.stopped(ctx, away)
		}
		t.object = nil
	}
}

// pause is the time between two attempts to get into a guest.
const pause = time.Second

// awayError says that the guest is out of reach, perhaps for a moment: a script in it may go on.
type awayError struct {
	err     error
	reached bool // the guest was reached before
}

func (e *awayError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *awayError) Unwrap() error { return e.err }

// stopped returns the problem of a step that has to end before its script has.
func (t *task) stopped(ctx context.Context, away *awayError) *providers.Problem {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return t.unreachable("vmctl stopped waiting", away)
	}
	p := t.unreachable("vmctl was interrupted", away)
	p.Outcome, p.Code = providers.Failed, "interrupted"
	return p
}

// unreachable returns the problem of a step that does not wait any longer for the guest.
func (t *task) unreachable(why string, away *awayError) *providers.Problem {
	words := why + ", and its script has not begun"
	if t.mayRun {
		words = why + "; a script may go on in the guest, and the next apply waits for its end"
	}
	p := t.problem(providers.Timeout, "unreachable", errors.New(words))
	if away.reached && t.run != nil {
		p.Code = "deadline"
	}
	t.copy.finish()
	p.Seen = slices.Clone(t.copy.lines)
	if !away.reached {
		p.Seen = append(p.Seen, "last attempt: "+away.Error())
	}
	return p
}

// up returns the VM, which has to run.
func (t *task) up(ctx context.Context) (*providers.Object, error) {
	if t.object == nil {
		if _, err := t.Look(ctx); err != nil {
			return nil, &awayError{err: err}
		}
	}
	switch o := t.object; {
	case o == nil:
		return nil, t.problem(providers.Failed, "not_running", errors.New("it does not exist any more"))
	case o.Running == nil:
		return nil, &awayError{err: fmt.Errorf("whether it runs could not be read: %s", cmp.Or(o.Unreadable["running"], "no reason is known"))}
	case !*o.Running:
		return nil, t.problem(providers.Failed, "not_running", errors.New("it does not run any more"))
	default:
		return o, nil
	}
}

// visit enters the guest, starts the script unless this step did, and waits for its end.
func (t *task) visit(ctx context.Context) (_ *guard.Outcome, err error) {
	o, err := t.up(ctx)
	if err != nil {
		return nil, err
	}
	g, err := t.host.Enter(ctx, *o, t.work.Want)
	if err != nil {
		if pending := (*providers.NotYetError)(nil); errors.As(err, &pending) || ctx.Err() != nil {
			return nil, &awayError{err: err}
		}
		return nil, t.problem(providers.Failed, "no_way_in", err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	in := inside{guest: g, name: t.work.Provision}
	for t.run == nil {
		if how, err := t.start(ctx, in); how != nil || err != nil {
			return how, err
		}
	}
	limit := t.script.timeout
	switch status, err := t.follow(ctx, in, *t.run, limit, t.copy); {
	case err != nil:
		return nil, err
	case status == statusForced:
		p := t.problem(providers.Timeout, "provision_timeout", fmt.Errorf("it did not end within %s, and was ended by force", limit))
		t.copy.finish()
		p.Seen, p.Next = t.copy.lines, t.advice()
		return nil, p
	case status != 0:
		return nil, t.ended(status)
	case t.run.ended:
		return guard.Did(providers.AlreadyTrue, t.evidence...), nil
	default:
		return guard.Did(providers.Done, t.evidence...), nil
	}
}

// start starts the script, or finds the run that it has to wait for. If another run is in its way, it waits
// for the end of that one only. It returns an outcome if nothing is left to do.
func (t *task) start(ctx context.Context, in inside) (*guard.Outcome, error) {
	id := t.script.id(t.work)
	found, err := in.start(ctx, id, t.step, t.work.Digest, t.script)
	if err != nil {
		var fate *providers.FateError
		t.mayRun = t.mayRun || errors.As(err, &fate)
		return nil, t.explain(err)
	}
	found.at = t.settings.Now()
	own := found.run == id && found.digest == t.work.Digest
	switch {
	case found.ended && !own:
		t.digest = found.digest
		return guard.Did(providers.AlreadyTrue, "it ran before, with another script or other variables: run is "+string(t.script.run)), nil
	case found.ended:
		t.evidence = append(t.evidence, "an earlier run of vmctl started it, and it has ended well")
	case !own:
		t.mayRun = true
		return nil, t.outwait(ctx, in, found)
	case found.met:
		t.evidence = append(t.evidence, "it was running already: an earlier run of vmctl had started it")
	}
	t.run, t.mayRun = &found, true
	t.copy.begin()
	return nil, nil
}

// outwait waits for the end of another run, with another script or other variables. Its output may have secrets that
// nobody knows any more: it is not shown.
func (t *task) outwait(ctx context.Context, in inside, other begun) error {
	t.copy.tell("an earlier run of it goes on, with another script or other variables: waiting for its end")
	status, err := t.follow(ctx, in, other, other.limit, nil)
	if err != nil {
		return err
	}
	if status == statusForced {
		t.evidence = append(t.evidence, fmt.Sprintf("an earlier run of it did not end within %s, and was ended by force", other.limit))
	}
	t.mayRun = false
	return nil
}

// explain says whether a later attempt to run something in the guest can succeed after err.
func (t *task) explain(err error) error {
	var key *sshx.HostKeyError
	var identity *sshx.IdentityError
	switch {
	case errors.As(err, &key):
		p := t.problem(providers.Unsafe, "host_key_changed", key)
		p.Next = providers.Say(fmt.Sprintf("if the guest got a new host key: ssh { host_key = \"accept-new\" } in %s, and remove %s", t.work.Address, key.KnownHosts))
		return p
	case errors.As(err, &identity):
		return t.problem(providers.Failed, "keys", identity)
	default:
		return err
	}
}

// follow waits for the end of a run. Once its limit has passed, it ends the run by force.
func (t *task) follow(ctx context.Context, in inside, run begun, limit time.Duration, to *copier) (status int, err error) {
	left, cancel := context.WithTimeout(ctx, max(limit-run.ran-t.settings.Now().Sub(run.at), time.Second))
	defer cancel()
	status, err = in.follow(left, run.run, to)
	if err == nil || left.Err() == nil || ctx.Err() != nil {
		return status, t.explain(err)
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := in.end(cleanup, run.run); err != nil {
		p := t.problem(providers.Timeout, "provision_timeout", fmt.Errorf("it did not end within %s, and may still run: %w", limit, err))
		if to != nil {
			p.Seen = to.lines
		}
		p.Next = t.advice()
		return 0, p
	}
	if status, err := in.follow(cleanup, run.run, nil); err == nil && status >= 0 { // it had ended, and its log was long
		if to != nil && to.failed == nil {
			to.failed = fmt.Errorf("it was not copied within %s", limit)
		}
		return status, nil
	}
	return statusForced, nil
}

// The statuses of a script beside its own.
const (
	statusLost   = -1 // nobody saw its end
	statusForced = -2 // it was ended by force
)

// ended returns the problem of a script that did not succeed.
func (t *task) ended(status int) *providers.Problem {
	why := fmt.Errorf("its script ended with status %d", status)
	if status == statusLost {
		why = errors.New("its script was ended before it was done: the guest may have restarted")
	}
	t.copy.finish()
	p := t.problem(providers.Failed, "provision_failed", why)
	p.Seen, p.Next = t.copy.lines, t.advice()
	return p
}

func (t *task) advice() []providers.Advice {
	return providers.SayVmctl("read its whole log: ", "vm", "logs", t.work.Address.String(), "--provision", t.work.Provision)
}

func (t *task) problem(o providers.Outcome, code string, err error) *providers.Problem {
	return &providers.Problem{Outcome: o, Code: code, Err: fmt.Errorf("provision %s of %s: %w", t.work.Provision, t.work.Address, err)}
}
