package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
)

// reached refuses a plan that reaches something else than was agreed to with --reach. A later round may reach nothing more:
// nobody has seen it.
func (a *app) reached(m mission, r round, plan *planner.Plan) error {
	now := planner.ReachDigest(plan.Reach)
	if m.apply.reach == "" || r.isFirst() && now == m.apply.reach || !r.isFirst() && len(plan.Reach) == 0 {
		return nil
	}
	nothing, whole := "nothing", "it reaches what has the digest "+now+", and "+quoted(m.apply.reach)+" was agreed to"
	shows := a.commandLine("plan", m.plan)
	switch {
	case r.later && r.roused:
		nothing = "nothing more"
	case r.later:
		nothing, whole = "nothing more", "it reaches what was not agreed to, for only this round could read it"
	case m.file != "":
		shows = a.commandLine("show", planFlags{kept: true}, m.file)
	}
	e := newProblem(classRefused, "reach", fmt.Sprintf("%s: %s was started: %s", m.command, nothing, whole), shows+" shows what it reaches, and the digest to agree to")
	for _, entry := range view.Reached(plan.Reach) {
		e.Seen = append(e.Seen, entry.Address+": "+entry.String())
	}
	return e
}

// reachFlag is the value of --reach. An empty value, as of a variable that is not set, is refused: it would agree to anything.
type reachFlag struct{ digest *string }

var _ pflag.Value = reachFlag{}

// Set implements pflag.Value.
func (f reachFlag) Set(text string) error {
	if !planner.IsReachDigest(text) {
		return errors.New("it is no digest of 12 hexadecimal digits, as vmctl plan shows it")
	}
	*f.digest = text
	return nil
}

// String implements pflag.Value.
func (f reachFlag) String() string {
	if f.digest == nil {
		return ""
	}
	return *f.digest
}

// Type implements pflag.Value.
func (reachFlag) Type() string { return "DIGEST" }
