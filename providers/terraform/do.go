package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/lockfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Do implements providers.Provider.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Provider) Begin(ctx context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	module, err := p.readModule()
	if err != nil {
		return nil, nil, err
	}
	j := &job{Work: w, p: p, log: log, module: module, states: p.statesOf(module)}
	if err := j.checkRunning(ctx); err != nil {
		return nil, nil, err
	}
	return j, j.end, nil
}

// Failure implements guard.Driver.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	problem := &providers.Problem{
		Outcome: providers.Failed, Code: "terraform", Seen: said(err), Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err),
	}
	if errors.Is(err, context.DeadlineExceeded) {
		problem.Outcome = providers.Timeout
	}
	return problem
}

// job is one step on a workspace.
type job struct {
	providers.Work

	p       *Provider
	log     providers.Log
	module  spec.TerraformModule
	states  states
	seen    *seen // nil: there is no workspace
	session *session
	turn    *lockfile.Lock // held while the step makes the first shared resources; nil: it does not
}

func (j *job) end() error {
	err := endTurn(j.turn)
	if j.session == nil {
		return err
	}
	return errors.Join(err, j.session.close())
}

// Guard implements guard.Task.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.p.settings.Project, Thing: "workspace", Look: func(now guard.Seen) string {
		if isRemote(j.module) {
			return j.p.commandLine(setting{"TF_WORKSPACE", now.Name})("state", "list")
		}
		return j.p.statePath(now.Name)
	}}
}

// Look implements guard.Task.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	j.seen = nil
	w, err := find(ctx, j.states, j.Object)
	if err != nil || w == nil {
		return nil, err
	}
	if j.seen, err = j.p.read(ctx, j.states, *w); err != nil {
		return nil, err
	}
	// The ID is in the name of the workspace with the lineage: the address may be an earlier one.
	mark := &providers.Mark{ID: j.p.settings.Project.Lineage(), Project: j.p.settings.Project.Name, Address: j.Address, Of: w.id}
	on := j.seen.made()
	return &guard.Seen{ID: w.id, Name: w.name, Mark: mark, Fingerprint: j.p.fingerprint(j.seen), Running: &on}, nil
}

// Values implements guard.Task.
func (j *job) Values(context.Context) (map[string]cty.Value, error) {
	return j.seen.computed(j.outputs()), nil
}

// outputs maps attributes to the outputs that tell them.
func (j *job) outputs() cty.Value {
	if j.Want == cty.NilVal {
		return ctyread.Attr(j.Prior, "outputs")
	}
	return ctyread.Attr(j.Want, "outputs")
}

// Verb implements guard.Task.
func (j *job) Verb() (guard.Verb, error) {
	switch j.Op {
	case opApply:
		need := guard.Expected
		if j.Phase == providers.PhaseMake {
			need = guard.Making
		}
		return guard.Verb{Need: need, Act: j.naming(j.apply), Check: j.checkApplied}, nil
	case opDestroy:
		return guard.Verb{Need: guard.Removing, Act: j.naming(j.destroy)}, nil
	case opWaitSSH:
		return guard.Verb{Act: j.waitSSH}, nil
	case opRelease:
		return guard.Verb{Need: guard.Removing, Act: j.release}, nil
	default:
		panic("unknown operation " + j.Op)
	}
}

// open opens the session of a workspace, and prepares the module for it.
func (j *job) open(ctx context.Context, name string, values cty.Value) (err error) {
	if err := j.p.checkErrored(j.module, j.seen); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(j.p.statesDir(), name), 0o700); err != nil {
		return err
	}
	if err := j.p.notePlace(j.module, name); err != nil {
		return err
	}
	if !isRemote(j.module) {
		if err := makePrivate(j.p.statePath(name)); err != nil {
			return err
		}
	}
	if j.session, err = j.p.session(ctx, j.module, name); err != nil {
		return err
	}
	j.session.log, j.session.record = j.log, j.p.recordPath(name)
	j.session.variables = variablesText(values)
	return nil
}

// session opens a session of a workspace, with the module prepared. The caller closes it, if there is one, also after an error.
func (p *Provider) session(ctx context.Context, m spec.TerraformModule, name string) (*session, error) {
	if isRemote(m) && !p.backend.none() { // nothing of its init stays, and each one asks the backend
		return remoteStates{p, m}.open(ctx, name)
	}
	s, err := p.openSession(ctx, p.module, p.dataPath(name))
	if err != nil {
		return nil, err
	}
	with := setup{dir: p.dataPath(name), backend: p.backend}
	if m.Backend != "" {
		s.order.Workspace = name
	}
	if m.Backend == "local" {
		with.settings = []string{"workspace_dir=" + p.statesDir()}
	}
	return s, p.prepare(ctx, s, m, with)
}

// state returns the value of -state: a module without a backend keeps the state where vmctl says.
func (p *Provider) state(m spec.TerraformModule, name string) string {
	if m.Backend != "" {
		return ""
	}
	return p.statePath(name)
}

// isAsPlanned fails if the configuration of the module is another one than that of the plan: nobody has agreed to what it does now.
func (j *job) isAsPlanned() error {
	planned, _ := j.Args.(foreseen)
	if planned.Setup == "" || planned.Setup == j.module.Setup {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "terraform_changed", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: the module %s has changed since the plan", j.Op, j.Address, j.p.module),
	}
}

func (j *job) apply(ctx context.Context) (*guard.Outcome, error) {
	if err := j.isAsPlanned(); err != nil {
		return nil, err
	}
	name := j.workspaceName()
	if j.seen == nil {
		if err := errors.Join(j.forgetHostKey(), j.forgetEarlier(ctx)); err != nil { // those of an earlier VM
			return nil, err
		}
	}
	if err := j.open(ctx, name, j.Want); err != nil {
		return nil, err
	}
	if err := j.joinShared(ctx, name); err != nil {
		return nil, err
	}
	planned, err := j.session.plan(ctx, j.p.state(j.module, name))
	if err == nil {
		err = j.p.spareShared(planned)
	}
	if err != nil {
		return nil, err
	}
	shown, _ := j.Args.(foreseen)
	if losing := planned.unforeseen(shown); len(losing) > 0 {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "terraform_replaces", Seen: losing, Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: %s would destroy resources, and the plan did not show it: %s", j.Op, j.Address, j.p.tool(), strings.Join(losing, ", ")),
		}
	}
	if planned.isEmpty() && j.seen != nil {
		return guard.Did(providers.AlreadyTrue, string(j.p.tool())+" has nothing to change"), nil
	}
	if err := j.carryOut(ctx, name); err != nil {
		return nil, j.explainExisting(ctx, errors.Join(err, j.noteEmptied(ctx, name)), name)
	}
	var evidence []string
	for _, act := range planned.acts() {
		evidence = append(evidence, act.Text)
	}
	return guard.Did(providers.Done, evidence...), nil
}

// checkApplied copies the state that an apply left, and checks the outputs.
func (j *job) checkApplied(context.Context) error {
	if j.seen == nil {
		return nil
	}
	if err := errors.Join(j.copyState(), j.noteApplied()); err != nil {
		return err
	}
	return j.checkOutputs()
}

// checkOutputs fails if the module lacks an output that the block names.
func (j *job) checkOutputs() error {
	if !ctyread.Known(j.outputs()) {
		return nil
	}
	for attribute, name := range j.outputs().AsValueMap() {
		if !ctyread.Known(j.seen.state.output(name.AsString())) {
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_output", Seen: []string{"outputs with a value: " + strings.Join(j.seen.state.outputNames(), ", ")},
				Next: providers.Say(fmt.Sprintf("correct outputs = { %s = %q } in the block of %s, or add the output to the module", attribute, name.AsString(), j.Address)),
				Err:  fmt.Errorf("%s %s: the module was applied, and has no value for its output %s", j.Op, j.Address, name.AsString()),
			}
		}
	}
	return nil
}

// carryOut applies the plan that was made, and no other one.
func (j *job) carryOut(ctx context.Context, name string) error {
	if err := j.keepState(name); err != nil {
		return err
	}
	return j.session.apply(ctx, j.p.state(j.module, name))
}

// destroy destroys the resources, and removes the workspace once none is left.
func (j *job) destroy(ctx context.Context) (*guard.Outcome, error) {
	if err := j.isAsPlanned(); err != nil {
		return nil, err
	}
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	staying, err := j.keepShared(ctx)
	if err != nil {
		return nil, err
	}
	if j.seen.made() || isRemote(j.module) && len(staying) > 0 { // Terraform removes no workspace with something in it
		if err := j.destroyResources(ctx, staying); err != nil {
			return nil, err
		}
	}
	said, err := j.removeWorkspace(ctx)
	if err == nil {
		err = j.forgetHostKey()
	}
	if err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, said...), nil
}

// destroyResources destroys the resources of the VM, and confirms that they are gone. It takes the staying ones out of
// the state before.
func (j *job) destroyResources(ctx context.Context, staying []entry) error {
	name := j.seen.name
	if err := j.open(ctx, name, given(j.Prior, j.Want)); err != nil {
		return err
	}
	state := j.p.state(j.module, name)
	for _, e := range staying {
		if err := j.session.forget(ctx, state, e.address); err != nil {
			return fmt.Errorf("take the shared %s out of the state: %w", e.address, err)
		}
	}
	planned, err := j.session.plan(ctx, state, "-destroy")
	if err == nil {
		err = j.p.spareShared(planned)
	}
	if err == nil {
		err = j.carryOut(ctx, name)
	}
	if err != nil {
		return j.explainVariables(err, name)
	}
	after, err := j.p.read(ctx, j.states, j.seen.workspace)
	if err != nil {
		return err
	}
	if left := after.own; len(left) > 0 {
		return &providers.Problem{
			Outcome: providers.Failed, Code: "terraform_left", Seen: left, Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: %s ended well, and its state still has %s", j.Op, j.Address, j.p.tool(), strings.Join(left, ", ")),
		}
	}
	return nil
}

// unsetText begins the error of Terraform about a variable that has neither a value nor a default.
const unsetText = "No value for required variable"

// explainVariables adds to the failure of a destroy that the record of the VM has no secrets.
func (j *job) explainVariables(err error, name string) error {
	command, ok := j.p.onState(name)
	if !ok || !strings.Contains(err.Error(), unsetText) {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_variables", Err: err, Seen: said(err),
		Next: append(providers.SayVmctl(fmt.Sprintf("vmctl records no secrets: put the block of %s back, with the variables that the module needs, and run ", j.Address),
			"destroy", "--target="+j.Address.String()),
			providers.SayVmctl(fmt.Sprintf("or let %s ask for them: %s, and then ", j.p.tool(), command([]string{"destroy"}, "")), "apply")...),
	}
}

// removeWorkspace removes a workspace in which nothing is left, and tells which shared resources stay after the last one.
func (j *job) removeWorkspace(ctx context.Context) (said []string, err error) {
	turn, err := j.p.takeTurn(ctx, j.log)
	if err != nil {
		return nil, err
	}
	if err = j.states.remove(ctx, j.seen.name); err == nil {
		said, err = j.p.stay(ctx, j.states)
	}
	return said, errors.Join(err, endTurn(turn))
}

// release renames the workspace, so that it is vmctl's no more.
func (j *job) release(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	if _, err := j.keepShared(ctx); err != nil {
		return nil, err
	}
	to, err := j.states.release(ctx, j.seen.name)
	if err != nil {
		return nil, err
	}
	done := guard.Did(providers.Done, "its state is in "+to)
	done.NotGone = true
	return done, nil
}
