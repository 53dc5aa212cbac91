package sim

import (
	"context"
	"fmt"
	"maps"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/fault"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/providers/stop"
)

var _ fault.Helper = (*Provider)(nil)

// withFaults returns the provider with the faults of its block.
func (p *Provider) withFaults() (providers.Provider, error) {
	faulty, err := fault.Wrap(p, p.settings, kinds, p.path(faultsFile))
	if err != nil {
		return nil, fmt.Errorf("provider.%s.%s: %w", TypeName, p.settings.Name, err)
	}
	return faulty, nil
}

// FaultOps implements fault.Helper.
func (p *Provider) FaultOps() map[string][]string { return p.newRunner().faultOps() }

func (recordRunner) faultOps() map[string][]string { return faultOps }

func (processRunner) faultOps() map[string][]string {
	all := maps.Clone(faultOps)
	maps.Copy(all, processFaultOps)
	return all
}

func (p agentRunner) faultOps() map[string][]string {
	all := p.processRunner.faultOps()
	maps.Copy(all, agentFaultOps)
	return all
}

func (p recordRunner) die(ctx context.Context, s observedVM, _ string) error {
	_, err := p.ask(ctx, s.vmFile, question{Ask: askDie})
	return err
}

func (p processRunner) die(ctx context.Context, s observedVM, _ string) error {
	return p.dieAt(ctx, p.socket(s.ID), *s.run.Process)
}

func (p agentRunner) die(ctx context.Context, s observedVM, kind string) error {
	if kind == kindAgentDies {
		return p.dieAt(ctx, p.agentSocket(s.ID), *s.agent)
	}
	return p.processRunner.die(ctx, s, kind)
}

func (p processRunner) dieAt(ctx context.Context, socket string, id process.Identity) error {
	if _, err := ask(ctx, socket, question{Ask: askDie}); err != nil {
		return err
	}
	return p.processes.Wait(ctx, id)
}

// DoStruck implements fault.Helper.
func (p *Provider) DoStruck(ctx context.Context, w providers.Work, log providers.Log, f fault.Fault) (providers.Result, error) {
	return guard.Run(ctx, struckDriver{p, f}, w, log)
}

// struckDriver does the steps that a fault strikes.
type struckDriver struct {
	guard.Driver
	fault.Fault
}

// Begin prepares a step.
func (d struckDriver) Begin(ctx context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	t, end, err := d.Driver.Begin(ctx, w, log)
	if err != nil {
		return nil, nil, err
	}
	return struckTask{t, d.Fault, d.Injected(w)}, end, nil
}

// struckTask is a step that a fault strikes.
type struckTask struct {
	guard.Task
	fault.Fault
	injected *providers.Problem
}

// Verb returns the operation with the fault in it.
func (t struckTask) Verb() (guard.Verb, error) {
	v, err := t.Task.Verb()
	if err != nil {
		return v, err
	}
	if j, ok := t.Task.(interface {
		half() func(context.Context) error
	}); ok && t.Kind == kindPartial {
		half := j.half()
		if half == nil { // nothing of it is done
			half = nothing
		}
		v.Act = t.partial(half)
	}
	if j, ok := t.Task.(*job); ok {
		v.Act = t.act(j, v.Act)
		if ends := j.Op == opStop || j.Op == opRecover; ends && (t.Kind == kindPartial || t.Kind == kindLeak) {
			v.Done = endedByItself(j, v)
		}
	}
	return v, nil
}

// endedByItself returns the Done of a step that ends a VM, under a fault that strikes also if the
// VM has ended before: nothing is tidied up.
func endedByItself(j *job, v guard.Verb) machine.Act {
	return func(ctx context.Context) (*guard.Outcome, error) {
		if j.seen == nil || j.seen.on() || !j.seen.onDisk {
			return v.Done(ctx)
		}
		return v.Act(ctx)
	}
}

// act returns how a step on a VM acts under the fault.
func (t struckTask) act(j *job, act machine.Act) machine.Act {
	switch t.Kind {
	case fault.Hang:
		j.extra.Hang = true
	case fault.Slow:
		j.extra.Boot = t.Delay.Seconds()
	case kindIgnore:
		return j.after(question{Ask: askDeaf}, act)
	case kindLate:
		return j.after(question{Ask: askLate, Delay: t.Delay.Seconds()}, act)
	case kindUnkillable:
		return j.after(question{Ask: askDeaf}, func(ctx context.Context) (*guard.Outcome, error) {
			return j.end(ctx, unkillable{(*target)(j), t.injected}, j.reclaimAll)
		})
	case kindLeak:
		return func(ctx context.Context) (*guard.Outcome, error) {
			return j.end(ctx, (*target)(j), func(vmFile) error { return nil })
		}
	case kindDie, kindAgentDies:
		return t.dying(j, act)
	}
	return act
}

// partial does half of a step, and fails.
func (t struckTask) partial(half func(context.Context) error) machine.Act {
	return func(ctx context.Context) (*guard.Outcome, error) {
		if err := half(ctx); err != nil {
			return nil, guard.AsFailure(err, fail, t.Op)
		}
		return nil, t.injected
	}
}

// after asks something of a running VM before the act.
func (j *job) after(q question, act machine.Act) machine.Act {
	return func(ctx context.Context) (*guard.Outcome, error) {
		_, err := j.runner().ask(ctx, j.seen.vmFile, q)
		if err != nil && j.seen.state == providers.StateRunning { // a broken VM may not answer
			return nil, fail(err, "%s %s", j.Op, j.Name)
		}
		return act(ctx)
	}
}

// dying makes the VM end by itself once it has started.
func (t struckTask) dying(j *job, act machine.Act) machine.Act {
	die := func(ctx context.Context) error {
		if err := j.observe(ctx); err != nil || j.seen == nil || j.seen.state != providers.StateRunning {
			return err
		}
		if err := j.runner().die(ctx, *j.seen, t.Kind); err != nil {
			return err
		}
		return j.observe(ctx)
	}
	return func(ctx context.Context) (*guard.Outcome, error) {
		if j.Op == opWaitReady {
			if err := die(ctx); err != nil {
				return nil, fail(err, "wait for %s", j.Name)
			}
			return act(ctx)
		}
		o, err := act(ctx)
		if err != nil {
			return nil, err
		}
		if err := die(ctx); err != nil {
			return nil, fail(err, "start %s", j.Name)
		}
		return o, nil
	}
}

// unkillable is a VM that force does not end.
type unkillable struct {
	stop.Target
	injected *providers.Problem
}

// Force fails.
func (u unkillable) Force(context.Context) error { return u.injected }

// half returns the first half of a step on a VM, nil if it has none.
func (j *job) half() func(context.Context) error {
	switch j.Op {
	case opDefine, opRedefine:
		return func(context.Context) error {
			f := j.marked()
			f.Config = nil
			return j.writeVM(f)
		}
	case opStart: // nothing records what runs
		return func(ctx context.Context) error {
			_, err := j.bringUp(ctx)
			return err
		}
	case opStop, opRecover: // it has ended, and nothing is tidied up
		return func(ctx context.Context) error {
			_, err := j.end(ctx, (*target)(j), func(vmFile) error { return nil })
			return err
		}
	case opDelete:
		return func(context.Context) error {
			if err := j.deletable(); err != nil || j.seen == nil {
				return err
			}
			return j.runner().forgetRun(j.seen.vmFile)
		}
	case opUpload:
		return func(context.Context) error { return j.writeText(j.partPath(j.Address), []byte("half")) }
	case opDetach, opUnmark:
		return nothing
	}
	return nil
}

func nothing(context.Context) error { return nil }

// half returns the first half of a step on a disk, nil if it has none.
func (j *diskJob) half() func(context.Context) error {
	switch j.Op {
	case opDefine:
		return func(context.Context) error {
			if err := j.markFree(); err != nil {
				return err
			}
			return j.mark(j.Object)
		}
	case opGrow:
		return func(context.Context) error { return j.mark(j.seen.ID) }
	case opDelete:
		return func(context.Context) error {
			if err := j.deletable(); err != nil || j.seen == nil {
				return err
			}
			return atomicfile.Remove(j.diskPath(j.Name))
		}
	}
	return nil
}
