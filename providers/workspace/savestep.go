package workspace

import (
	"context"
	"errors"
	"fmt"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// savesWork is the word of a policy that saves the work in a workspace before it is removed.
const savesWork = "save"

// saves reports whether the object of a change has work that is to be saved before it is removed. Work that could not be
// read cannot be saved.
func (s *steps) saves() bool {
	o := s.Change.Object
	return ctyread.Text(ctyread.Attr(s.Change.Policy, "sync"), "on_destroy") == savesWork &&
		o != nil && len(o.Dirty) > 0 && o.Unreadable["dirty"] == "" && !isPartial(o)
}

// save adds a step that saves the work, while the VM still runs.
func (s *steps) save() {
	step := s.Add(opSave, providers.PhaseFree, s.Change.Object.ID)
	step.Saves = true
	step.Args = saveArgs{ref: saveFolder(s.Change.Address) + "<time>"}
}

// saveArgs are the arguments of a step that saves: for the reader of the plan only.
type saveArgs struct{ ref string }

// Words implements providers.Args.
func (a saveArgs) Words() [][2]string { return [][2]string{{"ref", a.ref}} }

// save saves all work in the workspace, and fails unless this host has all of it then.
func (t *task) save(ctx context.Context) (*guard.Outcome, error) {
	if t.seen == nil {
		return nil, errors.New("it is gone")
	}
	saved, err := t.p.Save(ctx, t.seen.ID, SaveOptions{})
	var refused *RefusedError
	if errors.As(err, &refused) {
		f := &providers.Problem{
			Outcome: providers.Failed, Code: "not_saved", Next: providers.Vmctl("plan"), Seen: refused.Seen,
			Err: fmt.Errorf("%s %s: its work cannot be saved, and nothing was removed: %w", t.Op, t.Address, err),
		}
		f.Next = append(f.Next, providers.Say(refused.Next...)...)
		return nil, f
	}
	if err != nil {
		return nil, fmt.Errorf("save the work: %w", err)
	}
	return guard.Did(providers.Done, "saved in "+saved.Ref), nil
}
