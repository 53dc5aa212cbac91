package state_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/spec"
	"vmctl/state"
)

const id = "k7m2qd9x4r"

var (
	dev  = spec.Address{Kind: spec.VM, Name: "dev"}
	webA = spec.Address{Kind: spec.VM, Name: "web", Key: "a"}
)

// dataDir is a store in a folder.
type dataDir struct {
	Dir string
	state.Config
	list func() // called before the folder is listed; nil: nothing
}

func (f dataDir) folder() state.Folder { return state.Folder{Dir: f.Dir, Now: f.Now} }

func (f dataDir) store() state.Store {
	if f.list != nil {
		return state.NewStore(watched{f.folder(), f.list}, f.Config)
	}
	return state.NewStore(f.folder(), f.Config)
}

func (f dataDir) Read(ctx context.Context) (*state.Snapshot, error) { return f.store().Read(ctx) }

func (f dataDir) Open(ctx context.Context, o state.Owner) (state.Journal, error) {
	return f.store().Open(ctx, o)
}

func (f dataDir) Holder(ctx context.Context) (*state.Holder, error) { return f.store().Holder(ctx) }

func (f dataDir) Diagnose(ctx context.Context) (state.Repair, error) { return f.store().Diagnose(ctx) }

func (f dataDir) Repair(ctx context.Context, o state.Owner) (state.Repair, error) {
	return f.store().Repair(ctx, o)
}

func (f dataDir) knowing(t state.Types) dataDir {
	f.Config = state.Knowing(f.Config, t)
	return f
}

func (f dataDir) reading(newest int, upgrades map[int]state.Upgrade) dataDir {
	f.Config = state.Reading(f.Config, newest, upgrades)
	return f
}

// watched is a folder that calls a function before it is listed.
type watched struct {
	state.Folder
	list func()
}

func (w watched) List(ctx context.Context) ([]string, error) {
	w.list()
	return w.Folder.List(ctx)
}

// folder returns a data directory of the test's own, with a fixed time.
func folder(t *testing.T) dataDir {
	t.Helper()
	return folderAt(t.TempDir())
}

func folderAt(dir string) dataDir {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	c := state.Config{ID: id, Project: "example", Version: "0.1.0", Now: func() time.Time { return now }}
	return dataDir{Dir: dir, Config: state.Knowing(c, known())}
}

// known are the types of the values in these tests.
func known() state.Types {
	return state.Types{
		Values: map[string]cty.Type{
			"memory": cty.Number, "running": cty.Bool, "port_forward": cty.List(cty.Object(map[string]cty.Type{"guest": cty.Number})), "ports": cty.Map(cty.Number),
			"size": cty.Number, "share": cty.Number, "name": cty.String, "none": cty.DynamicPseudoType, "list": cty.List(cty.Bool), "a": cty.Number,
			"accel": cty.String, "in": cty.String, "content": cty.String,
			"additional_disk": cty.List(cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})),
		},
		Policy:   cty.Object(map[string]cty.Type{"stop": cty.Object(map[string]cty.Type{"grace": cty.Number})}),
		Settings: cty.Object(map[string]cty.Type{"uri": cty.String, "pool": cty.String}),
	}
}

func open(t *testing.T, f dataDir) state.Journal {
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

func read(t *testing.T, f dataDir) *state.Snapshot {
	t.Helper()
	s, err := f.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return s
}

// names lists the names of the entries of the data directory.
func names(t *testing.T, f dataDir) []string {
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
		Policy:     cty.ObjectVal(map[string]cty.Value{"stop": cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(30)})}),
		Uses:       []spec.Address{webA},
		LastStop:   "graceful",
		LastAction: &state.Action{Command: "container stop", Began: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), Failed: "why"},
		Reserved:   true, Spec: "0123456789abcdef",
		Conditions: condition.Set{}.With(
			condition.Report{Type: condition.SSHReady, Status: condition.True, Reason: condition.Ready},
			condition.Stamp{Generation: 1, At: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Producer: "libvirt"}),
	}
}

func TestFolderRoundTrip(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	want := record("dev", 256<<20)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Begin, Op: "define", Address: dev, ID: want.ID, Name: want.Name})
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &want})

	wantRead := &state.Snapshot{Format: 2, ID: id, Project: "example", Records: map[spec.Address]state.Record{dev: want}}
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

// Room is taken once, and given back once.
func TestReserve(t *testing.T) {
	f := state.Folder{Dir: t.TempDir()}
	spend := func(want bool) {
		t.Helper()
		if got, err := f.FreeReserve(); got != want || err != nil {
			t.Errorf("room was given back: %t, want %t (%v)", got, want, err)
		}
	}
	spend(false)
	for range 2 {
		if err := f.Reserve(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(f.Dir, "reserve"))
	if err != nil || info.Size() < 256<<10 {
		t.Fatalf("%v, %v", info, err)
	}
	spend(true)
	spend(false)
	if left, err := os.ReadDir(f.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A state that is kept elsewhere, behind a symbolic link, stays there: who links it
// has it backed up, or shared.
func TestALinkedStateStaysWhereItIs(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
	closeIt(t, j)
	elsewhere := t.TempDir()
	for _, name := range []string{"state.json", "state.json.backup"} {
		at, kept := filepath.Join(f.Dir, name), filepath.Join(elsewhere, name)
		if err := os.Rename(at, kept); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(kept, at); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, "."+name+".77.tmp"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := read(t, f).Serial
	j = open(t, f)
	r = record("dev", 2)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
	closeIt(t, j)
	for _, name := range []string{"state.json", "state.json.backup"} {
		if info, err := os.Lstat(filepath.Join(f.Dir, name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", name, info.Mode(), err)
		}
	}
	if s := read(t, f); s.Serial != before+1 || s.Records[dev].Generation != r.Generation {
		t.Errorf("behind the link: serial %d, generation %d", s.Serial, s.Records[dev].Generation)
	}
	entries, err := os.ReadDir(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"state.json", "state.json.backup"}, names); d != "" {
		t.Errorf("beside what the links lead to (-want +got):\n%s", d)
	}
}

func TestALinkToNothingIsRefused(t *testing.T) {
	f := folder(t)
	path := filepath.Join(f.Dir, "state.json.backup")
	if err := os.Symlink(filepath.Join(f.Dir, "gone"), path); err != nil {
		t.Fatal(err)
	}
	_, err := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	want := "follow the symbolic link " + path + ": it leads to nothing; nothing was changed: remove it, or bring back what it led to"
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}

func TestHolderIsNamed(t *testing.T) {
	at := time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("CET", 3600))
	for _, test := range []struct {
		holder state.Holder
		want   string
	}{
		{state.Holder{PID: 42, Host: "ada", Command: "vmctl apply", Since: at}, "vmctl apply (pid 42 on ada) since 2026-03-04 05:06:07 UTC"},
		{state.Holder{}, "a process that has not said who it is"},
	} {
		if got := test.holder.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestHoldersAreOrderedByWhenTheyCame(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 3, 4, 5, 6, second, 0, time.UTC) }
	all := []state.Holder{{PID: 1, Host: "b", Since: at(2)}, {PID: 2, Host: "a", Since: at(2)}, {PID: 1, Host: "a", Since: at(2)}, {PID: 9, Since: at(1)}}
	slices.SortFunc(all, state.Holder.Compare)
	want := []state.Holder{{PID: 9, Since: at(1)}, {PID: 1, Host: "a", Since: at(2)}, {PID: 2, Host: "a", Since: at(2)}, {PID: 1, Host: "b", Since: at(2)}}
	if !slices.Equal(all, want) {
		t.Errorf("order %v, want %v", all, want)
	}
}
