package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/spec"
	"vmctl/state"
)

// world is a data directory together with what was acknowledged: the model.
type world struct {
	folder      dataDir
	open        state.Journal // nil: nobody has it open
	records     map[spec.Address]state.Record
	interrupted []state.Entry
	runs        int
}

func addresses() *rapid.Generator[spec.Address] {
	return rapid.Custom(func(t *rapid.T) spec.Address {
		return spec.Address{
			Kind: spec.VM, Name: rapid.SampledFrom([]string{"dev", "web"}).Draw(t, "name"),
			Key: rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", `"`, "\n]", "ä"})).Draw(t, "key"),
		}
	})
}

func values() *rapid.Generator[cty.Value] {
	return rapid.Custom(func(t *rapid.T) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"size":  cty.NumberIntVal(rapid.Int64().Draw(t, "size")),
			"share": cty.NumberFloatVal(rapid.Float64Range(-1e300, 1e300).Draw(t, "share")),
			"name":  cty.StringVal(rapid.String().Draw(t, "text")),
			"none":  cty.NullVal(cty.DynamicPseudoType),
			"list":  cty.ListVal([]cty.Value{cty.BoolVal(rapid.Bool().Draw(t, "bool"))}),
		})
	})
}

func records() *rapid.Generator[state.Record] {
	return rapid.Custom(func(t *rapid.T) state.Record {
		return state.Record{
			Kind: spec.VM, Provider: spec.ProviderRef{Type: "libvirt", Name: rapid.String().Draw(t, "provider"), Key: rapid.String().Draw(t, "key")},
			ID: rapid.String().Draw(t, "id"), Generation: rapid.Uint64().Draw(t, "generation"),
			Starts: rapid.IntRange(0, 9).Draw(t, "starts"), Values: values().Draw(t, "values"),
			Digests: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "digests"),
			Uses:    rapid.SliceOf(addresses()).Draw(t, "uses"),
			Inside:  addresses().Draw(t, "inside"),
		}
	})
}

// entries draws what an executor could append, and keeps the model's account.
func (w *world) entries(t *rapid.T) []state.Entry {
	var entries []state.Entry
	for range rapid.IntRange(1, 4).Draw(t, "entries") {
		e := state.Entry{
			Run: fmt.Sprint("run ", w.runs), At: w.folder.Now(), Op: rapid.String().Draw(t, "op"), Address: addresses().Draw(t, "address"),
			Step: rapid.IntRange(0, 3).Draw(t, "step"),
			Kind: rapid.SampledFrom([]state.EntryKind{state.Begin, state.Done, state.Failed, state.Note}).Draw(t, "kind"),
		}
		switch rapid.IntRange(0, 3).Draw(t, "effect") {
		case 0:
			r := records().Draw(t, "record")
			e.Put = &r
		case 1:
			e.Drop = true
		case 2:
			e.Kind, e.Op = state.Note, state.Settled
		}
		entries = append(entries, e)
	}
	return entries
}

// acknowledge is the model of what an entry means.
func (w *world) acknowledge(e state.Entry) {
	w.interrupted = slices.DeleteFunc(w.interrupted, func(b state.Entry) bool {
		if e.Kind == state.Note {
			return e.Op == state.Settled && b.Address == e.Address
		}
		return b.Run == e.Run && b.Step == e.Step
	})
	if e.Kind == state.Begin {
		w.interrupted = append(w.interrupted, e)
	}
	if e.Put != nil {
		w.records[e.Address] = *e.Put
	}
	if e.Drop {
		delete(w.records, e.Address)
	}
}

func (w *world) begin(t *rapid.T) {
	if w.open != nil {
		return
	}
	j, err := w.folder.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	w.open, w.runs = j, w.runs+1
}

func (w *world) append(t *rapid.T) {
	if w.open == nil {
		t.Skip("not open")
	}
	entries := w.entries(t)
	if err := w.open.Append(t.Context(), entries...); err != nil {
		t.Fatalf("append: %v", err)
	}
	for _, e := range entries {
		w.acknowledge(e)
	}
}

func (w *world) close(t *rapid.T) {
	if w.open == nil {
		t.Skip("not open")
	}
	if err := w.open.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	w.open = nil
}

// kill leaves the folder as a process does that is killed within an append: some
// bytes of a last entry may be there, but nothing of it was acknowledged.
func (w *world) kill(t *rapid.T, dir string) {
	if w.open == nil {
		t.Skip("not open")
	}
	before := size(t, w.journal(t, w.folder.Dir))
	if err := w.open.Append(t.Context(), w.entries(t)[0]); err != nil {
		t.Fatalf("append: %v", err)
	}
	copyFolder(t, dir, w.folder.Dir)
	torn := w.journal(t, dir)
	keep := rapid.Int64Range(before, size(t, torn)-1).Draw(t, "bytes that were written")
	if err := os.Truncate(torn, keep); err != nil {
		t.Fatal(err)
	}
	w.close(t)
	w.folder.Dir = dir
}

// killClosing leaves the folder as a process does that is killed within Close,
// between any two of its renames and removals.
func (w *world) killClosing(t *rapid.T, dir string) {
	if w.open == nil {
		t.Skip("not open")
	}
	copyFolder(t, dir, w.folder.Dir)
	w.close(t)
	done := []string{"state.json.backup", "state.json"}
	for _, name := range done[:rapid.IntRange(0, len(done)).Draw(t, "files that were written")] {
		data, err := os.ReadFile(filepath.Join(w.folder.Dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.folder.Dir = dir
}

func copyFolder(t *rapid.T, to, from string) {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// journal is the path of the only journal; "" if there is none.
func (w *world) journal(t *rapid.T, dir string) string {
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.ndjson"))
	if err != nil || len(names) > 1 {
		t.Fatalf("journals: %v %v", names, err)
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func size(t *rapid.T, path string) int64 {
	if path == "" {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func (w *world) check(t *rapid.T) {
	s, err := w.folder.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	w.compare(t, "read", s)
	if w.open != nil {
		w.compare(t, "open journal", w.open.Snapshot())
	}
}

func (w *world) compare(t *rapid.T, what string, s *state.Snapshot) {
	if d := diff(w.records, s.Records); d != "" {
		t.Fatalf("%s: records (-acknowledged +got):\n%s", what, d)
	}
	interrupted := slices.Clone(s.Interrupted)
	for i := range interrupted {
		interrupted[i].Serial, interrupted[i].Seq = 0, 0
	}
	if d := diff(w.interrupted, interrupted); d != "" {
		t.Fatalf("%s: interrupted (-acknowledged +got):\n%s", what, d)
	}
}

// row X12
func TestStateIsWhatWasAcknowledged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{folder: folder(t), records: map[spec.Address]state.Record{}}
		rt.Repeat(map[string]func(*rapid.T){
			"open":               w.begin,
			"append":             w.append,
			"close":              w.close,
			"kill":               func(rt *rapid.T) { w.kill(rt, t.TempDir()) },
			"kill while closing": func(rt *rapid.T) { w.killClosing(rt, t.TempDir()) },
			"":                   w.check,
		})
		if w.open != nil {
			w.close(rt)
		}
		w.check(rt)
	})
}
