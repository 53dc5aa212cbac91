package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/guest"
	"vmctl/providers/machine"
)

// waitSSH waits until the guest lets vmctl in and shows its pinned host key. If this machine
// has no key to log in with, it waits only for the host key.
func (j *job) waitSSH(ctx context.Context) (*guard.Outcome, error) {
	switch {
	case j.foreign():
		return guard.Did(providers.AlreadyTrue, "vmctl did not make it and cannot log into it: that it runs is all that is waited for"), nil
	case j.location.Remote != "":
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "remote_ssh",
			Next: providers.Say(fmt.Sprintf("write ssh { wait = false } into %s", j.Address)),
			Err:  fmt.Errorf("wait for SSH of %s: it listens on %s of the host %s, which this build does not reach", j.Address, loopback, j.location.Remote),
		}
	}
	var evidence []string
	lacks := j.lacksKey()
	if lacks != "" {
		evidence = []string{"its host key is proven, and nobody has logged in: " + lacks}
	}
	without := len(evidence)
	for {
		err := j.waitOnce(ctx, lacks != "")
		var broken *bootError
		if errors.As(err, &broken) && j.seen.configured.Virtualized == typeKVM && j.isAuto() {
			fell, err := j.fallBack(ctx, err)
			if err != nil {
				return nil, err
			}
			if err := j.observe(ctx); err != nil {
				return nil, err
			}
			evidence = append(evidence, fell...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(evidence) > without {
			return j.started(ctx, evidence)
		}
		return guard.Did(providers.Done, evidence...), nil
	}
}

// lacksKey returns the reason why this machine cannot log into the step's guest, though it
// knows the guest's host key; "": it can log in, or does not know the host key.
func (j *job) lacksKey() string {
	had, hostKey := j.hasKeys()
	if had == "" || hostKey == "" {
		return ""
	}
	return j.keyFiles(string(j.Object), j.Name, j.want.SSH).lacking(had, hostKey)
}

func (j *job) waitOnce(ctx context.Context, hostKeyOnly bool) error {
	held, err := j.heldPorts(ctx, j.connection, *j.seen)
	if err != nil {
		return j.unasked(ctx, err)
	}
	_, hostKey := j.hasKeys()
	l := j.login(string(j.Object), j.Name, j.want.SSH, hostKey)
	if hostKeyOnly {
		l.IdentityFile = ""
	}
	l.Port = int(sshPortOf(held, j.seen.configured))
	if l.Port == 0 {
		return fail(errors.New("QEMU forwards no port to it"), "wait for SSH of %s", j.Name)
	}
	t := guest.Target(l)
	j.say("trying %s", t)
	return guest.Awaited{
		Address: j.Address, Target: t, Limit: j.Timeout, Sleep: j.sleep, HostKeyOnly: hostKeyOnly, Say: func(text string) { j.say("%s", text) },
		Check: func(ctx context.Context) error {
			if err := j.reconnect(ctx); err != nil {
				return fail(err, "watch %s while it boots", j.Name)
			}
			now, err := j.Power(ctx, j.seen.UUID)
			if err != nil {
				return fail(err, "watch %s while it boots", j.Name)
			}
			if now.lost() {
				return j.wentWrong(ctx, now)
			}
			return nil
		},
		Late:  func(refused bool) ([]string, []providers.Advice) { return j.noSSH(ctx, refused) },
		Other: j.otherKey,
	}.Wait(ctx)
}

// unasked returns the failure to ask QEMU's monitor: most likely the guest has ended
// meanwhile.
func (j *job) unasked(ctx context.Context, cause error) error {
	if now, err := j.Power(ctx, j.seen.UUID); err == nil && now.State != providers.StateRunning {
		return j.wentWrong(ctx, now)
	}
	return fail(cause, "wait for SSH of %s", j.Name)
}

// noSSH returns what was seen of a guest that does not let vmctl in, and what to do about it.
func (j *job) noSSH(ctx context.Context, refused bool) ([]string, []providers.Advice) {
	next := providers.Say(
		fmt.Sprintf("read the guest's boot log: %s", j.seen.configured.ConsoleLog),
		fmt.Sprintf("or watch it boot: virsh -c %s console %s", j.location.URI, j.Name),
	)
	if refused {
		next = append(providers.Say(fmt.Sprintf("see that the guest takes /vmctl/authorized_keys for %s", j.want.SSH.User)), next...)
	}
	return j.bootLog(ctx, j.connection, *j.seen), next
}

// otherKey says what it means that a guest shows another host key.
func (j *job) otherKey(e *sshx.HostKeyError) ([]string, []providers.Advice) {
	return []string{"a guest that vmctl made shows the key that vmctl gave it: another key means another guest, another system in it, or somebody in between"},
		slices.Concat(providers.Say(
			fmt.Sprintf("if the guest makes its own host key: ssh { host_key = \"accept-new\" } in %s, and remove %s", j.Address, e.KnownHosts),
			fmt.Sprintf("otherwise find out who answers: ssh-keyscan -p PORT %s", loopback),
		), providers.SayVmctl("to give it new keys, if it boots what vmctl made: ", "vm", "rekey", j.Address.String()))
}

// login describes the SSH login to a vm, without the port.
func (p *Provider) login(id, name string, l machine.Login, hostKey string) providers.Login {
	k := p.keyFiles(id, name, l)
	from := "the owner mark"
	if l.HostKey == machine.HostKeyAcceptNew || hostKey == "" { // the guest makes its own host key, or it is unknown
		hostKey, from = "", ""
	}
	return providers.Login{
		Address: loopback, User: l.User, IdentityFile: k.identity, Alias: name, KnownHosts: k.path(knownHostsName),
		HostKey: hostKey, HostKeyFrom: from, AcceptNew: l.HostKey == machine.HostKeyAcceptNew,
	}
}
