package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/moby/moby/client"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// replacing is the argument of the steps that bring up the successor of a container: the container waits under its parking
// name, and comes back if they fail.
type replacing struct {
	old    providers.ID
	ran    bool     // it is started again, then
	labels []string // that the record of it has
}

// Words implements providers.Args.
func (r replacing) Words() [][2]string { return [][2]string{{"on failure back to", string(r.old)}} }

// mayPark reports whether the container that is replaced can wait until its successor runs: nothing that it uses goes away,
// and the successor is in the same engine.
func (s *steps) mayPark() bool {
	c := s.change
	uses := func(claim providers.Claim) bool { return claim.Kind == providers.ClaimUse }
	moves := func(e providers.Edit) bool { return e.Path == "engine" }
	return c.Kind == spec.Container && len(c.Edits) > 0 && c.Object.Spent == "" && !slices.ContainsFunc(c.Edits, moves) && !slices.ContainsFunc(c.Yields, uses)
}

// replace adds the steps that replace an object.
func (s *steps) replace() {
	s.stop(providers.PhaseDown)
	ran := len(s.all) > 0
	s.dropFirst()
	if !s.mayPark() {
		s.remove()
		if isNamedTwice(s.change.Object) {
			s.all[len(s.all)-1].Args = movingName{}
		}
		s.make()
		return
	}
	step := s.add(opPark, providers.PhaseFree, s.now)
	for _, claim := range s.change.Object.Holds {
		if claim.Kind != providers.ClaimUse {
			step.Frees = append(step.Frees, claim)
		}
	}
	first := len(s.all)
	s.make()
	for i := first; i < len(s.all); i++ {
		s.all[i].Args = replacing{s.now, ran, labelNames(s.change.Prior)}
	}
	s.drop(s.change.ID)
}

// drop adds the step that removes the predecessors of a container.
func (s *steps) drop(id providers.ID) {
	step := s.add(opDrop, providers.PhaseTidy, id)
	step.Risk = providers.DataLoss
	if s.change.Object != nil {
		step.Frees = s.change.Object.Holds
	}
}

// dropFirst adds the step that removes what an earlier replacement left, before the container goes itself.
func (s *steps) dropFirst() {
	if machine.Found(s.change.Object, providers.FindLeftover) {
		s.add(opDrop, providers.PhaseDown, s.now).Risk = providers.DataLoss
	}
}

// parking corrects what is said of a container for the replacements that were cut short. A parked container that is
// recorded gets its name back; one that has a successor, or is to get one, is a leftover of that one.
func (p *Objects) parking(q providers.Query, o *providers.Object, s seen, all []seen) {
	if o.Owner == nil || o.Owner.Of != o.ID || o.Owner.ID != p.settings.Project.Lineage() {
		return
	}
	if !s.isParked() {
		for _, other := range all {
			if other.isParked() && other.isOf(s) {
				o.Findings = append(o.Findings, providers.Finding{
					Kind: providers.FindLeftover, Object: other.name, Evidence: []string{other.name + " is its predecessor: a replacement was cut short"}, Action: "removed",
				})
				other.addUses(o) // the successor frees them
			}
		}
		return
	}
	succeeded := slices.ContainsFunc(all, func(other seen) bool { return !other.isParked() && other.hasOwnName() && other.isOf(s) })
	recorded := slices.ContainsFunc(q.Known, func(k providers.Known) bool { return k.Kind == spec.Container && k.ID == o.ID })
	wanted := slices.ContainsFunc(q.Known, func(k providers.Known) bool { return k.Address == o.Owner.Address })
	switch {
	case recorded && !succeeded:
		o.Name = s.labels[labelName]
		o.Findings = append(o.Findings, providers.Finding{
			Kind: providers.FindPartial, Evidence: []string{"it is called " + s.name + ": a replacement was cut short"}, Action: "gets its name back",
		})
	case wanted:
		o.ID, o.Owner = providers.ID(s.id), nil
		o.Holds = slices.DeleteFunc(o.Holds, func(c providers.Claim) bool { return c.Kind == providers.ClaimUse })
	}
}

// isOf reports whether two objects bear marks of one address of one project.
func (s seen) isOf(other seen) bool {
	return s.id != other.id && s.labels[labelLineage] == other.labels[labelLineage] && s.labels[labelAddress] == other.labels[labelAddress]
}

// park gives the name of a container free.
func (j *job) park(ctx context.Context) (*guard.Outcome, error) {
	name := parkingName(j.seen.labels[labelName], j.seen.labels[labelToken])
	if err := j.rename(ctx, j.seen, name); err != nil {
		return nil, err
	}
	return &guard.Outcome{How: providers.Done, NotGone: true, Evidence: []string{"it is called " + name + " until its successor runs"}}, nil
}

// parked returns the outcome for a container that is parked already.
func (j *job) parked(context.Context) (*guard.Outcome, error) {
	if j.seen == nil || !j.seen.isParked() {
		return nil, nil
	}
	return &guard.Outcome{How: providers.AlreadyTrue, NotGone: true}, nil
}

// unpark gives a container its name back.
func (j *job) unpark(ctx context.Context) (*guard.Outcome, error) {
	if err := j.rename(ctx, j.seen, j.seen.labels[labelName]); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

func (j *job) rename(ctx context.Context, s *seen, name string) error {
	if err := j.p.c.ready(ctx); err != nil {
		return err
	}
	if _, err := j.p.c.ContainerRename(ctx, s.id, client.ContainerRenameOptions{NewName: name}); err != nil {
		return j.failed(err)
	}
	return nil
}

// predecessors lists the parked containers of the address.
func (j *job) predecessors(ctx context.Context) ([]seen, error) {
	filter, err := json.Marshal(map[string][]string{"label": {
		labelLineage + "=" + j.p.settings.Project.Lineage(), labelAddress + "=" + j.Address.String(),
	}})
	if err != nil {
		return nil, err
	}
	raws, err := j.p.c.getItems(ctx, listPath(spec.Container)+"&filters="+url.QueryEscape(string(filter)))
	if err != nil {
		return nil, err
	}
	var all []seen
	for _, raw := range raws {
		s := listedContainer(raw)
		if s.flaw == nil && s.isParked() && s.labels[labelToken] != string(j.Object) {
			all = append(all, s)
		}
	}
	return all, nil
}

// dropped returns the outcome for a container without predecessors.
func (j *job) dropped(ctx context.Context) (*guard.Outcome, error) {
	all, err := j.predecessors(ctx)
	if err != nil || len(all) > 0 {
		return nil, err
	}
	return guard.Did(providers.AlreadyTrue, "it has no predecessor"), nil
}

// drop removes the predecessors of a container. It tries each, and is never forced.
func (j *job) drop(ctx context.Context) (*guard.Outcome, error) {
	all, err := j.predecessors(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	var evidence []string
	for _, s := range all {
		if _, err := j.p.removeObject(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", s.name, err))
			continue
		}
		evidence = append(evidence, s.name+" is removed")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, j.failed(err)
	}
	if len(all) > 0 {
		evidence = append(evidence, j.p.dropDangling(ctx)...)
	}
	return guard.Did(providers.Done, evidence...), nil
}

// orBack returns an act that brings the predecessor back if it fails, where the step has one.
func (j *job) orBack(act func(context.Context) (*guard.Outcome, error)) func(context.Context) (*guard.Outcome, error) {
	return func(ctx context.Context) (*guard.Outcome, error) {
		did, err := act(ctx)
		r, replaces := j.Args.(replacing)
		if err == nil || !replaces || errors.Is(ctx.Err(), context.Canceled) { // an interrupted wait loses nothing
			return did, err
		}
		failed := *guard.AsFailure(err, failure, fmt.Sprintf("%s %s", j.Op, j.Address))
		policy := stopPolicy(j.Policy)
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), policy.Grace+policy.ForceWait+time.Minute)
		defer cancel()
		said, err := j.back(again, r)
		if err != nil {
			said = "its predecessor could not be brought back: " + err.Error()
		}
		failed.Restored = err == nil
		failed.Seen = append(slices.Clone(failed.Seen), said)
		return nil, &failed
	}
}

// back removes the container of the step, and gives its predecessor its name and its state back.
func (j *job) back(ctx context.Context, r replacing) (string, error) {
	all, err := j.predecessors(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(s seen) bool { return s.labels[labelToken] == string(r.old) })
	if i < 0 {
		return "", errors.New("it is not there")
	}
	old := &all[i]
	if err := j.undo(ctx); err != nil {
		return "", err
	}
	if err := j.rename(ctx, old, old.labels[labelName]); err != nil {
		return "", err
	}
	if !r.ran {
		return old.labels[labelName] + " is as it was before", nil
	}
	if _, err := j.p.c.ContainerStart(ctx, old.id, client.ContainerStartOptions{}); err != nil {
		return "", err
	}
	return old.labels[labelName] + " runs again as it was before", nil
}

// undo removes the container of the step, if it was made.
func (j *job) undo(ctx context.Context) error {
	made, err := j.findContainer(ctx)
	if err != nil || made == nil {
		return err
	}
	if made.wantable() != stateCreated {
		if _, err := j.end(ctx, made); err != nil {
			return err
		}
	}
	_, err = j.p.removeObject(ctx, *made)
	return err
}
