//go:build unix

package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/condition"
	"vmctl/state"
)

// written returns a data directory as the first build with format 1 wrote it, with the
// journal of a killed run. These files are never written anew: every later build has to
// read them.
func written(t *testing.T) dataDir {
	t.Helper()
	f := folder(t)
	for _, name := range []string{"state.json", "state.json.backup", "journal-2.ndjson"} {
		text, err := os.ReadFile(filepath.Join("testdata", "format1", name))
		if err != nil {
			t.Fatal(err)
		}
		place(t, f, name, string(text))
	}
	return f
}

// wantWritten checks that s holds the records and the interruption of those files.
func wantWritten(t *testing.T, s *state.Snapshot) {
	t.Helper()
	a, b := record("dev", 1<<30), record("web", 1<<29)
	a.LastStop, a.Reserved, a.Spec, a.Conditions = "forced", false, "", nil
	a.LastAction, b.LastAction = nil, nil
	a.Digests = map[string]string{"password": "sha256:00"}
	b.Reserved = true
	b.Uses, b.Spec = nil, ""
	b.Conditions = condition.Set{{Report: b.Conditions[0].Report, Generation: 1, Producer: "libvirt"}} // read from "ready"
	want := map[string]state.Record{dev.String(): a, webA.String(): b}
	got := map[string]state.Record{}
	for address, r := range s.Records {
		got[address.String()] = r
	}
	if d := diff(want, got); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if got := interrupted(s); got != `r3/1 start vm.web["a"]` {
		t.Errorf("interrupted %s", got)
	}
}

func TestFormat1IsReadForEver(t *testing.T) {
	f := written(t)
	s := read(t, f)
	if s.Serial != 2 || s.Format != state.Format {
		t.Errorf("serial %d, format %d", s.Serial, s.Format)
	}
	wantWritten(t, s)
	closeIt(t, open(t, f))
	wantWritten(t, read(t, f))
}

// failing returns the upgrades of this build, which fail for a text that holds "cannot be read".
func failing() map[int]state.Upgrade {
	plant := func(real func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
		return func(data []byte) ([]byte, error) {
			if bytes.Contains(data, []byte("cannot be read")) {
				return nil, errors.New("planted")
			}
			return real(data)
		}
	}
	first := state.Upgrades()[1]
	return map[int]state.Upgrade{1: {Snapshot: plant(first.Snapshot), Entry: plant(first.Entry)}}
}

// Reading turns an older format into the newest one and changes nothing on disk. The
// first write keeps the old file.
func TestOlderFormatIsKeptAtTheFirstWrite(t *testing.T) {
	for what, change := range map[string]func(*testing.T, dataDir){
		"by a journal that a killed run left": func(t *testing.T, f dataDir) { closeIt(t, open(t, f)) },
		"by an entry": func(t *testing.T, f dataDir) {
			if err := os.Remove(filepath.Join(f.Dir, "journal-2.ndjson")); err != nil {
				t.Fatal(err)
			}
			j := open(t, f)
			appendTo(t, j, state.Entry{Run: "r4", Kind: state.Note, Op: "looked"})
			crashed := abandon(t, f)
			if s := read(t, crashed); s.Serial != 2 || s.Format != 2 {
				t.Errorf("killed after the first entry: serial %d, format %d", s.Serial, s.Format)
			}
			closeIt(t, j)
		},
		"by a repair": func(t *testing.T, f dataDir) {
			place(t, f, "journal-2.ndjson", file(t, f, "journal-2.ndjson")+"torn")
			if _, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := written(t)
			old := file(t, f, "state.json")
			before := contents(t, f)
			wantWritten(t, read(t, f))
			if d := cmp.Diff(before, contents(t, f)); d != "" {
				t.Errorf("reading changed files (-before +after):\n%s", d)
			}
			change(t, f)
			if d := cmp.Diff(old, file(t, f, "state.json.v1")); d != "" {
				t.Errorf("the old file (-want +got):\n%s", d)
			}
			if got := file(t, f, "state.json"); !strings.Contains(got, `"format":2`) {
				t.Errorf("the new file: %s", got)
			}
			if s := read(t, f); s.Format != 2 || s.Records[dev].ID == "" {
				t.Errorf("afterwards format %d, %d records", s.Format, len(s.Records))
			}
			// Only the first write meets an older file.
			place(t, f, "state.json.v1", "as it was")
			j := open(t, f)
			appendTo(t, j, state.Entry{Run: "r5", Kind: state.Note, Op: "looked"})
			closeIt(t, j)
			if got := file(t, f, "state.json.v1"); got != "as it was" {
				t.Errorf("written again: %s", got)
			}
		})
	}
}

func TestFormatThatCannotBeReadAnyMore(t *testing.T) {
	f := written(t).reading(3, state.Upgrades())
	err := refused(t, f)
	want := "read the state: " + f.Dir + "/state.json is corrupt: it has format 2, which this vmctl cannot read any more; nothing was changed\n"
	if !strings.HasPrefix(told(err), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	f = f.reading(2, failing())
	journal := file(t, f, "journal-2.ndjson")
	place(t, f, "journal-2.ndjson", lineOf(t, state.Entry{Serial: 2, Seq: 1, Kind: state.Note, Op: "cannot be read"})+journal)
	if err := refused(t, f); !strings.Contains(fmt.Sprint(err), "journal-2.ndjson, line 1, is corrupt: turn format 1 into 2: planted") {
		t.Errorf("an upgrade of an entry that fails: %v", err)
	}
	place(t, f, "journal-2.ndjson", journal)
	place(t, f, "state.json", strings.Replace(file(t, f, "state.json"), "example", "cannot be read", 1))
	if err := refused(t, f); !strings.Contains(fmt.Sprint(err), "turn format 1 into 2: planted") {
		t.Errorf("an upgrade that fails: %v", err)
	}
}
