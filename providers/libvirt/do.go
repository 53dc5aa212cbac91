package libvirt

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// job is one step under way.
type job struct {
	*Provider
	connection
	providers.Work
	want   machine.VM
	policy machine.Policy
	log    providers.Log
	seen   *observedDomain // the domain when the step began; nil: there was none

	plugged plugged // the additional disks, if the step needs them
}

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	j := &job{Provider: p, Work: w, policy: machine.DecodePolicy(w.Policy), log: log}
	var err error
	if j.connection, err = p.connect(ctx); err != nil {
		return providers.Result{}, fail(err, "%s %s", w.Op, w.Address)
	}
	do := j.do
	if w.Address.Kind == spec.Disk {
		do = j.doDisk
	}
	r, err := do(ctx)
	if err != nil {
		return providers.Result{}, asFailure(err, fmt.Sprintf("%s %s", w.Op, w.Address))
	}
	return r, nil
}

// reconnect connects again if the daemon has ended meanwhile. Running domains do not end with
// it.
func (j *job) reconnect(ctx context.Context) error {
	if j.Alive() {
		return nil
	}
	c, err := j.connect(ctx)
	if err != nil {
		return err
	}
	j.connection = c
	return nil
}

func (j *job) do(ctx context.Context) (providers.Result, error) {
	if err := j.observe(ctx); err != nil {
		return providers.Result{}, err
	}
	switch j.Op {
	case opDefine, opRedefine, opStart, opWaitSSH, opUnkey, opUpload:
		want, err := decode(j.Want)
		if err != nil {
			return providers.Result{}, err
		}
		j.want = want
	case opStop, opRecover, opDelete, opDetach, opUnmark:
	default:
		panic("unknown operation " + j.Op)
	}
	switch j.Op {
	case opDefine:
		return j.define(ctx)
	case opRedefine:
		return j.redefine(ctx)
	case opDetach:
		return j.detach(ctx)
	case opUnmark:
		return j.unmark(ctx)
	case opUpload:
		return j.uploadAgain(ctx)
	case opStart:
		return j.start(ctx)
	case opWaitSSH:
		return j.waitSSH(ctx)
	case opUnkey:
		return j.unkey(ctx)
	case opStop:
		return j.stop(ctx)
	case opRecover:
		return j.recover(ctx)
	default:
		return j.delete(ctx)
	}
}

// observe reads the domain that the step is about.
func (j *job) observe(ctx context.Context) error {
	s, err := j.read(ctx)
	if errors.Is(err, errAbsent) {
		j.seen = nil
		return nil
	}
	if err != nil {
		return fail(err, "read %s", j.Name)
	}
	j.seen = &s
	return nil
}

func (j *job) read(ctx context.Context) (observedDomain, error) {
	ref, err := j.Domain(ctx, string(j.Object))
	if err != nil {
		return observedDomain{}, err
	}
	return observeDomain(ctx, j.connection, ref)
}

// guard checks the domain of the step.
func (j *job) guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "domain", Look: func(now guard.Seen) string {
		return "virsh -c " + j.location.URI + " dumpxml " + string(now.ID)
	}}
}

// guarded returns the domain as the guard sees it.
func (s *observedDomain) guarded(uri string) *guard.Seen {
	if s == nil {
		return nil
	}
	seen := guard.Seen{ID: providers.ID(s.UUID), Name: s.Name, Fingerprint: s.fingerprint(uri)}
	if o := s.owner(); o != nil {
		seen.Mark = &o.Mark
	}
	return &seen
}

// owns reports whether a domain is the step's own.
func (j *job) owns(s observedDomain) bool { return j.guard().Owns(*s.guarded(j.location.URI)) }

func (j *job) mine() error     { return j.guard().Mine(j.seen.guarded(j.location.URI)) }
func (j *job) expected() error { return j.guard().Expected(j.seen.guarded(j.location.URI)) }

// check fails unless the domain is the step's own and as expected. A step calls it first,
// unless its goal is true already.
func (j *job) check() error {
	if err := j.mine(); err != nil {
		return err
	}
	return j.expected()
}

// result reads the domain once more and returns the outcome of the step.
func (j *job) result(ctx context.Context, how providers.How, evidence ...string) (providers.Result, error) {
	s, err := j.read(ctx)
	if errors.Is(err, errAbsent) {
		return j.guard().Gone(how, evidence...), nil
	}
	if err != nil {
		return providers.Result{}, fail(err, "read %s after it", j.Name)
	}
	j.seen = &s
	var held []machine.Forward
	if s.power.on() && s.configured.SSH != nil {
		if held, err = j.heldPorts(ctx, j.connection, s); err != nil {
			return providers.Result{}, fail(err, "read the ports of %s", j.Name)
		}
	}
	running := s.power.State == providers.StateRunning
	values := map[string]cty.Value{}
	maps.Copy(values, j.computed(s.UUID, s.configured, held))
	return providers.Result{
		ID: j.Object, Values: cty.ObjectVal(values), Running: &running,
		Fingerprint: s.fingerprint(j.location.URI), How: how, Evidence: evidence,
	}, nil
}

func (j *job) say(format string, args ...any) {
	j.log(providers.Progress{Text: fmt.Sprintf(format, args...)})
}
