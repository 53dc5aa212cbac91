package libvirt

import (
	"cmp"
	"fmt"

	"libvirt.org/go/libvirtxml"
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

// qcow2Compat is the version of the format: 1.1, for every QEMU since 1.1.
const qcow2Compat = "1.1"

// privateMode lets only its owner read a volume: it may contain a host key.
const privateMode = "0600"

// document returns the XML of a new volume. The volume takes room only when it is written to.
func (v volume) document() (string, error) {
	x := libvirtxml.StorageVolume{
		Name: v.Name, Capacity: &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: v.Capacity}, Allocation: &libvirtxml.StorageVolumeSize{Unit: "bytes"},
		Target: &libvirtxml.StorageVolumeTarget{
			Format: &libvirtxml.StorageVolumeTargetFormat{Type: v.Format}, Permissions: &libvirtxml.StorageVolumeTargetPermissions{Mode: privateMode},
		},
	}
	if v.Format == formatQCOW2 {
		x.Target.Compat = qcow2Compat
	}
	if v.Backing != "" {
		x.BackingStore = &libvirtxml.StorageVolumeBackingStore{Path: v.Backing, Format: &libvirtxml.StorageVolumeTargetFormat{Type: v.BackingFormat}}
	}
	return x.Marshal()
}

// parseVolume reads libvirt's description of a volume.
func parseVolume(text string) (volume, error) {
	var x libvirtxml.StorageVolume
	if err := x.Unmarshal(text); err != nil {
		return volume{}, fmt.Errorf("read the volume's description: %w", err)
	}
	v := volume{Name: x.Name}
	if s := x.Capacity; s != nil {
		v.Capacity = bytesOf(s.Value, s.Unit, "bytes")
	}
	if s := x.Allocation; s != nil {
		v.Allocation = bytesOf(s.Value, s.Unit, "bytes")
	}
	if t := x.Target; t != nil {
		v.Path, v.Format = t.Path, formatOf(t.Format)
		if t.Timestamps != nil {
			v.Modified = t.Timestamps.Mtime
		}
	}
	if b := x.BackingStore; b != nil {
		v.Backing, v.BackingFormat = b.Path, formatOf(b.Format)
	}
	return v, nil
}

func formatOf(f *libvirtxml.StorageVolumeTargetFormat) string {
	if f == nil {
		return ""
	}
	return f.Type
}

// bytesOf returns a size in bytes. A size without a unit is in the given one: libvirt means
// bytes in volumes and pools, and KiB in domains.
func bytesOf[T uint | uint64](n T, unit, otherwise string) uint64 {
	switch cmp.Or(unit, otherwise) {
	case "b", "bytes", "B":
		return uint64(n)
	case "MiB", "M":
		return uint64(n) << 20
	case "GiB", "G":
		return uint64(n) << 30
	default:
		return uint64(n) << 10
	}
}
