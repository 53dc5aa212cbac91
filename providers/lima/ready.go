package lima

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/guest"
	"vmctl/providers/machine"
)

// sshEvery is the shortest time between the beginnings of two attempts to log in.
const sshEvery = 250 * time.Millisecond

// waitSSH waits until the guest lets vmctl in, and its host agent has reported it running.
func (j *job) waitSSH(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil || !j.seen.on() {
		return nil, j.wentDown()
	}
	port, err := j.waitForPort(ctx)
	if err != nil {
		return nil, err
	}
	t := j.target(j.seen, j.want.SSH)
	t.Port = int(port)
	err = sshx.Wait(ctx, t, sshx.WaitOptions{
		Every: sshEvery, Sleep: j.host.Sleep, Log: func(reason string) { j.log(providers.Progress{Text: fmt.Sprintf("trying %s: %s", t, reason)}) },
		Check: j.runsOn,
		// A script of the guest gives it its host key before Lima reports it running.
		Settling: func() bool { return !j.seen.events.running },
	})
	if err != nil {
		return nil, j.explainSSH(ctx, t, err)
	}
	evidence, err := j.waitForEvent(ctx)
	if err != nil {
		return nil, err
	}
	others, err := j.keepsPromises(ctx, t)
	if err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, slices.Concat(evidence, others, j.message(ctx, port))...), nil
}

// waitForPort waits until the host agent has reported the port of this host that leads to the guest's
// SSH.
func (j *job) waitForPort(ctx context.Context) (uint16, error) {
	for {
		if port := j.seen.events.sshPort; port != 0 {
			return port, nil
		}
		if err := j.pause(ctx, "its host agent has not said where its SSH is"); err != nil {
			return 0, err
		}
	}
}

// waitForEvent waits until the host agent has reported the guest running: its scripts are through
// then. It returns the reasons why the guest works in part only.
func (j *job) waitForEvent(ctx context.Context) ([]string, error) {
	for {
		if err := j.runsOn(ctx); err != nil {
			return nil, err
		}
		if j.seen.events.running {
			var all []string
			for _, reason := range j.seen.events.degraded {
				all = append(all, "Lima says: "+reason)
			}
			return all, nil
		}
		if err := j.pause(ctx, "it lets vmctl in, and its host agent has not reported it running: its scripts run on, perhaps"); err != nil {
			return nil, err
		}
	}
}

// pause waits pollInterval and reads the instance again. It fails if the guest has ended, or the time is over: still
// says what was missing.
func (j *job) pause(ctx context.Context, still string) error {
	j.say(still)
	if j.host.Sleep(ctx, pollInterval) != nil {
		return j.noSSH(ctx, still)
	}
	return j.runsOn(ctx)
}

// say reports the progress of a wait, once for each text.
func (j *job) say(text string) {
	if text != j.said {
		j.said = text
		j.log(providers.Progress{Text: text})
	}
}

// runsOn fails if the guest does not run any more, and reads its events anew. An instance that cannot be read for a
// moment counts as before.
func (j *job) runsOn(ctx context.Context) error {
	s, err := j.readInstance(ctx, j.Name, j.find(ctx))
	switch {
	case err != nil:
		j.say("it cannot be read, and is read again: " + err.Error())
		return nil
	case s.state == providers.StateOff || s.state == providers.StateEnding:
		j.seen = s
		return j.wentDown()
	case s.state == providers.StateBroken:
		return &providers.Problem{
			Outcome: providers.Failed, Code: "broken", Seen: append([]string{s.reason}, j.lastWords(j.Name)...), Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("wait for SSH of %s: its guest does not run", j.Address),
		}
	}
	j.seen = s
	return nil
}

func (j *job) wentDown() error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "ended", Seen: j.lastWords(j.Name),
		Next: append(providers.Say("read the log of its host agent: "+j.path(j.Name, agentLog)), providers.Vmctl("plan")...),
		Err:  fmt.Errorf("wait for SSH of %s: it ended while it started", j.Address),
	}
}

func (j *job) noSSH(ctx context.Context, last string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &providers.Problem{
			Outcome: providers.Failed, Code: "interrupted", Seen: []string{last},
			Err: fmt.Errorf("wait for SSH of %s: interrupted; it runs on", j.Address),
		}
	}
	return &providers.Problem{
		Outcome: providers.Timeout, Code: "no_ssh", Seen: append([]string{last}, j.lastWords(j.Name)...),
		Next: providers.Say(
			"read the guest's boot log: "+j.path(j.Name, "serial.log"),
			"read the log of its host agent: "+j.path(j.Name, agentLog),
			fmt.Sprintf("or give it more time: ssh { wait_timeout = \"…\" } in %s", j.Address),
		),
		Err: fmt.Errorf("wait for SSH of %s: it was not ready within %s", j.Address, j.Timeout),
	}
}

func (j *job) explainSSH(ctx context.Context, t sshx.Target, err error) error {
	var key *sshx.HostKeyError
	var identity *sshx.IdentityError
	var late *sshx.WaitError
	switch {
	case errors.As(err, &late):
		return j.noSSH(ctx, "last attempt: "+late.Last.Error())
	case errors.As(err, &key):
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "host_key_changed",
			Next: providers.Say(
				fmt.Sprintf("if the guest got a new host key: ssh { host_key = \"accept-new\" } in %s, and remove %s", j.Address, key.KnownHosts),
			),
			Err: fmt.Errorf("wait for SSH of %s: %w", j.Address, key),
		}
	case errors.As(err, &identity):
		return &providers.Problem{
			Outcome: providers.Failed, Code: "keys", Next: providers.Say("see what is there: ls -l " + t.IdentityFile),
			Err: fmt.Errorf("wait for SSH of %s: %w", j.Address, identity),
		}
	default:
		return err
	}
}

// target describes the SSH login to an instance, without the port. An instance that vmctl did not make
// gets new host keys at each start: the guest that answers on the port of its host agent is taken for
// it, for as long as that runs.
func (p *Provider) target(s *instance, l machine.Login) sshx.Target {
	t := sshx.Target{
		Address: loopback, User: p.login(s, l), IdentityFile: p.identity(l), Alias: s.name, KnownHosts: filepath.Join(p.keyFolder(s.id), "known_hosts"),
		AcceptNew: true,
	}
	switch {
	case s.made() && s.mark.Owner != nil && s.mark.Owner.HostKey != "" && l.HostKey != machine.HostKeyAcceptNew:
		t.HostKey, t.HostKeyFrom, t.AcceptNew = s.mark.Owner.HostKey, "the owner mark", false
	case !s.made():
		t.Alias += "." + p.runOf(s.name)
	}
	return t
}

// runOf names the present run of an instance: its host agent.
func (p *Provider) runOf(name string) string {
	pid, err := os.ReadFile(p.path(name, agentPid))
	if err != nil {
		return "off"
	}
	return strings.TrimSpace(string(pid))
}

// login returns the user to log in as. An instance that vmctl did not make lets in its own user alone.
func (p *Provider) login(s *instance, l machine.Login) string {
	if s.mark != nil && !s.mark.Imported {
		return cmp.Or(l.User, rootUser)
	}
	if l.User != "" && l.User != rootUser {
		return l.User
	}
	return p.ownUser(s)
}

// Enter implements providers.Host.
func (p *Provider) Enter(_ context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	return guest.Enter(p, o, values)
}

// Reach returns the SSH login to an instance, through the port that QEMU forwards to it.
func (p *Provider) Reach(o providers.Object, values cty.Value) (providers.Login, error) {
	port := ctyread.Uint(o.Attrs, "ssh_port")
	if port == 0 {
		return providers.Login{}, &providers.NotYetError{Err: errors.New("its host agent has not said where its SSH is")}
	}
	s := &instance{name: o.Name, id: o.ID}
	if err := p.readFiles(s); err != nil {
		return providers.Login{}, err
	}
	t := p.target(s, machine.DecodeLogin(values))
	if !exists(t.IdentityFile) {
		return providers.Login{}, fmt.Errorf("this machine has no key to log in with: %s is missing", t.IdentityFile)
	}
	return providers.Login{
		Address: t.Address, Port: int(port), User: t.User, IdentityFile: t.IdentityFile, //nolint:gosec // a port fits
		Alias: t.Alias, KnownHosts: t.KnownHosts, HostKey: t.HostKey, HostKeyFrom: t.HostKeyFrom, AcceptNew: t.AcceptNew,
	}, nil
}
