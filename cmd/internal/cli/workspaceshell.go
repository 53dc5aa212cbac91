package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/internal/procenv"
	"vmctl/internal/run"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

func (a *app) workspaceShellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell NAME",
		Short: "Open a shell in a workspace",
		Long: "Open a shell in the folder of a workspace, with the environment of its block. The exit\n" +
			"code is the shell's, or 255 if no shell was opened. A VM that is off is not started.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.attendedInput(cmd.CommandPath()); err != nil {
				return before{err: err}
			}
			return a.inWorkspace(cmd.Context(), args[0], "vmctl workspace shell", "", func(w enteredWorkspace) error {
				return a.attend(cmd.Context(), w, nil)
			})
		},
	}
}

// attendedInput returns the input of a command that people type into.
func (a *app) attendedInput(command string) (*os.File, error) {
	stdin, ok := a.env.Stdin.(*os.File)
	if !ok || a.global.json {
		return nil, rejected("usage", command+" is for people: it writes no document, and needs a terminal or a file to read from",
			a.commandLine("workspace exec", planFlags{}, "--json", "NAME", "--", "COMMAND"))
	}
	return stdin, nil
}

// attend runs a command, or a shell if there is none, in a workspace in front of the terminal of this process. Its exit code
// becomes vmctl's.
func (a *app) attend(ctx context.Context, w enteredWorkspace, command []string) error {
	stdin, err := a.attendedInput("vmctl workspace shell")
	if err != nil {
		return before{err: err}
	}
	placer, ok := providers.Ability[workspace.Placer](w.system.Provider)
	if !ok {
		return before{err: fmt.Errorf("%s cannot be entered", w.address)}
	}
	at, err := placer.Place(ctx, *w.object, spec.Revealed(w.values()))
	if err != nil {
		return before{err: err}
	}
	c := providers.Command{Args: command, Dir: at.Dir, Env: slices.Concat(at.Env, a.passed(w))}
	code, err := a.attendIn(ctx, attendance{workspace: w, command: c, stripProxy: at.StripProxy, in: stdin})
	if err != nil {
		return before{err: fmt.Errorf("open a shell in %s: %w", w.address, err)}
	}
	if code != 0 {
		return status{code: code}
	}
	return nil
}

// attendance is a command of a workspace in front of the terminal.
type attendance struct {
	workspace  enteredWorkspace
	command    providers.Command
	stripProxy bool // variables of proxies do not pass from this host
	in         *os.File
}

// attendIn runs a command in the guest around a workspace, in front of the terminal.
func (a *app) attendIn(ctx context.Context, of attendance) (int, error) {
	w, c := of.workspace, of.command
	if w.inside == (spec.Address{}) {
		env := a.env
		if of.stripProxy {
			env.Environ = procenv.WithoutProxies(env.Environ)
		}
		g, err := onThisHost(env)
		if err != nil {
			return 0, err
		}
		return a.attendLocally(ctx, g, c)
	}
	vm := w.observation.at(w.inside)
	if _, ok := providers.Ability[providers.Reacher](vm.system.Provider); ok {
		t, err := a.target(vm)
		if err != nil {
			return 0, err
		}
		return guest.Shell(ctx, t, c, sshx.Terminal{In: of.in, Out: a.stdout, Err: a.stderr, Type: a.getenv("TERM")})
	}
	g, err := a.guest(ctx, vm)
	if err != nil {
		return 0, err
	}
	defer func() { _ = g.Close() }() //nolint:errcheck // nothing runs in it by its means
	return a.attendLocally(ctx, g, c)
}

// attendLocally runs a command of a guest that is on this host.
func (a *app) attendLocally(ctx context.Context, g providers.Guest, c providers.Command) (int, error) {
	local, ok := g.(providers.LocalGuest)
	if !ok {
		return 0, errors.New("the guest around it has no terminals")
	}
	dir, env := local.Locally(c)
	if a.env.Terminal.In {
		env = append(env, "TERM="+a.getenv("TERM"))
	}
	args := []string{"/bin/sh", "-c", `exec "$@"`, "sh"} // it looks for the program in the guest's PATH
	if len(c.Args) == 0 {
		args = []string{"/bin/sh", "-c", `exec "${SHELL:-/bin/sh}"`}
	}
	return a.attended(ctx, run.Command{Args: append(args, c.Args...), Env: env, Dir: dir})
}

// attended runs a program of this host in front of the terminal of this process, which is the program's own meanwhile. Its
// standard output is that of this process, unless c has another one.
func (a *app) attended(ctx context.Context, c run.Command) (int, error) {
	a.stdout.drain(ctx, 0)
	a.stderr.drain(ctx, 0)
	back := func() {}
	if a.env.Lend != nil {
		back = a.env.Lend()
	}
	defer back()
	c.Stdin, c.Stderr = a.env.Stdin, a.env.Stderr
	if c.Stdout == nil {
		c.Stdout = a.env.Stdout
	}
	return run.Attached(ctx, c)
}
