package libvirt

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// ownerSpace is the namespace of the owner mark, which is one element in a domain's metadata.
// libvirt keeps one element per namespace.
const ownerSpace = "urn:vmctl:1"

// owner is the mark, with facts that libvirt's description of a domain lacks: the wanted
// values of the spec, where the system shows only the result.
type owner struct {
	providers.Mark
	Accel  string // auto, kvm, tcg
	CPUs   uint64
	Memory uint64 // bytes, before they were rounded up
	Boot   markedBoot
	// Forwards lists the wanted forwards, in order; Host is 0 if the kernel chooses the host
	// port.
	Forwards []machine.Forward
	// Disks lists the wanted additional disks, in order.
	Disks []markedDisk
	// Networks lists the wanted networks, in order.
	Networks []markedNetwork
	// Imported says that vmctl did not make the domain. Its network is its own, and vmctl
	// ignores the disks whose files Kept lists.
	Imported bool
	Kept     []string
	// Image describes the domain's image, root disk and seed; zero: it has none.
	Image markedImage
}

// markedImage describes the image of a domain and the volumes made for it.
type markedImage struct {
	Source  string `xml:"source,attr"`            // of the spec: the path or URL of the image
	SHA256  string `xml:"sha256,attr"`            // the image's digest
	Root    string `xml:"root,attr"`              // path of the volume of the domain's own disk
	Seed    string `xml:"seed,attr"`              // path of the volume for cloud-init
	Settled flag   `xml:"settled,attr,omitempty"` // the seed holds no keys any more: the guest has them
}

// markedDisk is a disk that a domain was given.
type markedDisk struct {
	Address spec.Address
	Path    string // of its volume
}

// markedBoot describes the boot volumes of a domain.
type markedBoot struct {
	Kernel       string `xml:"kernel,attr,omitempty"`        // path of the volume
	KernelSHA256 string `xml:"kernel_sha256,attr,omitempty"` // of the user's file
	Initrd       string `xml:"initrd,attr,omitempty"`        // path of the volume with the keys in it
	InitrdSHA256 string `xml:"initrd_sha256,attr,omitempty"` // of the user's file
	Keys         string `xml:"keys,attr,omitempty"`          // digest of the public keys in it
	// KernelStamp and InitrdStamp are the stamps of the volumes right after their upload; "":
	// unknown.
	KernelStamp string `xml:"kernel_stamp,attr,omitempty"`
	InitrdStamp string `xml:"initrd_stamp,attr,omitempty"`
}

// markedNetwork is a network that a domain was put into.
type markedNetwork struct {
	Address spec.Address
	Name    string // of libvirt's network
	MAC     string // of the domain's card in it
	IP      netip.Addr
}

// markXML is the mark of any object, as the attributes of its element.
type markXML struct {
	Space      string `xml:"xmlns:vmctl,attr"`
	ID         string `xml:"id,attr"`
	Project    string `xml:"project,attr"`
	Address    string `xml:"address,attr"`
	Of         string `xml:"of,attr"`
	Generation number `xml:"generation,attr"`
	HostKey    string `xml:"host_key,attr,omitempty"`
}

// ownerXML is the mark's element of a domain without its prefix.
type ownerXML struct {
	markXML
	Wanted   wantedXML    `xml:"wanted"`
	Boot     markedBoot   `xml:"boot"`
	Forwards []forwardXML `xml:"forward"`
	Disks    []diskXML    `xml:"disk"`
	Networks []placeXML   `xml:"network"`
	Imported *importedXML `xml:"imported"`
	Image    *markedImage `xml:"image"`
}

type placeXML struct {
	Address string `xml:"address,attr"`
	Name    string `xml:"name,attr"`
	MAC     string `xml:"mac,attr"`
	IP      string `xml:"ip,attr"`
}

type wantedXML struct {
	Accel  string `xml:"accel,attr"`
	CPUs   number `xml:"cpus,attr"`
	Memory number `xml:"memory,attr"`
}

type forwardXML struct {
	Guest    port   `xml:"guest,attr"`
	Host     port   `xml:"host,attr"`
	HostIP   string `xml:"host_ip,attr"`
	Protocol string `xml:"protocol,attr"`
}

type diskXML struct {
	Address string `xml:"address,attr,omitempty"`
	Path    string `xml:"path,attr"`
}

type importedXML struct {
	Kept []diskXML `xml:"kept"`
}

// number is read as 0 if it is none.
type number uint64

// UnmarshalXMLAttr implements xml.UnmarshalerAttr.
func (n *number) UnmarshalXMLAttr(a xml.Attr) error {
	if v, err := strconv.ParseUint(a.Value, 10, 64); err == nil {
		*n = number(v)
	}
	return nil
}

// port is read as 0 if it is none.
type port uint16

// UnmarshalXMLAttr implements xml.UnmarshalerAttr.
func (p *port) UnmarshalXMLAttr(a xml.Attr) error {
	if v, err := strconv.ParseUint(a.Value, 10, 16); err == nil {
		*p = port(v)
	}
	return nil
}

// flag is read as false if it is none.
type flag bool

// UnmarshalXMLAttr implements xml.UnmarshalerAttr.
func (f *flag) UnmarshalXMLAttr(a xml.Attr) error {
	v, err := strconv.ParseBool(a.Value)
	*f = flag(v && err == nil)
	return nil
}

// element writes the mark as an XML element.
func (o owner) element() (string, error) {
	out := ownerXML{
		markXML: markOf(o.Mark),
		Wanted:  wantedXML{Accel: o.Accel, CPUs: number(o.CPUs), Memory: number(o.Memory)},
		Boot:    o.Boot,
	}
	for _, f := range o.Forwards {
		out.Forwards = append(out.Forwards, forwardXML{Guest: port(f.Guest), Host: port(f.Host), HostIP: f.HostIP, Protocol: f.Protocol})
	}
	for _, d := range o.Disks {
		out.Disks = append(out.Disks, diskXML{Address: d.Address.String(), Path: d.Path})
	}
	for _, n := range o.Networks {
		out.Networks = append(out.Networks, placeXML{Address: n.Address.String(), Name: n.Name, MAC: n.MAC, IP: n.IP.String()})
	}
	if o.Imported {
		out.Imported = &importedXML{}
		for _, path := range o.Kept {
			out.Imported.Kept = append(out.Imported.Kept, diskXML{Path: path})
		}
	}
	if o.Image != (markedImage{}) {
		out.Image = &o.Image
	}
	return ownerElement(out)
}

func markOf(m providers.Mark) markXML {
	return markXML{
		Space: ownerSpace, ID: m.ID, Project: m.Project, Address: m.Address.String(), Of: string(m.Of), Generation: number(m.Generation), HostKey: m.HostKey,
	}
}

// ownerElement writes a mark as an XML element.
func ownerElement(mark any) (string, error) {
	var b strings.Builder
	if err := xml.NewEncoder(&b).EncodeElement(mark, xml.StartElement{Name: xml.Name{Local: "owner"}}); err != nil {
		return "", fmt.Errorf("write the owner mark: %w", err)
	}
	return strings.NewReplacer("</", "</vmctl:", "<", "<vmctl:").Replace(b.String()), nil // "<" begins tags only
}

// owner returns the mark. A damaged mark is read as far as possible: vmctl does not overwrite
// an object with a mark.
func (x *ownerXML) owner() *owner {
	if x == nil {
		return nil
	}
	o := &owner{Accel: x.Wanted.Accel, CPUs: uint64(x.Wanted.CPUs), Memory: uint64(x.Wanted.Memory), Boot: x.Boot}
	o.ID, o.Project, o.Of, o.Generation, o.HostKey = x.ID, x.Project, providers.ID(x.Of), uint64(x.Generation), x.HostKey
	if a, err := spec.ParseAddress(x.Address); err == nil {
		o.Address = a
	}
	for _, f := range x.Forwards {
		o.Forwards = append(o.Forwards, machine.Forward{Guest: uint16(f.Guest), Host: uint16(f.Host), HostIP: f.HostIP, Protocol: f.Protocol})
	}
	for _, d := range x.Disks {
		if a, err := spec.ParseAddress(d.Address); err == nil {
			o.Disks = append(o.Disks, markedDisk{Address: a, Path: d.Path})
		}
	}
	for _, n := range x.Networks {
		a, err := spec.ParseAddress(n.Address)
		if ip, badIP := netip.ParseAddr(n.IP); err == nil && badIP == nil {
			o.Networks = append(o.Networks, markedNetwork{Address: a, Name: n.Name, MAC: n.MAC, IP: ip})
		}
	}
	if x.Imported != nil {
		o.Imported = true
		for _, k := range x.Imported.Kept {
			o.Kept = append(o.Kept, k.Path)
		}
	}
	if x.Image != nil {
		o.Image = *x.Image
	}
	return o
}

// isAuto reports whether the kernel chose the host port of a domain's i-th
// forward.
func (o owner) isAuto(i int, f machine.Forward) bool {
	f.Host = 0
	return i < len(o.Forwards) && o.Forwards[i] == f
}

// withOwner replaces the mark in the inner XML of a metadata element and keeps all other
// content.
func withOwner(metadata, element string) (string, error) {
	decoder := xml.NewDecoder(bytes.NewReader([]byte(metadata)))
	var kept bytes.Buffer
	depth, from := 0, int64(0)
	for {
		before := decoder.InputOffset()
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the domain's metadata: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 && t.Name.Space == ownerSpace {
				kept.WriteString(metadata[from:before])
				if err := decoder.Skip(); err != nil {
					return "", fmt.Errorf("read the domain's metadata: %w", err)
				}
				from = decoder.InputOffset()
				continue
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
	kept.WriteString(metadata[from:])
	return strings.TrimSpace(kept.String()) + element, nil
}

// setOwner puts the mark's element into a domain.
func setOwner(d *libvirtxml.Domain, element string) error {
	inner := ""
	if d.Metadata != nil {
		inner = d.Metadata.XML
	}
	inner, err := withOwner(inner, element)
	d.Metadata = &libvirtxml.DomainMetadata{XML: inner}
	return err
}
