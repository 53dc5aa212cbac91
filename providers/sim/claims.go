package sim

import (
	"vmctl/providers"
	"vmctl/providers/machine"
)

// disk returns the claim on the lock of a VM's root disk, which only the VM may use.
func (r *recipe) disk(name string) []providers.Claim {
	if r.p.weightless {
		return nil
	}
	return []providers.Claim{lockClaim(name)}
}

// locks returns the claims of a running VM on the locks of its root disk and its other disks.
func (r *recipe) locks() []providers.Claim {
	if r.p.weightless {
		return nil
	}
	all := r.disk(machine.Name(r.change))
	for _, a := range r.want.Disks {
		all = append(all, diskLockClaim(a.Name))
	}
	return all
}

func (r *recipe) wanted() []providers.Claim {
	all := append([]providers.Claim{nameClaim(machine.Name(r.change))}, r.want.ports()...)
	for _, a := range r.want.Disks {
		if a.ID != "" {
			all = append(all, machine.DiskClaim(a.ID))
		}
	}
	return all
}
