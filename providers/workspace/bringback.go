package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// awaitedRef returns the reference, in the repository of this host, of the save that the next workspace of an address gets:
// it is replaced, or the VM around it is. No two addresses of all projects share one.
func (p *Provider) awaitedRef(a spec.Address) string {
	name := strings.TrimPrefix(strings.TrimSuffix(saveFolder(a), "/"), "refs/vmctl/")
	return "refs/vmctl-awaited/" + guard.Short(p.settings.Project.Lineage()) + "/" + name
}

// awaited returns the commit of the save that the next workspace of an address gets; "": none.
func (p *Provider) awaited(ctx context.Context, repository string, a spec.Address) (string, error) {
	return p.git(repository).Output(ctx, "for-each-ref", "--format=%(objectname)", p.awaitedRef(a))
}

// await notes the commit of the save that the next workspace of an address gets; "": it gets none.
func (p *Provider) await(ctx context.Context, repository string, a spec.Address, commit string) error {
	args := []string{"update-ref", "-d", p.awaitedRef(a)}
	if commit != "" {
		args = []string{"update-ref", p.awaitedRef(a), commit}
	}
	_, err := p.git(repository).Output(ctx, args...)
	return err
}

// inherited returns the address under which the work is that a new workspace gets, and the commit of that save; "": it gets none. The
// workspace may have been renamed since the one before it was removed. One of another branch cannot have the work.
func (t *task) inherited(ctx context.Context, r record) (from spec.Address, commit string, err error) {
	if commit, err = t.p.awaited(ctx, r.Repository, t.Address); err != nil || commit != "" {
		return t.Address, commit, err
	}
	for _, was := range t.Was {
		if commit, err = t.p.awaited(ctx, r.Repository, was); err != nil {
			return was, "", err
		}
		all, err := t.p.saves(ctx, r.Repository, saveFolder(was))
		if err != nil {
			return was, "", err
		}
		if slices.ContainsFunc(all, func(s keptSave) bool { return s.Commit == commit && s.Branch == r.Branch }) {
			return was, commit, nil
		}
	}
	return t.Address, "", nil
}

// bringBack brings back what a workspace awaits, and returns the reference of that save; "": it awaits nothing. What cannot be
// brought back stays in its save, and the workspace awaits it no more.
func (t *task) bringBack(ctx context.Context, r record) (string, error) {
	p := t.p
	w, err := p.found(ctx, r.ID)
	if err != nil || w.Restoring == "" {
		return "", err
	}
	all, err := p.saves(ctx, w.Repository, saveRoot) // it may have had another address when it was saved
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(s keptSave) bool { return s.Commit == w.Restoring })
	if i < 0 {
		err = &RefusedError{Why: "this host's repository has no such save any more: " + w.Restoring}
	} else {
		_, err = p.restore(ctx, w, all[i])
	}
	if err == nil {
		return all[i].Ref, nil
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("bring its work back: %w", err)
	}
	if _, err := p.inside(ctx, settle, nil, string(r.ID)); err != nil {
		return "", err
	}
	f := &providers.Problem{
		Outcome: providers.Failed, Code: "not_restored", Seen: refused.Seen, Next: providers.Say(refused.Next...),
		Err: fmt.Errorf("%s %s: it is checked out, and its saved work is not back in it: %w", t.Op, t.Address, err),
	}
	f.Next = append(f.Next, providers.SayVmctl("its saves: ", "workspace", "saves", t.Address.String())...)
	return "", f
}
