package planner_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

// lan returns the block of a network; in returns that of a VM in it.
func lan(attrs string) string {
	return "network \"lan\" {\n  provider = provider.libvirt.default\n  cidr = \"10.0.0.0/28\"\n" + attrs + "\n}\n"
}

// net returns the block of another network with the same prefix, which only networks made by an older vmctl can have.
func net(attrs string) string { return strings.Replace(lan(attrs), `"lan"`, `"net"`, 1) }

func in(name, address string) string {
	return fmt.Sprintf("vm %q {\n  network_interface {\n    network = network.lan\n    address = %q\n  }\n}\n", name, address)
}

// interfaces returns the attribute of a VM that is in a network.
func interfaces(network, address string) cty.Value {
	return cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"network": cty.StringVal(network), "address": cty.StringVal(address)})})
}

// had notes in the record of vm.a that it was in a network with an address.
func (s *scene) had(network, address string) { s.has("vm.a", network, address) }

// has notes the same of any VM.
func (s *scene) has(vm, network, address string) {
	a := addr(s.t, vm)
	r := s.state.Records[a]
	values := r.Values.AsValueMap()
	values["network_interface"] = interfaces(network, address)
	r.Values = cty.ObjectVal(values)
	s.state.Records[a] = r
	for i := range s.objects() {
		if o := &s.objects()[i]; o.Owner != nil && o.Owner.Address == a {
			shown := o.Attrs.AsValueMap()
			shown["network_interface"] = values["network_interface"]
			o.Attrs, o.Holds = cty.ObjectVal(shown), append(o.Holds, providers.AddressClaim("demo.lan", netip.MustParseAddr(address)))
		}
	}
}

func (s *scene) objects() []providers.Object { return s.systems[s.uri()].inventory.Objects }

// gone removes the object of an address, whose record stays.
func (s *scene) gone(address string) {
	all := &s.systems[s.uri()].inventory.Objects
	*all = slices.DeleteFunc(*all, func(o providers.Object) bool { return o.Owner != nil && o.Owner.Address == addr(s.t, address) })
}

// neighbour adds a VM of somebody else with an address of the network.
func (s *scene) neighbour(address string) {
	off := false
	all := &s.systems[s.uri()].inventory.Objects
	*all = append(*all, providers.Object{
		Kind: spec.VM, ID: "theirs", Name: "theirs", Running: &off, State: providers.StateOff, Attrs: cty.EmptyObjectVal, Fingerprint: "f",
		Holds: []providers.Claim{providers.AddressClaim("demo.lan", netip.MustParseAddr(address))},
	})
}

// addressesOf lists what a plan chose, what it blocks and its warnings.
func addressesOf(p *planner.Plan) string {
	var lines []string
	for i := range p.Changes {
		c := &p.Changes[i]
		all := c.Chosen()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			said := ctyread.Text(c.Change.Want, name)
			for _, e := range ctyread.List(all[name]) {
				said += ctyread.Text(e, "address")
			}
			lines = append(lines, fmt.Sprintf("%s %s %s", c.Action, c.Address, said))
		}
		lines = append(lines, c.Warnings...)
	}
	if blocked := judged(p); blocked != "" {
		lines = append(lines, blocked)
	}
	return strings.Join(lines, "\n")
}

func TestAddresses(t *testing.T) {
	avoiding := func(more string) string { return lan("  avoid_host_subnets = true\n" + more) }
	subnets := func(all ...string) func(*scene) {
		return func(s *scene) {
			for _, text := range all {
				sys := s.systems[s.uri()]
				sys.inventory.Subnets = append(sys.inventory.Subnets, netip.MustParsePrefix(text))
			}
		}
	}
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{
			name: "the lowest ones, after those of others", applied: lan(""), spec: lan("") + in("a", "auto") + in("b", "auto") + in("c", "10.0.0.3"),
			change: func(s *scene) { s.neighbour("10.0.0.2") },
			want:   "noop network.lan 10.0.0.0/28\ncreate vm.a 10.0.0.4\ncreate vm.b 10.0.0.5\ncreate vm.c 10.0.0.3",
		},
		{
			name: "the one that it had, also where a block asks for it", applied: lan("") + in("a", "auto"), spec: lan("") + in("a", "auto") + in("b", "10.0.0.9"),
			change: func(s *scene) { s.had("network.lan", "10.0.0.9") },
			want:   "noop network.lan 10.0.0.0/28\nnoop vm.a 10.0.0.9\ncreate vm.b 10.0.0.9",
		},
		{
			name: "the one that it has, also where somebody else has it, too", applied: lan("") + in("a", "auto"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.9")
				s.neighbour("10.0.0.9")
			},
			want: "noop network.lan 10.0.0.0/28\nnoop vm.a 10.0.0.9",
		},
		{
			name: "the one that was reserved", applied: lan("") + in("a", "auto"), spec: lan("") + in("a", "auto") + in("b", "auto"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				s.gone("vm.a")
				a := addr(s.t, "vm.a")
				r := s.state.Records[a]
				r.Reserved = true
				s.state.Records[a] = r
			},
			want: "noop network.lan 10.0.0.0/28\ncreate vm.a 10.0.0.2\ncreate vm.b 10.0.0.3",
		},
		{
			name: "the one of a lost record", applied: lan("") + in("a", "auto"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.7")
				delete(s.state.Records, addr(s.t, "vm.a"))
			},
			want: "noop network.lan 10.0.0.0/28\nadopt vm.a 10.0.0.7\nits record was lost: attributes that the system does not report are assumed to match the spec",
		},
		{
			name: "not the reserved one that somebody has taken meanwhile", applied: lan("") + in("a", "auto"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				s.gone("vm.a")
				s.neighbour("10.0.0.2")
			},
			want: "noop network.lan 10.0.0.0/28\ncreate vm.a 10.0.0.3",
		},
		{
			name: "the same in a network with another name", applied: lan("") + in("a", "auto"),
			spec: strings.ReplaceAll(strings.ReplaceAll(lan("")+in("a", "auto"), "network.lan", "network.net"), `"lan"`, `"net"`) +
				"moved {\n  from = network.lan\n  to = network.net\n}\n",
			change: func(s *scene) {
				s.had("network.net", "10.0.0.8")
				r := s.state.Records[addr(s.t, "vm.a")]
				values := r.Values.AsValueMap()
				values["network_interface"] = interfaces("network.lan", "10.0.0.8")
				r.Values = cty.ObjectVal(values)
				s.state.Records[addr(s.t, "vm.a")] = r
				moved := s.state.Records[addr(s.t, "network.lan")]
				moved.Was = []spec.Address{addr(s.t, "network.lan")}
				s.state.Records[addr(s.t, "network.net")] = moved
				delete(s.state.Records, addr(s.t, "network.lan"))
			},
			want: "update network.net 10.0.0.0/28\nupdate vm.a 10.0.0.8",
		},
		{
			name: "not the one that it had in another network where others get it", applied: lan("") + in("a", "auto"),
			spec:   strings.ReplaceAll(strings.ReplaceAll(lan("")+in("a", "auto")+in("b", "auto"), "network.lan", "network.net"), `"lan"`, `"net"`),
			change: func(s *scene) { s.had("network.lan", "10.0.0.2") },
			want: "create network.net 10.0.0.0/28\n" +
				"network.lan, which this plan destroys, has the same attributes. If its block was renamed, write: moved { from = network.lan, to = network.net }\n" +
				"restart vm.a 10.0.0.2\ncreate vm.b 10.0.0.3",
		},
		{
			name: "nor where somebody has it", applied: lan("") + strings.ReplaceAll(lan(""), `"lan"`, `"net"`) + in("a", "auto"),
			spec: lan("") + strings.ReplaceAll(lan(""), `"lan"`, `"net"`) + strings.ReplaceAll(in("a", "auto"), "network.lan", "network.net"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				s.neighbour("10.0.0.2")
				theirs := &s.objects()[len(s.objects())-1]
				theirs.Holds = []providers.Claim{providers.AddressClaim("demo.net", netip.MustParseAddr("10.0.0.2"))}
			},
			want: "noop network.lan 10.0.0.0/28\nnoop network.net 10.0.0.0/28\nrestart vm.a 10.0.0.3",
		},
		{
			name: "not the one of its place in another network where that is reserved", applied: lan("") + net("") + in("a", "auto"),
			spec:   lan("") + net("  allocation {\n    reserved = [\"10.0.0.5\"]\n  }") + strings.ReplaceAll(in("a", "auto"), "network.lan", "network.net"),
			change: func(s *scene) { s.had("network.lan", "10.0.0.5") },
			want:   "noop network.lan 10.0.0.0/28\nupdate network.net 10.0.0.0/28\nrestart vm.a 10.0.0.2",
		},
		{
			name: "nor where that is outside of the allocation", applied: lan("") + net("") + in("a", "auto"),
			spec:   lan("") + net("  allocation {\n    first = \"10.0.0.3\"\n    last = \"10.0.0.4\"\n  }") + strings.ReplaceAll(in("a", "auto"), "network.lan", "network.net"),
			change: func(s *scene) { s.had("network.lan", "10.0.0.5") },
			want:   "noop network.lan 10.0.0.0/28\nupdate network.net 10.0.0.0/28\nrestart vm.a 10.0.0.3",
		},
		{
			name: "nor where a block asks for it", applied: lan("") + net("") + in("a", "auto"),
			spec:   lan("") + net("") + strings.ReplaceAll(in("a", "auto")+in("b", "10.0.0.5"), "network.lan", "network.net"),
			change: func(s *scene) { s.had("network.lan", "10.0.0.5") },
			want:   "noop network.lan 10.0.0.0/28\nnoop network.net 10.0.0.0/28\nrestart vm.a 10.0.0.2\ncreate vm.b 10.0.0.5",
		},
		{
			name: "not by a record that names another network of that name", applied: lan("") + in("a", "auto") + in("b", "auto"),
			change: func(s *scene) { // the record of vm.a means a network that network.lan has taken the name of
				s.had("network.lan", "10.0.0.2")
				s.has("vm.b", "network.lan", "10.0.0.2")
				o := s.objectOf("vm.a")
				shown := o.Attrs.AsValueMap()
				shown["network_interface"] = interfaces("demo.old (gone)", "10.0.0.2")
				o.Attrs, o.Holds = cty.ObjectVal(shown), nil
			},
			want: "noop network.lan 10.0.0.0/28\nrestart vm.a 10.0.0.3\nnoop vm.b 10.0.0.2",
		},
		{
			name: "the one of a VM that is imported, also where a lease is for it", applied: lan(""), spec: lan("") + in("a", "auto") + "import {\n  to = vm.a\n  id = \"theirs\"\n}\n",
			change: func(s *scene) {
				s.neighbour("10.0.0.7")
				theirs := &s.objects()[len(s.objects())-1]
				s.objectOf("network.lan").Holds = append(s.objectOf("network.lan").Holds, theirs.Holds...)
				theirs.Attrs = cty.ObjectVal(map[string]cty.Value{"network_interface": interfaces("network.lan", "10.0.0.7")})
				s.systems[s.uri()].inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "theirs"}
			},
			want: "noop network.lan 10.0.0.0/28\nstart vm.a 10.0.0.7\nattributes that the system does not report are assumed to match the spec",
		},
		{
			name: "the one that an interrupted run has put there", applied: lan("") + in("a", "auto"), spec: lan("") + in("a", "auto"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				a := addr(s.t, "vm.a")
				r := s.state.Records[a]
				values := r.Values.AsValueMap()
				values["network_interface"] = cty.ListValEmpty(values["network_interface"].Type().ElementType())
				r.Values = cty.ObjectVal(values)
				s.state.Records[a] = r
			},
			want: "noop network.lan 10.0.0.0/28\nupdate vm.a 10.0.0.2",
		},
		{
			name: "the one of a record of a network that was moved by command", applied: lan("") + in("a", "auto"),
			spec: strings.ReplaceAll(strings.ReplaceAll(lan("")+in("a", "auto")+in("A", "auto"), "network.lan", "network.net"), `"lan"`, `"net"`),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				s.gone("vm.a")
				moved := s.state.Records[addr(s.t, "network.lan")]
				moved.Was = []spec.Address{addr(s.t, "network.lan")}
				s.state.Records[addr(s.t, "network.net")] = moved
				delete(s.state.Records, addr(s.t, "network.lan"))
				s.options.Scope.Targets = []spec.Address{addr(s.t, "vm.A")}
			},
			want: "update network.net 10.0.0.0/28\ncreate vm.A 10.0.0.3",
		},
		{
			name: "not the one of a VM that cannot be read", applied: lan("") + in("a", "auto"), spec: lan("") + in("a", "auto") + in("b", "auto") + in("c", "10.0.0.2"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				garbled("vm.a", "").hide(s)
			},
			want: "noop network.lan 10.0.0.0/28\nnoop vm.a auto\ncreate vm.b 10.0.0.3\ncreate vm.c 10.0.0.2\n" +
				"vm.a unknown: provider.libvirt.default could not be read: no answer\n" +
				"vm.c unknown: vm.a has the address 10.0.0.2 of network.lan by its record, and could not be read: no answer",
		},
		{
			name: "none is taken that somebody who could not be read may have", applied: lan("") + in("a", "auto"),
			spec: lan("") + strings.Replace(in("a", "10.0.0.2"), "{\n", "{\n  memory = \"512MiB\"\n", 1) + in("b", "auto") + in("c", "10.0.0.9") + "vm \"d\" {}\n",
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.2")
				s.objectOf("network.lan").Unreadable = map[string]string{"addresses": noAnswer}
			},
			want: "noop network.lan 10.0.0.0/28\nrestart vm.a 10.0.0.2\ncreate vm.b 10.0.0.3\ncreate vm.c 10.0.0.9\n" +
				"vm.b unknown: it needs an address of network.lan, and not all in use there are known: no answer\n" +
				"vm.c unknown: it needs an address of network.lan, and not all in use there are known: no answer",
		},
		{
			name: "none is left", applied: lan("  allocation {\n    first = \"10.0.0.4\"\n    last = \"10.0.0.5\"\n    reserved = [\"10.0.0.4\"]\n  }"),
			spec:   lan("  allocation {\n    first = \"10.0.0.4\"\n    last = \"10.0.0.5\"\n    reserved = [\"10.0.0.4\"]\n  }") + in("a", "auto"),
			change: func(s *scene) { s.neighbour("10.0.0.5") },
			want:   "noop network.lan 10.0.0.0/28\ncreate vm.a auto\nvm.a no_address: no address of network.lan is free",
		},
		{
			name: "another prefix than the host's", spec: avoiding("") + in("a", "auto"), change: subnets("10.0.0.0/27", "10.0.0.32/29"),
			applied: "vm \"z\" {}\n",
			want: "create network.lan 10.0.0.48/28\nits host is in 10.0.0.0/27: it gets 10.0.0.48/28 in place of 10.0.0.0/28\n" +
				"create vm.a 10.0.0.50",
		},
		{
			name: "it stays", applied: avoiding("") + in("a", "auto"), change: func(s *scene) {
				subnets("10.0.0.0/8")(s)
				s.had("network.lan", "10.0.0.3")
			},
			want: "noop network.lan 10.0.0.0/28\n" +
				"its host is in 10.0.0.0/8, which overlaps 10.0.0.0/28: the network keeps that as long as it exists, and --replace=network.lan chooses again\n" +
				"noop vm.a 10.0.0.3",
		},
		{
			name: "a fallback stays, too, whatever the host is in later", applied: avoiding("") + "vm \"z\" {}\n",
			spec: strings.ReplaceAll(avoiding(""), "10.0.0.0/28", "10.0.0.64/28") + "vm \"z\" {}\n", change: subnets("10.0.0.0/27", "10.0.0.64/28"),
			want: "noop network.lan 10.0.0.0/28\n" +
				"its host is in 10.0.0.0/27, which overlaps 10.0.0.0/28: the network keeps that as long as it exists, and --replace=network.lan chooses again",
		},
		{
			name: "another network is in the way later", applied: avoiding(""), change: func(s *scene) {
				all := &s.systems[s.uri()].inventory.Objects
				*all = append(*all, providers.Object{
					Kind: spec.Network, ID: "theirs", Name: "theirs", Fingerprint: "f",
					Attrs: cty.ObjectVal(map[string]cty.Value{"cidr": cty.StringVal("10.0.0.8/29")}),
				})
			},
			want: "noop network.lan 10.0.0.0/28\nlibvirt network \"theirs\" (theirs) has 10.0.0.8/29, which overlaps 10.0.0.0/28: " +
				"the network keeps that as long as it exists, and --replace=network.lan chooses again",
		},
		{
			name: "it was never made, and its prefix is in use by now: another one", applied: avoiding(""), change: func(s *scene) {
				subnets("10.0.0.0/27")(s)
				s.gone("network.lan")
			},
			want: "create network.lan 10.0.0.32/28\nits host is in 10.0.0.0/27: it gets 10.0.0.32/28 in place of 10.0.0.0/28",
		},
		{
			name: "it is gone, and its prefix is free: the same one", applied: avoiding(""), spec: strings.ReplaceAll(avoiding(""), "10.0.0.0/28", "10.0.0.64/28"),
			change: func(s *scene) { s.gone("network.lan") },
			want:   "create network.lan 10.0.0.0/28\nit keeps 10.0.0.0/28, although 10.0.0.64/28 is free: --replace=network.lan chooses again",
		},
		{
			name: "a fallback, and an address that it does not have", applied: "vm \"z\" {}\n", change: subnets("10.0.0.0/27"),
			spec: avoiding("  fallback_cidrs = [\"10.0.0.16/28\", \"10.9.0.0/28\"]\n  allocation {\n    first = \"10.0.0.5\"\n  }") + in("a", "auto") + in("b", "10.0.0.9"),
			want: "create network.lan 10.9.0.0/28\nits host is in 10.0.0.0/27: it gets 10.9.0.0/28 in place of 10.0.0.0/28\n" +
				"create vm.a 10.9.0.5\ncreate vm.b 10.0.0.9\nvm.b no_address: its address 10.0.0.9 cannot be used in network.lan, which is 10.9.0.0/28",
		},
		{
			name: "no fallback", applied: "vm \"z\" {}\n", spec: avoiding("  fallback_cidrs = []"), change: subnets("10.0.0.0/27"),
			want: "create network.lan 10.0.0.0/28\nnetwork.lan no_address: its host is in 10.0.0.0/27, and no fallback is free",
		},
		{
			name: "not the one that another block names", applied: "vm \"z\" {}\n", change: subnets("10.0.0.0/28"),
			spec: avoiding("") + "network \"other\" {\n  provider = provider.libvirt.default\n  cidr = \"10.0.0.16/28\"\n}\n",
			want: "create network.lan 10.0.0.32/28\nits host is in 10.0.0.0/28: it gets 10.0.0.32/28 in place of 10.0.0.0/28\ncreate network.other 10.0.0.16/28",
		},
		{
			name: "not the one that another network has reserved", applied: "network \"other\" {\n  provider = provider.libvirt.default\n  cidr = \"10.0.0.16/28\"\n}\n",
			change: func(s *scene) {
				subnets("10.0.0.0/28")(s)
				s.gone("network.other")
			},
			spec: avoiding("") + "network \"other\" {\n  provider = provider.libvirt.default\n  cidr = \"10.0.0.0/28\"\n  avoid_host_subnets = true\n}\n",
			want: "create network.lan 10.0.0.32/28\nits host is in 10.0.0.0/28: it gets 10.0.0.32/28 in place of 10.0.0.0/28\ncreate network.other 10.0.0.16/28",
		},
		{
			name: "another cidr, which is free: it stays and says so", applied: avoiding(""), change: subnets("10.9.0.0/28"),
			spec: strings.ReplaceAll(avoiding(""), "10.0.0.0/28", "10.0.0.64/28"),
			want: "noop network.lan 10.0.0.0/28\nit keeps 10.0.0.0/28, although 10.0.0.64/28 is free: --replace=network.lan chooses again",
		},
		{
			name: "until it is replaced", applied: avoiding(""), spec: strings.ReplaceAll(avoiding(""), "10.0.0.0/28", "10.0.0.64/28"),
			change: func(s *scene) { s.options.Replace = map[spec.Address]bool{addr(s.t, "network.lan"): true} },
			want:   "replace network.lan 10.0.0.64/28",
		},
		{
			name: "a stop chooses none", applied: lan("") + in("a", "auto"), spec: lan("") + in("a", "10.0.0.5"),
			change: func(s *scene) {
				s.had("network.lan", "10.0.0.3")
				s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): false}
			},
			want: "noop network.lan 10.0.0.0/28\nstop vm.a 10.0.0.3",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			if test.spec != "" {
				s.config = load(t, test.spec)
			}
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(strings.Split(addressesOf(p), "\n"), func(line string) bool { return strings.Contains(line, "vm.z") })
			if d := cmp.Diff(test.want, strings.Join(got, "\n")); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

// A network stays as long as a VM that cannot be read, and that vmctl does not know, may be in it.
func TestNetworkThatAnUnreadVMMayBeIn(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"it cannot be read": func(s *scene) {
			s.here().Unknown = append(s.here().Unknown, providers.Unknown{Kind: spec.VM, ID: "theirs", Name: "theirs", Reason: noAnswer})
		},
		"not all are listed": func(s *scene) {
			s.here().Partial = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse(noAnswer, nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := after(t, lan(""))
			s.config = load(t, "# empty\n")
			change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(p); got != "unknown network.lan: unknown\n" {
				t.Errorf("the plan is\n%s", text(p))
			}
		})
	}
}

// The addresses of VMs that leave a full network come free once they are gone: what wants one is told how to let them go first.
func TestFullNetworkThatVMsLeave(t *testing.T) {
	full := lan("  allocation {\n    last = \"10.0.0.6\"\n  }")
	const kept = "  lifecycle {\n    prevent_destroy = true\n  }\n"
	s := after(t, full+in("a", "auto")+in("moves", "auto")+in("stays", "auto")+strings.Replace(in("kept", "auto"), "{\n", "{\n"+kept, 1))
	for vm, ip := range map[string]string{"vm.a": "10.0.0.2", "vm.moves": "10.0.0.3", "vm.stays": "10.0.0.4", "vm.kept": "10.0.0.5"} {
		s.has(vm, "network.lan", ip)
	}
	s.objectOf("network.lan").Holds = []providers.Claim{providers.AddressClaim("demo.lan", netip.MustParseAddr("10.0.0.6"))}
	s.config = load(t, full+in("b", "auto")+"vm \"moves\" {}\n"+in("stays", "auto"))
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range p.Changes {
		if c.Address == addr(t, "vm.b") && c.Blocked != nil {
			got = c.Blocked.Error() + "\n" + strings.Join(providertest.Lines(c.Blocked.Next), "\n")
		}
	}
	want := "no address of network.lan is free\n" +
		"widen allocation or cidr of network.lan, or take out of the files a VM that is not needed\n" +
		"the addresses of VMs that leave the network come free once they have left it. Let these leave first: vmctl apply --target=vm.a --target=vm.moves\n" +
		"network.lan has given addresses to guests that are gone or unmanaged: the address of one that is gone comes free when its lease ends"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("block of vm.b (-want +got):\n%s", d)
	}
	// What the advice says.
	s.options.Scope.Targets = []spec.Address{addr(t, "vm.a"), addr(t, "vm.moves")}
	if p, err = s.plan(); err != nil {
		t.Fatal(err)
	}
	if p.Forbidden() || stepsOf(p, "vm.a") == "" || stepsOf(p, "vm.moves") == "" || stepsOf(p, "vm.b") != "" {
		t.Errorf("the plan of those that leave:\n%s", text(p))
	}
}
