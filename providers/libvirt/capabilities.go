package libvirt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// abilities describes a host's abilities for its own architecture.
type abilities struct {
	Arch     string
	Emulator string // "": none is installed
	KVM      bool   // libvirt would use it
}

func parseCapabilities(text string) (abilities, error) {
	var x libvirtxml.Caps
	if err := x.Unmarshal(text); err != nil {
		return abilities{}, fmt.Errorf("read the host's capabilities: %w", err)
	}
	var a abilities
	if x.Host.CPU != nil {
		a.Arch = x.Host.CPU.Arch
	}
	for _, g := range x.Guests {
		if g.OSType != "hvm" || g.Arch.Name != a.Arch {
			continue
		}
		a.Emulator = g.Arch.Emulator
		for _, d := range g.Arch.Domains {
			a.KVM = a.KVM || d.Type == typeKVM
		}
	}
	return a, nil
}

// board describes a kind of computer for a VM.
type board struct {
	Machine string
	ACPI    bool // it reacts to a power button without more firmware
	// SparePorts is the number of disks that can be attached while the VM runs.
	SparePorts int
	CPUs       uint64 // the largest number of CPUs
}

// noHardware returns the reason why KVM would be of no use on this machine, "" if there is
// none. A processor that shows neither VMX nor SVM has /dev/kvm if it is emulated: guests run
// hundreds of times slower, or not at all.
func (p *Provider) noHardware(arch string) string {
	if p.location.Remote != "" || arch != "x86_64" {
		return ""
	}
	info, err := os.ReadFile(filepath.Join(p.host.Proc, "cpuinfo"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		name, flags, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != "flags" {
			continue
		}
		all := strings.Fields(flags)
		if slices.Contains(all, "vmx") || slices.Contains(all, "svm") {
			return ""
		}
		return "this processor shows no hardware virtualization (neither vmx nor svm)"
	}
	return ""
}
