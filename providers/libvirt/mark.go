package libvirt

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

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
	// Imported says that vmctl did not make the domain. Its network is its own, and vmctl
	// ignores the disks whose files Kept lists.
	Imported bool
	Kept     []string
	// Image describes the domain's image, root disk and seed; zero: it has none.
	Image markedImage
}

// markedImage describes the image of a domain and the volumes made for it.
type markedImage struct {
	Source  string // of the spec: the path or URL of the image
	SHA256  string // the image's digest
	Root    string // path of the volume of the domain's own disk
	Seed    string // path of the volume for cloud-init
	Settled bool   // the seed holds no keys any more: the guest has them
}

// markedDisk is a disk that a domain was given.
type markedDisk struct {
	Address spec.Address
	Path    string // of its volume
}

// markedBoot describes the boot volumes of a domain.
type markedBoot struct {
	Kernel, KernelSHA256 string // path of the volume, digest of the user's file
	Initrd, InitrdSHA256 string // path of the volume with the keys in it, digest of the user's file
	Keys                 string // digest of the public keys in it
	// KernelStamp and InitrdStamp are the stamps of the volumes right after their upload; "":
	// unknown.
	KernelStamp, InitrdStamp string
}

type ownerXML struct {
	XMLName    xml.Name     `xml:"vmctl:owner"`
	Space      string       `xml:"xmlns:vmctl,attr"`
	ID         string       `xml:"id,attr"`
	Project    string       `xml:"project,attr"`
	Address    string       `xml:"address,attr"`
	Of         string       `xml:"of,attr"`
	Generation uint64       `xml:"generation,attr"`
	HostKey    string       `xml:"host_key,attr,omitempty"`
	Wanted     wantedXML    `xml:"vmctl:wanted"`
	Boot       bootXML      `xml:"vmctl:boot"`
	Forwards   []forwardXML `xml:"vmctl:forward"`
	Disks      []diskXML    `xml:"vmctl:disk"`
	Imported   *importedXML `xml:"vmctl:imported"`
	Image      *imageXML    `xml:"vmctl:image"`
}

type imageXML struct {
	Source  string `xml:"source,attr"`
	SHA256  string `xml:"sha256,attr"`
	Root    string `xml:"root,attr"`
	Seed    string `xml:"seed,attr"`
	Settled bool   `xml:"settled,attr,omitempty"`
}

type diskXML struct {
	Address string `xml:"address,attr"`
	Path    string `xml:"path,attr"`
}

type importedXML struct {
	Kept []keptXML `xml:"vmctl:kept"`
}

type keptXML struct {
	Path string `xml:"path,attr"`
}

type wantedXML struct {
	Accel  string `xml:"accel,attr"`
	CPUs   uint64 `xml:"cpus,attr"`
	Memory uint64 `xml:"memory,attr"`
}

type bootXML struct {
	Kernel       string `xml:"kernel,attr,omitempty"`
	KernelSHA256 string `xml:"kernel_sha256,attr,omitempty"`
	Initrd       string `xml:"initrd,attr,omitempty"`
	InitrdSHA256 string `xml:"initrd_sha256,attr,omitempty"`
	Keys         string `xml:"keys,attr,omitempty"`
	KernelStamp  string `xml:"kernel_stamp,attr,omitempty"`
	InitrdStamp  string `xml:"initrd_stamp,attr,omitempty"`
}

type forwardXML struct {
	Guest    uint16 `xml:"guest,attr"`
	Host     uint16 `xml:"host,attr"`
	HostIP   string `xml:"host_ip,attr"`
	Protocol string `xml:"protocol,attr"`
}

// element writes the mark as an XML element.
func (o owner) element() (string, error) {
	out := ownerXML{
		Space: ownerSpace, ID: o.ID, Project: o.Project, Address: o.Address.String(), Of: string(o.Of), Generation: o.Generation, HostKey: o.HostKey,
		Wanted: wantedXML{Accel: o.Accel, CPUs: o.CPUs, Memory: o.Memory},
		Boot:   bootXML(o.Boot),
	}
	for _, f := range o.Forwards {
		out.Forwards = append(out.Forwards, forwardXML(f))
	}
	for _, d := range o.Disks {
		out.Disks = append(out.Disks, diskXML{Address: d.Address.String(), Path: d.Path})
	}
	if o.Imported {
		out.Imported = &importedXML{}
		for _, path := range o.Kept {
			out.Imported.Kept = append(out.Imported.Kept, keptXML{Path: path})
		}
	}
	if o.Image != (markedImage{}) {
		i := imageXML(o.Image)
		out.Image = &i
	}
	text, err := xml.Marshal(out)
	return string(text), err
}

// readOwnerXML holds the same element as a decoder returns it, with its prefix resolved.
type readOwnerXML struct {
	ID         string `xml:"id,attr"`
	Project    string `xml:"project,attr"`
	Address    string `xml:"address,attr"`
	Of         string `xml:"of,attr"`
	Generation string `xml:"generation,attr"`
	HostKey    string `xml:"host_key,attr"`
	Wanted     struct {
		Accel  string `xml:"accel,attr"`
		CPUs   string `xml:"cpus,attr"`
		Memory string `xml:"memory,attr"`
	} `xml:"urn:vmctl:1 wanted"`
	Boot     bootXML      `xml:"urn:vmctl:1 boot"`
	Forwards []forwardXML `xml:"urn:vmctl:1 forward"`
	Disks    []diskXML    `xml:"urn:vmctl:1 disk"`
	Imported *struct {
		Kept []keptXML `xml:"urn:vmctl:1 kept"`
	} `xml:"urn:vmctl:1 imported"`
	Image imageXML `xml:"urn:vmctl:1 image"`
}

// owner returns the mark. A damaged mark is read as far as possible: vmctl does not overwrite
// an object with a mark.
func (x *readOwnerXML) owner() *owner {
	if x == nil {
		return nil
	}
	o := &owner{Accel: x.Wanted.Accel, Boot: markedBoot(x.Boot), Image: markedImage(x.Image)}
	o.ID, o.Project, o.Of, o.HostKey = x.ID, x.Project, providers.ID(x.Of), x.HostKey
	if a, err := spec.ParseAddress(x.Address); err == nil {
		o.Address = a
	}
	if n, err := strconv.ParseUint(x.Generation, 10, 64); err == nil {
		o.Generation = n
	}
	if n, err := strconv.ParseUint(x.Wanted.CPUs, 10, 32); err == nil {
		o.CPUs = n
	}
	if n, err := strconv.ParseUint(x.Wanted.Memory, 10, 64); err == nil {
		o.Memory = n
	}
	for _, f := range x.Forwards {
		o.Forwards = append(o.Forwards, machine.Forward(f))
	}
	for _, d := range x.Disks {
		if a, err := spec.ParseAddress(d.Address); err == nil {
			o.Disks = append(o.Disks, markedDisk{Address: a, Path: d.Path})
		}
	}
	if x.Imported != nil {
		o.Imported = true
		for _, k := range x.Imported.Kept {
			o.Kept = append(o.Kept, k.Path)
		}
	}
	return o
}

// isAuto reports whether the kernel chose the host port of a domain's i-th
// forward.
func (o *owner) isAuto(i int, f machine.Forward) bool {
	if o == nil || i >= len(o.Forwards) {
		return false
	}
	marked := o.Forwards[i]
	f.Host = 0
	return marked == f
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
