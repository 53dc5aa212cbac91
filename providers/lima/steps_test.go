//go:build unix

package lima_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
)

// planned returns the steps of every action on what was observed, or the reasons why there are none.
func (l *lab) planned(inv providers.Inventory) string {
	var b strings.Builder
	for _, a := range []spec.Address{dev, cache} {
		var there *providers.Object
		for _, o := range inv.Objects {
			if o.Kind == a.Kind && o.Owner != nil {
				there = &o
			}
		}
		if there == nil {
			l.t.Fatalf("%s was not observed", a)
		}
		for _, action := range []providers.Action{
			providers.Create, providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start, providers.Stop,
			providers.Recover, providers.Adopt, providers.Import, providers.Forget, providers.Release, providers.NoOp,
		} {
			c := l.change(a, action, there)
			if action == providers.Create {
				c.Object = nil
			}
			steps, err := l.p.Steps(c)
			text, marshalErr := json.Marshal(steps)
			if marshalErr != nil {
				l.t.Fatal(marshalErr)
			}
			b.WriteString(string(action) + " " + a.String() + ": " + string(text))
			if err != nil {
				b.WriteString(" " + err.Error())
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Steps follow from what was observed: what the disk has become since changes none. The protection of limactl is in
// the observation, too.
//
// row L56, of Lima's protection
func TestStepsReadNoDisk(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	free := l.observe()
	want := l.planned(free)
	l.write("", "lab.dev", "protected")
	if got := l.planned(free); got != want {
		t.Errorf("with a protection that was not observed the steps are\n%s\nand were\n%s", got, want)
	}
	guarded := l.observe()
	for _, action := range []providers.Action{providers.Destroy, providers.ReplaceIt} {
		var o *providers.Object
		for _, one := range guarded.Objects {
			if one.ID == devID {
				o = &one
			}
		}
		_, err := l.p.Steps(l.change(dev, action, o))
		problem := (*providers.Problem)(nil)
		if !errors.As(err, &problem) || !strings.Contains(err.Error(), "lab.dev cannot be removed: it is protected by limactl") ||
			!strings.Contains(problem.Next[0].Text, "LIMA_HOME="+l.home+" limactl unprotect lab.dev") {
			t.Errorf("%s of a protected instance: %v", action, err)
		}
	}
	want = l.planned(guarded)
	if err := errors.Join(os.Rename(l.home, filepath.Join(l.data, "away")), os.Symlink(filepath.Join(l.data, strings.Repeat("x", 100)), l.home)); err != nil {
		t.Fatal(err)
	}
	if got := l.planned(guarded); got != want {
		t.Errorf("without the home the steps are\n%s\nand were\n%s", got, want)
	}
}

// Lima gives the paths of disks to QEMU as they are: a comma ends them. Such a home is refused by the plan.
func TestHomeWithComma(t *testing.T) {
	h := newHouse(t)
	s := h.settings()
	s.Dir = filepath.Join(h.data, "a,b")
	p, err := h.limaType().Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []spec.Address{dev, cache} {
		c := (&lab{house: h, p: p, vm: want()}).change(a, providers.Create, nil)
		if _, err := p.Steps(c); err == nil || !strings.Contains(err.Error(), "has a comma") {
			t.Errorf("create %s: %v", a, err)
		}
	}
}
