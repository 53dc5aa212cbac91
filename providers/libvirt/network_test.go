package libvirt_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

var lan = spec.Address{Kind: spec.Network, Name: "lan"}

const (
	lanID = "33333333-2222-8333-8444-555555555555"
	vmaID = "aaaaaaaa-2222-8333-8444-555555555555"
	vmbID = "bbbbbbbb-2222-8333-8444-555555555555"
)

// inLAN returns the attributes of a VM that is off and in the network, with an address.
func inLAN(address string) map[string]cty.Value {
	return map[string]cty.Value{"running": cty.False, "network_interface": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"network": cty.StringVal("network.lan"), "address": cty.StringVal(address),
	})})}
}

// lanKnown are the network and the VMs of the tests.
func lanKnown(want cty.Value) providers.Query {
	known := []providers.Known{{Address: lan, Kind: spec.Network, ID: lanID, Name: "lab.lan"}}
	for name, id := range map[string]providers.ID{"a": vmaID, "b": vmbID} {
		known = append(known, providers.Known{Address: spec.Address{Kind: spec.VM, Name: name}, Kind: spec.VM, ID: id, Name: "lab." + name, Want: want})
	}
	return providers.Query{Known: known}
}

func (l *lab) inLAN() providers.Inventory {
	l.t.Helper()
	inv, err := l.provider.Observe(l.t.Context(), lanKnown(vm(inLAN("10.0.0.2"))))
	if err != nil {
		l.t.Fatal(err)
	}
	return inv
}

// in returns the object of a kind and an ID; nil: there is none.
func (l *lab) in(kind spec.Kind, id providers.ID) *providers.Object {
	l.t.Helper()
	for _, o := range l.inLAN().Objects {
		if o.Kind == kind && o.ID == id {
			return &o
		}
	}
	return nil
}

// network returns a change of the network as it is now.
func (l *lab) network(action providers.Action) providers.Change {
	l.t.Helper()
	return providers.Change{
		Address: lan, Kind: spec.Network, Action: action, Name: "lab.lan", ID: lanID, Policy: policy(nil), Generation: 1, Object: l.in(spec.Network, lanID),
		Want: cty.ObjectVal(map[string]cty.Value{"cidr": cty.StringVal("10.0.0.0/24"), "internal": cty.False}),
	}
}

// of returns a change of a VM in the network as it is now.
func (l *lab) of(action providers.Action, name, address string, edits ...string) providers.Change {
	l.t.Helper()
	c := providers.Change{
		Address: spec.Address{Kind: spec.VM, Name: name}, Kind: spec.VM, Action: action, Name: "lab." + name, ID: map[string]providers.ID{"a": vmaID, "b": vmbID}[name],
		Want: vm(inLAN(address)), Policy: policy(nil), Generation: 1, Uses: map[spec.Address]providers.Used{lan: {Kind: spec.Network, ID: lanID, Name: "lab.lan"}},
	}
	c.Object = l.in(spec.VM, c.ID)
	if len(edits) > 0 {
		c.Generation++
	}
	for _, path := range edits {
		c.Edits = append(c.Edits, providers.Edit{Path: path})
	}
	return c
}

// withLAN returns a lab with the network and, for each address, a VM that has it.
func withLAN(t testing.TB, addresses ...string) *lab {
	t.Helper()
	l := newLab(t)
	l.does(l.network(providers.Create), "define: done")
	for i, ip := range addresses {
		l.does(l.of(providers.Create, string(rune('a'+i)), ip), "define: done, off")
	}
	l.Calls = nil
	return l
}

// does carries out a change, and checks the first words of each step's outcome.
func (l *lab) does(c providers.Change, want ...string) {
	l.t.Helper()
	var got []string
	for line := range strings.Lines(l.apply(c)) {
		if !strings.HasPrefix(line, "  ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			l.t.Errorf("%s of %s:\n%q, want\n%q", c.Action, c.Address, got, want)
			return
		}
	}
}

// entries lists the host entries of the network.
func (l *lab) entries() string {
	var all []string
	for _, m := range regexp.MustCompile(`<host mac="([^"]+)" ip="([^"]+)"`).FindAllStringSubmatch(l.NetworkXML(lanID), -1) {
		for _, name := range []string{"a", "b"} {
			m[1] = strings.ReplaceAll(m[1], libvirt.MACIn("lab."+name, "lab.lan"), name)
		}
		all = append(all, m[1]+" "+m[2])
	}
	return strings.Join(all, ", ")
}

// row A11, of libvirt
func TestNetwork(t *testing.T) {
	l := withLAN(t, "10.0.0.2", "10.0.0.3")
	wantGolden(t, "network.xml", l.NetworkXML(lanID)+"\n")
	if card := regexp.MustCompile(`(?s)<interface.*</interface>`).FindString(l.Configured(vmaID)); !strings.Contains(card, `<source network="lab.lan">`) ||
		!strings.Contains(card, `<mac address="`+libvirt.MACIn("lab.a", "lab.lan")+`">`) || !strings.Contains(card, `<model type="virtio">`) {
		t.Errorf("its card:\n%s", card)
	}
	if got, want := l.entries(), "a 10.0.0.2, b 10.0.0.3"; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}
	l.PutNetwork(lanID, func(n *libvirt.FakeNetwork) {
		n.XML = strings.Replace(n.XML, "<dhcp>", `<dhcp><host mac="52:54:00:00:00:01" ip="10.0.0.20"></host>`, 1)
		n.Leases = map[string]string{libvirt.MACIn("lab.a", "lab.lan"): "10.0.0.2", "52:54:00:00:00:02": "10.0.0.30", "52:54:00:00:00:03": "10.0.0.40"}
	})
	stranger := "<domain type='qemu'><name>theirs</name><uuid>" + otherID + "</uuid><devices><interface type='network'>" +
		"<mac address='52:54:00:00:00:03'/><source network='lab.lan'/></interface></devices></domain>"
	l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "theirs", stranger })
	want := map[providers.ID]string{
		lanID:   "network name qemu:///session lab.lan, address 10.0.0.20 of lab.lan, address 10.0.0.30 of lab.lan",
		vmaID:   "name qemu:///session lab.a, address 10.0.0.2 of lab.lan, use of network " + lanID,
		otherID: "name qemu:///session theirs, use of network " + lanID + ", address 10.0.0.40 of lab.lan",
	}
	for _, o := range l.inLAN().Objects {
		var got []string
		for _, c := range o.Holds {
			got = append(got, c.String())
		}
		if w, told := want[o.ID]; told && strings.Join(got, ", ") != w {
			t.Errorf("%s holds\n%s, want\n%s", o.Name, strings.Join(got, ", "), w)
		}
		delete(want, o.ID)
	}
	if len(want) > 0 {
		t.Errorf("not seen: %v", want)
	}
	i := l.in(spec.VM, vmaID).Attrs.GetAttr("network_interface").AsValueSlice()[0]
	if got := fmt.Sprint(i.GetAttr("network").AsString(), " ", i.GetAttr("address").AsString(), " ", l.in(spec.VM, vmaID).Attrs.GetAttr("address").AsString()); got != "network.lan 10.0.0.2 10.0.0.2" {
		t.Errorf("network_interface and address: %s", got)
	}
}

// Somebody who did something since the plan keeps a VM from getting an address that is taken, and a network from being removed under
// a VM.
func TestNetworkThatOthersUse(t *testing.T) {
	l := newLab(t)
	l.does(l.of(providers.Create, "a", "10.0.0.2"), "define: failed no_network: define vm.a: its network network.lan is gone")
	l.does(l.network(providers.Create), "define: done")
	l.does(l.network(providers.Create), "define: already")
	l.does(l.of(providers.Create, "a", "10.0.0.2"), "define: done, off")
	l.does(l.of(providers.Create, "b", "10.0.0.2"), "define: stale ip_taken: define vm.b: the address 10.0.0.2 of lab.lan is taken meanwhile")
	l.does(l.of(providers.Create, "b", "10.0.0.3"), "define: done, off")
	l.does(l.network(providers.Destroy), "delete: refused network_in_use: delete network.lan: VM lab.a is in it")

	l.PutNetwork(lanID, func(n *libvirt.FakeNetwork) { n.Leases = map[string]string{"52:54:00:00:00:02": "10.0.0.4"} })
	l.does(l.of(providers.Update, "b", "10.0.0.4", "network_interface"), "redefine: stale ip_taken: redefine vm.b: the address 10.0.0.4 of lab.lan")
	if got, want := l.entries(), "a 10.0.0.2, b 10.0.0.3"; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}
	for _, c := range []providers.Change{l.of(providers.Destroy, "a", ""), l.of(providers.Destroy, "b", "")} {
		c.Want = cty.NilVal
		l.does(c, "delete: done, gone")
	}
	if got := l.entries(); got != "" {
		t.Errorf("entries of VMs that are gone: %q", got)
	}
	for how, text := range map[string]string{
		"as a network":  "<interface type='network'><source network='lab.lan'/></interface>",
		"by its bridge": "<interface type='bridge'><source bridge='virbr0'/></interface>",
	} {
		for _, running := range []bool{false, true} {
			l.Put(otherID, func(d *libvirt.FakeDomain) {
				none := "<domain type='qemu'><name>theirs</name><uuid>" + otherID + "</uuid></domain>"
				with := strings.Replace(none, "</uuid>", "</uuid><devices>"+text+"</devices>", 1)
				d.Name, d.Configured, d.Running, d.Power = "theirs", with, "", libvirt.FakeOff
				if running {
					d.Configured, d.Running, d.Power = none, with, libvirt.FakeRunning
				}
			})
			t.Logf("%s, running: %t", how, running)
			l.does(l.network(providers.Destroy), "delete: refused network_in_use: delete network.lan: VM theirs is in it")
		}
	}
	l.Drop(otherID)
	l.does(l.network(providers.Destroy), "delete: done, gone")
	l.does(l.network(providers.Create), "define: done")

	xml := l.NetworkXML(lanID)
	l.DropNetwork(lanID)
	l.PutNetwork(otherID, func(n *libvirt.FakeNetwork) { n.XML = strings.ReplaceAll(xml, lanID, otherID) })
	l.does(l.network(providers.Create), "define: stale made_elsewhere")
	l.PutNetwork(otherID, func(n *libvirt.FakeNetwork) {
		n.XML = "<network><name>lab.lan</name><uuid>" + otherID + "</uuid></network>"
	})
	l.does(l.network(providers.Create), "define: refused name_taken: define network.lan: a network of the name lab.lan exists already")
}

// An edit, a detachment and a loss change the card and the entry together.
func TestEditOfANetworkInterface(t *testing.T) {
	l := withLAN(t, "10.0.0.2")
	l.does(l.of(providers.Update, "a", "10.0.0.9", "network_interface"), "redefine: done, off")
	if got, want := l.entries(), "a 10.0.0.9"; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}
	l.does(l.of(providers.Update, "a", "10.0.0.9", "memory"), "redefine: already, off")

	l.PutNetwork(lanID, func(n *libvirt.FakeNetwork) {
		n.XML = regexp.MustCompile(`<host mac[^/]*/host>`).ReplaceAllString(n.XML, "")
	})
	o := l.in(spec.VM, vmaID)
	if got := evidenceOf(o, providers.FindPartial); got != "the network lab.lan has no host entry for its address 10.0.0.9" {
		t.Errorf("a lost entry: %q", got)
	}
	l.does(l.of(providers.Update, "a", "10.0.0.9"), "redefine: done, off")
	if got, want := l.entries(), "a 10.0.0.9"; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}

	c := l.of(providers.Update, "a", "10.0.0.9")
	c.Yields = []providers.Claim{c.Object.Holds[1], c.Object.Holds[2]}
	c.Want = vm(off)
	l.does(c, "detach: done, off")
	if got := l.entries(); got != "" || strings.Contains(l.Configured(vmaID), "<interface") {
		t.Errorf("after it was taken out of the network: entries %q in\n%s", got, l.Configured(vmaID))
	}
	l.does(l.of(providers.Update, "a", "10.0.0.9", "network_interface"), "redefine: done, off")
	if got, want := l.entries(), "a 10.0.0.9"; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}
	c = l.of(providers.Update, "a", "10.0.0.9", "network_interface")
	c.Want = vm(off)
	l.does(c, "redefine: done, off")
	if got := l.entries(); got != "" || strings.Contains(l.Configured(vmaID), "<interface") {
		t.Errorf("without network_interface: entries %q in\n%s", got, l.Configured(vmaID))
	}
}

func evidenceOf(o *providers.Object, kind providers.FindingKind) string {
	for _, f := range o.Findings {
		if f.Kind == kind {
			return strings.Join(f.Evidence, "; ")
		}
	}
	return ""
}

// A VM that was not made leaves no entry; a run that was cut short leaves one, which is its own.
func TestVMThatIsNotMadeInANetwork(t *testing.T) {
	l := withLAN(t)
	l.Refuses["define"] = errors.New("no")
	l.does(l.of(providers.Create, "a", "10.0.0.2"), "define: failed")
	if got := l.entries(); got != "" {
		t.Errorf("entries after it failed: %q", got)
	}
	l.BeforeDefine = func() { panic("cut short") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it was not cut short")
			}
		}()
		l.apply(l.of(providers.Create, "a", "10.0.0.2"))
	}()
	l.BeforeDefine = nil
	if got := l.entries(); got != "a 10.0.0.2" {
		t.Errorf("entries after it was cut short: %q", got)
	}
	if o := l.in(spec.Network, lanID); len(o.Holds) != 1 {
		t.Errorf("the network holds %v", o.Holds)
	}
	delete(l.Refuses, "define")
	l.does(l.of(providers.Create, "a", "10.0.0.2"), "define: done, off")
}

// A network that somebody ended or forgot is a finding, and comes back with its mark and entries.
func TestNetworkThatIsNotActive(t *testing.T) {
	for name, lose := range map[string]func(*libvirt.FakeNetwork){
		"ended":     func(n *libvirt.FakeNetwork) { n.Active = false },
		"forgotten": func(n *libvirt.FakeNetwork) { n.Transient = true },
	} {
		t.Run(name, func(t *testing.T) {
			l := withLAN(t, "10.0.0.2")
			l.PutNetwork(lanID, lose)
			before := l.NetworkXML(lanID)
			if evidenceOf(l.in(spec.Network, lanID), providers.FindPartial) == "" {
				t.Error("no finding")
			}
			l.does(l.network(providers.Update), "redefine: done")
			if o := l.in(spec.Network, lanID); len(o.Findings) > 0 {
				t.Errorf("findings %+v", o.Findings)
			}
			wantText(t, "the network", before, l.NetworkXML(lanID))
			l.does(l.network(providers.Update)) // nothing is left to do
		})
	}
}

func TestNetworkThatCannotStart(t *testing.T) {
	for message, want := range map[string]string{
		"internal error: Network is already in use by interface eth0": "define: failed subnet_taken: start lab.lan: internal error: Network is already in use by interface eth0\n" +
			"  next: see which networks the host is in: ip -4 route\n  next: write another cidr into the block of network.lan, or avoid_host_subnets = true\n",
		"Cannot check dnsmasq binary /usr/sbin/dnsmasq: No such file or directory": "define: failed no_dnsmasq: start lab.lan: Cannot check dnsmasq binary /usr/sbin/dnsmasq: No such file or directory\n" +
			"  next: libvirt needs dnsmasq for a network: install it: sudo apt-get install dnsmasq-base\n",
	} {
		l := newLab(t)
		l.Refuses["start-network"] = libvirt.ErrLibvirt(message)
		wantText(t, "what was said", want, l.apply(l.network(providers.Create)))
		if got := l.ShownNetworks(); len(got) > 0 {
			t.Errorf("it stays: %q", got)
		}
	}
}

// The daemon of an ordinary user makes no bridge: the plan says so, and what to write.
func TestNetworksOfASession(t *testing.T) {
	l := newLab(t)
	no := l.inLAN().Missing[spec.Network]
	if no == nil || no.Error() != "the daemon of qemu:///session runs as an ordinary user, who may make no bridge: it makes no networks" ||
		strings.Join(providertest.Lines(no.Next), "\n") != `write uri = "qemu:///system" into the block provider "libvirt" "here"` {
		t.Errorf("missing: %v", no)
	}
	if no := l.observe(vm(off)).Missing[spec.Network]; no != nil {
		t.Errorf("nobody asked for networks: %v", no)
	}
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///system"), "pool": null})
	l.open()
	if no := l.inLAN().Missing[spec.Network]; no != nil {
		t.Errorf("missing at qemu:///system: %v", no)
	}
}

// The subnets of the host are its routes and libvirt's other networks, without its default route and this project's networks.
func TestSubnetsOfTheHost(t *testing.T) {
	l := withLAN(t)
	l.file("proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"+
		"eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"+
		"eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"+
		"virbr0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"+
		"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	l.PutNetwork(otherID, func(n *libvirt.FakeNetwork) {
		n.XML = "<network><name>default</name><uuid>" + otherID + "</uuid><forward mode='nat'/><bridge name='virbr9'/><ip address='192.168.122.1' netmask='255.255.255.0'/></network>"
	})
	if got, want := fmt.Sprint(l.inLAN().Subnets), "[192.168.122.0/24 192.168.1.0/24 172.17.0.0/16]"; got != want {
		t.Errorf("subnets %s, want %s", got, want)
	}
}

// vmctl does not touch the cards of a domain that it did not make.
func TestImportedVMInANetwork(t *testing.T) {
	l := withLAN(t)
	l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "old", handmade })
	c := providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.Import, Name: "old", ID: otherID, Policy: policy(nil), Generation: 1, Mark: &providers.MarkEdit{},
		Want: vm(inLAN("10.0.0.2")), Uses: map[spec.Address]providers.Used{lan: {Kind: spec.Network, ID: lanID, Name: "lab.lan"}},
	}
	inv, err := l.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: dev, Kind: spec.VM, Name: "lab.dev", Import: "old"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range inv.Objects {
		if inv.Objects[i].ID == otherID {
			c.Object = &inv.Objects[i]
		}
	}
	if got, want := l.apply(c), "steps: vmctl did not make it: its network cards are its own, and it is put into no network\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A guest that cloud-init sets up asks for an address on every card, unless the spec says otherwise.
func TestSeedOfAGuestInANetwork(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"its own": {"{version: 2}\n", "{version: 2}\n"},
		"none": {"", fmt.Sprintf(`{"ethernets":{"net0":{"dhcp4":true,"dhcp4-overrides":{"route-metric":200},"match":{"macaddress":"%s"},"set-name":"net0"},`+
			`"user0":{"dhcp4":true,"dhcp4-overrides":{"route-metric":100},"match":{"macaddress":"%s"},"set-name":"user0"}},"version":2}`,
			libvirt.MACIn("lab.a", "lab.lan"), libvirt.MACOf(vmaID))},
	} {
		t.Run(name, func(t *testing.T) {
			l := withLAN(t)
			l.file("files/debian.qcow2", qcow2(8))
			c := l.of(providers.Create, "a", "10.0.0.2")
			changes := inLAN("10.0.0.2")
			if tc.config != "" {
				changes["cloud_init"] = cty.ObjectVal(map[string]cty.Value{"user_data": null, "network_config": cty.StringVal(tc.config)})
			}
			c.Want = fromImage(64, changes)
			l.does(c, "define: done, off")
			seeds := slices.DeleteFunc(l.VolumesIn(poolName), func(name string) bool { return !strings.HasPrefix(name, vmaID+".seed-") })
			if len(seeds) != 1 || !strings.Contains(string(l.Volume(poolName, seeds[0])), tc.want) {
				t.Errorf("the seeds %q lack %s", seeds, tc.want)
			}
		})
	}
}

// An imported network gets the mark and keeps all else; vmctl lets go of it in the same way.
//
// row A39, of networks of libvirt
func TestImportOfANetwork(t *testing.T) {
	l := newLab(t)
	theirs := "<network><name>default</name><uuid>" + otherID + "</uuid><forward mode=\"nat\"></forward><bridge name=\"virbr0\"></bridge>" +
		"<ip address=\"192.168.122.1\" netmask=\"255.255.255.0\"><dhcp><range start=\"192.168.122.2\" end=\"192.168.122.254\"></range></dhcp></ip></network>"
	l.PutNetwork(otherID, func(n *libvirt.FakeNetwork) { n.XML, n.Active = theirs, true })
	observe := func(k providers.Known) *providers.Object {
		t.Helper()
		k.Address, k.Kind, k.Name = lan, spec.Network, "lab.lan"
		inv, err := l.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{k}})
		if err != nil || len(inv.Objects) != 1 || k.Import != "" && inv.Found[lan] != otherID {
			t.Fatalf("%d objects, found %v (%v)", len(inv.Objects), inv.Found, err)
		}
		return &inv.Objects[0]
	}
	c := providers.Change{
		Address: lan, Kind: spec.Network, Action: providers.Import, Name: "default", ID: otherID, Policy: policy(nil), Generation: 1, Mark: &providers.MarkEdit{},
		Want:   cty.ObjectVal(map[string]cty.Value{"cidr": cty.StringVal("192.168.122.0/24"), "internal": cty.False}),
		Object: observe(providers.Known{Import: "default"}),
	}
	if got := c.Object.Attrs.GetAttr("cidr"); c.Object.Owner != nil || got.AsString() != "192.168.122.0/24" {
		t.Errorf("it is seen with the mark %+v and the prefix %#v", c.Object.Owner, got)
	}
	l.does(c, "redefine: done")
	if xml := l.NetworkXML(otherID); !strings.Contains(xml, `<range start="192.168.122.2" end="192.168.122.254">`) || !strings.Contains(xml, "vmctl:owner") {
		t.Errorf("the imported network:\n%s", xml)
	}
	c.Action, c.Mark, c.Object = providers.Forget, nil, observe(providers.Known{ID: otherID})
	l.does(c, "unmark: done")
	if o := observe(providers.Known{ID: otherID}); o.Owner != nil {
		t.Errorf("it bears the mark %+v", o.Owner)
	}
}

// A network that cannot be read is not taken for one that is gone: what a VM has in it is not known, and nobody may change it.
func TestVMInANetworkThatCannotBeRead(t *testing.T) {
	for call, why := range map[string]string{
		"list-networks": "list the networks of qemu:///session: connection reset",
		"leases":        "network lab.lan: connection reset",
	} {
		l := withLAN(t, "10.0.0.2")
		l.Refuses[call] = libvirt.ErrLibvirt("connection reset")
		o := l.in(spec.VM, vmaID)
		i := o.Attrs.GetAttr("network_interface").AsValueSlice()[0]
		if got := i.GetAttr("network").AsString() + " " + i.GetAttr("address").AsString(); got != "network.lan 10.0.0.2" {
			t.Errorf("%s: it is in %q", call, got)
		}
		if got := o.Unreadable["network_interface"]; got != why {
			t.Errorf("%s: unreadable: %q, want %q", call, got, why)
		}
		if !slices.Contains(o.Holds, providers.Claim{Kind: providers.ClaimUse, Key: "network " + lanID}) {
			t.Errorf("%s: it holds %v", call, o.Holds)
		}
	}
}

// A VM without a network goes also where libvirt has no daemon for networks.
func TestDeleteWithoutNetworks(t *testing.T) {
	l := newLab(t)
	c := l.of(providers.Create, "a", "")
	c.Want, c.Uses = vm(map[string]cty.Value{"running": cty.False}), nil
	l.does(c, "define: done, off")
	c = l.of(providers.Destroy, "a", "")
	c.Prior, c.Want = vm(map[string]cty.Value{"running": cty.False}), cty.NilVal
	l.Refuses["list-networks"] = libvirt.ErrLibvirt("Failed to connect socket to '/run/libvirt/virtnetworkd-sock'")
	l.does(c, "delete: done, gone")

	l = withLAN(t, "10.0.0.2")
	c = l.of(providers.Destroy, "a", "")
	c.Want = cty.NilVal
	l.Refuses["list-networks"] = libvirt.ErrLibvirt("connection reset")
	l.does(c, "delete: failed libvirt: tidy up after lab.a, which is deleted: release the addresses of lab.a: connection reset")
}
