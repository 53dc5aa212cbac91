package cli

import (
	"context"
	"errors"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/spec"
)

// errNoEndpoint reports that no known port leads to the guest's SSH.
var errNoEndpoint = errors.New("no port of this host leads to its SSH")

// reach returns the SSH target of one running VM. The caller closes the world of the observation.
func (a *app) reach(ctx context.Context, name string) (sshx.Target, observation, error) {
	s, err := a.observe(ctx)
	if err != nil {
		return sshx.Target{}, s, err
	}
	var target sshx.Target
	v, err := a.runningIn(s, name)
	if err == nil {
		target, err = a.visitorTarget(v)
	}
	if err != nil {
		return target, s, errors.Join(err, s.world.Close())
	}
	return target, s, nil
}

// runningIn returns a VM that runs.
func (a *app) runningIn(s observation, name string) (observedAddress, error) {
	addr, err := vmOf(s.project, name)
	if err != nil {
		return observedAddress{}, err
	}
	v := s.at(addr)
	switch status := v.status(); status.State {
	case "running":
		return v, nil
	case "unknown":
		e := newProblem(classRefused, "unknown", "reach "+addr.String()+": it cannot be said whether it runs", status.Next...)
		e.Seen = []string{status.Reason}
		return v, e
	case "missing":
		return v, newProblem(classFailed, "not_running", addr.String()+" is not running: it does not exist ("+status.Reason+")",
			a.commandLine("apply", planFlags{}))
	default:
		return v, newProblem(classFailed, "not_running", addr.String()+" is not running: it is "+status.State,
			a.commandLine("vm start", planFlags{}, addr.String()))
	}
}

// visit describes a command or a shell that the user runs inside a VM.
type visit struct {
	vm      string // its name, as typed
	command string // as other runs name it while they wait: "vmctl vm shell"
	program string // the program that it runs there; "": a shell
	// way finds a way into the VM, whose provider is open until way returns.
	way func(observedAddress) (run func() (int, error), err error)
}

// words describes the visit to runs that wait for its end. It leaves out the program's
// arguments: they may be secret.
func (v visit) words(addr spec.Address) string {
	const most = 40
	text := v.command + " " + addr.String()
	if v.program == "" {
		return text
	}
	program := []rune(v.program)
	if len(program) > most {
		program = append([]rune("..."), program[len(program)-most:]...)
	}
	return text + " -- " + string(program)
}

// inside runs a visit, and marks the VM as busy meanwhile. An error of vmctl's own has exit
// code 255, so that every other code is the program's.
func (a *app) inside(ctx context.Context, v visit) (err error) {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return before{err: err}
	}
	addr, err := vmOf(p, v.vm)
	if err != nil {
		return before{err: err}
	}
	leave, err := a.enter(ctx, p, addr, v.words(addr))
	if err != nil {
		return before{err: err}
	}
	code, err := a.do(ctx, p, addr, v)
	if err := errors.Join(err, leave()); err != nil {
		return before{err: err}
	}
	if code != 0 {
		return status{code: code}
	}
	return nil
}

// do finds the VM, which no other run can take down now, and runs the visit's program in it.
func (a *app) do(ctx context.Context, p *project, addr spec.Address, v visit) (int, error) {
	s, err := a.observeAt(ctx, p, addr)
	if err != nil {
		return 0, err
	}
	var run func() (int, error)
	vm, err := a.runningIn(s, v.vm)
	if err == nil {
		run, err = v.way(vm)
	}
	if err := errors.Join(err, s.world.Close()); err != nil {
		return 0, err
	}
	code, err := run()
	if err != nil {
		return 0, a.unreached(ctx, v.vm, err)
	}
	return code, nil
}

// unreached adds next commands to an error of a visit whose program did not run, or whose end was
// not seen.
func (a *app) unreached(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	e := newProblem(classFailed, "ssh", err.Error())
	e.err = err
	var key *sshx.HostKeyError
	var auth *sshx.AuthError
	var fate *providers.FateError
	switch {
	case errors.As(err, &fate):
		e.Code = "unknown_end"
		e.Next = []string{"see what it did before you run it again: it may still be running", a.commandLine("status", planFlags{}) + " shows whether the VM runs"}
	case errors.As(err, &key):
		e.Code = "host_key_changed"
		e.Next = []string{
			"if another key is expected, because the guest makes its own: ssh { host_key = \"accept-new\" } in its block, and remove " + key.KnownHosts,
			"otherwise somebody else may be answering; to give the VM new keys: " + a.commandLine("vm rekey", planFlags{}, name),
		}
	case errors.As(err, &auth):
		e.Next = []string{"see that the guest lets " + auth.User + " in with that key, or set ssh { user, identity } in its block"}
	default:
		e.Next = []string{a.commandLine("status", planFlags{}) + " shows whether SSH answers", a.commandLine("vm restart", planFlags{}, name) + " starts it anew"}
	}
	return e
}
