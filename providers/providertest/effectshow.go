package providertest

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/spec"
)

func named(l sample) string {
	if l.object.Name != l.value.AsString() {
		return fmt.Sprintf("its name is %q, and was to be %q", l.object.Name, l.value.AsString())
	}
	return ""
}

func runs(l sample) string {
	if isRunning(l.object) != l.value.True() || isOff(l.object) == l.value.True() {
		return fmt.Sprintf("it is %q, and was to run: %t", l.object.State, l.value.True())
	}
	return ""
}

// digested checks a file by its digest.
func digested(l sample) string {
	path := l.path
	l.path += "_sha256"
	text, known := l.report(path)
	if want := l.digest(l.value.AsString()); known && text != want {
		return fmt.Sprintf("the system has a file with the digest %s, and was to have %s", text, want)
	}
	return l.shown(cty.StringVal(l.digest(l.value.AsString())))
}

// madeFrom checks the image of a VM by its digest.
func madeFrom(l sample) string {
	text, known := l.report(l.path)
	want := l.digest(l.value.AsString())
	if !known {
		return "the system does not report its image"
	}
	if len(text) < 16 || !strings.HasPrefix(want, text) {
		return fmt.Sprintf("it was made from an image of the digest %s, and was to be from %s", text, want)
	}
	return ""
}

func holdsDisk(l sample) string {
	i := slices.IndexFunc(l.uses, func(d *actor) bool { return d.address.String() == l.value.AsString() })
	for j, d := range l.uses {
		if slices.Contains(l.object.Holds, d.claim()) != (i == j) {
			return fmt.Sprintf("it claims %v, and was to claim %s", l.object.Holds, l.value.AsString())
		}
	}
	return l.shown(l.value)
}

// holdsAddress checks that a VM claims its address in the network of its spec.
func holdsAddress(l sample) string {
	i := ctyread.List(ctyread.Attr(l.want, "network_interface"))[0]
	var name string
	for _, used := range l.uses {
		if used.address.String() == ctyread.Text(i, "network") {
			name = used.name
		}
	}
	want := providers.AddressClaim(name, netip.MustParseAddr(ctyread.Text(i, "address")))
	if !slices.Contains(l.object.Holds, want) {
		return fmt.Sprintf("it claims %v, and was to claim %s", l.object.Holds, want)
	}
	return l.shown(l.value)
}

// holdsPort checks that a VM claims the host port of its spec.
func holdsPort(l sample) string {
	f := ctyread.List(ctyread.Attr(l.want, "port_forward"))[0]
	claim := providers.Claim{
		Kind: providers.ClaimPort, Key: fmt.Sprintf("%s:%s/%s", ctyread.Text(f, "host_ip"), ctyread.Text(f, "host"), ctyread.Text(f, "protocol")),
	}
	if !slices.Contains(l.object.Holds, claim) {
		return fmt.Sprintf("it claims %v, and was to claim %s", l.object.Holds, claim)
	}
	return l.shown(l.value)
}

// logsIn checks the login to a VM, and that the guest has the public key of an identity.
func logsIn(l sample) string {
	r, ok := providers.Ability[providers.Reacher](l.provider)
	if !ok {
		return "the provider is no Reacher"
	}
	login, err := r.Reach(l.object, l.want)
	if err != nil {
		return err.Error()
	}
	got := ""
	switch l.path {
	case "ssh.user":
		got = login.User
	case "ssh.identity":
		got = filepath.Base(login.IdentityFile)
		public, err := sshx.PublicKey(l.file(l.value.AsString()))
		if err != nil {
			return err.Error()
		}
		if text, known := l.report(l.path); !known || !strings.Contains(text, public) {
			return fmt.Sprintf("the guest lets %q in, and was to let in %q", text, public)
		}
	case "ssh.host_key":
		got = "pin"
		if login.AcceptNew && login.HostKey == "" {
			got = "accept-new"
		}
	default:
		panic("no login has " + l.path)
	}
	if got != l.value.AsString() {
		return fmt.Sprintf("the login has %q, and was to have %q: %+v", got, l.value.AsString(), login)
	}
	return ""
}

// restarts checks that another value restarts a running object, whatever else it does.
func restarts(a *actor, e effect) {
	a.t.Helper()
	want := a.set(a.want, e, e.values(a.stage)[1])
	if got := a.applies(want); got != providers.Restart {
		a.t.Errorf("%s of a running VM applies by %q", e.key(), got)
	}
	c := a.change(providers.RestartIt)
	c.Want, c.Edits = want, a.editsTo(want, true)
	if got := phases(a.steps(c)); !strings.HasPrefix(got, "down, ") || !strings.Contains(got, ", up") {
		a.t.Errorf("%s: the phases of its restart are %s", e.key(), got)
	}
}

// rejectsOthers checks that no VM is made from an image with another digest than its spec has.
func rejectsOthers(a *actor, e effect) {
	a.t.Helper()
	other := a.actor("other")
	other.want = put(put(a.want, spec.WantType(e.kind), "name", cty.NullVal(cty.String)), spec.WantType(e.kind), e.path, e.values(a.stage)[1])
	_, failure := other.try(other.change(providers.Create))
	if failure == nil || !strings.Contains(failure.Error(), "sha256") {
		a.t.Errorf("%s: making a VM from an image of another digest: %v", e.key(), failure)
	}
}

// under returns the steps of an action under a policy with another value of an attribute.
func (a *actor) under(action providers.Action, e effect, value cty.Value) ([]providers.Step, error) {
	a.t.Helper()
	c := a.change(action)
	if action == providers.Create {
		c.Object = nil
	}
	c.Policy = put(c.Policy, spec.PolicyType(e.kind), e.path, value)
	return a.provider.Steps(c)
}

// timeout returns the timeout of the step of a phase.
func (a *actor) timeout(action providers.Action, phase providers.Phase, e effect, value cty.Value) time.Duration {
	a.t.Helper()
	steps, err := a.under(action, e, value)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, step := range steps {
		if step.Phase == phase {
			return step.Timeout
		}
	}
	a.t.Errorf("%s: %s has no phase %s", e.key(), action, phase)
	return 0
}

func duration(v cty.Value) time.Duration {
	n, _ := v.AsBigFloat().Float64()
	return time.Duration(n * float64(time.Second))
}

// limits proves that a value is the timeout of a step.
func limits(action providers.Action, phase providers.Phase) func(*actor, effect) {
	return func(a *actor, e effect) {
		a.t.Helper()
		for _, v := range e.values(a.stage) {
			same(a.t, e.key()+": the timeout of a step", duration(v), a.timeout(action, phase, e, v))
		}
	}
}

// stopSteps checks that a stop has the time for both of its waits.
func stopSteps(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	dev.create()
	for _, path := range []string{"stop.grace", "stop.force_wait"} {
		e := effect{kind: spec.VM, path: path}
		short, long := cty.NumberIntVal(20), cty.NumberIntVal(30)
		got := dev.timeout(providers.RestartIt, providers.PhaseDown, e, long) - dev.timeout(providers.RestartIt, providers.PhaseDown, e, short)
		same(s.t, e.key()+": the longer timeout of a stop", 10*time.Second, got)
	}
}

// givesUp proves that a stop of a VM that survives force waits for its end, and no longer than
// it may.
func givesUp(a *actor, e effect) {
	a.t.Helper()
	values := e.values(a.stage)
	short, long := values[0], values[1]
	if ran := survives(a, e, long); ran < duration(long) {
		a.t.Errorf("%s = %s: it gave up after %s", e.key(), duration(long), ran)
	}
	// A busy machine may be late, but not each time.
	var took []time.Duration
	for range 20 {
		ran := survives(a, e, short)
		if ran < duration(long) {
			return
		}
		took = append(took, ran)
	}
	a.t.Errorf("%s = %s: it gave up after %v", e.key(), duration(short), took)
}

// survives stops a VM that survives force, and returns the time after which the stop gave up.
func survives(a *actor, e effect, v cty.Value) time.Duration {
	a.t.Helper()
	before := a.Policy
	defer func() { a.Policy = before }()
	a.Policy = put(put(before, spec.PolicyType(e.kind), "stop.grace", cty.NumberFloatVal(0.1)), spec.PolicyType(e.kind), e.path, v)
	_, failure := a.try(a.change(providers.Stop))
	if failure == nil || !runsFor.MatchString(failure.Error()) {
		a.t.Fatalf("%s = %s: a stop of a VM that survives force: %v", e.key(), duration(v), failure)
	}
	ran, err := time.ParseDuration(runsFor.FindStringSubmatch(failure.Error())[1])
	if err != nil {
		a.t.Fatal(err)
	}
	return ran
}

// waits proves that a creation waits until the VM is ready, or does not.
func waits(a *actor, e effect) {
	a.t.Helper()
	for _, v := range e.values(a.stage) {
		steps, err := a.under(providers.Create, e, v)
		if err != nil {
			a.t.Fatal(err)
		}
		if got := strings.Contains(phases(steps), string(providers.PhaseReady)); got != v.True() {
			a.t.Errorf("%s = %t: the phases of a creation are %s", e.key(), v.True(), phases(steps))
		}
	}
}

// staysUp proves that a stop forces nothing before the grace is over.
func staysUp(a *actor, e effect) {
	a.t.Helper()
	before := a.Policy
	for _, v := range e.values(a.stage) {
		a.Policy = put(put(before, spec.PolicyType(e.kind), "stop.force", cty.False), spec.PolicyType(e.kind), e.path, v)
		_, failure := a.try(a.change(providers.Stop))
		want := fmt.Sprintf("still running %s after the request", duration(v))
		if failure == nil || !slices.Contains(failure.Seen, want) {
			a.t.Errorf("%s = %s: a stop that must not force saw %+v, and was to see %q", e.key(), duration(v), failure, want)
		}
	}
	a.Policy = before
}

// forces proves that a stop forces a VM that ignores requests if it may, and fails else.
func forces(a *actor, e effect) {
	a.t.Helper()
	before := a.Policy
	for _, v := range e.values(a.stage) {
		a.Policy = put(before, spec.PolicyType(e.kind), e.path, v)
		done, failure := a.try(a.change(providers.Stop))
		switch {
		case v.False() && (failure == nil || failure.Outcome != providers.Timeout):
			a.t.Errorf("%s = false: a stop of a VM that ignores requests: %+v", e.key(), failure)
		case v.True() && (failure != nil || done[0].result.How != providers.Forced):
			a.t.Errorf("%s = true: a stop of a VM that ignores requests: %+v, %+v", e.key(), done, failure)
		}
	}
	a.Policy = before
}

// unlocks proves that the lock of a holder that is gone is removed, or that the change is refused.
func unlocks(a *actor, e effect) {
	a.t.Helper()
	for _, v := range e.values(a.stage) {
		c := a.change(providers.Update)
		c.Object.Findings = []providers.Finding{{Kind: providers.FindStaleLock, Evidence: []string{"its holder is gone"}}}
		c.Policy = put(c.Policy, spec.PolicyType(e.kind), e.path, v)
		steps, err := a.provider.Steps(c)
		var refusal *providers.Problem
		switch refuses := v.AsString() == "refuse"; {
		case refuses && !errors.As(err, &refusal):
			a.t.Errorf("%s = refuse: steps %s, error %v", e.key(), phases(steps), err)
		case !refuses && (err != nil || phases(steps) != string(providers.PhaseRelease)):
			a.t.Errorf("%s = unlock: steps %s, error %v", e.key(), phases(steps), err)
		}
	}
}
