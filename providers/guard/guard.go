// Package guard holds the checks at the beginning and the end of the steps of every provider,
// for any kind of object: the object must be vmctl's own, and as the plan expects it.
package guard

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// OpUnmark is the operation that removes the owner mark from an object, which stays as it is.
const OpUnmark = "unmark"

// Guard checks the object of one step.
type Guard struct {
	Work    providers.Work
	Project providers.Project
	Thing   string                // the system's word for such an object: "domain"
	Look    func(now Seen) string // returns a command that shows the object
}

// Seen is an object as a step found it.
type Seen struct {
	ID          providers.ID
	Name        string
	Mark        *providers.Mark // nil: it bears none
	Fingerprint string
	Running     *bool // nil: it is of a kind that does not run
}

// Owns reports whether an object is the step's own: it bears the mark that was written for it
// at the step's address, or at an earlier address of the object. An object without a mark is
// the step's own if the record names it, or if the step imports it.
func (g Guard) Owns(now Seen) bool {
	if now.Mark == nil {
		return now.ID == g.Work.Object && (g.Work.Imports || g.isRecorded())
	}
	return now.Mark.ID == g.Project.Lineage() && now.Mark.Of == now.ID && g.Work.Bears(now.Mark.Address)
}

// isRecorded reports whether a record names the object. That of an object that is still to be
// made proves nothing about one with its ID.
func (g Guard) isRecorded() bool {
	return g.Work.Prior != cty.NilVal && g.Work.Phase != providers.PhaseMake
}

// Mine fails if there is an object that is not the step's own. A step never acts on such an
// object.
func (g Guard) Mine(now *Seen) error {
	unmarked := now != nil && now.Mark == nil && g.Work.Op == OpUnmark // there is nothing left to remove
	if now == nil || unmarked || g.Owns(*now) {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "not_ours", Next: providers.Say("look at it: " + g.Look(*now)),
		Err: fmt.Errorf("%s %s: %s %s (%s) does not bear the mark of %s", g.Work.Op, g.Work.Address, g.Thing, now.Name, now.ID, g.Work.Address),
	}
}

// Expected fails unless the object is exactly as the plan, or the step before, left it.
func (g Guard) Expected(now *Seen) error {
	found := ""
	if now != nil {
		found = now.Fingerprint
	}
	if found == g.Work.Expect {
		return nil
	}
	f := &providers.Problem{Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan")}
	step := fmt.Sprintf("%s %s: %s", g.Work.Op, g.Work.Address, g.Thing)
	switch {
	case now == nil:
		f.Err = fmt.Errorf("%s %s (%s) is gone since the plan was made", step, g.Work.Name, g.Work.Object)
	case g.Work.Expect == "":
		f.Err = fmt.Errorf("%s %s (%s) exists, and the plan was made when it did not", step, now.Name, now.ID)
	default:
		f.Seen = Differences(g.Work.Expect, found)
		f.Err = fmt.Errorf("%s %s was changed since the plan was made", step, now.Name)
	}
	return f
}

// There fails unless the object exists and is exactly as expected.
func (g Guard) There(now *Seen) error {
	if err := g.Expected(now); err != nil || now != nil {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "absent", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: %s %s does not exist", g.Work.Op, g.Work.Address, g.Thing, g.Work.Name),
	}
}

// AsFailure returns the failure in err, else what fail makes of err and of what was
// attempted.
func AsFailure(err error, fail func(err error, format string, args ...any) *providers.Problem, doing string) *providers.Problem {
	var f *providers.Problem
	if errors.As(err, &f) {
		return f
	}
	return fail(err, "%s", doing)
}
