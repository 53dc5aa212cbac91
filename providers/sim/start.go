package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// answerLimit is the time that a VM's socket has for an answer.
const answerLimit = 5 * time.Second

// start brings the VM up, and records its run.
func (j *job) start(ctx context.Context) (*guard.Outcome, error) {
	r, err := j.bringUp(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.runner().writeRun(j.seen.vmFile, r); err != nil {
		return nil, fail(err, "start %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// bringUp brings up a VM that can be started, and returns its run.
func (j *job) bringUp(ctx context.Context) (*runFile, error) {
	switch {
	case j.seen.state == providers.StateBroken:
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "broken", Seen: []string{j.seen.reason}, Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("start %s: something of it runs already", j.Address),
		}
	case j.seen.Config == nil:
		return nil, fail(errors.New("it is half made"), "start %s", j.Name)
	case !j.seen.root:
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "no_disk", Next: providers.Say(fmt.Sprintf("put its disk back: %s", j.rootPath(j.Name))),
			Err: fmt.Errorf("start %s: its disk is gone", j.Address),
		}
	}
	if err := j.disksThere(j.seen.Config.Disks); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(j.homePath(j.seen.ID), 0o700); err != nil { // looking into the VM writes nothing
		return nil, fail(err, "start %s", j.Name)
	}
	if err := j.runner().forgetRun(j.seen.vmFile); err != nil {
		return nil, fail(err, "tidy up after the last run of %s", j.Name)
	}
	return j.runner().start(ctx, j, j.seen.vmFile)
}

// start starts the VM's process, and returns its run once it listens. Until that is written, the
// process is found by its arguments.
func (p processRunner) start(ctx context.Context, j *job, f vmFile) (*runFile, error) {
	l, err := j.launch(f, j.orders(f))
	if err != nil {
		return nil, err
	}
	id, told, err := j.run(ctx, l)
	if err != nil {
		return nil, err
	}
	return &runFile{Process: &id, With: *f.Config, Ports: told.Ports}, nil
}

// launch returns the process of a VM, and makes the folder of its files.
func (j *job) launch(f vmFile, o orders) (launch, error) {
	if j.host.Program == "" {
		return launch{}, fail(errors.New("this vmctl does not know its own program, which would run it"), "start %s", j.Name)
	}
	args, err := j.arguments(f)
	if err = errors.Join(err, os.MkdirAll(j.path(runDir), 0o700), atomicfile.Remove(j.logPath(f.ID))); err != nil {
		return launch{}, fail(err, "start %s", j.Name)
	}
	return launch{Program: j.host.Program, Args: args, Env: j.host.Env, Log: j.logPath(f.ID), Orders: o}, nil
}

// run starts a process, and returns its report once it listens.
func (j *job) run(ctx context.Context, l launch) (process.Identity, report, error) {
	child, said, err := l.start(j.processes)
	if err != nil {
		return process.Identity{}, report{}, fail(err, "start %s", j.Name)
	}
	defer said.Close() //nolint:errcheck // it is only read
	j.keep(j.Object, child)
	id, told, err := firstReport(ctx, ctx, child, said)
	if err != nil || told.Error != "" {
		return id, told, j.notStarted(ctx, child, told, err)
	}
	return id, told, nil
}

// firstReport returns the identity of a process that was just started, and its report. One that
// has ended before it could be identified has said why: its report counts, and its identity is
// empty. The wait for the report ends with until.
func firstReport(ctx, until context.Context, child *process.Child, said *os.File) (process.Identity, report, error) {
	id, err := child.Capture(ctx)
	if err != nil && !errors.Is(err, process.ErrGone) {
		return id, report{}, err
	}
	told, err := hear(until, said)
	return id, told, err
}

func (j *job) orders(f vmFile) orders {
	o := j.extra
	o.Socket, o.Locks, o.VM, o.With = j.socket(f.ID), []string{j.rootLock(f.Name)}, f.ID, *f.Config
	for _, d := range f.Config.Disks {
		o.Locks = append(o.Locks, j.diskLock(d.Name))
	}
	return o
}

// hear waits for the one line that a VM's process says.
func hear(ctx context.Context, said *os.File) (r report, err error) {
	stop := context.AfterFunc(ctx, func() {
		_ = said.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it ends the wait below, where that can be ended
	})
	defer stop()
	if err = json.NewDecoder(said).Decode(&r); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

// notStarted returns the failure of a VM's process that did not come up. It ends the process
// if that has not ended by itself: no guest has begun to run. The log stays.
func (j *job) notStarted(ctx context.Context, child *process.Child, told report, cause error) error {
	late := ctx.Err() != nil
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	var err error
	if told.Error == "" {
		err = child.Force()
	}
	exit := child.Wait(own)
	err = errors.Join(err, j.forceAll(own))
	if err != nil || own.Err() != nil {
		return fail(errors.Join(cause, err, exit), "start %s: its process (pid %d) does not end", j.Name, child.PID())
	}
	j.forgetChild(j.Object)
	if err := j.runner().reclaim(j.seen.vmFile, true); err != nil {
		return fail(err, "tidy up after %s, which did not start", j.Name)
	}
	f := &providers.Problem{Outcome: providers.Failed, Code: "not_started"}
	f.Seen, f.Next = j.runner().lastWords(j.Object)
	if exit == nil {
		exit = errors.New("exit status 0")
	}
	switch {
	case late:
		f.Outcome, f.Code = providers.Timeout, "no_answer"
		f.Err = fmt.Errorf("start %s: its process did not listen within %s, and was ended", j.Address, j.Timeout)
	case told.Taken != "":
		seen := f.Seen
		f = j.portTaken(told.Taken)
		f.Seen = seen
	case told.Error != "":
		f.Err = fmt.Errorf("start %s: its process ended: %s", j.Address, told.Error)
	default:
		f.Err = fmt.Errorf("start %s: its process ended, and did not say why: %w", j.Address, exit)
	}
	return f
}

// forceAll ends all processes of the VM: a host agent that was forced leaves its driver.
func (j *job) forceAll(ctx context.Context) error {
	left, _, err := j.processesOf(ctx, j.Name)
	if err != nil {
		return err
	}
	if err := j.runner().force(observedVM{processState: processState{alive: left}}); err != nil {
		return err
	}
	return j.processes.Wait(ctx, left...)
}

// waitReady waits until the VM answers.
func (j *job) waitReady(ctx context.Context) (*guard.Outcome, error) {
	switch {
	case j.seen != nil && j.seen.state == providers.StateBroken:
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "broken", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("wait for %s: %s", j.Address, j.seen.reason),
		}
	case j.seen == nil || j.seen.state != providers.StateRunning:
		return nil, j.ended()
	}
	for {
		a, err := j.runner().ask(ctx, j.seen.vmFile, question{Ask: askReady})
		if err == nil && a.Up {
			return guard.Did(providers.Done), nil
		}
		if err == nil {
			err = j.await(ctx, func() error { return clock.Sleep(ctx, askEvery) })
		}
		if err != nil {
			return nil, j.noAnswer(ctx, err)
		}
	}
}

func (j *job) ended() error {
	f := &providers.Problem{
		Outcome: providers.Failed, Code: "ended", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("wait for %s: it ended while it started", j.Address),
	}
	if j.seen != nil {
		f.Seen, f.Next = j.runner().lastWords(j.Object)
	}
	return f
}

func (j *job) noAnswer(ctx context.Context, cause error) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	if err := j.observe(own); err == nil && j.seen != nil && j.seen.state == providers.StateOff {
		return j.ended()
	}
	return fail(cause, "wait for %s", j.Address)
}

// keep remembers a child, so that it is collected when it has ended.
func (p *Provider) keep(id providers.ID, child *process.Child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.children[id] = child
}

// forgetChild hands the child that runs a VM over to the caller; nil if another process
// started the VM.
func (p *Provider) forgetChild(id providers.ID) *process.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	child := p.children[id]
	delete(p.children, id)
	return child
}
