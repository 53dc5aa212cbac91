package sim

import (
	"slices"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// disk returns the claim on the lock of a VM's root disk, which only the VM may use.
func (r *recipe) disk(name string) []providers.Claim {
	return r.p.newRunner().lockClaims(lockClaim(name))
}

// locks returns the claims of a running VM on the locks of its root disk and its other disks.
func (r *recipe) locks() []providers.Claim {
	all := []providers.Claim{lockClaim(machine.Name(r.change))}
	for _, a := range r.want.Disks {
		all = append(all, diskLockClaim(a.Name))
	}
	return r.p.newRunner().lockClaims(all...)
}

// attached returns the claims on the locks of the disks that are new to the VM.
func (r *recipe) attached() []providers.Claim {
	o := r.change.Object
	if o == nil {
		return nil
	}
	var all []providers.Claim
	for _, a := range r.want.Disks {
		if a.ID != "" && !slices.Contains(o.Holds, machine.DiskClaim(a.ID)) {
			all = append(all, diskLockClaim(a.Name))
		}
	}
	return r.p.newRunner().lockClaims(all...)
}

// wanted returns the claims that the VM has once it is as wanted.
func (r *recipe) wanted() []providers.Claim {
	return machine.Claims(nameClaim(machine.Name(r.change)), r.vm, r.change.Uses)
}

func names(disks []attached) []string {
	var all []string
	for _, d := range disks {
		all = append(all, d.Name)
	}
	return all
}

// claimOn returns the claim on a disk that the VM is defined with: by the present ID of the
// disk, else by its ID when it was attached. Its key is "" if neither is known.
func (s observedVM) claimOn(a attached) providers.Claim {
	if d, there := s.disks[a.Name]; there && a.is(d) {
		return machine.DiskClaim(d.ID)
	}
	return machine.DiskClaim(a.ID)
}

func nameClaim(name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: name}
}
