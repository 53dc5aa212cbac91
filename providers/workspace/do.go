package workspace

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// timeout limits a step: a repository may be large, and a VM slow.
const timeout = 30 * time.Minute

// Do implements providers.Provider.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Provider) Begin(_ context.Context, w providers.Work, _ providers.Log) (guard.Task, func() error, error) {
	if w.Phase != providers.PhaseMake { // what is made has another record than what was there before
		if _, has := p.remembered(w.Object); !has {
			p.remember(w.Object, w.Address, w.Name, w.Prior)
		}
	}
	return &task{Work: w, p: p}, func() error { return nil }, nil
}

// Failure implements guard.Driver.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "workspace", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err),
	}
}

type task struct {
	providers.Work
	p    *Provider
	seen *seen
}

// Guard implements guard.Task.
func (t *task) Guard() guard.Guard {
	return guard.Guard{Work: t.Work, Project: t.p.settings.Project, Thing: "workspace", Look: func(now guard.Seen) string {
		return fmt.Sprintf("%s/%s in %s", home, now.ID, t.p.settings.Via.Address)
	}}
}

// Look implements guard.Task.
func (t *task) Look(ctx context.Context) (*guard.Seen, error) {
	all, err := t.p.list(ctx)
	if err != nil {
		return nil, err
	}
	t.seen = nil
	for _, w := range all {
		if w.ID == t.Object {
			t.seen = w
		}
	}
	if t.seen == nil {
		return nil, nil
	}
	return &guard.Seen{ID: t.seen.ID, Name: t.seen.Name, Mark: t.seen.Owner, Fingerprint: fingerprint(t.seen)}, nil
}

// Values implements guard.Task.
func (t *task) Values(context.Context) (map[string]cty.Value, error) {
	all := map[string]cty.Value{}
	for name, v := range t.p.values(t.seen) {
		if kinds[t.Address.Kind][name].Computed {
			all[name] = v
		}
	}
	return all, nil
}

// Verb implements guard.Task.
func (t *task) Verb() (guard.Verb, error) {
	if name, is := strings.CutPrefix(t.Op, opHook("")); is {
		return t.hookVerb(name), nil
	}
	switch t.Op {
	case opPush, opFetch:
		return guard.Verb{Act: t.exchange}, nil
	case opMount, opRemount, opUnmount:
		return t.mountVerb(), nil
	case opMake:
		return guard.Verb{Need: guard.Making, Done: guard.If(func() bool { return t.isWanted() && t.seen.Half == "" }, "it is as wanted"), Act: t.make}, nil
	case opWrite:
		return guard.Verb{Need: guard.Expected, Done: guard.If(t.isWanted, "it is as wanted"), Act: t.write}, nil
	case opSave, opKeep:
		return guard.Verb{Need: guard.Expected, Act: t.save}, nil
	case opCheck:
		return guard.Verb{Need: guard.Expected, Act: t.check}, nil
	case opFetchLast:
		return guard.Verb{Need: guard.Expected, Act: t.fetchLast}, nil
	case opRemove, opDiscard, opRemoveSaved, opRemoveKept:
		return guard.Verb{Need: guard.Removing, Act: t.remove}, nil
	case guard.OpUnmark:
		unmarked := func() bool { return t.seen == nil || t.seen.Owner == nil }
		return guard.Verb{Done: guard.If(unmarked, "it bears no mark"), Act: t.unmark}, nil
	default:
		panic("unknown operation " + t.Op)
	}
}

// wanted returns the record as the step is to write it.
func (t *task) wanted() record {
	p := t.p.settings.Project
	r := record{
		ID: t.Object, Name: t.Name, Repo: ctyread.Text(t.Want, "repo"), Branch: ctyread.Text(t.Want, "branch"), Path: ctyread.Text(t.Want, "path"),
	}
	if t.seen != nil {
		r.Name, r.Repository, r.Base = t.seen.Name, t.seen.Repository, t.seen.Base
	}
	r.Env = guard.Keyed(t.p.settings.Digest, environment(t.Want))
	r.Owner = &providers.Mark{ID: p.Lineage(), Project: p.Name, Address: t.Address, Of: r.ID, Generation: t.Generation}
	return r
}

func (t *task) isWanted() bool {
	if t.seen == nil || t.seen.Owner == nil || t.seen.Unsealed != "" {
		return false
	}
	now, want := t.seen.record, t.wanted()
	same := *now.Owner == *want.Owner
	now.Owner, want.Owner, now.Seal = nil, nil, ""
	return same && now == want
}

// environment returns a text that is another one whenever the environment is.
func environment(want cty.Value) string {
	env := ctyread.Attr(want, "env")
	if !ctyread.Known(env) {
		return ""
	}
	return fmt.Sprintf("%#v", env)
}

// wasMade reports whether the workspace was whole once, and still has its branches: they keep its base.
func (t *task) wasMade() bool {
	return t.seen != nil && slices.Contains([]string{folderGone, folderHalf, partlyBack}, t.seen.Half)
}

// make makes the workspace, or completes one whose making was cut short.
func (t *task) make(ctx context.Context) (*guard.Outcome, error) {
	p, r := t.p, t.wanted()
	var err error
	if r.Repository, err = p.repository(ctx, r.Repo); err != nil {
		return nil, err
	}
	commit, err := p.branch(ctx, r.Repository, r.Branch, ctyread.True(t.Policy, "create_branch"))
	if err != nil {
		return nil, err
	}
	if r.Base == "" || !t.wasMade() {
		r.Base = commit
	}
	text, err := p.text(ctx, r)
	if err != nil {
		return nil, err
	}
	from, awaited, err := t.inherited(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, err := p.inside(ctx, begin, text, string(r.ID), r.Path, awaited); err != nil {
		return nil, err
	}
	p.wrote(r, t.Address)
	if err := p.await(ctx, r.Repository, from, ""); err != nil { // its own folder has it
		return nil, err
	}
	switch {
	case t.seen != nil && t.seen.Half == partlyBack: // its files are on their way from those of the branch to those of the save
	case p.onHost():
		err = p.addWorktree(ctx, r)
	default:
		err = p.checkOut(ctx, r, commit)
	}
	if err != nil {
		return nil, err
	}
	did := guard.Did(providers.Done, "at "+commit)
	if ref, err := t.bringBack(ctx, r); err != nil {
		return nil, err
	} else if ref != "" {
		did.Evidence = append(did.Evidence, "with the work of "+ref)
	}
	return did, nil
}

// addWorktree makes the worktree of a workspace. One after the other: git fails where it meets a worktree that another git is
// about to make.
func (p *Provider) addWorktree(ctx context.Context, r record) error {
	p.trees.Lock()
	defer p.trees.Unlock()
	there, err := p.hasWorktree(ctx, r)
	if err != nil {
		return err
	}
	if !there { // an earlier run may have been cut short after this
		if _, err := p.git(r.Repository).Output(ctx, "worktree", "add", "-q", "--", r.Path, r.Branch); err != nil {
			return err
		}
	}
	_, err = p.inside(ctx, finish, nil, string(r.ID))
	return err
}

// hasWorktree reports whether git lists the worktree of a workspace. One whose folder is gone is listed no more.
func (p *Provider) hasWorktree(ctx context.Context, r record) (bool, error) {
	git := p.git(r.Repository)
	if _, err := git.Output(ctx, "worktree", "prune"); err != nil {
		return false, err
	}
	trees, err := git.Output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return false, err
	}
	path := r.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return strings.Contains("\n"+trees+"\n", "\nworktree "+path+"\n"), nil
}

// removeWorktree removes a worktree. Unless it is to be discarded, git itself refuses where there are changes.
func (p *Provider) removeWorktree(ctx context.Context, r record, discard bool) error {
	p.trees.Lock()
	defer p.trees.Unlock()
	there, err := p.hasWorktree(ctx, r)
	if err != nil || !there {
		return err
	}
	args := []string{"worktree", "remove", "--", r.Path}
	if discard {
		args = []string{"worktree", "remove", "--force", "--", r.Path}
	}
	_, err = p.git(r.Repository).Output(ctx, args...)
	return err
}

func (p *Provider) checkOut(ctx context.Context, r record, commit string) error {
	err := pump(ctx,
		func(ctx context.Context, w io.Writer) error {
			return p.git(r.Repository).Stream(ctx, strings.NewReader(commit+"\n"), w, "pack-objects", "--revs", "--stdout", "-q")
		},
		func(ctx context.Context, in io.Reader) error { return p.feed(ctx, in, receive, string(r.ID), r.Path) })
	if err != nil {
		return err
	}
	name, email := p.identity(ctx, r.Repository)
	_, err = p.inside(ctx, checkOut, nil, string(r.ID), r.Path, r.Branch, commit, name, email)
	return err
}

// feed runs one of the programs in the place, with an input of any length.
func (p *Provider) feed(ctx context.Context, in io.Reader, program string, args ...string) error {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return err
	}
	o, err := g.Run(ctx, providers.Command{Args: append([]string{"sh", "-c", program, "workspace"}, args...), Stdin: in})
	if err == nil && o.Status != 0 {
		err = failedInside(o)
	}
	return err
}

func (t *task) write(ctx context.Context) (*guard.Outcome, error) {
	r := t.wanted()
	var err error
	if r.Repository == "" { // no record names it
		r.Repository, err = t.p.repository(ctx, r.Repo)
	}
	if err == nil && r.Base == "" {
		r.Base, err = t.p.tip(ctx, r.Repository, r.Branch)
	}
	if err != nil {
		return nil, err
	}
	text, err := t.p.text(ctx, r)
	if err != nil {
		return nil, err
	}
	did, err := t.rewrite(ctx, text)
	if err != nil {
		return nil, err
	}
	t.p.wrote(r, t.Address)
	if was := t.seen.Owner; was != nil && was.Address != t.Address { // a workspace that takes its earlier name inherits nothing of it
		err = t.p.await(ctx, r.Repository, was.Address, "")
	}
	return did, err
}

func (t *task) unmark(ctx context.Context) (*guard.Outcome, error) {
	r := t.seen.record
	r.Owner = nil
	var text []byte
	var err error
	if t.seen.Unsealed == "" {
		text, err = t.p.text(ctx, r)
	} else { // a seal would say that this host knows what it says
		text, err = r.text(t.p.tree())
	}
	if err != nil {
		return nil, err
	}
	did, err := t.rewrite(ctx, text)
	if err == nil {
		did.NotGone = true
	}
	return did, err
}

func (t *task) rewrite(ctx context.Context, text []byte) (*guard.Outcome, error) {
	if _, err := t.p.inside(ctx, write, text, string(t.seen.ID)); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// remove removes the workspace. Unless it is to be discarded, it must not have any work that is nowhere else: somebody may
// have gone on since the plan was made.
func (t *task) remove(ctx context.Context) (*guard.Outcome, error) {
	if t.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	if err := t.unmounted(ctx); err != nil {
		return nil, err
	}
	var evidence []string
	switch t.Op {
	case opRemove, opDiscard:
		if t.Op == opRemove {
			if err := t.clean(); err != nil {
				return nil, err
			}
		}
		_ = t.p.await(ctx, t.seen.Repository, t.Address, "") //nolint:errcheck // a repository that is gone brings nothing back
	case opRemoveSaved, opRemoveKept:
		did, err := t.save(ctx)
		if err != nil {
			return nil, err
		}
		evidence = did.Evidence
	}
	id, path := string(t.seen.ID), t.seen.Path
	if !t.p.onHost() {
		if _, err := t.p.inside(ctx, remove, nil, id, path); err != nil {
			return nil, err
		}
		return guard.Did(providers.Done, evidence...), nil
	}
	if err := t.p.removeWorktree(ctx, t.seen.record, t.Op != opRemove); err != nil {
		return nil, err
	}
	if _, err := t.p.inside(ctx, drop, nil, id); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, evidence...), nil
}

// check fails if the workspace has work that is nowhere else: it is lost with what it is inside of.
func (t *task) check(context.Context) (*guard.Outcome, error) {
	if t.seen != nil {
		if err := t.clean(); err != nil {
			return nil, err
		}
	}
	return guard.Did(providers.Done, "this host has all of its work"), nil
}

// clean fails if the workspace has work that is nowhere else, or if that could not be read.
func (t *task) clean() error {
	dirt := t.seen.dirt()
	if len(dirt) == 0 && len(t.seen.unread()) == 0 {
		return nil
	}
	f := &providers.Problem{
		Outcome: providers.Stale, Code: "dirty", Next: providers.Vmctl("plan"), Seen: t.seen.unread(),
		Err: fmt.Errorf("%s %s: it has work now that exists nowhere else", t.Op, t.Address),
	}
	for _, d := range dirt {
		f.Seen = append(f.Seen, d.String())
	}
	return f
}
