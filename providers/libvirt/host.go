package libvirt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// abilities returns the host's abilities. It fails if they are too little for the wanted VM.
func (j *job) abilities(ctx context.Context) (abilities, error) {
	f, err := j.Facts(ctx)
	if err != nil {
		return abilities{}, fail(err, "ask what the host can do")
	}
	a, err := parseCapabilities(f.Capabilities)
	if err != nil {
		return abilities{}, fail(err, "ask what the host can do")
	}
	if a.Emulator == "" {
		return abilities{}, &providers.Problem{
			Outcome: providers.Failed, Code: "no_qemu",
			Next: providers.Say(installQEMU),
			Err:  fmt.Errorf("define %s: %s", j.Address, noQEMU(a.Arch)),
		}
	}
	if _, ok := boards[a.Arch]; !ok {
		return abilities{}, &providers.Problem{
			Outcome: providers.Failed, Code: "no_board",
			Err: fmt.Errorf("define %s: vmctl makes no machines for %s", j.Address, a.Arch),
		}
	}
	if j.want.Accel == machine.AccelKVM && !a.KVM {
		return abilities{}, &providers.Problem{
			Outcome: providers.Failed, Code: "no_kvm",
			Next: providers.Say("set accel = \"auto\" or \"tcg\"", "or give QEMU's user access to /dev/kvm"),
			Err:  fmt.Errorf("define %s: accel = \"kvm\", and libvirt finds no usable /dev/kvm", j.Address),
		}
	}
	return a, nil
}

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

// chooseType chooses the type of the domain, KVM or TCG, and gives the reason if it passes
// over KVM.
func (p *Provider) chooseType(accel string, a abilities) (domainType, why string) {
	switch accel {
	case machine.AccelKVM:
		return typeKVM, ""
	case machine.AccelTCG:
		return typeTCG, ""
	}
	if !a.KVM {
		return typeTCG, "libvirt finds no usable /dev/kvm"
	}
	if why := p.noHardware(a.Arch); why != "" {
		return typeTCG, why
	}
	if why := p.kvmBroke(); why != "" {
		return typeTCG, "KVM did not work since this machine was booted: " + why
	}
	return typeKVM, ""
}

// kvmBroke returns the failure of KVM since this machine was booted, "" if none is known.
func (p *Provider) kvmBroke() string {
	boot := p.bootID()
	text, err := os.ReadFile(p.kvmFile())
	if err != nil || boot == "" {
		return ""
	}
	id, why, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if id != boot {
		return ""
	}
	return why
}

// rememberKVM records a failure of KVM until this machine is booted again.
func (p *Provider) rememberKVM(why string) error {
	boot := p.bootID()
	if boot == "" {
		return nil
	}
	if err := os.MkdirAll(p.settings.Dir, 0o700); err != nil {
		return fmt.Errorf("remember that KVM does not work: %w", err)
	}
	return atomicfile.Write(p.kvmFile(), []byte(boot+"\n"+why+"\n"), 0o600)
}

func (p *Provider) kvmFile() string { return filepath.Join(p.settings.Dir, "kvm-broken") }

// bootID returns an identifier of this boot of the machine; "" if there is none, or if KVM is
// another machine's.
func (p *Provider) bootID() string {
	if p.location.Remote != "" {
		return ""
	}
	id, err := os.ReadFile(filepath.Join(p.host.Proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// booted returns the moment at which this machine was booted; zero if nothing tells it, or if the
// virtual machines are on another one.
func (p *Provider) booted() time.Time {
	if p.location.Remote != "" {
		return time.Time{}
	}
	text, err := os.ReadFile(filepath.Join(p.host.Proc, "stat"))
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(text)) {
		if seconds, is := strings.CutPrefix(line, "btime "); is { // proc_stat(5)
			if n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}

// maxSocketPath is the size of a socket's path in the system (bytes), with its closing zero
// (unix(7)).
const maxSocketPath = 108

// socketsFit fails if libvirt could not make QEMU's sockets. It is called before anything is
// made.
func (j *job) socketsFit() error {
	long := j.longSocket(j.Name)
	if long == "" {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "path_too_long", Seen: []string{long},
		Next: longSocketNext(),
		Err:  fmt.Errorf("define %s: the folder in which libvirt keeps QEMU's sockets has too long a path", j.Address),
	}
}

func longSocketNext() []providers.Advice {
	return providers.Say("set XDG_CONFIG_HOME to a folder with a shorter path", "or use the system's libvirt: uri = \"qemu:///system\"")
}

// longSocket describes the first of QEMU's sockets whose path would be too long, "" if none
// is.
func (p *Provider) longSocket(name string) string {
	if p.location.System || p.location.Remote != "" || p.location.Test {
		return ""
	}
	config := p.host.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(p.host.Getenv("HOME"), ".config")
	}
	// libvirt: a counter and the first 20 bytes of the name.
	socket := filepath.Join(config, "libvirt/qemu/lib", "domain-9999-"+name[:min(20, len(name))], "monitor.sock")
	if len(socket) < maxSocketPath {
		return ""
	}
	return fmt.Sprintf("%s has %d bytes, and a socket's path must have fewer than %d", socket, len(socket), maxSocketPath)
}
