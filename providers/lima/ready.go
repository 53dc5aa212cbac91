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

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/guest"
	"vmctl/providers/machine"
)

// waitSSH waits until the guest lets vmctl in, and has been set up.
func (j *job) waitSSH(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil || !j.seen.on() {
		return nil, j.wentDown()
	}
	port, err := j.waitForPort(ctx)
	if err != nil {
		return nil, err
	}
	awaited := j.awaited(port)
	ready, err := j.waitForBoot(ctx, awaited.Target)
	if err != nil {
		return nil, err
	}
	var evidence []string
	if !ready {
		if err := awaited.Wait(ctx); err != nil {
			return nil, err
		}
		if evidence, err = j.waitUntilSetUp(ctx, awaited.Target); err != nil {
			return nil, err
		}
	}
	others, err := j.keepsPromises(ctx, awaited.Target)
	if err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, slices.Concat(evidence, others, j.message(ctx, port))...), nil
}

// awaited describes the wait for the guest's SSH at a port of this host.
func (j *job) awaited(port uint16) guest.Awaited {
	l := j.reachedBy(j.seen, j.want.SSH)
	l.Port = int(port)
	return guest.Awaited{
		Address: j.Address, Target: guest.Target(l), Limit: j.Timeout, Sleep: j.host.Sleep, Check: j.runsOn,
		Say: func(text string) { j.log(providers.Progress{Text: text}) },
		// A script of the guest gives it its host key before it is set up.
		Settling: func() bool { return !j.seen.isSetUp() },
		Late: func(bool) ([]string, []providers.Advice) {
			return j.lastWords(j.Name), providers.Say(
				"read the guest's boot log: "+j.path(j.Name, serialLog),
				"read the log of its host agent: "+j.path(j.Name, agentLog),
			)
		},
		Other: func(key *sshx.HostKeyError) ([]string, []providers.Advice) {
			return nil, providers.Say(
				fmt.Sprintf("if the guest got a new host key: ssh { host_key = \"accept-new\" } in %s, and remove %s", j.Address, key.KnownHosts))
		},
	}
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

// waitUntilSetUp waits until the host agent has reported the guest running: its scripts are through then. Where that sets
// nothing up after them, the guest itself is believed, if it says so at once: its host agent says it later. It returns the
// reasons why the guest works in part only.
func (j *job) waitUntilSetUp(ctx context.Context, t sshx.Target) ([]string, error) {
	if err := j.runsOn(ctx); err != nil {
		return nil, err
	}
	for asked := false; ; {
		if j.seen.events.running {
			var all []string
			for _, reason := range j.seen.events.degraded {
				all = append(all, "Lima says: "+reason)
			}
			return all, nil
		}
		if j.seen.booted && !asked {
			if saysBooted(ctx, t) {
				return nil, nil
			}
			asked = true
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
		return j.awaited(j.seen.events.sshPort).TooLate(ctx, still, false)
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

// reachedBy describes the SSH login to an instance, without the port. An instance that vmctl did not make
// gets new host keys at each start: the guest that answers on the port of its host agent is taken for
// it, for as long as that runs.
func (p *Provider) reachedBy(s *instance, l machine.Login) providers.Login {
	t := providers.Login{
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
	l := p.reachedBy(s, machine.DecodeLogin(values))
	l.Port = int(port) //nolint:gosec // a port fits
	return guest.WithKey(l)
}
