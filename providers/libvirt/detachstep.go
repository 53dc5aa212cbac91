package libvirt

import (
	"slices"
	"strings"

	"vmctl/providers"
)

// detach lets go of disks before the domain gets others in their place, which may
// only be made or freed then: of one that is replaced, of one that changes hands with
// another. What runs has them until it is down.
func (s *sequence) detach() {
	o := s.change.Object
	going := disksOnly(without(s.heldClaims(), s.wantedClaims()))
	if o == nil || len(going) == 0 || len(disksOnly(without(s.wantedClaims(), s.heldClaims()))) == 0 {
		return
	}
	var ids []string
	for _, c := range going {
		ids = append(ids, c.Key)
	}
	step := providers.Step{Op: opDetach, Phase: providers.PhaseRelease, Timeout: defineTimeout}
	s.freed = going
	if o.State == providers.StateOff {
		step.Frees = going
	}
	step.Object, step.Name, step.Args = o.ID, o.Name, map[string]string{argDisks: strings.Join(ids, "\n")}
	s.add(step)
}

// lettingGo are the claims that taking the domain down frees: its next start has them
// no more.
func (s *sequence) lettingGo() []providers.Claim {
	if o := s.change.Object; o == nil || o.State == providers.StateOff {
		return nil
	}
	return s.freed
}

func disksOnly(all []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(all, func(c providers.Claim) bool { return c.Kind != providers.ClaimDisk })
}

// readyIfFound takes a domain for ready that runs and that vmctl did not make: there
// is no login to wait for.
func (s *sequence) readyIfFound() {
	o := s.change.Object
	if o == nil || o.Owner != nil || o.Running == nil || !*o.Running || !s.rules.Wait || !isForeign(*o) {
		return
	}
	s.addOn(providers.Step{Op: opWaitSSH, Phase: providers.PhaseReady, Timeout: s.rules.WaitTimeout})
}
