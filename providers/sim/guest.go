package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// guest is the inside of one running VM: files that its process keeps. They can be reached
// only while that process answers.
type guest struct {
	*Provider
	vm providers.Object
}

var _ providers.Provider = (*guest)(nil)

func openGuest(h Host, s providers.Settings) (providers.Provider, error) {
	p, err := open(h, s)
	if err != nil {
		return nil, err
	}
	if s.Via == nil {
		return nil, errors.New("open the inside of a VM: it is not said of which")
	}
	return p.withFaults(&guest{Provider: p, vm: *s.Via}, insideKinds)
}

// ask puts a question to the guest.
func (g *guest) ask(ctx context.Context, q question) (map[string]keptFile, error) {
	f, err := g.readVM(g.vm.Name)
	switch {
	case err != nil:
		return nil, err
	case f.ID != g.vm.ID:
		return nil, fmt.Errorf("VM %s is another one now", g.vm.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	a, err := g.runnerOf(f).ask(ctx, f, q)
	return a.Files, err
}

// Observe reads the files that the guest keeps.
func (g *guest) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	files, err := g.ask(ctx, question{Ask: askFiles})
	if err != nil {
		inv.Partial[spec.GuestFile] = providers.Unread(fmt.Errorf("the guest of %s gives no answer: %w", g.vm.Name, err))
		return inv, ctx.Err()
	}
	names := map[providers.ID]string{}
	for _, k := range q.Known {
		names[k.ID] = k.Name
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := guestFile{keptFile: files[path], path: path, digest: g.settings.Digest}
		for _, k := range q.Known {
			if k.Import != "" && (string(k.Import) == path || k.Import == f.id()) {
				inv.Found[k.Address] = f.id()
			}
		}
		inv.Objects = append(inv.Objects, f.object(names[f.id()]))
	}
	return inv, ctx.Err()
}

// Steps returns the steps of a change of a file. A step tells a VM that goes down to write
// its data before.
func (g *guest) Steps(c providers.Change) ([]providers.Step, error) {
	var steps []providers.Step
	add := func(op string, phase providers.Phase, id providers.ID) *providers.Step {
		steps = machine.Append(steps, c, providers.Step{Op: op, Words: guestWords[op], Phase: phase, Object: id, Name: c.Name, Timeout: fileTimeout})
		return &steps[len(steps)-1]
	}
	path := ctyread.Text(c.Want, "path")
	remove := func() {
		s := add(opRemove, providers.PhaseRemove, c.Object.ID)
		s.Risk, s.Frees = providers.DataLoss, c.Object.Holds
	}
	write := func(phase providers.Phase) {
		s := add(opWrite, phase, c.ID)
		s.Leaves = []string{fmt.Sprintf("the file %s in %s", path, g.vm.Name)}
		if phase == providers.PhaseMake {
			s.Takes = []providers.Claim{pathClaim(path)}
		}
	}
	switch c.Action {
	case providers.Create:
		write(providers.PhaseMake)
	case providers.ReplaceIt:
		remove()
		write(providers.PhaseMake)
	case providers.Update, providers.Import, providers.RestartIt:
		if c.Alters() {
			write(providers.PhaseChange)
		}
	case providers.Destroy:
		remove()
	case providers.Release:
		add(opFlush, providers.PhaseRelease, c.Object.ID)
	case providers.Forget:
		if c.Object != nil {
			steps = machine.Append(nil, c, machine.Unmark(fileTimeout))
			steps[0].Object, steps[0].Name = c.Object.ID, c.Object.Name
			steps[0].Phase = providers.PhaseFree // while the VM still runs
		}
	case providers.Start, providers.Stop, providers.Recover, providers.Adopt, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return steps, nil
}
