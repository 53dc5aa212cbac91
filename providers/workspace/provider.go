package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Provider manages the workspaces of one place: of a VM, or of this host.
type Provider struct {
	host     Host
	settings providers.Settings

	trees sync.Mutex // held while worktrees of this host are listed, made or removed
	mu    sync.Mutex
	known map[providers.ID]memory // what this host has written down about workspaces

	within map[providers.ID][]string // where something was mounted in the folder of a workspace at the last look
}

var _ providers.Provider = (*Provider)(nil)

// Close implements providers.Provider. The guest is not the provider's own.
func (p *Provider) Close() error { return nil }

// Observe implements providers.Provider.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	for _, k := range q.Known {
		p.remember(k.ID, k.Address, k.Name, k.Prior)
	}
	all, err := p.list(ctx)
	if err != nil {
		inv.Partial[spec.Workspace] = providers.Unread(fmt.Errorf("%s gives no answer: %w", p.settings.Via.Address, err))
		return inv, ctx.Err()
	}
	for _, w := range all {
		o := p.object(w)
		p.judge(ctx, w, &o, q)
		inv.Objects = append(inv.Objects, o)
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return strings.Compare(a.Name, b.Name) })
	inv.FindImports(q)
	return inv, ctx.Err()
}

// list returns all workspaces of the place, and compares their commits with those of the repositories. It follows no record
// of a guest that is not sealed.
func (p *Provider) list(ctx context.Context) ([]*seen, error) {
	out, err := p.inside(ctx, list, nil)
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	all, err := parseList(string(out))
	if err != nil {
		return nil, err
	}
	if err := p.unseal(ctx, all); err != nil {
		return nil, err
	}
	p.compare(ctx, all)
	p.noteMounted(all)
	return all, p.findMounts(ctx, all)
}

// inside runs one of the programs in the place, and returns what it printed.
func (p *Provider) inside(ctx context.Context, program string, stdin []byte, args ...string) ([]byte, error) {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	c := providers.Command{Args: append([]string{"sh", "-c", program, "workspace"}, args...), Stdout: &out}
	if stdin != nil {
		c.Stdin = bytes.NewReader(stdin)
	}
	o, err := g.Run(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case o.Status != 0:
		return nil, failedInside(o)
	}
	return out.Bytes(), nil
}

// failedInside returns the error of a program that ended with a status other than 0.
func failedInside(o providers.Output) error {
	if said := strings.TrimSpace(o.Stderr); said != "" {
		return fmt.Errorf("%s", said)
	}
	return fmt.Errorf("status %d", o.Status)
}

func claim(path string) providers.Claim { return providers.Claim{Kind: "path", Key: path} }

func (p *Provider) object(w *seen) providers.Object {
	o := providers.Object{
		Kind: spec.Workspace, ID: w.ID, Name: w.Name, Owner: w.Owner, State: "present",
		Attrs: cty.ObjectVal(p.values(w)), Holds: []providers.Claim{claim(w.Path)}, Unreadable: map[string]string{},
		Dirty: w.dirt(), Fingerprint: fingerprint(w),
	}
	if at := w.mountedAt(); at != "" {
		o.Holds = append(o.Holds, mountClaim(at))
	}
	if w.Owner != nil && w.Owner.Of != w.ID {
		o.Findings = append(o.Findings, providers.Finding{
			Kind: providers.FindCopy, Object: w.Name, Address: w.Owner.Address, Action: "left alone",
			Evidence: []string{"its mark was written for " + string(w.Owner.Of)},
		})
	}
	if w.Half != "" {
		o.Findings = append(o.Findings, providers.Finding{Kind: providers.FindPartial, Object: w.Name, Evidence: []string{w.Half}})
	}
	if unread := w.unread(); len(unread) > 0 {
		o.Unreadable["dirty"] = strings.Join(unread, "; ")
	}
	return o
}

func (p *Provider) values(w *seen) map[string]cty.Value {
	all := map[string]cty.Value{
		"id": cty.StringVal(string(w.ID)), "repo": cty.StringVal(w.Repo), "branch": cty.StringVal(w.Branch),
		"path": cty.StringVal(w.Path),
	}
	if w.Base != "" {
		all["base"] = cty.StringVal(w.Base)
	}
	if w.Head != "" {
		all["head"] = cty.StringVal(w.Head)
	}
	if at := w.mountedAt(); at != "" {
		all["mount_path"] = cty.StringVal(at)
	}
	return all
}

// Sorts of work.
const (
	Untracked = "untracked files"
	Commits   = "commits that this host lacks"
	Stashes   = "stashes"

	inside     = "repositories inside"
	copies     = "copies in which jobs changed it (vmctl job status JOB says why they are left)"
	operations = "operations of git that are not completed"
)

// IsChange reports whether a sort of work is one of changes that a commit could have.
func IsChange(sort string) bool {
	return !slices.Contains([]string{Commits, Stashes, inside, copies, operations}, sort)
}

// dirt returns the work of a workspace that is nowhere else.
func (w *seen) dirt() []providers.Dirt {
	var all []providers.Dirt
	for _, d := range []providers.Dirt{
		{Sort: "staged changes", Items: w.Staged},
		{Sort: "unstaged changes", Items: w.Unstaged},
		{Sort: "changes that a mark hides (assume-unchanged, skip-worktree)", Items: w.Hidden},
		{Sort: Untracked, Items: w.Untracked},
		{Sort: inside, Items: w.Inside},
		{Sort: operations, Items: w.Operations},
		{Sort: Commits, Items: w.Unfetched},
		{Sort: Stashes, Items: w.Stashes},
		{Sort: copies, Items: w.Copies},
	} {
		if len(d.Items) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// fingerprint leaves out the commits and the files: people work there all the time. What removes a workspace looks at
// them itself.
func fingerprint(w *seen) string {
	var print guard.Print
	print.Add("id", string(w.ID))
	print.Add("repository", w.Repository)
	print.Add("branch", w.Branch)
	print.Add("path", w.Path)
	print.Add("env", w.Env)
	print.Add("half there", w.Half)
	print.Add("record", w.Unsealed)
	print.AddMark(w.Owner)
	return print.String()
}

// Steps implements providers.Provider.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	s := steps{Steps: machine.Steps{Change: c, Words: words, Timeout: timeout}}
	if want, err := p.wantedMount(c.Policy); err == nil && want != nil { // else its step fails
		s.mount = mountClaim(want.Path)
	}
	if (c.Action == providers.Destroy || c.Action == providers.ReplaceIt) && c.Object != nil && !c.Ends {
		if problem := p.holdsMounts(c.Object.ID); problem != nil {
			return nil, problem
		}
	}
	switch c.Action {
	case providers.Create:
		s.make()
	case providers.ReplaceIt:
		s.remove()
		s.make()
	case providers.Update, providers.Import, providers.Recover:
		if isPartial(c.Object) {
			s.make()
			break
		}
		if c.Alters() {
			s.Add(opWrite, providers.PhaseChange, c.ID)
		}
		s.due()
	case providers.Destroy:
		s.remove()
	case providers.Forget:
		if c.Object != nil {
			s.Add(guard.OpUnmark, providers.PhaseFree, c.Object.ID) // while the VM still runs
		}
	case providers.Release:
		s.release()
	case providers.Adopt, providers.NoOp:
	case providers.RestartIt, providers.Start, providers.Stop:
		return nil, fmt.Errorf("a workspace does not run")
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.All, nil
}

func isPartial(o *providers.Object) bool {
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindPartial })
}

// The operations on a workspace; guard.OpUnmark is another.
const (
	opMake    = "check_out"
	opWrite   = "write"
	opRemove  = "remove"  // not if it has work that is nowhere else
	opDiscard = "discard" // whatever is in it
	opCheck   = "check"   // fails if it has such work
	opPush    = "push"
	opFetch   = "fetch"

	opSave        = "save"         // puts its work into the repository of this host
	opRemoveSaved = "remove_saved" // saves what has been added since, and removes it
	opKeep        = "keep"         // as opSave, for the workspace that takes its place
	opRemoveKept  = "remove_kept"  // as opRemoveSaved, for that one
	opFetchLast   = "fetch_last"   // brings its commits to this host, which has all of its work then
)

// steps collects the steps of a change.
type steps struct {
	machine.Steps
	mount providers.Claim // of the mount that the block wants; zero: it wants none
}

func (s *steps) make() {
	step := s.Add(opMake, providers.PhaseMake, s.Change.ID)
	step.Takes = []providers.Claim{claim(ctyread.Text(s.Change.Want, "path"))}
	step.Leaves = []string{"a workspace that is not completely checked out"}
	if mountBlock(s.Change.Policy) != cty.NilVal {
		s.mountStep(opMount, providers.PhaseChange, s.Change.ID)
	}
	for _, h := range hooksOf(s.Change.Policy, onceCreated) {
		s.hookStep(h, providers.PhaseChange, s.Change.ID)
	}
}

// check adds a step that fails if the workspace has work that is nowhere else by then: somebody may have gone on since the plan was
// made, and what the workspace is inside of ends.
func (s *steps) check(phase providers.Phase) {
	if !s.Change.Discards {
		s.Add(opCheck, phase, s.Change.Object.ID).Checks = true
	}
}

func (s *steps) remove() {
	if s.Change.Ends && !s.saves() && !s.fetches() {
		s.check(providers.PhaseFree)
		return
	}
	hooks := 0
	if s.Change.Object != nil && !isPartial(s.Change.Object) {
		for _, h := range hooksOf(s.Change.Policy, beforeDestroy) {
			s.hookStep(h, providers.PhaseFree, s.Change.Object.ID)
			hooks++
		}
	}
	op := opRemove
	switch {
	case s.Change.Discards:
		op = opDiscard
	case s.saves():
		op = opRemoveSaved
		if s.succeeds() {
			op = opRemoveKept
		}
		if hooks > 0 || len(s.Change.Object.Dirty) > 0 || s.Change.Ends {
			s.save()
		}
	case s.fetches():
		s.Add(opFetchLast, providers.PhaseFree, s.Change.Object.ID).Saves = true
	}
	s.unmounts(providers.PhaseRemove)
	step := s.Add(op, providers.PhaseRemove, s.Change.Object.ID)
	step.Frees = s.Change.Object.Holds
	if s.Change.Discards {
		step.Risk = providers.DataLoss
	}
}
