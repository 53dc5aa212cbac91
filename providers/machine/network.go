package machine

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Network describes a network for VMs that a spec wants.
type Network struct {
	Prefix   netip.Prefix
	Internal bool
}

// DecodeNetwork reads the attributes of a network. What is not known has its zero value.
func DecodeNetwork(v cty.Value) Network {
	prefix, err := netip.ParsePrefix(ctyread.Text(v, "cidr"))
	if err != nil {
		prefix = netip.Prefix{}
	}
	return Network{Prefix: prefix, Internal: ctyread.True(v, "internal")}
}

// SeenNetwork is a network for VMs as a system was seen to have it.
type SeenNetwork struct {
	Network

	ID       providers.ID
	Name     string
	Mark     *providers.Mark
	Claims   []providers.Claim
	Leases   []netip.Addr // addresses in use by what is no VM of the system
	Findings []providers.Finding
}

// Values returns the attributes that the system sets.
func (s SeenNetwork) Values() map[string]cty.Value {
	return map[string]cty.Value{"id": cty.StringVal(string(s.ID))}
}

// Object describes the network for the planner.
func (s SeenNetwork) Object() providers.Object {
	all := s.Values()
	all["cidr"], all["internal"] = cty.NullVal(cty.String), cty.BoolVal(s.Internal)
	if s.Prefix.IsValid() {
		all["cidr"] = cty.StringVal(s.Prefix.String())
	}
	o := providers.Object{
		Kind: spec.Network, ID: s.ID, Name: s.Name, Owner: s.Mark, Attrs: cty.ObjectVal(all), Holds: s.Claims,
		Unreadable: map[string]string{}, Findings: s.Findings, Fingerprint: s.Fingerprint(),
	}
	for _, ip := range s.Leases {
		o.Holds = append(o.Holds, providers.AddressClaim(s.Name, ip))
	}
	if s.Mark != nil && s.Mark.Of != s.ID {
		o.Findings = append(o.Findings, providers.Finding{
			Kind: providers.FindCopy, Address: s.Mark.Address, Object: s.Name, Evidence: []string{"its mark was written for " + string(s.Mark.Of)},
			Action: "left alone",
		})
	}
	return o
}

// Fingerprint covers the facts that a step on the network relies on. It leaves out who is in it.
func (s SeenNetwork) Fingerprint() string {
	var p guard.Print
	p.Add("id", string(s.ID))
	p.Add("name", s.Name)
	p.Add("cidr", s.Prefix.String())
	if s.Internal {
		p.Add("internal", "true")
	}
	p.AddMark(s.Mark)
	return p.String()
}

// Guarded returns the network as a guard sees it.
func (s SeenNetwork) Guarded() *guard.Seen {
	return &guard.Seen{ID: s.ID, Name: s.Name, Mark: s.Mark, Fingerprint: s.Fingerprint()}
}

// NetworkAbilities holds a system's part in one change of a network, as far as it decides the steps.
type NetworkAbilities struct {
	Policy Policy
	Change time.Duration                  // how long a change of it may take
	Wanted []providers.Claim              // the claims that it holds once it is made
	Leaves func(op, name string) []string // lists the remains that an operation may leave behind
}

// NetworkRecipe returns the steps of a change of a network for VMs. It is pure. The steps are in the order of their phases, each
// after the one before it.
func NetworkRecipe(c providers.Change, a NetworkAbilities) []providers.Step {
	var steps []providers.Step
	add := func(step providers.Step, id providers.ID, name string) {
		step.Object, step.Name = id, name
		step.Leaves = a.Leaves(step.Op, name)
		steps = Append(steps, c, step)
	}
	old := func(step providers.Step) { add(step, c.Object.ID, c.Object.Name) }
	define := func() {
		add(providers.Step{Op: OpDefine, Phase: providers.PhaseMake, Timeout: a.Policy.Create, Takes: a.Wanted}, c.ID, c.Name)
	}
	remove := func() {
		old(providers.Step{
			Op: OpDelete, Phase: providers.PhaseRemove, Risk: providers.Downtime, Timeout: a.Policy.Delete,
			Frees: c.Object.Holds, Takes: []providers.Claim{NetworkUse(c.Object.ID)},
		})
	}
	switch c.Action {
	case providers.Create:
		define()
	case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Stop, providers.Recover:
		if c.Mark != nil || Found(c.Object, providers.FindPartial) {
			old(providers.Step{Op: OpRedefine, Phase: providers.PhaseChange, Timeout: a.Change})
		}
	case providers.ReplaceIt:
		remove()
		define()
	case providers.Destroy:
		remove()
	case providers.Forget:
		if c.Object != nil {
			old(Unmark(a.Change))
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return steps
}

// NetworkVerb returns the verb of an operation of NetworkRecipe on a network as it was seen; nil: there is none.
func NetworkVerb(w providers.Work, s *SeenNetwork, act Act) guard.Verb {
	v := guard.Verb{Act: act}
	switch w.Op {
	case OpDefine:
		v.Need = guard.Making
		v.Done = guard.If(func() bool {
			return s != nil && IsMarked(w, s.Mark) && s.Network == DecodeNetwork(w.Want) && !s.isPartial()
		}, "it exists")
	case OpRedefine:
		v.Done = guard.If(func() bool { return s != nil && IsMarked(w, s.Mark) && !s.isPartial() }, "its mark is as wanted")
	case OpUnmark:
		v.Done = guard.If(func() bool { return s == nil || s.Mark == nil }, "it bears no mark")
	case OpDelete:
		v.Need = guard.Removing
	}
	return v
}

func (s *SeenNetwork) isPartial() bool {
	for _, f := range s.Findings {
		if f.Kind == providers.FindPartial {
			return true
		}
	}
	return false
}

// NetworkInUse returns the failure of a removal of a network that VMs are in.
func NetworkInUse(w providers.Work, users []string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "network_in_use", Seen: []string{"VMs in it: " + strings.Join(users, ", ")}, Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: VM %s is in it", w.Op, w.Address, users[0]),
	}
}

// AddressTaken returns the failure to give a VM an address that another one has got since the plan.
func AddressTaken(w providers.Work, ip netip.Addr, network, holder string) error {
	return &providers.Problem{
		Outcome: providers.Stale, Code: "ip_taken", Seen: []string{holder + " has it"}, Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: the address %s of %s is taken meanwhile", w.Op, w.Address, ip, network),
	}
}
