package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

const networkTimeout = time.Minute

// networkSteps returns the steps of a change of a network.
func (p *Provider) networkSteps(c providers.Change) ([]providers.Step, error) {
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes {
		if err := machine.CheckName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	return machine.NetworkRecipe(c, machine.NetworkAbilities{
		Policy: machine.DecodePolicy(c.Policy), Change: networkTimeout, Wanted: []providers.Claim{networkNameClaim(p.location.URI, c.Name)},
		Leaves: func(_, name string) []string { return []string{"network " + name + " at " + p.location.URI} },
	}), nil
}

// noNetworks returns the reason why no network can be made at this connection; nil: there is none.
func (p *Provider) noNetworks() *providers.Problem {
	if p.location.System || p.location.Test {
		return nil
	}
	return providers.Refuse(
		"the daemon of "+p.location.URI+" runs as an ordinary user, who may make no bridge: it makes no networks",
		providers.Say(fmt.Sprintf("write uri = %q into the block provider %q %q", p.location.asSystem(), TypeName, p.settings.Name)))
}

// asSystem returns the URI of the system's daemon on the same host.
func (l location) asSystem() string { return strings.Replace(l.URI, "/session", "/system", 1) }

// networkJob is a step on a network.
type networkJob struct {
	*job
	wanted machine.Network
	net    *observedNetwork // the network when the step began; nil: there was none
}

// Verb returns the operation of the step.
func (j *networkJob) Verb() (guard.Verb, error) {
	j.wanted = machine.DecodeNetwork(j.Want)
	act, known := map[string]machine.Act{
		opDefine: j.define, opRedefine: j.redefine, opDelete: j.delete, opUnmark: j.unmark,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	var seen *machine.SeenNetwork
	if j.net != nil {
		s := j.net.seen(j.location.URI)
		seen = &s
	}
	return machine.NetworkVerb(j.Work, seen, act), nil
}

// Look reads the network that the step is about.
func (j *networkJob) Look(ctx context.Context) (*guard.Seen, error) {
	j.net = nil
	found, err := j.Network(ctx, string(j.Object))
	switch {
	case errors.Is(err, errAbsent) && j.Op == opDefine:
		return nil, j.nameIsFree(ctx)
	case errors.Is(err, errAbsent):
		return nil, nil
	case err != nil:
		return nil, fail(err, "read the network %s", j.Name)
	}
	n, err := found.observed()
	if err != nil {
		return nil, fail(err, "read the network %s", j.Name)
	}
	j.net = &n
	return n.seen(j.location.URI).Guarded(), nil
}

// nameIsFree fails if another network has the name.
func (j *networkJob) nameIsFree(ctx context.Context) error {
	found, err := j.NetworkNamed(ctx, j.Name)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return fail(err, "look for a network of the name %s", j.Name)
	}
	other, err := found.observed()
	if m := other.Owner; err == nil && m != nil && m.ID == j.settings.Project.Lineage() && m.Of == providers.ID(other.UUID) && m.Address == j.Address {
		return machine.MadeElsewhere(j.Work, "network", j.Name, m.Of)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say(j.look(j.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
		Err:  fmt.Errorf("%s %s: a network of the name %s exists already (%s), and it is not vmctl's", j.Op, j.Address, j.Name, found.UUID),
	}
}

func (j *networkJob) look(name string) string {
	return "look at it: virsh -c " + j.location.URI + " net-dumpxml " + name
}

// Guard names the step and its network.
func (j *networkJob) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "network", Look: func(now guard.Seen) string {
		return "virsh -c " + j.location.URI + " net-dumpxml " + string(now.ID)
	}}
}

// Values returns the attributes of the network that libvirt sets.
func (j *networkJob) Values(context.Context) (map[string]cty.Value, error) {
	return j.net.seen(j.location.URI).Values(), nil
}

// define makes the network and starts it. It completes one that an interrupted attempt left half made.
func (j *networkJob) define(ctx context.Context) (*guard.Outcome, error) {
	if j.net != nil {
		return j.redefine(ctx)
	}
	mark, err := j.mark()
	if err != nil {
		return nil, err
	}
	text, err := freshNetwork(j.Name, string(j.Object), mark, j.wanted)
	if err != nil {
		return nil, err
	}
	if err := j.DefineNetwork(ctx, text); err != nil {
		if taken := j.nameIsFree(ctx); taken != nil { // another process was faster: libvirt gives a name once
			return nil, taken
		}
		return nil, fail(err, "define %s", j.Name)
	}
	if err := j.start(ctx); err != nil {
		return nil, j.undo(ctx, err)
	}
	return guard.Did(providers.Done), nil
}

// undo forgets a network that could not be started: nobody has used it yet.
func (j *networkJob) undo(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), networkTimeout)
	defer cancel()
	f := guard.AsFailure(cause, fail, "define "+j.Name)
	if err := j.RemoveNetwork(ctx, string(j.Object)); err != nil && !errors.Is(err, errAbsent) {
		f.Seen = append(f.Seen, staysBehind(err)...)
	}
	return f
}

func (j *networkJob) mark() (string, error) {
	p := j.settings.Project
	return ownerElement(markOf(providers.Mark{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: j.Object, Generation: j.Generation}))
}

// redefine writes the mark into the network, and starts it if it is not active.
func (j *networkJob) redefine(ctx context.Context) (*guard.Outcome, error) {
	mark, err := j.mark()
	if err != nil {
		return nil, err
	}
	if err := j.write(ctx, mark); err != nil {
		return nil, err
	}
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// unmark removes the owner mark from the network, and changes nothing else.
func (j *networkJob) unmark(ctx context.Context) (*guard.Outcome, error) {
	if err := j.write(ctx, ""); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// write replaces the mark of the network's configuration. What is active stays as it is.
func (j *networkJob) write(ctx context.Context, mark string) error {
	text, err := withMark(j.net.XML, mark)
	if err != nil {
		return fail(err, "write the mark of %s", j.Name)
	}
	if err := j.DefineNetwork(ctx, text); err != nil {
		return fail(err, "define %s", j.Name)
	}
	return nil
}

func (j *networkJob) start(ctx context.Context) error {
	err := j.StartNetwork(ctx, string(j.Object))
	if err == nil {
		return nil
	}
	f := fail(err, "start %s", j.Name)
	switch {
	case strings.Contains(err.Error(), "already in use by interface"):
		f.Code, f.Next = "subnet_taken", providers.Say(
			"see which networks the host is in: ip -4 route",
			fmt.Sprintf("write another cidr into the block of %s, or avoid_host_subnets = true", j.Address))
	case strings.Contains(err.Error(), "dnsmasq"):
		f.Code, f.Next = "no_dnsmasq", providers.Say("libvirt needs dnsmasq for a network: install it: sudo apt-get install dnsmasq-base")
	}
	return f
}

// delete removes the network, unless a domain is in it.
func (j *networkJob) delete(ctx context.Context) (*guard.Outcome, error) {
	if j.net == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	users, err := j.users(ctx)
	if err != nil {
		return nil, err
	}
	if len(users) > 0 {
		return nil, machine.NetworkInUse(j.Work, users)
	}
	if err := j.RemoveNetwork(ctx, string(j.Object)); err != nil && !errors.Is(err, errAbsent) {
		return nil, fail(err, "delete %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// users lists the domains that have a card in the network, for their next start or while they run, whoever made them. A domain that
// cannot be read may be in any network: that is an error.
func (j *networkJob) users(ctx context.Context) ([]string, error) {
	all, err := j.Domains(ctx)
	if err != nil {
		return nil, fail(err, "%s %s: see who is in it", j.Op, j.Address)
	}
	var users []string
	for _, ref := range all {
		is, err := j.isUser(ctx, ref)
		if err != nil {
			return nil, fail(err, "%s %s: see whether domain %s is in it", j.Op, j.Address, ref.Name)
		}
		if is {
			users = append(users, ref.Name)
		}
	}
	slices.Sort(users)
	return users, nil
}

func (j *networkJob) isUser(ctx context.Context, ref domainRef) (bool, error) {
	for _, of := range []version{asConfigured, asRunning} {
		text, err := j.XML(ctx, ref.UUID, of)
		if errors.Is(err, errAbsent) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		d, err := describe(text)
		if err != nil || j.net.has(d) {
			return err == nil, err
		}
	}
	return false, nil
}
