package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/providers"
	"vmctl/spec"
)

// mountTransport is the name of the command that sshfs runs in place of ssh.
const mountTransport = "mount-transport"

// sftpServer runs the SFTP server of a guest. OpenSSH installs it where no PATH leads.
const sftpServer = `
for server in /usr/lib/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server /usr/lib/sftp-server; do
  if [ -x "$server" ]; then exec "$server"; fi
done
exec sftp-server`

// mountTransportCommand returns the command that serves the files of a VM to sshfs.
func (a *app) mountTransportCommand() *cobra.Command {
	return &cobra.Command{
		Use: mountTransport, Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Serve the files of a VM to sshfs",
		RunE:  func(cmd *cobra.Command, args []string) error { return a.serveFiles(cmd.Context(), args[0]) },
	}
}

// serveFiles connects the standard streams to the SFTP server of a VM.
func (a *app) serveFiles(ctx context.Context, name string) (err error) {
	inside, err := a.enterForHost(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inside.Close()) }()
	o, err := inside.Run(ctx, providers.Command{Args: []string{"sh", "-c", sftpServer}, Stdin: a.env.Stdin, Stdout: a.env.Stdout})
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("serve the files of %s: status %d: %s", name, o.Status, strings.TrimSpace(o.Stderr))
	}
	return err
}

// enterForHost returns the inside of a VM for a process that serves this host with what is there. It reads no other VM, and marks
// none as busy: the process ends before its VM is taken down. The caller closes it.
func (a *app) enterForHost(ctx context.Context, name string) (providers.Guest, error) {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := vmOf(p, name)
	if err != nil {
		return nil, err
	}
	p.config = p.config.Only(func(one spec.Address) bool { return one == addr })
	s, err := a.observeProject(ctx, p)
	if err != nil {
		return nil, err
	}
	vm, err := a.runningIn(s, addr.String())
	var inside providers.Guest
	if err == nil {
		inside, err = a.guest(ctx, vm)
	}
	return inside, errors.Join(err, s.world.Close())
}

// transport returns the command that serves the files of the VM around a provider.
func (a *app) transport(s providers.Settings) []string {
	return slices.Concat(a.hostProcess(s), []string{mountTransport, s.Via.Address.String()})
}

// hostProcess returns the beginning of a command of this vmctl that serves this host beside other commands: it is for the same
// files and the same data directory, and does not depend on the working directory.
func (a *app) hostProcess(s providers.Settings) []string {
	args := []string{a.env.Program, "-C", a.specDir(), "--data-dir=" + filepath.Dir(s.Dir)}
	if a.global.env != "" {
		args = append(args, "--env="+a.global.env)
	}
	for _, f := range a.global.varFiles {
		args = append(args, "--var-file="+a.absolute(f))
	}
	for _, flag := range a.ownFlags(planFlags{}).Global {
		if strings.HasPrefix(flag, "--var=") {
			args = append(args, flag)
		}
	}
	return args
}
