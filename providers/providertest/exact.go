package providertest

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// exact goes through the life of a VM, and tries each step three times.
func exact(s *stage) {
	dev := s.actor("dev")
	dev.insist(dev.change(providers.Create))
	dev.insist(dev.change(providers.RestartIt, s.Edits[0]))
	dev.insist(dev.change(providers.Stop))
	dev.insist(dev.change(providers.Start))
	dev.insist(dev.change(providers.Destroy))
}

// insist carries a change out, and returns the last result. It tries each step first with
// another expected object, then does it, and then does it again with the same expectation, as
// after a crash that lost its result.
func (a *actor) insist(c providers.Change) providers.Result {
	a.t.Helper()
	var last providers.Result
	expect := map[providers.ID]string{}
	if c.Object != nil {
		expect[c.Object.ID] = c.Object.Fingerprint
	}
	for _, step := range a.steps(c) {
		w := a.work(c, step, expect[step.Object])
		a.refused(w)
		first, failure := a.do(a.t.Context(), w)
		if failure != nil {
			a.t.Fatalf("%s: %v", step.Op, failure)
		}
		second, failure := a.do(a.t.Context(), w)
		if failure != nil {
			a.t.Fatalf("%s, done again: %v", step.Op, failure)
		}
		if second.How != providers.AlreadyTrue && second.How != providers.AlreadyGone && step.Phase != providers.PhaseReady {
			a.t.Errorf("%s, done again, says %q", step.Op, second.How)
		}
		same(a.t, step.Op+", done again: the fingerprint", first.Fingerprint, second.Fingerprint)
		same(a.t, step.Op+", done again: gone", first.Gone, second.Gone)
		expect[step.Object] = second.Fingerprint
		last = second
	}
	if c.Action != providers.Destroy {
		a.want, a.generation = c.Want, c.Generation
	}
	return last
}

// refused checks that a step with another expected object is stale, and does nothing.
func (a *actor) refused(w providers.Work) {
	a.t.Helper()
	before := a.find()
	w.Expect += "x"
	_, failure := a.do(a.t.Context(), w)
	if failure == nil || failure.Outcome != providers.Stale || len(failure.Next) == 0 {
		a.t.Errorf("%s with another fingerprint than the object's: %+v", w.Op, failure)
	}
	after := a.find()
	if (before == nil) != (after == nil) || before != nil && before.Fingerprint != after.Fingerprint {
		a.t.Errorf("%s with another fingerprint changed the object", w.Op)
	}
}

// meanwhile changes a VM between a plan and its steps. A step sees the change, and acts only
// if the object is as the plan saw it, or succeeds if its goal is reached already.
//
// row L63
func meanwhile(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	dev.create()
	early := dev.change(providers.Update, s.Edits[0])
	dev.carryOut(dev.change(providers.Update, s.Edits[1]))
	before := s.Traces()
	if _, failure := dev.try(early); failure == nil || failure.Outcome != providers.Stale {
		s.t.Errorf("an edit of what was edited meanwhile: %+v", failure)
	}
	same(s.t, "what is there after a step that was stale", before, s.Traces())
	early = dev.change(providers.Destroy)
	dev.carryOut(dev.change(providers.Destroy))
	all, failure := dev.try(early)
	if failure != nil {
		s.t.Fatalf("a destruction of what was destroyed meanwhile: %v", failure)
	}
	same(s.t, "how what was gone went", providers.AlreadyGone, all[len(all)-1].result.How)
}
