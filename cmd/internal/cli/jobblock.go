package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/spec"
)

// jobType returns the type of the provider of job blocks, whose jobs this vmctl starts.
func (a *app) jobType() providers.Type {
	return job.Type(job.Host{
		Records: func(s providers.Settings) job.Store { // beside the provider's own folder, which it does not use
			return a.jobStore(filepath.Join(filepath.Dir(s.Dir), jobRecords), "job")
		},
		Start: a.startBlock, Observer: a.observer, TakeUp: a.takeUp,
	})
}

// startBlock starts a run of a job block during an apply.
func (a *app) startBlock(ctx context.Context, run job.BlockRun) (job.Record, error) {
	p := a.applied.Load()
	if p == nil {
		return job.Record{}, errors.New("start a job: no plan is carried out")
	}
	if err := a.jobs(p, "apply").Resume(ctx, &run, a.observer()); err != nil {
		return job.Record{}, err
	}
	r := requestOf(run)
	r.mask = run.Mask
	return a.startInWorkspace(ctx, p, r)
}

// requestOf returns the request for a run of a block.
func requestOf(run job.BlockRun) jobRequest {
	return jobRequest{
		in: run.Workspace, agent: run.Agent, text: []byte(run.Prompt), timeout: run.Timeout, idle: run.IdleTimeout, grace: run.Grace, unforced: run.Unforced, window: run.Window, mode: run.Mode,
		parent:  run.Resumes,
		command: run.Command, block: run.Block.String(), digest: run.Digest, key: run.Key, maxParallel: run.MaxParallel,
		containment: run.Containment, scope: run.Scope, env: run.Env,
	}
}

// jobBlockOf returns the address of a job block that is written in place of a job's ID; false: it is none.
func jobBlockOf(text string) (spec.Address, bool) {
	addr, err := spec.ParseAddress(text)
	return addr, err == nil && addr.Kind == spec.Job
}

// runBlock starts a run of a job block, as job run does.
func (a *app) runBlock(ctx context.Context, text string, r jobRequest) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	found, err := p.config.Lookup(text, spec.Job)
	switch {
	case err != nil:
		return rejected("unknown_resource", err.Error())
	case len(found) > 1:
		return severalError(text, found)
	}
	run, err := a.resolvedRun(ctx, p, found[0])
	if err != nil {
		return err
	}
	if err := a.jobs(p, "job run").Resume(ctx, &run, a.observer()); err != nil {
		return a.notContinued(err)
	}
	of := requestOf(run)
	of.pass, of.set, of.stripProxy, of.mask = r.pass, r.set, r.stripProxy, p.masker.Text
	started, err := a.startInWorkspace(ctx, p, of)
	if err != nil {
		return err
	}
	a.tellStarted(ctx, a.jobs(p, "job run"), started)
	return nil
}

// resolvedBlock reads a job block, with the values that records have of what it refers to.
func (a *app) resolvedBlock(ctx context.Context, p *project, addr spec.Address) (spec.Resource, error) {
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return spec.Resource{}, err
	}
	known := map[spec.Address]cty.Value{}
	for at, record := range snapshot.Records {
		known[at] = record.Values
	}
	block, err := a.resolver(p.config)(addr, known)
	if err != nil {
		return block, err
	}
	p.masker.Add(spec.Texts(block.Want)...)
	return block, nil
}

// resolvedRun reads a job block, for a run of it.
func (a *app) resolvedRun(ctx context.Context, p *project, addr spec.Address) (job.BlockRun, error) {
	block, err := a.resolvedBlock(ctx, p, addr)
	if err != nil {
		return job.BlockRun{}, err
	}
	var digest func(string) string
	if key := p.key; !key.IsZero() { // as the provider makes it
		digest = func(text string) string { return key.Text(block.Provider.String(), text) }
	}
	run, err := job.BlockRunOf(addr, spec.Revealed(block.Want), block.Policy, digest)
	if err != nil {
		return run, a.unknownValue(err)
	}
	return run, nil
}

// unknownValue returns the error about a job that needs a value which apply makes.
func (a *app) unknownValue(err error) error {
	e := newProblem(classFailed, "unknown_value", err.Error(), a.commandLine("apply", planFlags{}))
	e.err = err
	return e
}

// environmentOf returns the env block of the job block of a record: no record has its values.
func (a *app) environmentOf(ctx context.Context, p *project, r job.Record) (cty.Value, error) {
	addr, is := jobBlockOf(r.Block)
	if !is {
		return cty.NilVal, nil
	}
	if _, there := p.config.Resource(addr); !there {
		view.Warning(a.errScreen(), r.Block+" is not in the spec any more: what its env passed and set is not in the environment of this job")
		return cty.NilVal, nil
	}
	block, err := a.resolvedBlock(ctx, p, addr)
	if err != nil {
		return cty.NilVal, err
	}
	env := ctyread.Attr(spec.Revealed(block.Want), "env")
	if env != cty.NilVal && !env.IsWhollyKnown() {
		return cty.NilVal, a.unknownValue(fmt.Errorf("continue job %s: a value of env of %s is not known yet", r.ID, addr))
	}
	return env, nil
}

// notOfBlock lists the flags of job run that say what the block of a job says.
func notOfBlock(f *pflag.FlagSet) error {
	var given []string
	for _, name := range []string{"agent", "containment", "force", "grace", "idle-timeout", "in", "in-dir", "mode", "prompt", "scope", "timeout"} {
		if f.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return rejected("bad_args", "job run of a job block takes no "+strings.Join(given, ", ")+": the block says it")
}
