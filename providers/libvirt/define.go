package libvirt

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// isDefined reports whether the definition of the domain is as wanted.
func (j *job) isDefined(ctx context.Context) (bool, error) {
	if err := j.plug(ctx); err != nil {
		return false, err
	}
	return j.seen != nil && j.isWanted(ctx), nil
}

// define makes a domain with its files. It completes a domain that an interrupted attempt
// left half made.
func (j *job) define(ctx context.Context) (*guard.Outcome, error) {
	var evidence []string
	if j.seen == nil {
		if err := j.nameIsFree(ctx, j.Name, j.Object); err != nil {
			return nil, err
		}
		var err error
		if evidence, err = j.clearRemains(ctx); err != nil {
			return nil, err
		}
	}
	hadKeys := exists(j.keyFolder(string(j.Object)))
	if err := j.write(ctx); err != nil {
		f, undone := j.undo(ctx, err)
		if undone && !hadKeys {
			f.Seen = append(f.Seen, staysBehind(j.forgetKeys(ctx, string(j.Object), j.Name))...)
		}
		return nil, f
	}
	return guard.Did(providers.Done, evidence...), nil
}

// nameIsFree fails if another domain than the one with that ID has the name.
func (j *job) nameIsFree(ctx context.Context, name string, id providers.ID) error {
	other, err := j.DomainNamed(ctx, name)
	if errors.Is(err, errAbsent) || err == nil && other.UUID == string(id) {
		return nil
	}
	if err != nil {
		return fail(err, "look for a domain of the name %s", name)
	}
	if s, err := observeDomain(ctx, j.connection, other); err == nil && s.oursFor(j.settings.Project, j.Address) {
		return machine.MadeElsewhere(j.Work, "domain", name, providers.ID(other.UUID))
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say(
			"look at it: virsh -c "+j.location.URI+" dumpxml "+name,
			fmt.Sprintf("set another name in the block of %s", j.Address),
		),
		Err: fmt.Errorf("%s %s: a domain of the name %s exists already (%s), and it is not vmctl's", j.Op, j.Address, name, other.UUID),
	}
}

// successorFits fails if the domain's replacement could not get its name: nothing is taken
// down or removed for it then.
func (j *job) successorFits(ctx context.Context) error {
	if next := machine.ArgsOf(j.Step); next.NextName != "" {
		return j.nameIsFree(ctx, next.NextName, next.NextID)
	}
	return nil
}

// redefine changes the configuration for the next start, in one call: the domain is at no
// time undefined.
func (j *job) redefine(ctx context.Context) (*guard.Outcome, error) {
	if j.seen != nil && j.seen.Saved {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "saved_memory", Next: j.beforeRedefine(j.Name),
			Err: fmt.Errorf("change %s: %s", j.Address, savedMemory),
		}
	}
	if err := j.jobless(); err != nil {
		return nil, err
	}
	if err := j.unlayered(); err != nil {
		return nil, err
	}
	evidence, err := j.attach(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.write(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, evidence...), nil
}
