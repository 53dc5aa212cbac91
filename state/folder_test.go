package state_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
	"vmctl/state"
)

const id = "k7m2qd9x4r"

var (
	dev  = spec.Address{Kind: spec.VM, Name: "dev"}
	webA = spec.Address{Kind: spec.VM, Name: "web", Key: "a"}
)

// folder returns a data directory of the test's own, with a fixed time.
func folder(t *testing.T) state.Folder {
	t.Helper()
	return folderAt(t.TempDir())
}

func folderAt(dir string) state.Folder {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return state.Folder{Dir: dir, ID: id, Project: "example", Version: "0.1.0", Now: func() time.Time { return now }}
}

func open(t *testing.T, f state.Folder) state.Journal {
	t.Helper()
	j, err := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return j
}

func appendTo(t *testing.T, j state.Journal, entries ...state.Entry) {
	t.Helper()
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func closeIt(t *testing.T, j state.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func read(t *testing.T, f state.Folder) *state.Snapshot {
	t.Helper()
	s, err := f.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return s
}

// names lists the names of the entries of the data directory.
func names(t *testing.T, f state.Folder) []string {
	t.Helper()
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// diff compares states; cty values by RawEquals, nil and empty alike.
func diff(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b cty.Value) bool {
		if a == cty.NilVal || b == cty.NilVal {
			return a == b
		}
		return a.RawEquals(b)
	}))
}

func record(name string, memory int64) state.Record {
	return state.Record{
		Kind:     spec.VM,
		Provider: spec.ProviderRef{Type: "libvirt", Name: "here"},
		Settings: cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.NullVal(cty.String)}),
		ID:       "5d1f2f0e-0000-4000-8000-" + name, Name: "example-" + name,
		Generation: 1, Starts: 1,
		Values: cty.ObjectVal(map[string]cty.Value{
			"memory":       cty.NumberIntVal(memory),
			"running":      cty.True,
			"port_forward": cty.ListValEmpty(cty.Object(map[string]cty.Type{"guest": cty.Number})),
			"ports":        cty.MapVal(map[string]cty.Value{"22": cty.NumberIntVal(40022)}),
		}),
		Policy:   cty.ObjectVal(map[string]cty.Value{"stop": cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(30)})}),
		Uses:     []spec.Address{webA},
		LastStop: "graceful", Ready: true, Reserved: true,
	}
}

func TestFolderRoundTrip(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	want := record("dev", 256<<20)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Begin, Op: "define", Address: dev, ID: want.ID, Name: want.Name})
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &want})

	wantRead := &state.Snapshot{Format: 1, ID: id, Project: "example", Records: map[spec.Address]state.Record{dev: want}}
	if d := diff(wantRead, j.Snapshot()); d != "" {
		t.Errorf("snapshot of the open journal (-want +got):\n%s", d)
	}
	if d := diff(wantRead, read(t, f)); d != "" {
		t.Errorf("read beside the open journal (-want +got):\n%s", d)
	}
	closeIt(t, j)
	wantRead.Serial = 1
	if d := diff(wantRead, read(t, f)); d != "" {
		t.Errorf("read after close (-want +got):\n%s", d)
	}
}
