package keptlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/keptlog"
	"vmctl/spec"
)

var dev = spec.Address{Kind: spec.VM, Name: "dev"}

// host is a provider of one VM.
type host struct {
	providers.Provider
	console string
	unread  error // why the console cannot be read
	logs    []providers.LogFile
	do      func() (providers.Result, error) // what a step comes to
}

func (h *host) Console(_ context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	if o.ID != "one" && !strings.HasPrefix(string(o.ID), "vm-") || o.Name != "demo.dev" {
		return providers.Console{}, fmt.Errorf("no VM %s %s", o.ID, o.Name)
	}
	start, length := providers.PartOf(int64(len(h.console)), from, most)
	return providers.Console{Text: []byte(h.console[start : start+length]), Start: start}, h.unread
}

func (h *host) Logs(spec.Address, providers.Object) ([]providers.LogFile, error) { return h.logs, nil }

func (h *host) Do(_ context.Context, _ providers.Work, log providers.Log) (providers.Result, error) {
	log(providers.Progress{Text: "trying hunter2"})
	return h.do()
}

// lab is a host, opened with a folder for logs.
type lab struct {
	*host
	t      *testing.T
	folder string
	addr   spec.Address
}

func newLab(t *testing.T) lab {
	t.Helper()
	l := lab{t: t, folder: filepath.Join(t.TempDir(), "logs"), addr: dev}
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte("agent: hunter2\nagent ends"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.host = &host{console: "boots\npassword hunter2\n", logs: []providers.LogFile{{Name: "agent.log", Path: agent}, {Name: "none.log", Path: agent + "-none"}}}
	return l
}

// told holds the words of a step, and whether it failed.
type told struct {
	seen   []string
	failed bool
}

// run carries out a step of the VM.
func (l lab) run(w providers.Work) told {
	l.t.Helper()
	typ := keptlog.Wrap(providers.Type{
		Kinds: map[spec.Kind]map[string]providers.Attribute{spec.VM: {}},
		Open:  func(context.Context, providers.Settings) (providers.Provider, error) { return l.host, nil },
	})
	p, err := typ.Open(l.t.Context(), providers.Settings{Logs: l.folder})
	if err != nil {
		l.t.Fatal(err)
	}
	if w.Object == "" {
		w.Object = "one"
	}
	w.Address, w.Name = l.addr, "demo.dev"
	w.Mask = func(text string) string { return strings.ReplaceAll(text, "hunter2", "(sensitive)") }
	r, err := p.Do(l.t.Context(), w, func(providers.Progress) {})
	var failed *providers.Problem
	if errors.As(err, &failed) {
		return told{seen: failed.Seen, failed: true}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return told{seen: r.Evidence}
}

// kept returns the kept logs, those of each VM in a text of its own.
func (l lab) kept() []string {
	l.t.Helper()
	all, err := keptlog.List(l.folder, l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	var texts []string
	for _, k := range all {
		var b strings.Builder
		for _, path := range k.Files {
			text, err := os.ReadFile(path)
			if err != nil {
				l.t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s: %q\n", filepath.Base(path), text)
		}
		texts = append(texts, b.String())
	}
	return texts
}

func ends(how providers.How, gone bool) func() (providers.Result, error) {
	return func() (providers.Result, error) { return providers.Result{How: how, Gone: gone}, nil }
}

func fails(o providers.Outcome) func() (providers.Result, error) {
	return func() (providers.Result, error) {
		return providers.Result{}, &providers.Problem{Outcome: o, Seen: []string{"it is hot"}, Err: errors.New("no")}
	}
}

const (
	logs = "agent.log: \"agent: (sensitive)\\nagent ends\"\nconsole.log: \"boots\\npassword (sensitive)\\n\"\n"
	said = "start.log: \"trying (sensitive)\\n\"\n"
)

// Logs are kept of a VM that is removed, if the user asks for it, and of one that fails to come up, in any case: without
// secrets, and of nothing else.
//
// row L43
func TestWhatIsKept(t *testing.T) {
	for _, test := range []struct {
		name string
		step providers.Step
		ask  bool
		do   func() (providers.Result, error)
		want string
	}{
		{"removed", providers.Step{Phase: providers.PhaseRemove}, false, ends(providers.Done, true), ""},
		{"removed, and asked for", providers.Step{Phase: providers.PhaseRemove}, true, ends(providers.Done, true), logs},
		{"gone already: another VM may have the name", providers.Step{Phase: providers.PhaseRemove}, true, ends(providers.AlreadyGone, true), ""},
		{"not removed", providers.Step{Phase: providers.PhaseRemove}, true, fails(providers.Failed), ""},
		{"made", providers.Step{Phase: providers.PhaseMake}, true, ends(providers.Done, false), ""},
		{"not made", providers.Step{Op: "start", Phase: providers.PhaseMake}, false, fails(providers.Failed), logs + said},
		{"not started", providers.Step{Op: "start", Phase: providers.PhaseUp}, false, fails(providers.Timeout), logs + said},
		{"not ready", providers.Step{Op: "start", Phase: providers.PhaseReady}, false, fails(providers.Failed), logs + said},
		{"a script failed", providers.Step{Op: "start", Phase: providers.PhaseReady, Provision: "setup"}, false, fails(providers.Failed), ""},
		{"refused: it may be another's", providers.Step{Op: "start", Phase: providers.PhaseUp}, false, fails(providers.Unsafe), ""},
		{"not as planned", providers.Step{Op: "start", Phase: providers.PhaseUp}, false, fails(providers.Stale), ""},
		{"not stopped", providers.Step{Phase: providers.PhaseDown}, true, fails(providers.Failed), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.do = test.do
			seen := l.run(providers.Work{Step: test.step, KeepLogs: test.ask}).seen
			if diff := cmp.Diff(test.want, strings.Join(l.kept(), "")); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			where := "its logs are kept in " + filepath.Join(l.folder, "vm.dev", "one")
			if got := slices.Contains(seen, where); got != (test.want != "") {
				t.Errorf("it says %q, and kept %q", seen, l.kept())
			}
		})
	}
}

// What cannot be kept is a warning, and the VM is removed.
//
// row L43
func TestUnkeepable(t *testing.T) {
	l := newLab(t)
	l.do, l.unread = ends(providers.Done, true), errors.New("no answer")
	got := l.run(providers.Work{Step: providers.Step{Phase: providers.PhaseRemove}, KeepLogs: true})
	want := []string{"its logs are kept in " + filepath.Join(l.folder, "vm.dev", "one"), "warning: not all of its logs could be kept: no answer"}
	if diff := cmp.Diff(want, got.seen); diff != "" || got.failed {
		t.Errorf("it fails: %t, and says (-want +got):\n%s", got.failed, diff)
	}
	l = newLab(t)
	l.do = ends(providers.Done, true)
	if err := os.WriteFile(l.folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got = l.run(providers.Work{Step: providers.Step{Phase: providers.PhaseRemove}, KeepLogs: true})
	if got.failed || len(got.seen) != 1 || !strings.HasPrefix(got.seen[0], "warning: not all of its logs could be kept: ") {
		t.Errorf("it fails: %t, and says %q", got.failed, got.seen)
	}
	l = newLab(t)
	l.do, l.unread, l.logs = ends(providers.Done, true), fmt.Errorf("never started: %w", providers.ErrNoConsole), nil
	if got = l.run(providers.Work{Step: providers.Step{Phase: providers.PhaseRemove}, KeepLogs: true}); got.failed || len(got.seen) > 0 {
		t.Errorf("a VM that was never started: it fails: %t, and says %q", got.failed, got.seen)
	}
}

// The logs of a VM replace those of an earlier failure of the same VM, and those of the last VMs of a name are kept.
func TestHowManyAreKept(t *testing.T) {
	l := newLab(t)
	l.do = fails(providers.Failed)
	var want []string
	for i := range keptlog.VMs + 2 {
		id := providers.ID(fmt.Sprintf("vm-%d", i))
		for _, text := range []string{"first", "second"} {
			l.console = fmt.Sprintf("%s try of %s", text, id)
			l.run(providers.Work{Step: providers.Step{Op: "start", Phase: providers.PhaseUp, Object: id}})
		}
		when := time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(l.folder, "vm.dev", string(id)), when, when); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("agent.log: \"agent: (sensitive)\\nagent ends\"\nconsole.log: %q\n", l.console)+said)
	}
	if diff := cmp.Diff(want[2:], l.kept()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// Of a long log the end is kept, and no line is cut.
func TestLongLog(t *testing.T) {
	l := newLab(t)
	l.do, l.logs = ends(providers.Done, true), nil
	l.console = strings.Repeat("x", 20<<20) + "\nthe end\n"
	l.run(providers.Work{Step: providers.Step{Phase: providers.PhaseRemove}, KeepLogs: true})
	text, err := os.ReadFile(filepath.Join(l.folder, "vm.dev", "one", "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 16<<20 || !strings.HasSuffix(string(text), "x\nthe end\n") {
		t.Errorf("%d bytes are kept, want 16 MiB with the end", len(text))
	}
}

// Addresses have folders of their own, whatever their keys are.
func TestAddresses(t *testing.T) {
	folder := t.TempDir()
	key := func(k string) spec.Address { return spec.Address{Kind: spec.VM, Name: "dev", Key: k} }
	all := []spec.Address{dev, key("a/../b"), key("a"), key(strings.Repeat("a", 300)), key(strings.Repeat("a", 301)), key("..")}
	for i, a := range all {
		l := newLab(t)
		l.folder, l.addr, l.do, l.console = folder, a, fails(providers.Failed), fmt.Sprint("VM ", i)
		l.run(providers.Work{Step: providers.Step{Phase: providers.PhaseUp}})
	}
	for i, a := range all {
		l := lab{t: t, folder: folder, addr: a}
		if got, want := strings.Join(l.kept(), ""), fmt.Sprintf("console.log: \"VM %d\"\n", i); !strings.Contains(got, want) {
			t.Errorf("%s: %s is kept, want %s", a, got, want)
		}
	}
}
