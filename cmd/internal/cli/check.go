package cli

import (
	"vmctl/cmd/internal/view"
	"vmctl/spec"
	"vmctl/state"
)

// checksOf evaluates the conditions of the spec with the values that the records hold.
func checksOf(p *project, s *state.Snapshot) []spec.Check {
	return p.config.Checks(values(s))
}

// warnChecks says at the end of an apply which check blocks do not hold.
func (a *app) warnChecks(p *project, s *state.Snapshot) {
	for _, c := range checksOf(p, s) {
		if c.IsBad() && c.Kind == spec.Assert {
			view.Warning(a.errScreen(), c.String()+": "+c.Message)
		}
	}
}
