//go:build unix

package lima_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/internal/real"
	"vmctl/internal/wsl/wsltest"
	"vmctl/providers"
)

// Whatever faults wsl.exe has, whatever others do to the distributions, and whether a host agent runs: what runs
// and what is in another folder is never unregistered; the files of an instance stay as long as WSL has its
// registration; it is off only if nothing of it runs; a deletion that succeeds leaves nothing; and once the
// faults end, one more deletion succeeds. The calls are no processes: internal/wsl repeats its own laws with some.
//
// row L26, of WSL2
// row L29, of WSL2
func TestWSLSearch(t *testing.T) {
	real.Long(t)
	t.Parallel()
	l := newWSLLab(t, set("running", cty.False))
	files := map[string]string{"lima.yaml": l.read("lab.dev", "lima.yaml"), "vmctl.json": l.read("lab.dev", "vmctl.json")}
	policy := briefly(t).AsValueMap()
	stop := policy["stop"].AsValueMap()
	stop["force_wait"] = cty.NumberIntVal(3)
	policy["stop"] = cty.ObjectVal(stop)
	hasty, patient := cty.ObjectVal(policy), briefly(t)
	l.wsl.Played, l.tool, l.clock = l.world.Answer, noProgram(t), new(leapingClock)
	p, err := l.limaType().Open(t.Context(), l.settings())
	if err != nil {
		t.Fatal(err)
	}
	l.p = p
	rapid.Check(t, func(t *rapid.T) {
		c := &wslCase{T: t, wslLab: l, files: files}
		l.policy = hasty
		c.begin()
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			c.step()
		}
		l.world.Break()
		c.mix()
		l.policy = patient
		if err := c.destroy(); err != nil {
			t.Fatalf("without faults: %v", err)
		}
		if _, err := os.Lstat(l.inDev("")); err == nil || c.registered() {
			t.Fatalf("a deletion that succeeded left its folder or its registration: %+v", l.world.Read())
		}
	})
}

// noProgram returns a program that does nothing, as vmctl-lima does to delete an instance of WSL.
func noProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// wslCase is a case of the search.
type wslCase struct {
	*rapid.T
	*wslLab
	files map[string]string
	agent func() // ends the host agent; nil: none runs
}

// begin makes the instance, off and without a registration.
func (c *wslCase) begin() {
	c.acts()
	drop(c.inDev(""))
	for name, content := range c.files {
		c.write(content, "lab.dev", name)
	}
	c.mix()
	if rapid.IntRange(0, 3).Draw(c.T, "host agent") == 3 {
		c.agent = c.hostAgent("lab.dev")
		c.Cleanup(c.agent)
	}
}

// mix lets others start, stop, move, unregister and damage distributions.
func (c *wslCase) mix() {
	elsewhere := filepath.Join(c.data, "elsewhere")
	drop(elsewhere)
	if _, err := os.Lstat(c.inDev("")); err != nil { // it is deleted
		return
	}
	all := slices.DeleteFunc(c.world.Read(), func(d wsltest.Distribution) bool { return d.Name != "Ubuntu" })
	drop(c.inDev("ext4.vhdx"))
	state := rapid.SampledFrom([]string{wsltest.Running, "Stopped", "Installing"}).Draw(c.T, "state")
	if c.world.Next() == wsltest.None && state == "Installing" { // nothing can be done then
		state = "Stopped"
	}
	where := rapid.SampledFrom([]string{"here", "here", "elsewhere", "nowhere"}).Draw(c.T, "registration")
	d := wsltest.Distribution{Name: "lima-lab.dev", Folder: filepath.Clean(c.inDev("")), State: state, Deaf: rapid.Bool().Draw(c.T, "deaf")}
	if where == "elsewhere" {
		d.Name, d.Folder = "Lima-Lab.dev", elsewhere
	}
	if where != "nowhere" {
		all = append(all, d)
	}
	if state == wsltest.Running || rapid.Bool().Draw(c.T, "root disk") {
		if err := os.MkdirAll(d.Folder, 0o700); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Folder, "ext4.vhdx"), []byte("vhdxfile"), 0o600); err != nil {
			c.Fatal(err)
		}
	}
	c.world.Set(all...)
}

// registered reports whether the instance's own registration is there.
func (c *wslCase) registered() bool { return c.own() != nil }

// step does one thing to the instance while calls of wsl.exe may fail, and checks the laws.
func (c *wslCase) step() {
	faults := slices.Repeat([]wsltest.Fault{{Kind: wsltest.None}}, 14)
	for range rapid.IntRange(0, 2).Draw(c.T, "faults") {
		faults[rapid.IntRange(0, len(faults)-1).Draw(c.T, "of call")] = wsltest.Fault{
			Kind: rapid.SampledFrom(wsltest.Kinds()).Draw(c.T, "kind"), Part: rapid.IntRange(0, 99).Draw(c.T, "part"),
		}
	}
	c.world.Break(faults...)
	switch rapid.SampledFrom([]string{"destroy", "stop", "mix", "observe"}).Draw(c.T, "step") {
	case "destroy":
		if err := c.destroy(); err == nil && c.registered() {
			c.Fatal("a deletion that succeeded left the registration")
		}
	case "stop":
		if o := c.observed(); o != nil {
			_ = c.carryOut(c.change(dev, providers.Stop, o)) //nolint:errcheck // it may fail
		}
	case "mix":
		c.mix()
	case "observe":
		c.observed()
	}
	c.check()
}

// observed returns the instance as it is seen, and fails if it is seen to be off and is not.
func (c *wslCase) observed() *providers.Object {
	before := c.own()
	o := c.object(devID)
	switch {
	case o == nil && c.there("vmctl.json"):
		c.Fatal("it is seen to be absent")
	case o == nil:
		return nil
	case o.State == providers.StateOff && (before != nil && before.State != "Stopped" || len(c.processesOf("lab.dev")) > 0):
		c.Fatalf("it is seen to be off, and is %+v", before)
	}
	return o
}

func (c *wslCase) there(file string) bool {
	_, err := os.Lstat(c.inDev(file))
	return err == nil
}

func (c *wslCase) destroy() error {
	o := c.observed()
	if o == nil {
		return nil
	}
	return c.carryOut(c.change(dev, providers.Destroy, o))
}

// check fails if something was done that must never be, or if files are gone before the registration is.
func (c *wslCase) check() {
	for act := range strings.SplitSeq(c.acts(), "; ") {
		switch act {
		case "", poweredOff, terminated, unregistered, forgotten:
		default:
			c.Fatalf("it did: %s", act)
		}
	}
	if c.registered() && (!c.there("vmctl.json") || !c.there("lima.yaml")) {
		c.Fatal("its files are gone, and it is registered")
	}
}
