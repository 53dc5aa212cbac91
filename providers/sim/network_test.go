package sim_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

var lan = spec.Address{Kind: spec.Network, Name: "lan"}

const lanID = providers.ID("33333333-2222-8333-8444-555555555555")

// inLAN returns the attributes of a VM that is off and in the network, with an address.
func inLAN(address string) cty.Value {
	m := want().AsValueMap()
	m["running"] = cty.False
	m["network_interface"] = cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"network": cty.StringVal("network.lan"), "address": cty.StringVal(address),
	})})
	return cty.ObjectVal(m)
}

// making returns the change that makes a VM in the network.
func (l *lab) making(name, address string) providers.Change {
	a := spec.Address{Kind: spec.VM, Name: name}
	return providers.Change{
		Address: a, Kind: spec.VM, Action: providers.Create, Name: "lab." + name, ID: providers.ID(name) + devID[1:], Want: inLAN(address), Policy: l.policy,
		Generation: 1, Uses: map[spec.Address]providers.Used{lan: {Kind: spec.Network, ID: lanID, Name: "lab.lan"}},
	}
}

// remaking plans the change of such a VM, whatever of it changes.
func (l *lab) remaking(name, address string) providers.Change {
	l.t.Helper()
	c := l.making(name, address)
	c.Action, c.Generation = providers.Update, 2
	inv := l.observe()
	for i := range inv.Objects {
		if inv.Objects[i].Name == c.Name {
			c.Object = &inv.Objects[i]
		}
	}
	c.Mark = &providers.MarkEdit{}
	return c
}

// network plans a change of the network as it is now.
func (l *lab) network(action providers.Action) providers.Change {
	l.t.Helper()
	c := providers.Change{
		Address: lan, Kind: spec.Network, Action: action, Name: "lab.lan", ID: lanID, Policy: diskPolicy("unlock"), Generation: 1,
		Want: cty.ObjectVal(map[string]cty.Value{"cidr": cty.StringVal("10.0.0.0/24"), "internal": cty.False}),
	}
	inv := l.observe()
	for i := range inv.Objects {
		if inv.Objects[i].Kind == spec.Network {
			c.Object = &inv.Objects[i]
		}
	}
	return c
}

// What others did since the plan keeps a VM from getting an address that is taken, and a network from being removed under a VM.
func TestNetworkThatOthersUse(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	begins := func(got, want string) {
		t.Helper()
		if got = l.plain(got); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	begins(l.carryOut(l.making("a", "10.0.0.2")), "define failed (no_network): define vm.a: its network lab.lan is gone")
	begins(l.carryOut(l.network(providers.Create)), "define done")
	begins(l.carryOut(l.network(providers.Create)), "define already")
	begins(l.carryOut(l.making("a", "10.0.0.2")), "define done")
	begins(l.carryOut(l.making("b", "10.0.0.2")), "define stale (ip_taken): define vm.b: the address 10.0.0.2 of lab.lan is taken meanwhile")
	begins(l.carryOut(l.making("b", "10.0.0.3")), "define done")
	begins(l.carryOut(l.network(providers.Destroy)), "delete refused (network_in_use): delete network.lan: VM lab.a is in it")
	file := l.dir + "/networks/lab.lan.json"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l.write(file, strings.Replace(string(text), `"cidr"`, `"leases": ["10.0.0.4"], "cidr"`, 1))
	begins(l.carryOut(l.making("c", "10.0.0.4")), "define stale (ip_taken): define vm.c: the address 10.0.0.4 of lab.lan is taken meanwhile")
	l.write(file, strings.Replace(string(text), `"cidr"`, `"leases": ["10.0.0.2"], "cidr"`, 1))
	begins(l.carryOut(l.remaking("a", "10.0.0.2")), "redefine done") // the lease is its own
	begins(l.carryOut(l.remaking("b", "10.0.0.2")), "redefine stale (ip_taken)")
	l.write(file, strings.ReplaceAll(string(text), string(lanID), "another"))
	begins(l.carryOut(l.making("c", "10.0.0.5")), "define stale (stale_plan): define vm.c: lab.lan is another network (another) than it was")
	begins(l.carryOut(l.network(providers.Create)), "define stale (made_elsewhere)")
	l.write(file, "{")
	if inv := l.observe(); len(inv.Unknown) != 1 || inv.Unknown[0].Kind != spec.Network || inv.Unknown[0].Name != "lab.lan" {
		t.Errorf("a network whose file cannot be read: %+v", inv.Unknown)
	}
	begins(l.carryOut(l.making("c", "10.0.0.5")), "define failed (host): define vm.c: read its network lab.lan")
}

// What a VM is in is a fact of it, by the address of the network where that is known.
func TestNetworkOfAVM(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.carryOut(l.network(providers.Create))
	l.carryOut(l.making("a", "10.0.0.2"))
	o := l.vm()
	for name, want := range map[string]string{
		"address":           `"10.0.0.2"`,
		"network_interface": `[network.lan 10.0.0.2]`,
	} {
		got := fmt.Sprintf("%q", o.Attrs.GetAttr("address").AsString())
		if name == "network_interface" {
			i := o.Attrs.GetAttr(name).AsValueSlice()[0]
			got = fmt.Sprintf("[%s %s]", i.GetAttr("network").AsString(), i.GetAttr("address").AsString())
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	want := []string{"name lab.a", "address 10.0.0.2 of lab.lan", "use of network " + string(lanID)}
	var got []string
	for _, c := range o.Holds {
		got = append(got, c.String())
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("it holds %v, want %v", got, want)
	}
}

// A VM whose file cannot be read keeps nobody from getting another address: its own is in its record. What has no record may have
// any address, which the network says.
func TestVMThatCannotBeReadInANetwork(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.carryOut(l.network(providers.Create))
	l.carryOut(l.making("a", "10.0.0.2"))
	l.write(l.dir+"/vms/lab.a.json", "{")
	if got := l.plain(l.carryOut(l.making("b", "10.0.0.3"))); !strings.HasPrefix(got, "define done") {
		t.Errorf("beside it: %q", got)
	}
	for name, test := range map[string]struct {
		known []providers.Known
		want  string
	}{
		"recorded":       {[]providers.Known{{Kind: spec.VM, Name: "lab.a", ID: l.making("a", "").ID}}, ""},
		"not recorded":   {[]providers.Known{{Kind: spec.VM, Name: "lab.a"}}, `VM "lab.a" may have one, and could not be read: `},
		"another record": {[]providers.Known{{Kind: spec.VM, Name: "lab.b", ID: l.making("b", "").ID}}, `VM "lab.a" may have one, and could not be read: `},
	} {
		inv, err := l.open().Observe(t.Context(), providers.Query{Known: test.known})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range inv.Objects {
			if got := o.Unreadable["addresses"]; o.Kind == spec.Network && (!strings.HasPrefix(got, test.want) || test.want == "" && got != "") {
				t.Errorf("%s: addresses: %q, want %q", name, got, test.want)
			}
		}
	}
	if got := l.plain(l.carryOut(l.network(providers.Destroy))); !strings.Contains(got, "VM lab.a may be in any network") {
		t.Errorf("the end of the network: %q", got)
	}
}
