package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) containerExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command in a container that runs",
		Long: "Run a command in a container, as its user and in its working directory. The command gets\n" +
			"its arguments unchanged: no shell reads them. If standard input and standard output are a\n" +
			"terminal, it gets one. The exit code is the command's, or 255 if it was not run. A\n" +
			"container that does not run is not started. With --json, the exit status and the output\n" +
			"are one document.",
		Args: between(2, -1, "the name of a container and a command"),
		RunE: withCommand(a.containerExec),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// containerExec runs a command in a container, and marks the VM around its engine as busy meanwhile.
func (a *app) containerExec(ctx context.Context, name string, command []string) error {
	visitor := visit{vm: name, command: "vmctl container exec", program: command[0]}
	return a.inEngineOf(ctx, spec.Container, visitor, func(v observedAddress) error {
		if ctyread.Text(v.object.Attrs, "state") != containerRunning {
			return before{err: a.notRunning(v)}
		}
		g, err := a.guest(ctx, v)
		if err != nil {
			return before{err: err}
		}
		code, err := a.execIn(ctx, g, command)
		var refused *providers.Problem
		var fate *providers.FateError // it is not known what the command did
		if err != nil && ctx.Err() != nil || !errors.As(err, &fate) && errors.As(err, &refused) {
			return before{err: err}
		}
		return exited(code, err)
	})
}

// inEngineOf uses an engine, or an object of a kind that is in one, and marks the VM around the engine as busy meanwhile. The way
// into it ends with use. v names the object, and the program that is run: in it, or on this host for an engine.
func (a *app) inEngineOf(ctx context.Context, kind spec.Kind, v visit, use func(observedAddress) error) (err error) {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return before{err: err}
	}
	addr, err := oneOfKind(p, kind, v.vm)
	if err != nil {
		return before{err: err}
	}
	if vm, is := vmAround(p, addr); is {
		leave, unentered := a.enter(ctx, p, vm, visit{command: v.command + " " + addr.String() + " in", program: v.program}.words(vm))
		if unentered != nil {
			return before{err: unentered}
		}
		defer func() { err = errors.Join(err, leave()) }()
	}
	s, err := a.observeAt(ctx, p, addr)
	if err != nil {
		return before{err: err}
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	attempt := "run " + v.program + " in " + addr.String()
	if kind == spec.Engine { // the program is one of this host
		attempt = "connect " + v.program + " to " + addr.String()
	}
	found, err := a.containerAt(s, addr, attempt)
	if err != nil {
		return before{err: err}
	}
	return use(found)
}

// vmAround returns the VM that the engine of a container is in.
func vmAround(p *project, addr spec.Address) (spec.Address, bool) {
	for r, ok := p.config.Resource(addr); ok && r.Inside != (spec.Address{}); r, ok = p.config.Resource(r.Inside) {
		if r.Inside.Kind == spec.VM {
			return r.Inside, true
		}
	}
	return spec.Address{}, false
}

// containerAt returns a container or an engine that exists. attempt describes the attempt that needs it.
func (a *app) containerAt(s observation, addr spec.Address, attempt string) (observedAddress, error) {
	v := s.at(addr)
	switch status := v.status(); {
	case v.unknown != nil:
		e := newProblem(classRefused, "unknown", attempt+": it could not be read", status.Next...)
		e.Seen = []string{status.Reason}
		return v, e
	case v.object == nil:
		return v, newProblem(classFailed, "missing", attempt+": it does not exist: "+status.Reason, a.commandLine("apply", planFlags{}))
	}
	return v, nil
}

// notRunning returns the error for a container that does not run.
func (a *app) notRunning(v observedAddress) error {
	next := "container start"
	if v.object.State == containerPaused {
		next = "container unpause"
	}
	return newProblem(classFailed, "not_running", v.address.String()+" is not running: it is "+v.object.State,
		a.commandLine(next, planFlags{}, v.address.String()))
}
