package providertest

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

func restart(s *stage) {
	dev := s.actor("dev")
	dev.create()
	before := dev.object()
	c := dev.change(providers.RestartIt, s.Edits...)
	for _, edit := range c.Edits {
		if edit.Verdict.Applies != providers.Restart || edit.Verdict.Reason == "" {
			s.t.Errorf("an edit of %s while it runs: %+v", edit.Path, edit.Verdict)
		}
	}
	same(s.t, "the phases of a restart", "down, change, up, ready", phases(dev.steps(c)))
	all := dev.carryOut(c)
	same(s.t, "how it went down", providers.Graceful, all[0].result.How)
	after := dev.object()
	dev.checkMade(after)
	if after.Fingerprint == before.Fingerprint {
		s.t.Error("the fingerprint is the same after a restart with edits")
	}
	same(s.t, "the phases of a restart without an edit", "down, up, ready", phases(dev.steps(dev.change(providers.RestartIt))))
}

func update(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	c := dev.change(providers.Create)
	same(s.t, "the phases of a creation that is not to run", "make", phases(dev.steps(c)))
	dev.create()
	dev.checkMark(dev.object())
	for _, edit := range s.Edits {
		before := dev.object()
		c := dev.change(providers.Update, edit)
		c.Generation = dev.generation // the mark stays, so that only the edit shows
		if v := c.Edits[0].Verdict; v.Applies != providers.Live || v.Reason == "" {
			s.t.Errorf("an edit of %s while it is off: %+v", edit.Path, v)
		}
		same(s.t, "the phases of an update", "change", phases(dev.steps(c)))
		dev.carryOut(c)
		after := dev.object()
		if !isOff(after) {
			s.t.Errorf("after an edit of %s it is %s", edit.Path, after.State)
		}
		if v := ctyread.Attr(after.Attrs, edit.Path); v == cty.NilVal || !equal(v, edit.Value) {
			s.t.Errorf("%s is %#v after it was set to %#v", edit.Path, v, edit.Value)
		}
		if after.Fingerprint == before.Fingerprint {
			s.t.Errorf("the fingerprint is the same after an edit of %s", edit.Path)
		}
		same(s.t, "the mark's generation", dev.generation, after.Owner.Generation)
	}
}

func replace(s *stage) {
	dev := s.actor("dev")
	dev.create()
	old := dev.id
	c := dev.change(providers.ReplaceIt)
	c.ID, c.Replaced, c.Generation = s.newID(), 1, 2
	same(s.t, "the phases of a replacement", "down, remove, make, up, ready", phases(dev.steps(c)))
	dev.carryOut(c)
	dev.id = c.ID
	dev.checkMade(dev.object())
	inv := s.observe(dev.known())
	if slices.ContainsFunc(inv.Objects, func(o providers.Object) bool { return o.ID == old }) {
		s.t.Errorf("%s is still there after its replacement", old)
	}
}

func stopAndStart(s *stage) {
	dev := s.actor("dev")
	dev.create()
	c := dev.change(providers.Stop)
	same(s.t, "the phases of a stop", "down", phases(dev.steps(c)))
	if steps := dev.steps(c); steps[0].Risk != providers.Downtime {
		s.t.Errorf("the risk of a stop is %q", steps[0].Risk)
	}
	running := dev.object()
	all := dev.carryOut(c)
	same(s.t, "how it stopped", providers.Graceful, all[0].result.How)
	if e := all[0].result.Evidence; len(e) == 0 || slices.ContainsFunc(e, func(e string) bool { return strings.HasPrefix(e, "forced") }) {
		s.t.Errorf("a graceful stop says of how it went: %q", e)
	}
	if r := all[0].result.Running; r == nil || *r {
		s.t.Errorf("after a stop it says running = %v", r)
	}
	off := dev.object()
	if !isOff(off) || len(off.Findings) > 0 {
		s.t.Errorf("after a stop it is %q, with %+v", off.State, off.Findings)
	}
	if off.Fingerprint == running.Fingerprint {
		s.t.Error("the fingerprint is the same running and off")
	}
	c = dev.change(providers.Start)
	same(s.t, "the phases of a start", "up, ready", phases(dev.steps(c)))
	dev.carryOut(c)
	same(s.t, "the fingerprint, started again", running.Fingerprint, dev.object().Fingerprint)
}

// forced checks rule 17: request, wait, force, confirm; as long as something runs, all that
// belongs to it stays.
func forced(s *stage) {
	s.Deafen(s.World)
	s.reopen()
	dev := s.actor("dev")
	dev.create()
	before, traces := dev.object(), s.Traces()
	force := s.Policy
	s.Policy = with(force, "stop", with(force.GetAttr("stop"), "force", cty.False))
	done, failure := dev.try(dev.change(providers.Destroy))
	if len(done) > 0 || failure == nil || failure.Outcome != providers.Timeout || len(failure.Next) == 0 {
		s.t.Fatalf("a destruction that must not force: %v, %+v", done, failure)
	}
	same(s.t, "the fingerprint after a stop that failed", before.Fingerprint, dev.object().Fingerprint)
	after := s.Traces()
	if len(after) != len(traces) {
		s.t.Errorf("there was\n%s\nand after a stop that failed there is\n%s", strings.Join(traces, "\n"), strings.Join(after, "\n"))
	}
	s.Policy = force
	c := dev.change(providers.Destroy)
	steps := dev.steps(c)
	last := dev.work(c, steps[len(steps)-1], before.Fingerprint)
	if _, failure := s.do(s.t.Context(), last); failure == nil || failure.Outcome != providers.Unsafe {
		s.t.Errorf("%s of what runs: %+v", last.Op, failure)
	}
	same(s.t, "what is there of what did not stop", after, s.Traces())
	stopped := dev.carryOut(dev.change(providers.Stop))[0].result
	same(s.t, "how it stopped", providers.Forced, stopped.How)
	requested := slices.IndexFunc(stopped.Evidence, func(e string) bool { return strings.HasPrefix(e, "requested") })
	forced := slices.IndexFunc(stopped.Evidence, func(e string) bool { return strings.HasPrefix(e, "forced") })
	if requested < 0 || forced < requested {
		s.t.Errorf("it was to be requested before it was forced: %q", stopped.Evidence)
	}
	if o := dev.object(); !isOff(o) {
		s.t.Errorf("after it was forced it is %q", o.State)
	}
}

func killed(s *stage) {
	nothing := s.Traces()
	dev := s.actor("dev")
	dev.create()
	before := dev.object()
	s.Kill(before)
	after := dev.object()
	if !isOff(after) {
		s.t.Fatalf("after its end it is %q", after.State)
	}
	dev.carryOut(dev.change(providers.Start))
	dev.checkMade(dev.object())
	same(s.t, "the fingerprint, started again", before.Fingerprint, dev.object().Fingerprint)
	s.Kill(dev.object())
	dev.carryOut(dev.change(providers.Destroy))
	if o := dev.find(); o != nil {
		s.t.Errorf("after its destruction there is %+v", o)
	}
	same(s.t, "what is left of one that ended by itself", nothing, s.Traces())
}

func claims(s *stage) {
	port := s.freePort()
	dev := s.actor("dev")
	dev.want = with(dev.want, "port_forward", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"guest": cty.NumberIntVal(8080), "host": cty.StringVal(port),
		"host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
	})}))
	taken := dev.steps(dev.change(providers.Create))[0].Takes
	if len(taken) != 2 {
		s.t.Errorf("making it takes %v, and was to take its name and its port", taken)
	}
	dev.create()
	same(s.t, "what it holds is what its making took", taken, dev.object().Holds)
	dev.carryOut(dev.change(providers.Stop))
	same(s.t, "what it holds while it is off", taken, dev.object().Holds)
	steps := dev.steps(dev.change(providers.Destroy))
	same(s.t, "what its removal frees", taken, steps[len(steps)-1].Frees)
	steps = dev.steps(providers.Change{
		Address: dev.address, Kind: spec.VM, Action: providers.Update, Name: dev.name, ID: dev.id, Object: dev.find(),
		Want: s.Want, Policy: s.Policy, Generation: 2, Edits: []providers.Edit{{Path: "port_forward"}},
	})
	same(s.t, "what an edit of the port frees", taken[1:], steps[0].Frees)
}
