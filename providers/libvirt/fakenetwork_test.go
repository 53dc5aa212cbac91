package libvirt

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// FakeNetwork is one network.
type FakeNetwork struct {
	XML               string
	Active, Transient bool
	Autostart         bool
	Leases            map[string]string // addresses by MAC
}

// PutNetwork adds or changes a network behind vmctl's back.
func (f *Fake) PutNetwork(uuid string, edit func(*FakeNetwork)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.networks[uuid]
	if !ok {
		n = &FakeNetwork{}
		f.networks[uuid] = n
	}
	edit(n)
}

// DropNetwork removes a network behind vmctl's back.
func (f *Fake) DropNetwork(uuid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.networks, uuid)
}

// NetworkXML returns the configuration of a network, "" if there is none.
func (f *Fake) NetworkXML(uuid string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.networks[uuid]; ok {
		return n.XML
	}
	return ""
}

// ShownNetworks lists every network with its XML.
func (f *Fake) ShownNetworks() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []string{}
	for _, uuid := range slices.Sorted(maps.Keys(f.networks)) {
		all = append(all, fmt.Sprintf("network %s: %+v", uuid, *f.networks[uuid]))
	}
	return all
}

func (n *FakeNetwork) parsed() *libvirtxml.Network {
	var x libvirtxml.Network
	if err := x.Unmarshal(n.XML); err != nil {
		panic(err)
	}
	return &x
}

func (f *Fake) networkRef(uuid string) (network, error) {
	n, ok := f.networks[uuid]
	if !ok {
		return network{}, fmt.Errorf("%w: no network with matching uuid '%s'", errAbsent, uuid)
	}
	return network{Name: n.parsed().Name, UUID: uuid, Active: n.Active, Transient: n.Transient, XML: n.XML}, nil
}

func (f *Fake) Networks(context.Context) ([]network, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["networks"]++
	if err := f.Refuses["list-networks"]; err != nil {
		return nil, err
	}
	var all []network
	for _, uuid := range slices.Sorted(maps.Keys(f.networks)) {
		n, err := f.networkRef(uuid)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (f *Fake) Network(_ context.Context, uuid string) (network, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.networkRef(uuid)
}

func (f *Fake) NetworkNamed(_ context.Context, name string) (network, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uuid, n := range f.networks {
		if n.parsed().Name == name {
			return f.networkRef(uuid)
		}
	}
	return network{}, errAbsent
}

func (f *Fake) Leases(_ context.Context, uuid string) ([]lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["leases"]++
	if _, err := f.networkRef(uuid); err != nil {
		return nil, err
	}
	if err := f.Refuses["leases"]; err != nil {
		return nil, err
	}
	var all []lease
	for _, mac := range slices.Sorted(maps.Keys(f.networks[uuid].Leases)) {
		all = append(all, lease{MAC: mac, IP: netip.MustParseAddr(f.networks[uuid].Leases[mac])})
	}
	return all, nil
}

// DefineNetwork chooses a bridge for a network that names none, as libvirt does.
func (f *Fake) DefineNetwork(_ context.Context, text string) error {
	if f.BeforeDefine != nil {
		f.BeforeDefine()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var x libvirtxml.Network
	if err := x.Unmarshal(text); err != nil {
		return err
	}
	if err := f.note("define-network %s", x.Name); err != nil {
		return err
	}
	for uuid, n := range f.networks {
		if n.parsed().Name == x.Name && uuid != x.UUID {
			return &libvirtError{Code: codeOperationFailed, Message: "operation failed: network '" + x.Name + "' already exists with uuid " + uuid}
		}
	}
	n, ok := f.networks[x.UUID]
	if !ok {
		n = &FakeNetwork{}
		f.networks[x.UUID] = n
	}
	if x.Bridge == nil {
		x.Bridge = &libvirtxml.NetworkBridge{Name: fmt.Sprintf("virbr%d", len(f.networks)-1)}
	}
	var err error
	n.XML, err = x.Marshal()
	n.Transient = false
	return err
}

func (f *Fake) StartNetwork(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref, err := f.networkRef(uuid)
	if err != nil {
		return err
	}
	if err := f.note("start-network %s", ref.Name); err != nil {
		return err
	}
	now, err := ref.observed()
	if err != nil {
		return err
	}
	for other, n := range f.networks {
		d, err := describeNetwork(n.XML)
		if err != nil {
			return err
		}
		if other != uuid && n.Active && d.Prefix.Overlaps(now.Prefix) {
			return ErrLibvirt("internal error: Network is already in use by interface " + d.Bridge)
		}
	}
	f.networks[uuid].Active, f.networks[uuid].Autostart = true, true
	return nil
}

func (f *Fake) RemoveNetwork(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref, err := f.networkRef(uuid)
	if err != nil {
		return err
	}
	if err := f.note("remove-network %s", ref.Name); err != nil {
		return err
	}
	delete(f.networks, uuid)
	return nil
}

func (f *Fake) Reserve(_ context.Context, uuid string, l lease) error {
	return f.updateHosts("reserve", uuid, l, func(hosts []libvirtxml.NetworkDHCPHost) ([]libvirtxml.NetworkDHCPHost, error) {
		if slices.ContainsFunc(hosts, func(h libvirtxml.NetworkDHCPHost) bool { return h.MAC == l.MAC || h.IP == l.IP.String() }) {
			return nil, &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: there is an existing dhcp host entry in network 'x' that matches \"<host mac='" +
				l.MAC + "' ip='" + l.IP.String() + "'/>\""}
		}
		return append(hosts, libvirtxml.NetworkDHCPHost{MAC: l.MAC, IP: l.IP.String()}), nil
	})
}

func (f *Fake) Unreserve(_ context.Context, uuid string, l lease) error {
	return f.updateHosts("unreserve", uuid, l, func(hosts []libvirtxml.NetworkDHCPHost) ([]libvirtxml.NetworkDHCPHost, error) {
		kept := slices.DeleteFunc(slices.Clone(hosts), func(h libvirtxml.NetworkDHCPHost) bool { return h.MAC == l.MAC && h.IP == l.IP.String() })
		if len(kept) == len(hosts) {
			return nil, &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: couldn't locate a matching dhcp host entry in network 'x'"}
		}
		return kept, nil
	})
}

func (f *Fake) updateHosts(
	op, uuid string, l lease, change func([]libvirtxml.NetworkDHCPHost) ([]libvirtxml.NetworkDHCPHost, error),
) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref, err := f.networkRef(uuid)
	if err != nil {
		return err
	}
	if err := f.note("%s %s in %s", op, l.IP, ref.Name); err != nil {
		return err
	}
	x := f.networks[uuid].parsed()
	if x.IPs[0].DHCP == nil {
		x.IPs[0].DHCP = &libvirtxml.NetworkDHCP{}
	}
	if x.IPs[0].DHCP.Hosts, err = change(x.IPs[0].DHCP.Hosts); err != nil {
		return err
	}
	f.networks[uuid].XML, err = x.Marshal()
	return err
}

// cardsWork fails for a card in a network that does not exist or is not active.
func (f *Fake) cardsWork(d description) error {
	for _, c := range d.Cards {
		if c.Network == "" {
			continue
		}
		i := slices.IndexFunc(slices.Collect(maps.Values(f.networks)), func(n *FakeNetwork) bool { return n.Active && strings.Contains(n.XML, "<name>"+c.Network+"<") })
		if i < 0 {
			return ErrLibvirt("Requested operation is not valid: network '" + c.Network + "' is not active")
		}
	}
	return nil
}
