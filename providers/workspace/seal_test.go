package workspace_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

var inVM = spec.Address{Kind: spec.VM, Name: "dev"}

// mark is the file with the record of a workspace, in its guest.
func (w *work) mark() string {
	return filepath.Join(w.home, ".vmctl", "workspaces", string(w.id), "mark")
}

// see observes the workspaces, as a run does whose state has the values of some.
func (b *bench) see(t *testing.T, known ...providers.Known) map[providers.ID]providers.Object {
	t.Helper()
	inv, err := b.provider.Observe(t.Context(), providers.Query{Known: known})
	must(t, err)
	all := map[providers.ID]providers.Object{}
	for _, o := range inv.Objects {
		all[o.ID] = o
	}
	return all
}

// recorded returns what the state has about a workspace, as it is now.
func (w *work) recorded(t *testing.T) providers.Known {
	t.Helper()
	return providers.Known{Address: w.address(), Kind: spec.Workspace, ID: w.id, Name: string(w.id), Prior: w.see(t)[w.id].Attrs}
}

// edit changes one field of the record, as somebody in the guest may.
func (w *work) edit(t *testing.T, change func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(w.mark())
	must(t, err)
	line, rest, _ := strings.Cut(string(text), "\n")
	fields := map[string]any{}
	must(t, json.Unmarshal([]byte(line), &fields))
	change(fields)
	now, err := json.Marshal(fields)
	must(t, err)
	must(t, os.WriteFile(w.mark(), []byte(string(now)+"\n"+rest), 0o600))
}

// finding returns the finding of a kind about an object; nil: there is none.
func finding(o providers.Object, kind providers.FindingKind) *providers.Finding {
	for i, f := range o.Findings {
		if f.Kind == kind {
			return &o.Findings[i]
		}
	}
	return nil
}

// distrusted fails unless the record of a workspace is told of and followed nowhere, until apply has written it anew.
func (w *work) distrusted(t *testing.T, known providers.Known, why string) {
	t.Helper()
	w.ran = nil
	o, there := w.see(t, known)[w.id]
	f := finding(o, "unsealed")
	if !there || f == nil || !strings.Contains(strings.Join(f.Evidence, " "), why) || len(f.Next) == 0 {
		t.Fatalf("the finding is %+v, want %q", f, why)
	}
	if !strings.Contains(o.Unreadable["dirty"], why) {
		t.Errorf("whether it is dirty is %q", o.Unreadable["dirty"])
	}
	if known.Prior != cty.NilVal {
		for _, name := range []string{"repo", "branch", "path", "base"} {
			if want, got := ctyread.Text(known.Prior, name), ctyread.Text(o.Attrs, name); want != got {
				t.Errorf("%s is %q, and %q in the state", name, got, want)
			}
		}
	}
	x, s := w.provider.(workspace.Exchanger), w.saver()
	_, fetch := x.Fetch(t.Context(), w.id, "")
	_, push := x.Push(t.Context(), w.id)
	_, save := s.Save(t.Context(), w.id, workspace.SaveOptions{})
	_, restore := s.Restore(t.Context(), w.id, workspace.RestoreOptions{})
	for verb, err := range map[string]error{"fetch": fetch, "push": push, "save": save, "restore": restore} {
		var refused *workspace.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, why) || !strings.Contains(strings.Join(refused.Next, " "), "vmctl apply") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if err := w.do("remove", providers.PhaseRemove); err == nil {
		t.Error("it was removed, and nobody knows whether it has work")
	}
	if len(w.ran) > 0 && w.made == 1 { // another workspace's record is followed
		t.Errorf("on this host ran %q", w.ran)
	}
	must(t, w.do("write", providers.PhaseChange))
	o = w.see(t, known)[w.id]
	if f := finding(o, "unsealed"); f != nil {
		t.Errorf("after it was written anew: %+v", f)
	}
	_, err := x.Fetch(t.Context(), w.id, "")
	must(t, err)
}

// Nothing on this host follows what a guest wrote into the record of a workspace.
//
// row A60, of records in a guest
func TestWhatAGuestEditsIsNotFollowed(t *testing.T) {
	real.Long(t)
	const changed = "changed in the guest"
	w := newBench(t, inVM).workspace()
	w.create(t)
	known := w.recorded(t)
	for name, test := range map[string]struct {
		change func(map[string]any)
		why    string
	}{
		"repository":            {func(r map[string]any) { r["Repository"] = r["Repository"].(string) + "/../../other/.git" }, changed},
		"repo":                  {func(r map[string]any) { r["Repo"] = "/other" }, changed},
		"branch":                {func(r map[string]any) { r["Branch"] = "main" }, changed},
		"path":                  {func(r map[string]any) { r["Path"] = "/etc" }, changed},
		"base":                  {func(r map[string]any) { r["Base"] = strings.Repeat("0a", 20) }, changed},
		"env":                   {func(r map[string]any) { r["Env"] = "" }, changed},
		"owner":                 {func(r map[string]any) { delete(r, "Owner") }, changed},
		"address":               {func(r map[string]any) { r["Owner"].(map[string]any)["address"] = "workspace.other" }, changed},
		"ID":                    {func(r map[string]any) { r["ID"] = "w7" }, changed},
		"seal":                  {func(r map[string]any) { r["Seal"] = strings.Repeat("0", 64) }, changed},
		"no seal":               {func(r map[string]any) { delete(r, "Seal") }, "no seal"},
		"another sort of value": {func(r map[string]any) { r["Branch"] = 7 }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			if f := finding(w.see(t, known)[w.id], "unsealed"); f != nil {
				t.Fatalf("as it was made: %+v", f)
			}
			w.edit(t, test.change)
			w.distrusted(t, known, test.why)
		})
	}
}

// A true record is followed in its own VM, its own folder and its own time only.
func TestACopiedRecordIsNotFollowed(t *testing.T) {
	t.Run("of another VM", func(t *testing.T) {
		w := newBench(t, inVM).workspace()
		w.create(t)
		known := w.recorded(t)
		w.vm = "vm-2"
		w.distrusted(t, known, "another VM")
	})
	t.Run("of another workspace", func(t *testing.T) {
		b := newBench(t, inVM)
		one, two := b.workspace(), b.workspace()
		one.create(t)
		two.create(t)
		known := two.recorded(t)
		text, err := os.ReadFile(one.mark())
		must(t, err)
		must(t, os.WriteFile(two.mark(), text, 0o600))
		two.distrusted(t, known, "copy of that of workspace w1")
		if f := finding(b.see(t)[one.id], "unsealed"); f != nil {
			t.Errorf("the other one has %+v", f)
		}
	})
	t.Run("of before", func(t *testing.T) {
		w := newBench(t, inVM).workspace()
		w.create(t)
		text, err := os.ReadFile(w.mark())
		must(t, err)
		w.drop(t, w)
		w.advance(t)
		w.create(t)
		known := w.recorded(t)
		must(t, os.WriteFile(w.mark(), text, 0o600))
		w.distrusted(t, known, "its base differs")
	})
}

// advance gives the branch of a workspace a commit on this host.
func (w *work) advance(t *testing.T) string {
	t.Helper()
	commit := strings.TrimSpace(w.git(t, w.repo, "commit-tree", "-p", w.branch, "-m", "more", w.branch+"^{tree}"))
	w.git(t, w.repo, "update-ref", "refs/heads/"+w.branch, commit)
	return commit
}

// A record that bears the mark of this project, and that no state knows, is told of: whoever lost the state can adopt the
// workspace. One of somebody else is left alone.
func TestUnsealedRecordsWithoutAState(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	base := ctyread.Text(w.see(t)[w.id].Attrs, "base")
	fresh := func() *work { // without the memory of this run
		b := *w
		b.bench = w.reopened(t)
		return &b
	}
	w.edit(t, func(r map[string]any) { r["Seal"] = "x" })
	o := fresh().see(t)[w.id]
	if f := finding(o, "unsealed"); f == nil || o.Owner == nil || ctyread.Text(o.Attrs, "base") != base || len(o.Due) != 1 {
		t.Errorf("%+v", o)
	}
	w.edit(t, func(r map[string]any) { r["Base"] = "--output=x" })
	if o := fresh().see(t)[w.id]; ctyread.Text(o.Attrs, "base") != "" {
		t.Errorf("base is %q", ctyread.Text(o.Attrs, "base"))
	}
	must(t, fresh().do("write", providers.PhaseChange))
	if o := fresh().see(t)[w.id]; ctyread.Text(o.Attrs, "base") != base || len(o.Findings) > 0 {
		t.Errorf("written anew: %+v", o)
	}
	w.edit(t, func(r map[string]any) { r["Seal"] = ""; r["Owner"].(map[string]any)["id"] = "another" })
	if o := fresh().see(t)[w.id]; len(o.Findings) > 0 || len(o.Due) > 0 {
		t.Errorf("another project's: %+v", o)
	}
}

// Letting go of a workspace seals no record that this host did not write.
func TestLettingGoSealsNothing(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	known := w.recorded(t)
	must(t, w.do("unmark", providers.PhaseFree))
	if o := w.see(t, known)[w.id]; o.Owner != nil || len(o.Findings) > 0 {
		t.Errorf("let go: %+v", o)
	}
	w.edit(t, func(r map[string]any) { r["Branch"] = "main" })
	must(t, w.do("unmark", providers.PhaseFree))
	if o := w.see(t, known)[w.id]; finding(o, "unsealed") == nil {
		t.Errorf("let go: %+v", o)
	}
}

// A folder that is made again belongs to the workspace as it was: its base stays, with whatever is counted from there.
func TestARepairKeepsTheBase(t *testing.T) {
	for name, place := range map[string]spec.Address{"worktree": spec.ThisHost, "guest": inVM} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, place).workspace()
			w.create(t)
			base := ctyread.Text(w.see(t)[w.id].Attrs, "base")
			must(t, os.RemoveAll(w.path))
			if later := w.advance(t); later == base {
				t.Fatal("the branch of this host did not move")
			}
			if f := finding(w.see(t)[w.id], providers.FindPartial); f == nil {
				t.Fatal("nobody sees that the folder is gone")
			}
			w.create(t)
			o := w.see(t)[w.id]
			if got := ctyread.Text(o.Attrs, "base"); got != base || len(o.Findings) > 0 {
				t.Errorf("base %s became %s, findings %v", base, got, o.Findings)
			}
			if diff := cmp.Diff("one\n", read(t, filepath.Join(w.path, "a"))); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// A host without a key follows no record of a guest.
func TestWithoutAKeyNoRecordIsFollowed(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	known := w.recorded(t)
	w.digest = nil
	bare := *w
	bare.bench = w.reopened(t)
	if f := finding(bare.see(t, known)[w.id], "unsealed"); f == nil || !slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, "has no key") }) {
		t.Errorf("%+v", f)
	}
}
