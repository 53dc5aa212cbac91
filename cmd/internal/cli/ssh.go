package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/sshx"
	"vmctl/spec"
)

// errNoEndpoint says that nothing is known to lead to the guest's SSH.
var errNoEndpoint = errors.New("no port of this host leads to its SSH")

// probeLimit bounds what status waits for an answer: until the server's first
// words, and until the login.
const (
	probeBanner    = 2 * time.Second
	probeHandshake = 5 * time.Second
)

// sshReady asks a VM that runs whether SSH lets the user in. It changes nothing:
// a host key that is not known stays unknown.
func (a *app) sshReady(ctx context.Context, s sight, v seen, status view.ResourceStatus) view.Condition {
	c := view.Condition{Name: "ssh.ready", Status: "not_applicable"}
	if status.State == "unknown" {
		c.Status, c.Reason = "unknown", "its run state is unknown"
	}
	if status.State != "running" {
		return c
	}
	target, err := a.target(s, v)
	if err != nil {
		c.Status, c.Reason = "false", err.Error()
		return c
	}
	target.AcceptNew, target.Banner, target.Handshake = false, probeBanner, probeHandshake
	var key *sshx.HostKeyError
	switch err := sshx.Probe(ctx, target); {
	case err == nil:
		c.Status = "true"
	case errors.As(err, &key) && len(key.Known) == 0:
		c.Status, c.Reason = "unknown", "its host key was not accepted yet"
	default:
		c.Status, c.Reason = "false", err.Error()
	}
	return c
}

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
		return before{err: err}
	case code != 0:
		return status{code: code}
	default:
		return nil
	}
}

func (a *app) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell NAME",
		Short: "Open a shell in a VM that runs",
		Long: "Open the login shell of the VM's SSH user. The exit code is the shell's; if there\n" +
			"was none, it is 255. A VM that does not run is not started.",
		Args: one("the name of a VM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			stdin, ok := a.env.Stdin.(*os.File)
			if !ok || a.global.json {
				return before{err: rejected("usage", cmd.CommandPath()+" is for people: it writes no document, and needs a terminal or a file to read from",
					"vmctl vm exec --json NAME -- COMMAND")}
			}
			return a.inside(cmd.Context(), args[0], func(t sshx.Target) (int, error) {
				return sshx.Shell(cmd.Context(), t, sshx.Terminal{
					In: stdin, Out: a.stdout, Err: a.stderr, Type: a.getenv("TERM"),
				})
			})
		},
	}
}

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
		Long: "Run a command as the VM's SSH user, with its arguments as they are: no shell reads\n" +
			"them. The exit code is the command's; if it was not run, it is 255. A VM that does\n" +
			"not run is not started. With --json, status and output are one document.",
		Args: between(2, -1, "the name of a VM and a command"),
		RunE: func(cmd *cobra.Command, args []string) error {
			command := args[1:]
			if command[0] == "--" { // flags end at the name: pflag leaves the dashes
				command = command[1:]
			}
			if len(command) == 0 {
				return rejected("usage", cmd.CommandPath()+" needs a command after --", cmd.CommandPath()+" --help tells more")
			}
			return a.exec(cmd.Context(), args[0], command)
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (a *app) exec(ctx context.Context, name string, command []string) error {
	var stdout, stderr bytes.Buffer
	return a.inside(ctx, name, func(t sshx.Target) (int, error) {
		c := sshx.Command{Args: command, Stdin: a.env.Stdin, Stdout: a.stdout, Stderr: a.stderr}
		if a.global.json {
			c.Stdout, c.Stderr = &stdout, &stderr
		}
		code, err := sshx.Run(ctx, t, c)
		if err == nil && a.global.json {
			a.document(execDocument{
				FormatVersion: view.FormatVersion, Status: code,
				Stdout: strings.ToValidUTF8(stdout.String(), "\ufffd"), Stderr: strings.ToValidUTF8(stderr.String(), "\ufffd"),
			})
		}
		return code, err
	})
}

type sshConfigDocument struct {
	FormatVersion string `json:"format_version"`
	Host          string `json:"host"`
	Address       string `json:"address"`
	Port          int    `json:"port"`
	User          string `json:"user"`
	IdentityFile  string `json:"identity_file"`
	KnownHosts    string `json:"known_hosts"`
	HostKeyAlias  string `json:"host_key_alias"`
	Config        string `json:"config"`
}

func (a *app) sshConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ssh-config NAME",
		Short: "Write what OpenSSH needs to reach a VM",
		Long:  "Write a stanza for ssh's configuration: vmctl vm ssh-config dev >f; ssh -F f vm.dev",
		Args:  one("the name of a VM"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.sshConfig(cmd.Context(), args[0]) },
	}
}

func (a *app) sshConfig(ctx context.Context, name string) (err error) {
	t, s, err := a.reach(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	addr, err := vmOf(s.project, name)
	if err != nil {
		return err
	}
	host := hostName(addr)
	config := sshx.Config(t, host)
	doc := sshConfigDocument{
		FormatVersion: view.FormatVersion, Host: host, Address: t.Address, Port: t.Port, User: t.User,
		IdentityFile: t.IdentityFile, KnownHosts: t.KnownHosts, HostKeyAlias: t.Alias, Config: config,
	}
	a.show(doc, func(view.Screen) { a.stdout.keep(write(a.stdout, config)) })
	return nil
}

// hostName is an address as a name for ssh's configuration, which knows
// patterns: vm.web["a"] is vm.web.a.
func hostName(addr spec.Address) string {
	name := addr.Block().String()
	if addr.Key == "" {
		return name
	}
	return name + "." + strings.Map(func(r rune) rune {
		if strings.ContainsRune(" *?!,\"\t\n\\#", r) {
			return '_'
		}
		return r
	}, addr.Key)
}
