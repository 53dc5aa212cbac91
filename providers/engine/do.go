package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Do implements providers.Provider.
func (p *Objects) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Objects) Begin(_ context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	j := &job{Work: w, p: p, log: log, kind: w.Address.Kind}
	if j.kind != spec.Image || j.Phase.Sinks() || !isArchived(j.Want) {
		return j, guard.NoEnd, nil
	}
	p.loads.turn.Lock()
	return j, func() error {
		p.loads.turn.Unlock()
		return nil
	}, nil
}

// Failure implements guard.Driver.
func (p *Objects) Failure(err error, format string, args ...any) *providers.Problem {
	return failure(err, format, args...)
}

// job is one step on an object of an engine.
type job struct {
	providers.Work

	p    *Objects
	log  providers.Log
	kind spec.Kind
	seen *seen // nil: it does not exist
	mark *providers.Mark
	id   providers.ID // of the object that was found

	before []seen // the predecessors of a container that is made
}

// Guard implements guard.Task.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.p.settings.Project, Thing: things[j.kind], Look: func(now guard.Seen) string {
		return fmt.Sprintf("docker %s inspect %s", things[j.kind], now.Name)
	}}
}

// Look implements guard.Task.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	var err error
	if j.seen, err = j.find(ctx); err != nil {
		return nil, fmt.Errorf("%s %s: %w", j.Op, j.Address, err)
	}
	if j.seen == nil {
		return nil, nil
	}
	if j.Op == opPark && j.seen.isParked() { // its successor is to find its name free
		return nil, nil
	}
	now := guard.Seen{ID: j.id, Name: j.seen.name, Mark: j.mark, Fingerprint: j.seen.fingerprint()}
	return &now, nil
}

// find returns the object of the step; nil: there is none.
func (j *job) find(ctx context.Context) (*seen, error) {
	switch j.kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Image:
		return j.findImage(ctx)
	case spec.Container:
		return j.findContainer(ctx)
	case spec.Volume, spec.Network:
		return j.findByName(ctx)
	default:
		panic("unknown kind " + string(j.kind))
	}
}

// records returns what the step knows of its own object.
func (j *job) records() []recorded {
	return []recorded{{j.Object, j.Address, ctyread.Text(j.Prior, "container_id"), false}}
}

// findContainer finds the container that bears the token of the step, or has its ID.
func (j *job) findContainer(ctx context.Context) (*seen, error) {
	filter := map[string][]string{"label": {labelToken + "=" + string(j.Object)}}
	if isID(string(j.Object)) {
		filter = map[string][]string{"id": {string(j.Object)}}
	}
	text, err := json.Marshal(filter)
	if err != nil {
		return nil, err
	}
	raws, err := j.p.c.getItems(ctx, listPath(spec.Container)+"&filters="+url.QueryEscape(string(text)))
	if err != nil {
		return nil, err
	}
	for _, raw := range raws {
		listed := listedContainer(raw)
		if listed.flaw != nil {
			return nil, fmt.Errorf("a container cannot be read: %w", listed.flaw)
		}
		s, err := j.p.details(ctx, listed)
		switch {
		case isAbsent(err):
			continue
		case err != nil:
			return nil, err
		}
		if j.id, j.mark = s.identity(j.p.settings.Project, j.records(), false); j.id == j.Object {
			return &s, nil
		}
	}
	return nil, nil
}

// findImage finds the image of the step by its name.
func (j *job) findImage(ctx context.Context) (*seen, error) {
	ref := canonical(ctyread.Text(j.Want, "ref"))
	if j.Phase.Sinks() || ref == "" {
		ref = canonical(ctyread.Text(j.Prior, "ref"))
	}
	if ref == "" {
		return nil, fmt.Errorf("the name of the image is not known")
	}
	raws, err := j.p.c.getItems(ctx, listPath(spec.Image))
	if err != nil {
		return nil, err
	}
	for _, raw := range raws {
		for _, s := range listedImages(raw) {
			if s.name != ref {
				continue
			}
			if s.flaw != nil {
				return nil, s.flaw
			}
			j.id = providers.ID(ref)
			j.mark = &providers.Mark{ID: j.p.settings.Project.Lineage(), Address: j.Address, Of: j.id}
			return &s, nil
		}
	}
	return nil, nil
}

// findByName finds the volume or the network of the step by its name.
func (j *job) findByName(ctx context.Context) (*seen, error) {
	raws, partial, err := j.p.raw(ctx, j.kind)
	if err != nil {
		return nil, err
	}
	for _, raw := range raws {
		for _, s := range read(j.kind, raw) {
			id, mark := s.identity(j.p.settings.Project, j.records(), false)
			taken := s.name == engineName(j.Name) && j.Phase == providers.PhaseMake
			if id != j.Object && !taken {
				continue
			}
			if s.flaw != nil {
				return nil, s.flaw
			}
			j.id, j.mark = id, mark
			return &s, nil
		}
	}
	return nil, partial
}

// Values implements guard.Task.
func (j *job) Values(context.Context) (map[string]cty.Value, error) {
	all := j.seen.values(j.id)
	delete(all, "state") // the record has the wanted one
	for _, name := range []string{"restart", "memory", "cpus", "driver"} {
		delete(all, name)
	}
	return all, nil
}

// Verb implements guard.Task.
func (j *job) Verb() (guard.Verb, error) {
	is := func(state string) func(context.Context) (*guard.Outcome, error) {
		return guard.If(func() bool { return j.seen != nil && j.seen.wantable() == state }, "it is "+state)
	}
	switch j.Op {
	case opMake, opLoad, opPull, opBuild, opTag:
		if j.Phase == providers.PhasePrepare {
			return guard.Verb{Done: j.prepared, Act: j.prepare}, nil
		}
		need := guard.Making
		if j.Phase == providers.PhaseChange {
			need = guard.Present
		}
		return guard.Verb{Need: need, Done: j.made, Act: j.orBack(j.make), Check: j.exists}, nil
	case opUpdate:
		return guard.Verb{Done: guard.If(j.isUpdated, "it is as wanted"), Act: j.update}, nil
	case opStart:
		return guard.Verb{Done: is(stateRunning), Act: j.orBack(j.start)}, nil
	case opHealthy:
		return guard.Verb{Act: j.orBack(j.healthy)}, nil
	case opPause:
		return guard.Verb{Done: is(statePaused), Act: j.orBack(j.pause)}, nil
	case opUnpause:
		return guard.Verb{Done: is(stateRunning), Act: j.unpause}, nil
	case opStop:
		return guard.Verb{Done: is(stateCreated), Act: j.stop}, nil
	case opPark:
		return guard.Verb{Need: guard.Removing, Done: j.parked, Act: j.park}, nil
	case opUnpark:
		return guard.Verb{Done: guard.If(func() bool { return j.seen != nil && !j.seen.isParked() }, "it has its name"), Act: j.unpark}, nil
	case opDrop:
		return guard.Verb{Done: j.dropped, Act: j.drop}, nil
	case opRemove:
		return guard.Verb{Need: guard.Removing, Done: j.movedMeanwhile, Act: j.remove}, nil
	default:
		panic("unknown operation " + j.Op)
	}
}
