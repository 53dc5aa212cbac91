package libvirt

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// card is a network card of a domain.
type card struct {
	MAC     string // in lower case
	Network string // the name of libvirt's network; "": it is connected otherwise
	Bridge  string // the bridge that the description names; "": none
}

type cardXML struct {
	MAC struct {
		Address string `xml:"address,attr"`
	} `xml:"mac"`
	Source struct {
		Network string `xml:"network,attr"`
		Bridge  string `xml:"bridge,attr"`
	} `xml:"source"`
}

func (x cardXML) card() card {
	return card{MAC: strings.ToLower(x.MAC.Address), Network: x.Source.Network, Bridge: x.Source.Bridge}
}

// isIn reports whether a card is connected to a network.
func (c card) isIn(n observedNetwork) bool {
	return c.Network == n.Name || c.Network == "" && c.Bridge != "" && c.Bridge == n.Bridge
}

// macIn derives the MAC of a domain's card in a network from both names, in the range that QEMU uses. A VM that replaces one of its
// name gets the same MAC: the DHCP server gives it the same address at once.
func macIn(domain, network string) string {
	sum := sha256.Sum256([]byte("vmctl mac\x00" + domain + "\x00" + network))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2])
}

// places returns the networks that vmctl put a domain into, as far as its card is there.
func (d description) places() []markedNetwork {
	return slices.DeleteFunc(slices.Clone(d.mark().Networks), func(n markedNetwork) bool { return !slices.ContainsFunc(d.Cards, n.is) })
}

// is reports whether a card is the one that vmctl gave a domain for the network.
func (n markedNetwork) is(c card) bool { return c.MAC == n.MAC && c.Network == n.Name }

// cardOf reads a card of a domain.
func cardOf(x libvirtxml.DomainInterface) card {
	var c card
	if x.MAC != nil {
		c.MAC = strings.ToLower(x.MAC.Address)
	}
	if x.Source != nil && x.Source.Network != nil {
		c.Network = x.Source.Network.Network
	}
	return c
}

// setCards gives a domain a card in each network. A card of its present mark that is not wanted is removed, and all other cards
// stay.
func setCards(d *libvirtxml.Domain, wanted []markedNetwork) error {
	had, err := marked(d)
	if err != nil {
		return err
	}
	isAmong := func(all []markedNetwork, x libvirtxml.DomainInterface) bool {
		return slices.ContainsFunc(all, func(n markedNetwork) bool { return n.is(cardOf(x)) })
	}
	cards := slices.DeleteFunc(d.Devices.Interfaces, func(x libvirtxml.DomainInterface) bool { return isAmong(had.Networks, x) && !isAmong(wanted, x) })
	for _, n := range wanted {
		if !slices.ContainsFunc(cards, func(x libvirtxml.DomainInterface) bool { return n.is(cardOf(x)) }) {
			cards = append(cards, libvirtxml.DomainInterface{
				MAC:    &libvirtxml.DomainInterfaceMAC{Address: n.MAC},
				Source: &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: n.Name}},
				Model:  &libvirtxml.DomainInterfaceModel{Type: "virtio"},
			})
		}
	}
	d.Devices.Interfaces = cards
	return nil
}

// marked returns the mark of a domain; zero: none.
func marked(d *libvirtxml.Domain) (owner, error) {
	if d.Metadata == nil {
		return owner{}, nil
	}
	now, err := describe("<domain><metadata>" + d.Metadata.XML + "</metadata></domain>")
	return now.mark(), err
}

// unplugCards removes the cards of a domain that vmctl gave it in the networks of some names. It reports whether there were any.
func unplugCards(d *libvirtxml.Domain, had []markedNetwork, names []string) bool {
	before := len(d.Devices.Interfaces)
	d.Devices.Interfaces = slices.DeleteFunc(d.Devices.Interfaces, func(x libvirtxml.DomainInterface) bool {
		return slices.ContainsFunc(had, func(n markedNetwork) bool { return slices.Contains(names, n.Name) && n.is(cardOf(x)) })
	})
	return len(d.Devices.Interfaces) < before
}

// The names of the guest's cards, and the metrics of the routes through them: what leaves the host goes through the user network.
const (
	userCard, userMetric       = "user0", 100
	networkCard, networkMetric = "net", 200
)

// networkConfig returns the network configuration for cloud-init of a guest with cards in networks: it asks for addresses on each
// of its cards. Without one, cloud-init asks on the first card alone.
func networkConfig(uuid string, all []markedNetwork) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	ethernets := map[string]any{userCard: ethernet(userCard, macOf(uuid), userMetric)}
	for i, n := range all {
		name := fmt.Sprintf("%s%d", networkCard, i)
		ethernets[name] = ethernet(name, n.MAC, networkMetric+i)
	}
	text, err := json.Marshal(map[string]any{"version": 2, "ethernets": ethernets})
	if err != nil {
		return "", fmt.Errorf("write the network configuration: %w", err)
	}
	return string(text) + "\n", nil
}

func ethernet(name, mac string, metric int) map[string]any {
	return map[string]any{
		"match": map[string]string{"macaddress": mac}, "set-name": name,
		"dhcp4": true, "dhcp4-overrides": map[string]int{"route-metric": metric},
	}
}
