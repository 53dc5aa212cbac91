package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/gitx"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// judge adds what the block of a workspace lets an apply do with it.
func (p *Provider) judge(ctx context.Context, w *seen, o *providers.Object, q providers.Query) {
	if w.Unsealed != "" {
		if due, finding := p.sealDue(w); due != nil {
			o.Due, o.Findings = append(o.Due, *due), append(o.Findings, *finding)
		}
		return
	}
	policy := p.policyOf(w, q)
	if policy == cty.NilVal || w.Half != "" {
		return
	}
	due, finding := p.exchangeDue(ctx, w, ctyread.Attr(policy, "sync"))
	if due != nil {
		o.Due = append(o.Due, *due)
	}
	if finding != nil {
		o.Findings = append(o.Findings, *finding)
	}
	if mount := p.mountDue(w, policy); mount != nil {
		o.Due = append(o.Due, *mount)
	}
	hooks, failed := hooksDue(w, policy)
	o.Due = append(o.Due, hooks...)
	o.Findings = append(o.Findings, failed...)
}

// policyOf returns the policy of the block of a workspace; cty.NilVal: it has no block.
func (p *Provider) policyOf(w *seen, q providers.Query) cty.Value {
	if w.Owner == nil || w.Owner.ID != p.settings.Project.Lineage() || w.Owner.Of != w.ID {
		return cty.NilVal
	}
	for _, k := range q.Known {
		if k.ID == w.ID && k.Policy != cty.NilVal {
			return k.Policy
		}
	}
	for _, k := range q.Known {
		if k.Address == w.Owner.Address && k.Policy != cty.NilVal {
			return k.Policy
		}
	}
	return cty.NilVal
}

// relation tells how the branch of a workspace and that of this host stand to each other.
type relation string

// The relations.
const (
	equal    relation = "equal"
	ahead    relation = "ahead"  // the workspace has all commits of this host, and more
	behind   relation = "behind" // the other way round
	diverged relation = "diverged"
)

// relate compares the branch of a workspace with the commit that this host has there; "": it has none.
func (p *Provider) relate(ctx context.Context, w *seen, ours string) (relation, error) {
	if ours == w.Tip {
		return equal, nil
	}
	if ours == "" {
		return ahead, nil
	}
	git := p.git(w.Repository)
	if _, err := git.Output(ctx, "cat-file", "-e", w.Tip+"^{commit}"); err == nil {
		return oneOf(ctx, git, w.Tip, ours)
	} else if gitx.Status(err) < 0 {
		return "", err
	}
	out, err := p.inside(ctx, contains, nil, string(w.ID), w.Tip, ours)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(out)) == "yes" {
		return ahead, nil
	}
	return diverged, nil
}

// oneOf compares two commits that one repository has.
func oneOf(ctx context.Context, git gitx.Git, theirs, ours string) (relation, error) {
	for _, test := range []struct {
		is           relation
		older, newer string
	}{{behind, theirs, ours}, {ahead, ours, theirs}} {
		switch _, err := git.Output(ctx, "merge-base", "--is-ancestor", test.older, test.newer); {
		case err == nil:
			return test.is, nil
		case gitx.Status(err) != 1:
			return "", err
		}
	}
	return diverged, nil
}

// exchangeDue returns the exchange of commits that the block of a workspace lets an apply make, or else a finding that it
// cannot be made as things are. Nothing is forced.
func (p *Provider) exchangeDue(ctx context.Context, w *seen, sync cty.Value) (*providers.Due, *providers.Finding) {
	push, fetch := ctyread.Text(sync, "push") == always, ctyread.Text(sync, "fetch") == always
	if !push && !fetch || p.onHost() || len(w.Unread) > 0 || w.Tip == "" {
		return nil, nil // a worktree shares the branch; what could not be read is told already
	}
	ours, err := p.tip(ctx, w.Repository, w.Branch)
	var is relation
	if err == nil {
		is, err = p.relate(ctx, w, ours)
	}
	if err != nil {
		return nil, unsynced("its commits could not be compared with those of this host", []string{err.Error()}, nil)
	}
	switch {
	case is == diverged:
		return nil, unsynced(fmt.Sprintf("branch %s has commits here that the workspace lacks, and the other way round", w.Branch), nil,
			p.divergedNext(w.Owner))
	case is == behind && push:
		if changed := slices.Concat(w.Staged, w.Unstaged); len(changed) > 0 {
			return nil, unsynced("this host's commits wait: files are changed in the workspace", changed,
				providers.SayVmctl("commit or stash them there, then: ", "apply"))
		}
		return &providers.Due{Op: opPush, Reason: "this host has commits that it lacks: " + ours}, nil
	case is == ahead && fetch:
		if refused := p.fetchRefused(ctx, w, sync); refused != nil {
			return nil, unsynced("its commits wait: "+refused.Why, refused.Seen, providers.Say(refused.Next...))
		}
		if changed := p.untrusted(ctx, w, ours); changed != nil {
			return nil, unsynced("its commits wait: "+changed.Error(), changed.Files, changed.next(w.Owner.Address))
		}
		return &providers.Due{Op: opFetch, Reason: "it has commits that this host lacks: " + w.Tip}, nil
	default:
		return nil, nil
	}
}

// always is the value of sync.push and sync.fetch with which each apply exchanges commits.
const always = "always"

// divergedNext returns what can be done where both sides have commits of their own.
func (p *Provider) divergedNext(owner *providers.Mark) []providers.Advice {
	if owner == nil {
		return nil
	}
	return append(providers.SayVmctl("to see how to go on: ", "workspace", "fetch", owner.Address.String()),
		providers.Say("nothing is forced: both branches stay as they are until then")...)
}

// unsynced returns the finding about an exchange that cannot be made.
func unsynced(why string, seen []string, next []providers.Advice) *providers.Finding {
	return &providers.Finding{
		Kind: providers.FindUnsynced, Evidence: append([]string{why}, seen...), Action: "both branches stay as they are", Next: next,
	}
}

// fetchRefused returns the reason why the commits of a workspace cannot come to this host now; nil: they can.
func (p *Provider) fetchRefused(ctx context.Context, w *seen, sync cty.Value) *RefusedError {
	if left := w.uncommitted(); len(left) > 0 && ctyread.Text(sync, "on_dirty") != "warn" {
		return &RefusedError{
			Why: "it has changes that are not committed", Seen: left,
			Next: []string{"commit them there, or have them warned of only: sync { on_dirty = \"warn\" } in its block"},
		}
	}
	where, err := p.checkedOut(ctx, w.Repository, w.Branch)
	if err != nil || where == "" {
		return nil // apply tells it
	}
	changed, err := p.git(where).Output(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil || changed == "" {
		return nil
	}
	return &RefusedError{
		Why: fmt.Sprintf("branch %s is checked out in %s, where files are changed", w.Branch, where), Seen: strings.Split(changed, "\n"),
		Next: []string{"commit or stash these changes there, then apply again"},
	}
}

// uncommitted returns, in words, the changes of a workspace that no commit has.
func (w *seen) uncommitted() []string {
	var all []string
	for _, d := range w.dirt() {
		if IsChange(d.Sort) {
			all = append(all, d.String())
		}
	}
	return all
}

// due adds a step for each thing that is due.
func (s *steps) due() {
	hooks := hooksOf(s.Change.Policy, onceCreated)
	for _, d := range s.Change.Due {
		if i := slices.IndexFunc(hooks, func(h hook) bool { return opHook(h.name) == d.Op }); i >= 0 {
			s.hookStep(hooks[i], providers.PhaseChange, s.Change.ID)
		} else if slices.Contains([]string{opMount, opRemount, opUnmount}, d.Op) {
			s.mountDue(d.Op)
		} else if d.Op != opWrite || !s.Change.Alters() { // else it is written already
			s.Add(d.Op, providers.PhaseChange, s.Change.ID)
		}
	}
}

// moved moves the branch here or there, as the step says.
func (t *task) moved(ctx context.Context, sync cty.Value) (Moved, error) {
	if err := t.seen.refuseUnsealed(); err != nil {
		return Moved{}, err
	}
	if t.Op == opPush {
		return t.p.Push(ctx, t.seen.ID)
	}
	if refused := t.p.fetchRefused(ctx, t.seen, sync); refused != nil {
		return Moved{}, refused
	}
	return t.p.Fetch(ctx, t.seen.ID, "")
}

// exchange brings commits to the workspace or from it, as the step says.
func (t *task) exchange(ctx context.Context) (*guard.Outcome, error) {
	sync := ctyread.Attr(t.Policy, "sync")
	m, err := t.moved(ctx, sync)
	var refused *RefusedError
	var changed *SpecError
	switch {
	case errors.As(err, &changed):
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "untrusted_spec", Seen: changed.Files, Next: changed.next(t.Address),
			Err: fmt.Errorf("%s %s: %w", t.Op, t.Address, changed),
		}
	case errors.As(err, &refused):
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "not_moved", Seen: refused.Seen, Next: providers.Say(refused.Next...),
			Err: fmt.Errorf("%s %s: %w", t.Op, t.Address, refused),
		}
	case err != nil:
		return nil, err
	case m.From == m.To:
		return guard.Did(providers.AlreadyTrue, "branch "+m.Branch+" is at "+m.To), nil
	}
	evidence := []string{fmt.Sprintf("branch %s moved to %s", m.Branch, m.To)}
	if left := t.seen.uncommitted(); t.Op == opFetch && len(left) > 0 {
		evidence = append(evidence, "not committed, and not fetched: "+strings.Join(left, "; "))
	}
	return guard.Did(providers.Done, evidence...), nil
}
