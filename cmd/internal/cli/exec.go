package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/sshx"
	"vmctl/providers"
)

type execDocument struct {
	FormatVersion string `json:"format_version"`
	Status        int    `json:"status"`
	Stdout        string `json:"stdout"`
	Stderr        string `json:"stderr"`
}

func (a *app) execCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command in a VM that runs",
		Long: "Run a command as the VM's SSH user. The command gets its arguments unchanged: no\n" +
			"shell reads them. The exit code is the command's, or 255 if it was not run. A VM\n" +
			"that is off is not started. With --json, the exit status and the output are one\n" +
			"document.\n\n" +
			asLimactl,
		Args: between(2, -1, "the name of a VM and a command"),
		RunE: withCommand(a.exec),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// withCommand runs an action on a name and the command after it. Flags end at the name.
func withCommand(act func(ctx context.Context, name string, command []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		command := args[1:]
		if command[0] == "--" { // pflag leaves the dashes
			command = command[1:]
		}
		if len(command) == 0 {
			return rejected("usage", cmd.CommandPath()+" needs a command after --", cmd.CommandPath()+" --help tells more")
		}
		return act(cmd.Context(), args[0], command)
	}
}

func (a *app) exec(ctx context.Context, name string, command []string) error {
	return a.inside(ctx, visit{
		vm: name, command: "vmctl vm exec", program: command[0],
		way: func(v observedAddress) (func() (int, error), error) {
			values, folder, err := a.visitor(v)
			if err != nil {
				return nil, err
			}
			g, err := a.guestAs(ctx, v, values)
			return func() (int, error) { return a.execIn(ctx, g, commandIn(folder, command)) }, err
		},
	})
}

// endedUnread is the exit code of a command that ends because nobody reads its output any more: that of a shell for SIGPIPE.
const endedUnread = 128 + 13

// runOn runs a command in a guest: on a terminal if the user has one.
func (a *app) runOn(ctx context.Context, g providers.TerminalGuest, c providers.Command) (o providers.Output, err error) {
	f, isFile := a.env.Stdin.(*os.File)
	if !isFile || !a.env.Terminal.In || !a.env.Terminal.Out || a.global.json {
		return g.Run(ctx, c)
	}
	raw, err := sshx.MakeRaw(f)
	if err != nil {
		return o, fmt.Errorf("prepare the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, raw.Restore()) }()
	if name := a.getenv("TERM"); name != "" {
		c.Env = append(c.Env, "TERM="+name)
	}
	return g.RunOn(ctx, raw, c)
}

// execIn runs a command in a guest, and closes the guest.
func (a *app) execIn(ctx context.Context, g providers.Guest, command []string) (status int, err error) {
	defer func() { err = errors.Join(err, g.Close()) }()
	var stdout, stderr bytes.Buffer
	c := providers.Command{Args: command, Stdin: a.env.Stdin, Stdout: failing{a.stdout}, Stderr: failing{a.stderr}}
	if a.global.json {
		c.Stdout, c.Stderr = &stdout, &stderr
	}
	run := g.Run
	if on, able := g.(providers.TerminalGuest); able {
		run = func(ctx context.Context, c providers.Command) (providers.Output, error) { return a.runOn(ctx, on, c) }
	}
	o, err := run(ctx, c)
	if err != nil && ctx.Err() == nil && (a.stdout.ended() || a.stderr.ended()) && a.stdout.problem() == nil && a.stderr.problem() == nil {
		return endedUnread, nil
	}
	if err == nil && a.global.json {
		a.document(execDocument{
			FormatVersion: view.FormatVersion, Status: o.Status,
			Stdout: strings.ToValidUTF8(stdout.String(), "\ufffd"), Stderr: strings.ToValidUTF8(stderr.String(), "\ufffd"),
		})
	}
	return o.Status, err
}
