package libvirt

import (
	"context"
	"fmt"

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
