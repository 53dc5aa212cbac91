//go:build unix

package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/real"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/provision"
	"vmctl/spec"
)

var dev = spec.Address{Kind: spec.VM, Name: "dev"}

// system is a provider with the VM vm.dev, whose guest a test chooses.
type system struct {
	providers.Provider
	running []*bool // as each look finds it; the last one stays
	guest   providers.Guest
	entered error // of Enter
	enters  int
}

func (s *system) Observe(context.Context, providers.Query) (providers.Inventory, error) {
	o := providers.Object{Kind: spec.VM, ID: "1", Name: "one", Fingerprint: "as it is", Running: s.running[0], Unreadable: map[string]string{"running": "no answer"}}
	o.Owner = &providers.Mark{ID: "lab", Address: dev, Of: "1"}
	s.running = s.running[min(1, len(s.running)-1):]
	return providers.Inventory{Objects: []providers.Object{o}}, nil
}

func (s *system) Enter(context.Context, providers.Object, cty.Value) (providers.Guest, error) {
	s.enters++
	return s.guest, s.entered
}

func (s *system) Steps(providers.Change) ([]providers.Step, error) { return nil, nil }

func (s *system) Do(context.Context, providers.Work, providers.Log) (providers.Result, error) {
	return providers.Result{Gone: true}, nil
}

// open wraps a provider, which keeps its logs in a folder.
func open(t *testing.T, p providers.Provider, dir string) providers.Provider {
	t.Helper()
	typ := provision.Wrap(providers.Type{
		Name: "lab", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.VM: {}},
		Open: func(context.Context, providers.Settings) (providers.Provider, error) { return p, nil },
	})
	opened, err := typ.Open(t.Context(), providers.Settings{Dir: dir, Project: providers.Project{ID: "lab"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// lab runs the script tools of vm.dev.
type lab struct {
	*home
	system *system
	logs   string
	said   []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	on := true
	l := &lab{home: newHome(t), logs: t.TempDir()}
	l.system = &system{running: []*bool{&on}, guest: staying{l.guest}}
	return l
}

// work returns the work of a step that runs a script.
func work(text, run, digest string) providers.Work {
	w := providers.Work{Expect: "as it is", Digest: digest, Prior: cty.EmptyObjectVal}
	w.Op, w.Address, w.Object, w.Name, w.Provision = "provision tools", dev, "1", "one", "tools"
	w.Want = cty.ObjectVal(map[string]cty.Value{"provision": cty.ObjectVal(map[string]cty.Value{"tools": cty.ObjectVal(map[string]cty.Value{
		"script": cty.StringVal(text), "run": cty.StringVal(run), "timeout": cty.NumberIntVal(3600),
	})})})
	return w
}

func (l *lab) do(ctx context.Context, w providers.Work) (providers.Result, *providers.Problem) {
	l.t.Helper()
	r, err := open(l.t, l.system, l.logs).Do(ctx, w, func(p providers.Progress) { l.said = append(l.said, p.Text) })
	var p *providers.Problem
	if err != nil && !errors.As(err, &p) {
		l.t.Fatal(err)
	}
	return r, p
}

// ran returns what the script has written into the file ran.
func (l *lab) ran() string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "ran"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// staying is a guest that outlives its visitors.
type staying struct{ providers.Guest }

func (staying) Close() error { return nil }

// losing is a guest that loses the end of the first command of an action.
type losing struct {
	providers.Guest
	action string
	lost   bool
}

func (g *losing) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	o, err := g.Guest.Run(ctx, c)
	if !g.lost && slices.Contains(c.Args, g.action) {
		g.lost = true
		return providers.Output{}, &providers.FateError{Program: "sh", Err: errors.New("the connection was lost")}
	}
	return o, err
}

// failing is a guest in which no command begins.
type failing struct {
	staying
	err  error
	took time.Duration // by each attempt
	runs int
}

func (g *failing) Run(context.Context, providers.Command) (providers.Output, error) {
	g.runs++
	time.Sleep(g.took)
	return providers.Output{}, fmt.Errorf("run %q: it did not begin: %w", "sh", g.err)
}

// expired is a context that ends like one whose deadline passes.
type expired struct{ context.Context } //nolint:containedctx // it is a context itself

func (c expired) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// The output of a run with another digest is never shown nor kept. A script that runs once has run then, and the
// result says which one; any other script runs afterwards.
func TestRunOfAnotherDigest(t *testing.T) {
	for _, test := range []struct{ run, digest, ran string }{
		{"once", "old", "old\n"},
		{"on_change", "new", "old\nnew\n"},
	} {
		t.Run(test.run, func(t *testing.T) {
			l := newLab(t)
			l.pipe("begun")
			l.pipe("go")
			l.system.guest = &meeting{Guest: l.system.guest, meet: func() { l.send() }}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan *providers.Problem)
			go func() {
				_, p := l.do(ctx, work("echo secret; echo old >>ran; echo on >begun; read -r x <go; echo secret\n", test.run, "old"))
				ended <- p
			}()
			l.receive()
			cancel()
			if p := <-ended; p == nil || p.Code != "interrupted" {
				t.Fatalf("it was interrupted: %v", p)
			}
			l.said, l.logs = nil, t.TempDir()
			r, p := l.do(t.Context(), work("echo new >>ran\n", test.run, "new"))
			if p != nil || r.Digest != test.digest {
				t.Errorf("%+v, %v; want digest %s", r, p, test.digest)
			}
			if ran := l.ran(); ran != test.ran {
				t.Errorf("it ran %q, want %q", ran, test.ran)
			}
			shown := strings.Join(append(l.said, r.Evidence...), "\n")
			if strings.Contains(shown, "secret") || !strings.Contains(shown, "an earlier run of it goes on, with another script") {
				t.Errorf("it said %q", shown)
			}
			logs, err := filepath.Glob(filepath.Join(l.logs, "provision", "*", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range logs {
				if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "secret") {
					t.Errorf("%s: %q, %v", path, text, err)
				}
			}
		})
	}
}

// meeting is a guest that tells of the first run that is followed after another one was interrupted.
type meeting struct {
	providers.Guest
	follows int
	meet    func()
}

func (g *meeting) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if slices.Contains(c.Args, "follow") {
		if g.follows++; g.follows == 2 {
			g.meet()
		}
	}
	return g.Guest.Run(ctx, c)
}

// After its connection was lost, a step follows the run that it started, and starts nothing again.
func TestLostConnection(t *testing.T) {
	real.Long(t)
	for _, action := range []string{"start", "follow"} {
		for _, status := range []string{"0", "3"} {
			t.Run(action+" "+status, func(t *testing.T) {
				l := newLab(t)
				l.system.guest = &losing{Guest: l.system.guest, action: action}
				if action == "start" { // it has ended when the guest is entered again
					l.pipe("over")
					l.system.guest.(*losing).Guest = &after{Guest: staying{l.guest}, action: action, then: func() {
						_, err := l.Follow(t.Context(), runOf(t, l.home), filepath.Join(t.TempDir(), "log"))
						if err != nil {
							t.Error(err)
						}
					}}
				}
				r, p := l.do(t.Context(), work("echo ran >>ran; exit "+status+"\n", "on_change", "digest"))
				if status == "0" && (p != nil || r.How != providers.Done || len(r.Evidence) > 0) {
					t.Errorf("%+v, %v", r, p)
				}
				if status == "3" && (p == nil || !strings.HasSuffix(p.Error(), "its script ended with status 3")) {
					t.Errorf("it did not fail as its script: %v", p)
				}
				if ran := l.ran(); ran != "ran\n" {
					t.Errorf("it ran %q", ran)
				}
				if l.system.enters != 2 {
					t.Errorf("the guest was entered %d times", l.system.enters)
				}
			})
		}
	}
}

// So does a step that found a run: though that has failed meanwhile, it does not run again.
func TestLostConnectionToAnEarlierRun(t *testing.T) {
	real.Long(t)
	l := newLab(t)
	l.pipe("begun")
	l.pipe("go")
	w := work("echo ran >>ran; echo on >begun; read -r x <go; exit 3\n", "on_change", "digest")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan *providers.Problem)
	go func() {
		_, p := l.do(ctx, w)
		ended <- p
	}()
	l.receive()
	cancel()
	if p := <-ended; p == nil || p.Code != "interrupted" {
		t.Fatalf("it was interrupted: %v", p)
	}
	l.system.guest = &losing{Guest: &meeting{Guest: staying{l.guest}, follows: 1, meet: func() { l.send() }}, action: "follow"}
	if _, p := l.do(t.Context(), w); p == nil || !strings.HasSuffix(p.Error(), "its script ended with status 3") {
		t.Errorf("it did not fail as its script: %v", p)
	}
	if ran := l.ran(); ran != "ran\n" {
		t.Errorf("it ran %q", ran)
	}
}

// after is a guest that does something after each command of an action.
type after struct {
	providers.Guest
	action string
	then   func()
}

func (g *after) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	o, err := g.Guest.Run(ctx, c)
	if slices.Contains(c.Args, g.action) {
		g.then()
	}
	return o, err
}

// runOf returns the name of the only run.
func runOf(t *testing.T, h *home) string {
	t.Helper()
	all, err := filepath.Glob(h.path("tools.*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("runs: %v, %v", all, err)
	}
	return strings.TrimPrefix(filepath.Base(all[0]), "tools.")
}

// A script does not suffer from a log that cannot be written: the result says so.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no device that is full")
	}
	l := newLab(t)
	for _, status := range []string{"0", "3"} {
		w := work("echo hello; exit "+status+"\n", "on_change", status)
		if _, p := l.do(t.Context(), w); status == "0" && p != nil {
			t.Fatal(p)
		}
		logs, err := filepath.Glob(filepath.Join(l.logs, "provision", "*", "tools.log"))
		if err != nil || len(logs) != 1 {
			t.Fatal(logs, err)
		}
		if err := errors.Join(os.Remove(logs[0]), os.Symlink("/dev/full", logs[0])); err != nil {
			t.Fatal(err)
		}
		w.Digest += "again"
		r, p := l.do(t.Context(), w)
		said := r.Evidence
		if p != nil {
			said = p.Seen
		}
		if (p != nil) != (status == "3") || !strings.Contains(strings.Join(said, "\n"), "its log on this machine is not whole: write the log: ") {
			t.Errorf("status %s: %v, said %q", status, p, said)
		}
	}
}

// A deadline of the step ends no script by force: only its own limit does.
func TestDeadlineOfTheStep(t *testing.T) {
	l := newLab(t)
	l.pipe("begun")
	l.pipe("go")
	inner, cancel := context.WithCancel(t.Context())
	ended := make(chan *providers.Problem)
	go func() {
		_, p := l.do(expired{inner}, work("echo on >begun; read -r x <go\n", "on_change", "digest"))
		ended <- p
	}()
	l.receive()
	cancel()
	const want = "provision tools of vm.dev: vmctl stopped waiting; a script may go on in the guest, and the next apply waits for its end"
	if p := <-ended; p == nil || p.Outcome != providers.Timeout || p.Error() != want {
		t.Errorf("got %v\nwant %s", p, want)
	}
	run := runOf(t, l.home)
	if l.has("tools."+run, "status") {
		t.Fatal("its script has ended")
	}
	l.send()
	if status, _ := l.follow(run); status != 0 {
		t.Errorf("the script ended with status %d", status)
	}
}

// A guest is waited for as long as it may take to become ready, by the clock: not for longer than the step has, and not
// at all if no later attempt can succeed.
func TestUnreachableGuest(t *testing.T) {
	on := true
	for _, test := range []struct {
		name          string
		running       *bool
		err, entered  error
		limit         time.Duration // of the step; 0: none
		outcome       providers.Outcome
		code, says    string
		most, atLeast time.Duration
	}{
		{
			name: "silent", running: &on, err: errors.New("no answer"), outcome: providers.Timeout, code: "unreachable",
			says: "the guest was out of reach for 5m0s, and its script has not begun", atLeast: 5 * time.Minute, most: 6 * time.Minute,
		},
		{
			name: "silent, and the step has less time", running: &on, err: errors.New("no answer"), limit: time.Minute,
			outcome: providers.Timeout, code: "unreachable", says: "vmctl stopped waiting, and its script has not begun", atLeast: time.Minute, most: 2 * time.Minute,
		},
		{
			name: "unknown fate", running: &on, err: &providers.FateError{Program: "sh", Err: errors.New("lost")}, limit: time.Minute,
			outcome: providers.Timeout, code: "unreachable", says: "vmctl stopped waiting; a script may go on", atLeast: time.Minute, most: 2 * time.Minute,
		},
		{
			name: "no port yet", running: &on, entered: &providers.NotYetError{Err: errors.New("no port leads to its SSH")},
			outcome: providers.Timeout, code: "unreachable", says: "the guest was out of reach for 5m0s", atLeast: 5 * time.Minute, most: 6 * time.Minute,
		},
		{
			name: "no way in", running: &on, entered: errors.New("this machine has no key"),
			outcome: providers.Failed, code: "no_way_in", says: "this machine has no key",
		},
		{
			name: "not seen whether it runs", outcome: providers.Timeout, code: "unreachable",
			says: "the guest was out of reach for 5m0s", atLeast: 5 * time.Minute, most: 6 * time.Minute,
		},
		{
			name: "another host key", running: &on, err: &sshx.HostKeyError{Alias: "one", Shown: "SHA256:other", Known: []string{"SHA256:known"}},
			outcome: providers.Unsafe, code: "host_key_changed", says: "SHA256:other", most: time.Minute,
		},
		{
			name: "an unusable key", running: &on, err: &sshx.IdentityError{Err: errors.New("it is no key")},
			outcome: providers.Failed, code: "keys", says: "it is no key", most: time.Minute,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := &system{running: []*bool{test.running}, guest: &failing{err: test.err, took: 30 * time.Second}, entered: test.entered}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if test.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.limit)
				}
				defer cancel()
				began := time.Now()
				_, err := open(t, s, dir).Do(ctx, work("true\n", "once", "digest"), nil)
				var p *providers.Problem
				if !errors.As(err, &p) || p.Outcome != test.outcome || p.Code != test.code || !strings.Contains(p.Error(), test.says) {
					t.Errorf("got %+v\nwant %s %s: %s", p, test.outcome, test.code, test.says)
				}
				if took := time.Since(began); took < test.atLeast || took > test.most {
					t.Errorf("it waited %s, want %s to %s", took, test.atLeast, test.most)
				}
				if p != nil && test.running == nil && !slices.Contains(p.Seen, "last attempt: whether it runs could not be read: no answer") {
					t.Errorf("it saw %q", p.Seen)
				}
			})
		})
	}
}

// A command that no guest can run fails at once.
func TestInvalidCommand(t *testing.T) {
	l := newLab(t)
	l.system.guest = guest.InFolder(l.dir, nil)
	_, p := l.do(t.Context(), work("true\n", "once", "dig\x00est"))
	if p == nil || p.Outcome != providers.Failed || l.system.enters != 1 {
		t.Errorf("%v, after %d attempts", p, l.system.enters)
	}
}

// Whether a VM runs is looked at again if it could not be read.
func TestUnknownRunState(t *testing.T) {
	l := newLab(t)
	l.system.running = []*bool{nil, l.system.running[0]}
	if r, p := l.do(t.Context(), work("true\n", "once", "digest")); p != nil || r.How != providers.Done {
		t.Errorf("%+v, %v", r, p)
	}
}

// A VM is gone though the logs of its scripts are not.
func TestLogsThatStay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "provision"), nil, 0o600); err != nil { // no folder: nothing in it can be removed
		t.Fatal(err)
	}
	w := providers.Work{}
	w.Address = dev
	r, err := open(t, &system{}, dir).Do(t.Context(), w, nil)
	if err != nil || !r.Gone || len(r.Evidence) != 1 || !strings.HasPrefix(r.Evidence[0], "the logs of its scripts could not be removed: ") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A provider that has no way into its VMs refuses their scripts.
func TestNoWayIn(t *testing.T) {
	closed := struct{ providers.Provider }{&system{}}
	_, err := open(t, closed, t.TempDir()).Steps(providers.Change{Provisions: []providers.Provision{{Name: "tools", Due: true}}})
	if want := "provision tools cannot run: lab has no way into its VMs"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// hanging is a guest in which the log of a script is never copied to its end.
type hanging struct{ providers.Guest }

func (g hanging) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	o, err := g.Guest.Run(ctx, c)
	if err == nil && slices.Contains(c.Args, "follow") && c.Stdout != nil {
		<-ctx.Done()
		return providers.Output{}, &providers.FateError{Program: "sh", Err: context.Cause(ctx)}
	}
	return o, err
}

// A script that ended in time counts, also if its log takes longer.
func TestSlowLog(t *testing.T) {
	l := newLab(t)
	l.system.guest = hanging{l.system.guest}
	w := work("echo ran >>ran\n", "once", "digest")
	all := w.Want.AsValueMap()["provision"].AsValueMap()["tools"].AsValueMap()
	all["timeout"] = cty.NumberIntVal(1)
	w.Want = cty.ObjectVal(map[string]cty.Value{"provision": cty.ObjectVal(map[string]cty.Value{"tools": cty.ObjectVal(all)})})
	r, p := l.do(t.Context(), w)
	if p != nil || l.ran() != "ran\n" || !slices.ContainsFunc(r.Evidence, func(text string) bool { return strings.Contains(text, "its log on this machine is not whole") }) {
		t.Errorf("it ran %q, with %q: %v", l.ran(), r.Evidence, p)
	}
}
