package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/guest"
	"vmctl/providers/machine"
)

var (
	_ providers.Reacher = (*Provider)(nil)
	_ providers.Host    = (*Provider)(nil)
)

// Enter implements providers.Host.
func (p *Provider) Enter(_ context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	return guest.Enter(p, o, values)
}

// Reach implements providers.Reacher: the outputs of the module say where SSH answers.
func (p *Provider) Reach(o providers.Object, values cty.Value) (providers.Login, error) {
	hostKey := ""
	if o.Owner != nil {
		hostKey = o.Owner.HostKey
	}
	return p.login(o.ID, place{attrs: o.Attrs, hostKey: hostKey}, values)
}

// place holds the outputs of a VM that are about its SSH.
type place struct {
	attrs   cty.Value // with address and ssh_port
	hostKey string    // a line of authorized_keys; "": no output tells it
}

// login returns the login to a VM.
func (p *Provider) login(id providers.ID, at place, values cty.Value) (providers.Login, error) {
	address := ctyread.Text(at.attrs, outAddress)
	if address == "" {
		return providers.Login{}, errors.New("no output of its module tells its address: add outputs = { address = \"NAME\" } to its block")
	}
	l := machine.DecodeLogin(values)
	if l.Identity == "" {
		return providers.Login{}, errors.New("its block names no key to log in with: add ssh { identity = \"FILE\" }, and give the public key to the module")
	}
	identity := l.Identity
	if !filepath.IsAbs(identity) {
		identity = filepath.Join(p.settings.Files, identity)
	}
	t := providers.Login{
		Address: address, Port: int(ctyread.Uint(at.attrs, outSSHPort)), User: l.User, IdentityFile: identity, //nolint:gosec // a port fits
		Alias: string(id), KnownHosts: filepath.Join(p.keyFolder(string(id)), "known_hosts"), AcceptNew: l.HostKey == machine.HostKeyAcceptNew,
	}
	if at.hostKey != "" && !t.AcceptNew {
		t.HostKey, t.HostKeyFrom = at.hostKey, "an output of its module"
	}
	return t, nil
}

// keyFolder returns the folder of the pinned host key of a VM. vmctl chose the ID.
func (p *Provider) keyFolder(id string) string { return filepath.Join(p.settings.Keys, id) }

// forgetHostKey removes the pinned host key of a VM that is gone: the next VM with its ID has another one.
func (j *job) forgetHostKey() error { return os.RemoveAll(j.p.keyFolder(string(j.Object))) }

// sshEvery is the shortest time between the beginnings of two attempts to log in.
const sshEvery = 500 * time.Millisecond

// waitSSH waits until the VM lets vmctl in. A VM that was just made shows its host key for the first time: it is
// pinned then.
func (j *job) waitSSH(ctx context.Context) (*guard.Outcome, error) {
	values, err := j.Values(ctx)
	if err != nil {
		return nil, err
	}
	l, err := j.p.login(j.Object, place{attrs: cty.ObjectVal(values), hostKey: j.seen.text(j.outputs(), outHostKey)}, j.Want)
	if err != nil {
		return nil, fmt.Errorf("wait for SSH of %s: %w", j.Address, err)
	}
	if machine.ArgsOf(j.Step).Keys == machine.KeysNew && l.HostKey == "" {
		l.AcceptNew = true
	}
	err = guest.Awaited{
		Address: j.Address, Target: guest.Target(l), Every: sshEvery, Limit: j.Timeout, Sleep: clock.Sleep,
		Say: func(text string) { j.log(providers.Progress{Text: text}) },
		Late: func(bool) ([]string, []providers.Advice) {
			return nil, providers.Say("read the boot log of the VM (of cloud-init: /var/log/cloud-init-output.log) by the console of its cloud")
		},
		Other: func(*sshx.HostKeyError) ([]string, []providers.Advice) {
			return nil, providers.Say(
				"find out who answers: ssh-keyscan -p "+fmt.Sprint(l.Port)+" "+l.Address,
				fmt.Sprintf("if the VM has a new host key for a good reason, remove %s", l.KnownHosts),
				"or let the module tell the key: outputs = { host_key = \"NAME\" }",
			)
		},
	}.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}
