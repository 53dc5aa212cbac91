package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// The words of a policy for the work in a workspace that is removed.
const (
	savesWork   = "save"
	fetchesWork = "fetch"
)

// saves reports whether the work in the object of a change is saved before the object is removed. Work that could not be
// read cannot be saved, and neither can that in the copies of jobs.
func (s *steps) saves() bool {
	o := s.Change.Object
	return s.onDestroy() == savesWork && o != nil && o.Unreadable["dirty"] == "" && !isPartial(o) &&
		!slices.ContainsFunc(o.Dirty, func(d providers.Dirt) bool { return d.Sort == copies })
}

// fetches reports whether the commits of the object of a change are fetched before the object is removed: it has some, and no
// other work.
func (s *steps) fetches() bool {
	o := s.Change.Object
	if s.onDestroy() != fetchesWork || o == nil || o.Unreadable["dirty"] != "" || isPartial(o) || len(o.Dirty) == 0 {
		return false
	}
	return !slices.ContainsFunc(o.Dirty, func(d providers.Dirt) bool { return d.Sort != Commits })
}

// succeeds reports whether another workspace takes the place of the one that is removed, and can have its work: one of another
// branch, or of another repository, cannot.
func (s *steps) succeeds() bool {
	if s.Change.Action != providers.ReplaceIt && !s.Change.Succeeds {
		return false
	}
	return !slices.ContainsFunc(s.Change.Edits, func(e providers.Edit) bool { return e.Path == "branch" || e.Path == "repo" })
}

func (s *steps) onDestroy() string {
	return ctyread.Text(ctyread.Attr(s.Change.Policy, "sync"), "on_destroy")
}

// save adds a step that saves the work, while the VM still runs.
func (s *steps) save() {
	op := opSave
	if s.succeeds() {
		op = opKeep
	}
	step := s.Add(op, providers.PhaseFree, s.Change.Object.ID)
	step.Saves = true
	step.Args = saveArgs{ref: saveFolder(s.Change.Address) + "<time>"}
}

// saveArgs are the arguments of a step that saves: for the reader of the plan only.
type saveArgs struct{ ref string }

// Words implements providers.Args.
func (a saveArgs) Words() [][2]string { return [][2]string{{"ref", a.ref}} }

// save saves all work in the workspace, and fails unless this host has all of it then. The workspace that takes its place gets that
// work, and never what an earlier run kept before it was cut short.
func (t *task) save(ctx context.Context) (*guard.Outcome, error) {
	if t.seen == nil {
		return nil, errors.New("it is gone")
	}
	if len(t.seen.dirt())+len(t.seen.unread()) == 0 {
		if err := t.p.await(ctx, t.seen.Repository, t.Address, ""); err != nil {
			return nil, fmt.Errorf("save the work: %w", err)
		}
		return guard.Did(providers.AlreadyTrue, "this host has all of its work"), nil
	}
	if len(t.seen.Copies) > 0 { // no save has them
		return nil, t.clean()
	}
	saved, err := t.p.Save(ctx, t.seen.ID, SaveOptions{As: t.Address})
	var refused *RefusedError
	if errors.As(err, &refused) {
		f := &providers.Problem{
			Outcome: providers.Unsafe, Code: "not_saved", Next: providers.Vmctl("plan"), Seen: refused.Seen,
			Err: fmt.Errorf("%s %s: its work cannot be saved, and nothing was removed: %w", t.Op, t.Address, err),
		}
		f.Next = append(f.Next, providers.Say(refused.Next...)...)
		return nil, f
	}
	if err == nil {
		next := ""
		if t.Op == opKeep || t.Op == opRemoveKept {
			next = saved.Commit
		}
		err = t.p.await(ctx, t.seen.Repository, t.Address, next)
	}
	if err != nil {
		return nil, fmt.Errorf("save the work: %w", err)
	}
	return guard.Did(providers.Done, "saved in "+saved.Ref), nil
}

// fetchLast brings the commits of the workspace to this host, and fails unless this host has all of its work then.
func (t *task) fetchLast(ctx context.Context) (*guard.Outcome, error) {
	if t.seen == nil {
		return nil, errors.New("it is gone")
	}
	did, err := t.exchange(ctx)
	if err != nil {
		return nil, err
	}
	if t.seen, err = t.p.at(ctx, t.seen.ID); err != nil {
		return nil, err
	}
	return did, t.clean()
}
