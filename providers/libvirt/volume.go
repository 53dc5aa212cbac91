package libvirt

import (
	"encoding/xml"
	"fmt"
)

// The formats of volumes.
const (
	formatQCOW2 = "qcow2"
	formatRaw   = "raw"
)

// volume describes a volume of a pool of files.
type volume struct {
	Name, Path    string
	Format        string // raw, qcow2 or another one
	Capacity      uint64 // bytes that a guest sees
	Allocation    uint64 // bytes that it takes in the pool
	Backing       string // path of the base of an overlay; "": none
	BackingFormat string
	Modified      string // when its file was last written to, in libvirt's words; "": unknown
}

// stamp returns a text that changes when somebody writes to the volume. It does not read the
// volume.
func (v volume) stamp() string { return fmt.Sprintf("%d bytes, %s", v.Capacity, v.Modified) }

type volumeBytes struct {
	Unit  string `xml:"unit,attr,omitempty"`
	Value uint64 `xml:",chardata"`
}

type volumeTarget struct {
	Path   string `xml:"path,omitempty"`
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"format"`
	Mode     string  `xml:"permissions>mode,omitempty"`
	Modified string  `xml:"timestamps>mtime,omitempty"`
	Compat   *string `xml:"compat,omitempty"`
}

type volumeDocument struct {
	XMLName    xml.Name      `xml:"volume"`
	Name       string        `xml:"name"`
	Capacity   volumeBytes   `xml:"capacity"`
	Allocation volumeBytes   `xml:"allocation"`
	Target     volumeTarget  `xml:"target"`
	Backing    *volumeTarget `xml:"backingStore"`
}

// qcow2Compat is the version of the format: 1.1, for every QEMU since 1.1.
const qcow2Compat = "1.1"

// privateMode lets only its owner read a volume.
const privateMode = "0600"

// document returns the XML of a new volume. The volume takes room only when it is written to.
func (v volume) document() string {
	d := volumeDocument{Name: v.Name, Capacity: volumeBytes{"bytes", v.Capacity}, Allocation: volumeBytes{"bytes", 0}}
	d.Target.Format.Type, d.Target.Mode = v.Format, privateMode
	if v.Format == formatQCOW2 {
		compat := qcow2Compat
		d.Target.Compat = &compat
	}
	if v.Backing != "" {
		d.Backing = &volumeTarget{Path: v.Backing}
		d.Backing.Format.Type = v.BackingFormat
	}
	return mustXML(d)
}

// parseVolume reads libvirt's description of a volume.
func parseVolume(text string) (volume, error) {
	var d struct {
		Name       string        `xml:"name"`
		Capacity   memoryXML     `xml:"capacity"`
		Allocation memoryXML     `xml:"allocation"`
		Target     volumeTarget  `xml:"target"`
		Backing    *volumeTarget `xml:"backingStore"`
	}
	if err := xml.Unmarshal([]byte(text), &d); err != nil {
		return volume{}, fmt.Errorf("read the volume's description: %w", err)
	}
	v := volume{
		Name: d.Name, Path: d.Target.Path, Format: d.Target.Format.Type,
		Capacity: d.Capacity.bytes(), Allocation: d.Allocation.bytes(), Modified: d.Target.Modified,
	}
	if d.Backing != nil {
		v.Backing, v.BackingFormat = d.Backing.Path, d.Backing.Format.Type
	}
	return v, nil
}
