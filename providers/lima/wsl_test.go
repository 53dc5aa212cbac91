//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/wsl/wsltest"
	"vmctl/providers"
	"vmctl/providers/providertest"
)

const (
	poweredOff   = "power off lima-lab.dev"
	terminated   = "terminate lima-lab.dev"
	unregistered = "unregister lima-lab.dev, which is Stopped and has its disk"
	forgotten    = "unregister lima-lab.dev, which is Stopped and has no disk"
)

// An instance of WSL is stopped by a request to its guest, and unregistered only after it was terminated; its
// folder goes last. Others are left alone.
//
// row L29, of WSL2
func TestWSLLifecycle(t *testing.T) {
	t.Parallel()
	l := newWSLLab(t)
	if o := l.object(devID); o == nil || o.State != providers.StateRunning || len(o.Findings) > 0 {
		t.Fatalf("it is seen as %+v", o)
	}
	l.acts()
	l.do(dev, providers.Stop)
	if acts, how := l.acts(), l.results[0].How; acts != poweredOff || how != providers.Graceful {
		t.Errorf("stopped: %q by %s, %q", acts, how, l.results[0].Evidence)
	}
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 {
		t.Errorf("stopped, it is %s, %s", o.State, findings(o))
	}
	l.do(dev, providers.Start)
	if o := l.object(devID); o.State != providers.StateRunning || len(o.Findings) > 0 || l.acts() != "" {
		t.Errorf("started, it is %s, %s", o.State, findings(o))
	}
	l.do(dev, providers.Destroy)
	if acts := l.acts(); acts != poweredOff+"; "+terminated+"; "+unregistered {
		t.Errorf("destroyed: %s", acts)
	}
	said := ""
	for _, r := range l.results {
		said += strings.Join(r.Evidence, "\n") + "\n"
	}
	if before, after := strings.Index(said, "terminated the distribution lima-lab.dev"), strings.Index(said, "unregistered the distribution lima-lab.dev"); before < 0 || after < before {
		t.Errorf("the steps say %s", said)
	}
	if _, err := os.Lstat(l.inDev("")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	if all := l.world.Read(); len(all) != 1 || all[0].Name != "Ubuntu" || all[0].State != wsltest.Running {
		t.Errorf("left are %+v", all)
	}
}

// Whatever happened to it, an instance of WSL is seen as it is, without a trace, and runs again after one
// change.
//
// row L26, of the steps
func TestWSLRecovery(t *testing.T) {
	const plain = "recover start wait_ssh"
	deaf := set("params", cty.MapVal(map[string]cty.Value{"deaf": cty.StringVal("yes")}))
	for _, test := range []struct {
		name   string
		edits  []func(map[string]cty.Value)
		harm   func(l *wslLab)
		state  string
		says   string // in its findings
		how    providers.How
		steps  string // of the recovery
		acts   string // of the recovery
		forced bool   // the policy gives no grace
	}{
		{name: "the host agent was killed", harm: func(l *wslLab) { l.kill("ha.pid") }, state: "broken", says: "broken: the distribution lima-lab.dev runs without a host agent", how: providers.Graceful, steps: plain, acts: poweredOff},
		{
			name: "the host agent was killed, and the guest ignores requests", edits: []func(map[string]cty.Value){deaf}, forced: true,
			harm: func(l *wslLab) { l.kill("ha.pid") }, state: "broken", how: providers.Forced, steps: plain, acts: poweredOff + "; " + terminated,
		},
		{
			name: "its root disk is gone", state: "broken", says: "broken: WSL has the registration lima-lab.dev, and its root disk ", steps: plain, acts: terminated + "; " + forgotten, how: providers.AlreadyTrue,
			harm: func(l *wslLab) {
				l.do(dev, providers.Stop)
				drop(l.inDev("ext4.vhdx"))
			},
		},
		{
			name: "its folder is gone", state: "broken", says: "partial: it is half made: it has no lima.yaml", steps: "recover redefine start wait_ssh", acts: terminated + "; " + forgotten, how: providers.AlreadyTrue,
			harm: func(l *wslLab) {
				l.do(dev, providers.Stop)
				drop(l.inDev(""))
			},
		},
		{
			name: "its folder is empty", state: "broken", says: "partial: it is half made: it has no lima.yaml", steps: "recover redefine start wait_ssh", acts: terminated + "; " + forgotten, how: providers.AlreadyTrue,
			harm: func(l *wslLab) {
				l.do(dev, providers.Stop)
				drop(l.inDev(""))
				if err := os.Mkdir(l.inDev(""), 0o700); err != nil {
					l.t.Fatal(err)
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newWSLLab(t, test.edits...)
			if test.forced {
				l.policy = providertest.Waits(time.Millisecond)
			}
			test.harm(l)
			traces := strings.Join(l.traces(), "\n")
			o := l.object(devID)
			if now := strings.Join(l.traces(), "\n"); now != traces {
				t.Errorf("observing it has left traces:\n%s\nbefore:\n%s", now, traces)
			}
			if o == nil || o.State != test.state || !strings.Contains(findings(o), test.says) {
				t.Fatalf("it is seen as %+v, and was to be %s, %q", o, test.state, test.says)
			}
			steps, err := l.p.Steps(l.change(dev, providers.Recover, o))
			if err != nil {
				t.Fatal(err)
			}
			var ops []string
			for _, s := range steps {
				ops = append(ops, s.Op)
			}
			if got := strings.Join(ops, " "); got != test.steps {
				t.Errorf("the steps are %q, want %q", got, test.steps)
			}
			l.acts()
			l.do(dev, providers.Recover)
			if how := l.results[0].How; how != test.how {
				t.Errorf("it ended by %s, %q", how, l.results[0].Evidence)
			}
			if acts := l.acts(); acts != test.acts {
				t.Errorf("acts: %q, want %q", acts, test.acts)
			}
			if o := l.object(devID); o.State != providers.StateRunning || len(o.Findings) > 0 {
				t.Errorf("afterwards it is %s, with %q", o.State, findings(o))
			}
		})
	}
}

// An instance that was never started has no registration, and is not broken: its first start makes one.
//
// row L26, of what is not registered
func TestWSLNeverStarted(t *testing.T) {
	t.Parallel()
	l := newWSLLab(t, set("running", cty.False))
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 || l.own() != nil {
		t.Fatalf("it is %s, with %q", o.State, findings(o))
	}
	l.vm = want(set("template", cty.StringVal("vmType: wsl2\n")))
	l.do(dev, providers.Start)
	if o := l.object(devID); o.State != providers.StateRunning || l.own() == nil {
		t.Errorf("started, it is %s", o.State)
	}
	l.do(dev, providers.Stop)
	l.do(dev, providers.Destroy)
	if l.own() != nil || l.object(devID) != nil {
		t.Error("it is there")
	}
}

// A distribution that has the name of the instance and is in another folder, and a root disk that WSL does not
// know, are shown and never touched.
func TestWSLOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("a name of another folder", func(t *testing.T) {
		l := newWSLLab(t)
		l.do(dev, providers.Stop)
		elsewhere := filepath.Join(l.data, "elsewhere")
		if err := os.Rename(l.inDev("ext4.vhdx"), filepath.Join(mustMake(t, elsewhere), "ext4.vhdx")); err != nil {
			t.Fatal(err)
		}
		l.move(func(d *wsltest.Distribution) { d.Folder, d.State = elsewhere, wsltest.Running })
		l.acts()
		o := l.object(devID)
		if o.State != providers.StateOff || findings(o) != "broken: WSL has given its name lima-lab.dev to another distribution, which is in "+elsewhere {
			t.Errorf("it is %s, with %q", o.State, findings(o))
		}
		if err := l.try(dev, providers.Start); err == nil || !strings.Contains(err.Error(), "a start would run another distribution") {
			t.Errorf("started: %v", err)
		}
		l.do(dev, providers.Destroy)
		if d := l.own(); d == nil || d.State != wsltest.Running || l.acts() != "" {
			t.Errorf("the other one is %+v, after %q", d, l.acts())
		}
	})
	t.Run("a root disk without a registration", func(t *testing.T) {
		l := newWSLLab(t)
		l.do(dev, providers.Stop)
		l.move(func(d *wsltest.Distribution) { d.Name = "renamed" })
		o := l.object(devID)
		if o.State != providers.StateOff || findings(o) != "broken: its root disk ext4.vhdx is there, and WSL has no registration lima-lab.dev" {
			t.Errorf("it is %s, with %q", o.State, findings(o))
		}
		if err := l.try(dev, providers.Start); err == nil || !strings.Contains(err.Error(), "its root disk is not registered") {
			t.Errorf("started: %v", err)
		}
	})
	t.Run("a registration that nobody noted", func(t *testing.T) {
		l := newWSLLab(t)
		l.do(dev, providers.Stop)
		drop(l.inDev(""))
		drop(filepath.Join(l.data, "keys", string(devID), "wsl.json"))
		l.acts()
		if o := l.object(devID); o != nil {
			t.Errorf("it is taken for vmctl's: %+v", o)
		}
		o := l.object("lima:vm:lab.dev")
		if o == nil || o.Owner != nil || o.State != providers.StateBroken || o.Findings[0].Action != "left alone: nothing shows that vmctl has registered it; wsl.exe --unregister lima-lab.dev removes it" {
			t.Fatalf("it is seen as %+v", o)
		}
		if err := l.carryOut(l.change(dev, providers.Create, nil)); err == nil || !strings.Contains(err.Error(), "an instance of the name lab.dev exists already") {
			t.Errorf("created: %v", err)
		}
		c := l.change(dev, providers.Destroy, o)
		c.Prior = cty.NilVal
		if err := l.carryOut(c); err == nil || !strings.Contains(err.Error(), "instance lab.dev (lima:vm:lab.dev) is gone since the plan was made") {
			t.Errorf("destroyed: %v", err)
		}
		if acts := l.acts(); acts != "" || l.own() == nil {
			t.Errorf("acts: %s", acts)
		}
	})
}

// A registration is found to be dead after the stop, also if a host agent ran before it.
func TestWSLDeadAfterStop(t *testing.T) {
	t.Parallel()
	l := newWSLLab(t)
	l.do(dev, providers.Stop)
	drop(l.inDev("ext4.vhdx"))
	t.Cleanup(l.hostAgent("lab.dev"))
	if o := l.object(devID); o.State != providers.StateBroken || !strings.Contains(findings(o), "runs, and the distribution lima-lab.dev does not") {
		t.Fatalf("it is %s, with %q", o.State, findings(o))
	}
	l.acts()
	l.do(dev, providers.Destroy)
	if acts := l.acts(); acts != terminated+"; "+forgotten || l.object(devID) != nil {
		t.Errorf("destroyed by %q", acts)
	}
}

func mustMake(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// While WSL does not tell what it has, the instance is unknown, and nothing is done to it.
//
// row L26, of what cannot be read
// row L28, of wsl.exe
func TestWSLUnknown(t *testing.T) {
	t.Parallel()
	l := newWSLLab(t)
	failing := slices.Repeat([]wsltest.Fault{{Kind: wsltest.Fail}}, 20)
	c := l.change(dev, providers.Stop, l.object(devID))
	l.world.Break(append([]wsltest.Fault{{Kind: wsltest.None}}, failing...)...) // it is read when the step begins, and not afterwards
	if err := l.carryOut(c); err == nil || !strings.Contains(err.Error(), "stop: what runs cannot be read, and nothing was done") {
		t.Errorf("stopped: %v", err)
	}
	l.world.Break(failing...)
	if o := l.object(devID); o == nil || o.State != "" || !strings.HasPrefix(o.Unreadable["running"], "it could not be read whether it runs: wsl.exe") {
		t.Errorf("while its host agent runs, it is seen as %+v", o)
	}
	l.world.Break()
	l.do(dev, providers.Stop)
	l.acts()
	for _, kind := range []wsltest.Kind{wsltest.Hang, wsltest.HangAfter, wsltest.Fail, wsltest.FailAfter, wsltest.Lie, wsltest.Cut, wsltest.Garble} {
		l.world.Break(wsltest.Fault{Kind: kind, Part: 50})
		o := l.object(devID)
		if o == nil || o.State != "" || !strings.HasPrefix(o.Unreadable["running"], "it could not be read whether it runs: ") {
			t.Errorf("%s: it is seen as %+v", kind, o)
		}
		l.world.Break()
		c = l.change(dev, providers.Destroy, l.object(devID))
		l.world.Break(wsltest.Fault{Kind: kind, Part: 50})
		err := l.carryOut(c)
		if err == nil || !strings.Contains(err.Error(), "read what runs lab.dev") {
			t.Errorf("%s: destroyed: %v", kind, err)
		}
		var p *providers.Problem
		if late := kind == wsltest.Hang || kind == wsltest.HangAfter; errors.As(err, &p) && (p.Outcome == providers.Timeout) != late {
			t.Errorf("%s: the outcome is %s", kind, p.Outcome)
		}
		for _, file := range []string{"lima.yaml", "vmctl.json", "ext4.vhdx"} {
			if _, err := os.Lstat(l.inDev(file)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	if acts := l.acts(); acts != "" {
		t.Errorf("acts: %s", acts)
	}
}
