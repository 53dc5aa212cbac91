package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/internal/ctyread"
	"vmctl/internal/procenv"
	"vmctl/internal/run"
	"vmctl/spec"
)

func (a *app) engineExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command on this host, such as docker, that talks to an engine",
		Long: "Run a command on this host with DOCKER_HOST set so that it talks to an engine, also to one in a\n" +
			"VM: docker ps, docker compose logs, a test that uses the API. While it runs, vmctl relays\n" +
			"a socket of its own, which nobody else on this host can open, and a VM around the engine is\n" +
			"busy. The exit code is the command's, or 255 if it was not run. Nothing is started for it.\n" +
			"With --json, the exit status and the output are one document.",
		Args: between(2, -1, "the name of an engine and a command"),
		RunE: withCommand(a.engineExec),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// engineExec runs a command on this host that talks to an engine, and marks the VM around the engine as busy meanwhile.
func (a *app) engineExec(ctx context.Context, name string, command []string) error {
	visitor := visit{vm: name, command: "vmctl engine exec", program: command[0]}
	return a.inEngineOf(ctx, spec.Engine, visitor, func(v observedAddress) (err error) {
		if err := v.needsAPI("run " + command[0] + " on " + v.address.String()); err != nil {
			return before{err: err}
		}
		host := ctyread.Text(v.object.Attrs, "endpoint")
		if host == "" {
			g, failed := a.guest(ctx, v)
			if failed != nil {
				return before{err: failed}
			}
			way, failed := a.relayFrom(ctx, g)
			if failed != nil {
				return before{err: errors.Join(failed, g.Close())}
			}
			defer func() { err = errors.Join(err, way.close(), g.Close()) }()
			host = way.host()
		}
		code, err := a.onEngine(ctx, host, command)
		if err != nil {
			return before{err: err}
		}
		return exited(code, nil)
	})
}

// onEngine runs a command on this host with the address of an engine.
func (a *app) onEngine(ctx context.Context, host string, command []string) (int, error) {
	environ := slices.DeleteFunc(procenv.WithoutVariables(a.env.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "CONTAINER_HOST"}, name)
	})
	environ = append(environ, "DOCKER_HOST="+host)
	if !a.global.json {
		status, err := a.attended(ctx, run.Command{Args: command, Env: environ, Dir: a.env.Dir})
		if status != 0 {
			err = nil // it was run, and ended by a signal
		}
		return status, err
	}
	env := a.env
	env.Environ = environ
	g, err := onThisHost(env)
	if err != nil {
		return 0, err
	}
	return a.execIn(ctx, g, commandIn(a.env.Dir, command))
}
