package machine

import (
	"fmt"

	"vmctl/providers"
)

// MadeElsewhere returns the failure to make an object that another data directory of the
// project has made since the plan. When two directories apply at once, one makes the object
// and the other touches nothing; its next plan finds the object by its mark.
func MadeElsewhere(w providers.Work, what, name string, id providers.ID) error {
	return &providers.Problem{
		Outcome: providers.Stale, Code: "made_elsewhere", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: another data directory of this project has made it meanwhile: %s %s (%s)", w.Op, w.Address, what, name, id),
	}
}
