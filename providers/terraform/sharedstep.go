package terraform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
)

// joinShared gives the workspace the shared resources that exist and that it lacks. If some may still have to be made, no
// other step makes any until this one ends.
func (j *job) joinShared(ctx context.Context, name string) (err error) {
	if j.turn, err = j.p.takeTurn(ctx, j.log); err != nil || j.turn == nil {
		return err
	}
	if err := j.p.awaitLeft(ctx, j.log); err != nil {
		return err
	}
	var text []byte
	if j.seen != nil {
		text = j.seen.raw
	}
	add, err := j.p.joiningOf(ctx, j.states, name, text)
	if err != nil {
		return err
	}
	if !add.none() {
		if err := j.keepState(name); err != nil {
			return err
		}
		into := target{option: j.p.state(j.module, name), lineage: string(j.Object), text: text, write: func(text []byte) error {
			return j.states.write(ctx, j.session, name, text)
		}}
		if err := j.p.join(ctx, j.session, add, into); err != nil {
			return err
		}
	}
	if add.first {
		return nil // the turn ends with the step
	}
	turn := j.turn
	j.turn = nil
	return endTurn(turn)
}

// keepShared notes the shared resources of the workspace before they leave its state. It refuses one that Terraform would
// not take over as it is.
func (j *job) keepShared(ctx context.Context) ([]entry, error) {
	turn, err := j.p.takeTurn(ctx, j.log)
	if err != nil || turn == nil {
		return nil, err
	}
	staying, err := j.p.keepShared(j.seen)
	if err := errors.Join(err, endTurn(turn)); err != nil {
		return nil, err
	}
	for _, e := range staying {
		if e.flaw != "" {
			return nil, &providers.Problem{
				Outcome: providers.Failed, Code: "terraform_shared", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: the shared %s is %s in its state, and could not be taken over by another VM", j.Op, j.Address, e.address, e.flaw),
			}
		}
	}
	return staying, nil
}

// spareShared notes the shared resources in a plan, and refuses one that would destroy any.
func (p *Provider) spareShared(planned *preview) error {
	var losing []string
	for i := range planned.changes {
		c := &planned.changes[i]
		c.shared = p.shared.has(c.located)
		if c.shared && c.applies == providers.Replace {
			losing = append(losing, c.String())
		}
	}
	if len(losing) == 0 {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "terraform_shared", Seen: losing,
		Next: providers.Say("take back the edit of the module that asks for it, or add lifecycle { ignore_changes = all } to the resource"),
		Err:  fmt.Errorf("provider.terraform.%s would %s, which all VMs of the module use", p.settings.Name, strings.Join(losing, ", ")),
	}
}

// existsWords are the words in which systems say that what is to be made exists.
func saysExists(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"exist", "already", "in use", "duplicate", "conflict"}, func(word string) bool { return strings.Contains(text, word) })
}

// explainExisting adds the attribute shared to the failure of a resource that another VM of the module has made before.
func (j *job) explainExisting(ctx context.Context, err error, name string) error {
	var said *saidError
	if !errors.As(err, &said) {
		return err
	}
	workspaces, listErr := j.states.list(ctx)
	if listErr != nil {
		return err
	}
	var others []string
	for _, w := range workspaces {
		if now, err := j.p.read(ctx, j.states, w); err == nil && w.name != name {
			others = append(others, now.own...)
		}
	}
	var clashing []string
	for _, d := range said.diagnostics {
		if d.address != "" && slices.Contains(others, d.address) && saysExists(d.text) {
			clashing = append(clashing, fmt.Sprintf("%q", d.address))
		}
	}
	if len(clashing) == 0 {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_exists", Err: err, Seen: said.lines(),
		Next: providers.Say(fmt.Sprintf("another VM of the module has %s: if all its VMs share one, add to provider \"terraform\" %q: shared = [%s]",
			strings.Join(clashing, ", "), j.p.settings.Name, strings.Join(clashing, ", "))),
	}
}
