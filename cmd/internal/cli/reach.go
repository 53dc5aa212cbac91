package cli

import (
	"context"
	"errors"

	"vmctl/internal/sshx"
)

// errNoEndpoint says that nothing is known to lead to the guest's SSH.
var errNoEndpoint = errors.New("no port of this host leads to its SSH")

// reach finds one VM that runs, and how to log into it. The caller closes the
// world.
func (a *app) reach(ctx context.Context, name string) (sshx.Target, sight, error) {
	s, err := a.look(ctx)
	if err != nil {
		return sshx.Target{}, s, err
	}
	target, err := a.reachIn(s, name)
	if err != nil {
		return target, s, errors.Join(err, s.world.Close())
	}
	return target, s, nil
}

func (a *app) reachIn(s sight, name string) (sshx.Target, error) {
	addr, err := vmOf(s.project, name)
	if err != nil {
		return sshx.Target{}, err
	}
	v := s.at(addr)
	switch status := v.status(); status.State {
	case "running":
		return a.target(s, v)
	case "unknown":
		e := newProblem(classRefused, "unknown", "reach "+addr.String()+": it cannot be said whether it runs")
		e.Seen = []string{status.Reason}
		return sshx.Target{}, e
	case "missing":
		return sshx.Target{}, newProblem(classFailed, "not_running", addr.String()+" is not running: it does not exist ("+status.Reason+")",
			a.commandLine("apply", planFlags{}))
	default:
		return sshx.Target{}, newProblem(classFailed, "not_running", addr.String()+" is not running: it is "+status.State,
			a.commandLine("vm start", planFlags{}, addr.String()))
	}
}

// inside runs something in a VM. Whatever keeps it from being run has the exit
// code 255, so that every other one is the program's own.
func (a *app) inside(ctx context.Context, name string, run func(sshx.Target) (int, error)) (err error) {
	target, s, err := a.reach(ctx, name)
	if err != nil {
		return before{err: err}
	}
	if err := s.world.Close(); err != nil {
		return before{err: err}
	}
	code, err := run(target)
	switch {
	case err != nil:
		return before{err: a.unreached(ctx, name, err)}
	case code != 0:
		return status{code: code}
	default:
		return nil
	}
}

// unreached says what to do about a guest that nothing could be run in.
func (a *app) unreached(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	e := newProblem(classFailed, "ssh", err.Error())
	e.err = err
	var key *sshx.HostKeyError
	var auth *sshx.AuthError
	switch {
	case errors.As(err, &key):
		e.Code = "host_key_changed"
		e.Next = []string{
			"if another key is expected, because the guest makes its own: ssh { host_key = \"accept-new\" } in its block, and remove " + key.KnownHosts,
			"otherwise somebody else may be answering; to make the VM anew, with a new key: " +
				a.commandLine("destroy", planFlags{targets: []string{name}}) + ", then " + a.commandLine("apply", planFlags{}),
		}
	case errors.As(err, &auth):
		e.Next = []string{"see that the guest lets " + auth.User + " in with that key, or set ssh { user, identity } in its block"}
	default:
		e.Next = []string{a.commandLine("status", planFlags{}) + " shows whether SSH answers", a.commandLine("vm restart", planFlags{}, name) + " starts it anew"}
	}
	return e
}
