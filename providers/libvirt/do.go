package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

	plugged plugged    // the additional disks, if the step needs them
	placed  []place    // the networks of the wanted interfaces, if the step needs them
	made    []poolFile // the files that the step made
	notes   []string   // evidence of the step, beside its operation's own
}

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin prepares a step on a domain, a disk or a network. Steps that change files in pools take turns.
func (p *Provider) Begin(ctx context.Context, w providers.Work, log providers.Log) (t guard.Task, end func() error, err error) {
	j := &job{Provider: p, Work: w, policy: machine.DecodePolicy(w.Policy), log: log}
	if j.connection, err = p.connect(ctx); err != nil {
		return nil, nil, err
	}
	if w.Address.Kind == spec.Network {
		return &networkJob{job: j}, guard.NoEnd, nil
	}
	isDisk := w.Address.Kind == spec.Disk
	if !isDisk && !slices.Contains([]string{opDefine, opRedefine, opUpload, opUnkey, opDelete}, w.Op) {
		return j, func() error { return nil }, nil
	}
	select {
	case p.storage <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for the other steps that change files: %w", context.Cause(ctx))
	}
	end = func() error { <-p.storage; return nil }
	last := p.lastListed
	p.lastListed = nil // until a step leaves them as they are known
	if isDisk {
		return &diskJob{job: j, listed: listing{pools: last, files: p.sameFiles()}}, end, nil
	}
	if w.Op != opDelete { // which removes an empty pool
		p.lastListed = last
	}
	return j, end, nil
}

// Failure returns a failure with err as its cause.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return fail(err, format, args...)
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

// Verb returns the operation of the step.
func (j *job) Verb() (guard.Verb, error) {
	switch j.Op {
	case opDefine, opRedefine, opStart, opWaitSSH, opUnkey, opUpload:
		want, err := decode(j.Want)
		if err != nil {
			return guard.Verb{}, err
		}
		j.want = want
	}
	act, known := map[string]machine.Act{
		opDefine: j.define, opRedefine: j.redefine, opDetach: j.detach, opUnmark: j.unmark, opUpload: j.uploadAgain, opStart: j.start,
		opWaitSSH: j.waitSSH, opUnkey: j.unkey, opStop: j.stop, opRecover: j.recover, opDelete: j.delete,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	noted := func(ctx context.Context) (*guard.Outcome, error) {
		o, err := act(ctx)
		if o != nil {
			o.Evidence = append(o.Evidence, j.notes...)
		}
		return o, err
	}
	var seen *machine.Seen
	if j.seen != nil {
		s := j.described(*j.seen)
		seen = &s
	}
	v := machine.Verb(j.Work, seen, j.isDefined, noted)
	switch j.Op {
	case opRedefine: // a transient domain is gone once it is off
		v.Need = guard.Expected
	case opDetach:
		v.Need, v.Done = guard.Expected, j.hasNone
	case opStart:
		v.Check = j.runs
		if j.seen != nil && j.seen.power.Reason != asUsual {
			v.Done = nil
		}
	case opWaitSSH:
		v.Check = j.runs
	}
	return v, nil
}

// Look reads the domain that the step is about.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	if err := j.observe(ctx); err != nil || j.seen == nil {
		return nil, err
	}
	return j.described(*j.seen).Guarded(), nil
}

// Values returns the attributes of the domain that libvirt and QEMU set.
func (j *job) Values(ctx context.Context) (map[string]cty.Value, error) {
	var held []machine.Forward
	if j.seen.power.on() && j.seen.configured.SSH != nil {
		var err error
		if held, err = j.heldPorts(ctx, j.connection, *j.seen); err != nil {
			return nil, fail(err, "read the ports of %s", j.Name)
		}
	}
	return j.computed(j.seen.UUID, j.seen.configured, held), nil
}

// observe reads the domain that the step is about.
func (j *job) observe(ctx context.Context) error {
	s, err := j.read(ctx, j.settling(j.connection))
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

func (j *job) read(ctx context.Context, c connection) (observedDomain, error) {
	ref, err := c.Domain(ctx, string(j.Object))
	if err != nil {
		return observedDomain{}, err
	}
	return observeDomain(ctx, c, ref)
}

// Guard names the step and its domain.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "domain", Look: func(now guard.Seen) string {
		return "virsh -c " + j.location.URI + " dumpxml " + string(now.ID)
	}}
}

// described returns a domain in a spec's words, with its disks by their files.
func (j *job) described(s observedDomain) machine.Seen {
	return s.described(j.location.URI, diskIndex{listing: listing{files: j.sameFiles()}})
}

// owns reports whether a domain is the step's own.
func (j *job) owns(s observedDomain) bool { return j.Guard().Owns(*j.described(s).Guarded()) }

func (j *job) say(format string, args ...any) {
	j.log(providers.Progress{Text: fmt.Sprintf(format, args...)})
}
