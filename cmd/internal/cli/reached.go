package cli

import (
	"fmt"

	"vmctl/planner"
)

// reached refuses a plan that reaches something else than was agreed to with --reach. A later round may reach nothing more:
// nobody has seen it.
func (a *app) reached(m mission, r round, plan *planner.Plan) error {
	now := planner.ReachDigest(plan.Reach)
	if m.apply.reach == "" || !r.later && now == m.apply.reach || r.later && len(plan.Reach) == 0 {
		return nil
	}
	nothing, whole := "nothing", "it reaches what has the digest "+now+", and "+quoted(m.apply.reach)+" was agreed to"
	if r.later {
		nothing, whole = "nothing more", "it reaches what was not agreed to, for only this round could read it"
	}
	e := newProblem(classRefused, "reach", fmt.Sprintf("%s: %s was started: %s", m.command, nothing, whole),
		a.commandLine("plan", planFlags{})+" shows what it reaches, and the digest to agree to")
	for _, entry := range plan.Reach {
		e.Seen = append(e.Seen, entry.Address.String()+": "+string(entry.What)+" "+entry.Text)
	}
	return e
}
