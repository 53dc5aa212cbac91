//go:build unix

package lima_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// rekey carries out a restart that gives the guest new keys.
func (l *lab) rekey() error {
	l.t.Helper()
	o := l.object(devID)
	if o == nil {
		o = l.object("lima:vm:lab.dev")
	}
	c := l.change(dev, providers.RestartIt, o)
	c.ID, c.Rekey = o.ID, &providers.Verdict{Applies: providers.Restart}
	return l.carryOut(c)
}

// New keys are another host key, which the guest has and vmctl pins, and a key to log in with that can be read. What has
// no key of vmctl's is refused before anything is stopped, with what to type.
func TestRekey(t *testing.T) {
	l := newLab(t)
	hostKey := regexp.MustCompile(`"host_key": "([^"]*)"`)
	pinned := func() string {
		m := hostKey.FindStringSubmatch(l.read("lab.dev", "vmctl.json"))
		if m == nil {
			t.Fatal("the mark has no host key")
		}
		return m[1]
	}
	before, text := pinned(), l.read("lab.dev", "lima.yaml")
	if err := l.rekey(); err != nil {
		t.Fatal(err)
	}
	if pinned() == before || l.read("lab.dev", "lima.yaml") == text {
		t.Error("its host key is as before")
	}
	l.do(dev, providers.RestartIt)
	before = pinned()
	l.do(dev, providers.RestartIt)
	if pinned() != before {
		t.Error("a restart changed its host key")
	}

	l.write("damaged", "_config", "user")
	if err := l.try(dev, providers.RestartIt); err == nil || !strings.Contains(err.Error(), "make the key pair") {
		t.Errorf("with a damaged key of the home: %v", err)
	}
	if err := l.rekey(); err != nil {
		t.Fatal(err)
	}

	refused := func(says string) {
		t.Helper()
		agent := l.pid("ha.pid")
		err := l.rekey()
		problem := (*providers.Problem)(nil)
		if !errors.As(err, &problem) || problem.Outcome != providers.Unsafe || !strings.Contains(err.Error(), says) || len(problem.Next) == 0 {
			t.Errorf("%v, want %q", err, says)
		}
		if l.pid("ha.pid") != agent {
			t.Errorf("%s: it was stopped", says)
		}
	}
	own := l.vm
	ssh := own.GetAttr("ssh").AsValueMap()
	ssh["host_key"] = cty.StringVal("accept-new")
	all := own.AsValueMap()
	all["ssh"] = cty.ObjectVal(ssh)
	l.vm = cty.ObjectVal(all)
	refused(`host_key = "accept-new" leaves the guest its own host key`)
	l.vm = own
	l.write(strings.Replace(l.read("lab.dev", "vmctl.json"), `"owner"`, `"imported": true, "owner"`, 1), "lab.dev", "vmctl.json")
	refused("vmctl did not make the instance lab.dev, whose keys are its own")
}
