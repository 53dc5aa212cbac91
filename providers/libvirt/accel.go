package libvirt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/providers/machine"
)

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
