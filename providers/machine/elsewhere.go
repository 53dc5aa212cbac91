package machine

import (
	"fmt"

	"vmctl/providers"
)

// MadeElsewhere is the failure to make what another data directory of the project has
// made since the plan: of two that apply at once one makes it, and the other has touched
// nothing. The next plan finds it by its mark.
func MadeElsewhere(w providers.Work, what, name string, id providers.ID) error {
	return &providers.Failure{
		Outcome: providers.Stale, Code: "made_elsewhere", Next: []string{"vmctl plan"},
		Err: fmt.Errorf("%s %s: another data directory of this project has made it meanwhile: %s %s (%s)", w.Op, w.Address, what, name, id),
	}
}
