package sim

import (
	"vmctl/providers"
	"vmctl/providers/machine"
)

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
