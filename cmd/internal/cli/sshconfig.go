package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/sshx"
	"vmctl/spec"
)

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
		Long:  "Write a section for ssh's configuration: vmctl vm ssh-config dev >f; ssh -F f vm.dev",
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
	if t.HostKey != "" && !t.AcceptNew { // OpenSSH reads it from the file
		if err := sshx.Pin(t.KnownHosts, t.Alias, t.HostKey); err != nil {
			return err
		}
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

// hostName returns an address as a host name for ssh's configuration, without ssh's pattern
// characters: vm.web["a"] becomes vm.web.a.
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
