package terraform

import (
	"context"
	"errors"
	"fmt"
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
	t, err := p.target(o.ID, place{attrs: o.Attrs, hostKey: hostKey}, values)
	if err != nil {
		return providers.Login{}, err
	}
	return providers.Login{
		Address: t.Address, Port: t.Port, User: t.User, IdentityFile: t.IdentityFile, Alias: t.Alias,
		KnownHosts: t.KnownHosts, HostKey: t.HostKey, HostKeyFrom: t.HostKeyFrom, AcceptNew: t.AcceptNew,
	}, nil
}

// place holds the outputs of a VM that are about its SSH.
type place struct {
	attrs   cty.Value // with address and ssh_port
	hostKey string    // a line of authorized_keys; "": no output tells it
}

// target returns the login to a VM.
func (p *Provider) target(id providers.ID, at place, values cty.Value) (sshx.Target, error) {
	address := ctyread.Text(at.attrs, outAddress)
	if address == "" {
		return sshx.Target{}, errors.New("no output of its module tells its address: add outputs = { address = \"NAME\" } to its block")
	}
	l := machine.DecodeLogin(values)
	if l.Identity == "" {
		return sshx.Target{}, errors.New("its block names no key to log in with: add ssh { identity = \"FILE\" }, and give the public key to the module")
	}
	identity := l.Identity
	if !filepath.IsAbs(identity) {
		identity = filepath.Join(p.settings.Files, identity)
	}
	t := sshx.Target{
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

// sshEvery is the shortest time between the beginnings of two attempts to log in.
const sshEvery = 500 * time.Millisecond

// waitSSH waits until the VM lets vmctl in. A VM that was just made shows its host key for the first time: it is
// pinned then.
func (j *job) waitSSH(ctx context.Context) (*guard.Outcome, error) {
	values, err := j.Values(ctx)
	if err != nil {
		return nil, err
	}
	t, err := j.p.target(j.Object, place{attrs: cty.ObjectVal(values), hostKey: j.seen.text(j.outputs(), outHostKey)}, j.Want)
	if err != nil {
		return nil, fmt.Errorf("wait for SSH of %s: %w", j.Address, err)
	}
	if machine.ArgsOf(j.Step).Keys == machine.KeysNew && t.HostKey == "" {
		t.AcceptNew = true
	}
	err = sshx.Wait(ctx, t, sshx.WaitOptions{
		Every: sshEvery, Sleep: clock.Sleep, Log: func(reason string) { j.log(providers.Progress{Text: fmt.Sprintf("trying %s: %s", t, reason)}) },
	})
	if err != nil {
		return nil, j.explainSSH(ctx, t, err)
	}
	return guard.Did(providers.Done), nil
}

func (j *job) explainSSH(ctx context.Context, t sshx.Target, err error) error {
	var key *sshx.HostKeyError
	var late *sshx.WaitError
	switch {
	case errors.As(err, &key):
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "host_key_changed",
			Next: providers.Say(
				"find out who answers: ssh-keyscan -p "+fmt.Sprint(t.Port)+" "+t.Address,
				fmt.Sprintf("if the VM has a new host key for a good reason, remove %s", t.KnownHosts),
				"or let the module tell the key: outputs = { host_key = \"NAME\" }",
			),
			Err: fmt.Errorf("wait for SSH of %s: %w", j.Address, err),
		}
	case errors.As(err, &late) && errors.Is(ctx.Err(), context.Canceled):
		return &providers.Problem{
			Outcome: providers.Failed, Code: "interrupted", Seen: []string{"last attempt: " + late.Last.Error()},
			Err: fmt.Errorf("wait for SSH of %s: interrupted; it runs on", j.Address),
		}
	case errors.As(err, &late):
		return &providers.Problem{
			Outcome: providers.Timeout, Code: "no_ssh", Seen: []string{"last attempt: " + late.Last.Error()},
			Next: providers.Say(
				"read the boot log of the VM (of cloud-init: /var/log/cloud-init-output.log) by the console of its cloud",
				fmt.Sprintf("or give it more time: ssh { wait_timeout = \"…\" } in %s", j.Address),
			),
			Err: fmt.Errorf("wait for SSH of %s: %s did not let vmctl in within %s", j.Address, t, j.Timeout),
		}
	default:
		return fmt.Errorf("wait for SSH of %s: %w", j.Address, err)
	}
}
