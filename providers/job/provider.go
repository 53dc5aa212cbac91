package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Provider manages job blocks. The object of a block is what its runs have left: their records.
type Provider struct {
	host     Host
	settings providers.Settings
	store    Store

	mu          sync.Mutex
	unresumable map[spec.Address]*providers.Problem // why a block cannot continue the job that it names, as of the last look
}

var _ providers.Provider = (*Provider)(nil)

// Close implements providers.Provider.
func (p *Provider) Close() error { return nil }

// Observe implements providers.Provider. A block that never ran has no object.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	all, unread, err := p.store.List()
	if err = errors.Join(append(unread, err)...); err != nil { // a record that cannot be read may be of any block
		inv.Partial[spec.Job] = providers.Unread(fmt.Errorf("read the records of jobs: %w", err))
	}
	o := p.host.Observer()
	unresumable := map[spec.Address]*providers.Problem{}
	for _, k := range q.Known {
		if problem := p.resumable(ctx, k, o); problem != nil {
			unresumable[k.Address] = problem
		}
		if r := newest(all, func(r Record) bool { return o.isRunOf(ctx, r, k.Address) }); r != nil {
			inv.Objects = append(inv.Objects, p.object(ctx, k, *r))
		}
	}
	p.mu.Lock()
	p.unresumable = unresumable
	p.mu.Unlock()
	return inv, ctx.Err()
}

// resumable returns why a run of a block cannot go on with the job that the block continues; nil: it can, or it continues none.
func (p *Provider) resumable(ctx context.Context, k providers.Known, o Observer) *providers.Problem {
	run := BlockRun{Block: k.Address, Workspace: ctyread.Text(k.Want, "workspace"), Agent: ctyread.Text(k.Want, "agent"), Resumes: resumes(k.Want)}
	if err := p.store.Resume(ctx, &run, o); err != nil {
		return refusal(run, err)
	}
	return nil
}

// mayResume fails if the last look found that a block cannot continue the job that it names.
func (p *Provider) mayResume(a spec.Address) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if problem := p.unresumable[a]; problem != nil {
		return problem
	}
	return nil
}

// object returns the object of a block with its newest job.
func (p *Provider) object(ctx context.Context, k providers.Known, r Record) providers.Object {
	id := providers.ID(blockID(p.settings.Project.Lineage(), k.Address))
	attrs := map[string]cty.Value{"id": cty.StringVal(string(id))}
	var findings []providers.Finding
	if want, err := digestOf(k.Want, p.settings.Digest); err == nil && k.Want != cty.NilVal && want != r.Digest && k.Prior == cty.NilVal {
		// No state knows with which triggers it ran: not with those of now, or nobody can tell.
		if key := keyName(p.settings.Digest); key == "" || r.Digest == "" || r.Key != "" && r.Key != key {
			findings = append(findings, notRun(k.Address, r))
		} else {
			attrs["triggers"] = cty.MapVal(map[string]cty.Value{"digest": cty.StringVal(r.Digest)})
		}
	}
	o := providers.Object{
		Kind: spec.Job, ID: id, Name: k.Name, State: "present", Attrs: cty.ObjectVal(attrs), Unreadable: map[string]string{}, Findings: findings,
		Owner: p.settings.Project.MarkOf(k.Address, id), Fingerprint: fingerprint(id, r),
	}
	if _, d := p.store.Look(ctx, r, p.host.Observer()); d.Status.IsTerminal() && d.Status != Completed {
		o.Findings = append(o.Findings, finding(r, d))
	}
	return o
}

// notRun tells of a block whose last job may have had the triggers and the command of now: the key is lost by which they
// could be compared.
func notRun(a spec.Address, r Record) providers.Finding {
	return providers.Finding{
		Kind:     providers.FindNotRun,
		Evidence: []string{fmt.Sprintf("job %s was made with another key of the data directory, and no record says whether %s is due again", r.ID, a)},
		Action:   "not run", Next: providers.SayVmctl("run it: ", "job", "run", a.String()),
	}
}

// finding tells of a job that has not completed.
func finding(r Record, d Derived) providers.Finding {
	next := providers.SayVmctl("see how it ended: ", "job", "status", string(r.ID))
	if r.HasSession() {
		next = append(next, providers.SayVmctl("go on with it: ", "job", "continue", string(r.ID))...)
	}
	return providers.Finding{
		Kind: providers.FindJobEnded, Evidence: []string{fmt.Sprintf("job %s is %s: %s", r.ID, d.Status, d.Reason)},
		Action: "left alone: apply does not run it again",
		Next:   append(next, providers.SayVmctl("run it again: ", append(append([]string{"job", "run"}, r.Asked.Flags()...), r.Block)...)...),
	}
}

// fingerprint leaves out the status: a job ends when it likes.
func fingerprint(id providers.ID, r Record) string {
	var print guard.Print
	print.Add("id", string(id))
	print.Add("newest job", string(r.ID))
	return print.String()
}

// slack is the time that a job gets beyond its own limits, until its record has ended.
const slack = 5 * time.Minute

// Steps implements providers.Provider.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	s := machine.Steps{Change: c, Words: words, Timeout: slack}
	phase, due := providers.PhaseChange, false
	switch c.Action {
	case providers.Create:
		phase, due = providers.PhaseMake, true
	case providers.Update:
		due = slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return !isSame(e) })
	case providers.ReplaceIt:
		return nil, providers.Refuse("a job is not replaced", providers.SayVmctl("run it again: ", "job", "run", c.Address.String()))
	case providers.Import:
		return nil, providers.Refuse("a job cannot be imported", nil)
	case providers.Destroy, providers.Forget, providers.Release, providers.Adopt, providers.NoOp, providers.Recover:
	case providers.RestartIt, providers.Start, providers.Stop:
		return nil, errors.New("a job is not started or stopped by a plan")
	default:
		panic("unknown action " + string(c.Action))
	}
	if due {
		if err := p.mayResume(c.Address); err != nil {
			return nil, err
		}
		s.Add(opStart, phase, c.ID)
		s.Add(opAwait, providers.PhaseReady, c.ID).Timeout = awaitLimit(c.Policy)
	}
	return s.All, nil
}

// awaitLimit returns the time that a job has until its record has ended; 0: that depends on the jobs ahead of it, which
// have limits of their own.
func awaitLimit(policy cty.Value) time.Duration {
	if ctyread.Uint(policy, "max_parallel") > 0 {
		return 0
	}
	return ctyread.Seconds(policy, "timeout", 0) + ctyread.Seconds(ctyread.Attr(policy, "stop"), "grace", 0) + slack
}

// isSame reports whether an edit makes no job due: its workspace is made anew, under the same address, or its environment is
// another one, which counts for the next run.
func isSame(e providers.Edit) bool {
	if name, _, _ := strings.Cut(e.Path, "."); name == "env" {
		return true
	}
	return e.Path == "workspace" && e.Before != cty.NilVal && e.After != cty.NilVal && e.Before.RawEquals(e.After)
}
