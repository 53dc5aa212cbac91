package sim

import (
	"slices"

	"vmctl/providers"
)

// disk is the claim on a VM's disk, which nobody but the VM may use.
func (s *sequence) disk(name string) []providers.Claim {
	if s.p.weightless {
		return nil
	}
	return []providers.Claim{lockClaim(name)}
}

// locks are the claims of a VM that runs on its root disk and on its others.
func (s *sequence) locks() []providers.Claim {
	all := s.disk(s.name())
	if s.p.weightless {
		return nil
	}
	for _, a := range s.want.Disks {
		all = append(all, diskLockClaim(a.Name))
	}
	return all
}

func (s *sequence) held() []providers.Claim {
	if s.change.Object == nil {
		return nil
	}
	return s.change.Object.Holds
}

func (s *sequence) wanted() []providers.Claim {
	all := append([]providers.Claim{nameClaim(s.name())}, s.want.ports()...)
	for _, a := range s.want.Disks {
		if a.ID != "" {
			all = append(all, diskClaim(a.ID))
		}
	}
	return all
}

func excluding(all, these []providers.Claim) []providers.Claim {
	return without(all, func(c providers.Claim) bool { return slices.Contains(these, c) })
}
