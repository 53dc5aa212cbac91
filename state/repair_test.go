package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/state"
)

// TestRepair damages a state in each way, and demands what becomes of it: what is
// said, what is kept aside, what is remembered.
func TestRepair(t *testing.T) {
	snapshot, journal := whole(t)
	lines := strings.SplitAfter(journal, "\n")
	serial := func(n int) string { return altered(t, snapshot, `"serial":1`, fmt.Sprintf(`"serial":%d`, n)) }
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
		read  string // serial, records, interrupted; afterwards
		left  string // the files afterwards
	}{
		{
			name: "nothing at all", want: "", read: "0, 0, ", left: "lock",
		},
		{
			name: "whole, with a journal", files: map[string]string{"state.json": snapshot, "journal-1.ndjson": journal},
			want: "", read: "1, 1, r2/1 delete vm.dev", left: "journal-1.ndjson lock state.json",
		},
		{
			name: "cut short, with a backup", files: map[string]string{"state.json": serial(2)[:300], "state.json.backup": snapshot},
			want: "DIR/state.json: its checksum does not match: it was changed after vmctl wrote it\n- keep a copy of it: state.json.corrupt\n" +
				"- go back to snapshot 1, DIR/state.json.backup\nkept DIR/state.json.corrupt\n",
			read: "3, 1, ", left: "lock state.json state.json.backup state.json.corrupt",
		},
		{
			name:  "cut short, with a backup and a journal of what is lost",
			files: map[string]string{"state.json": "", "state.json.backup": serial(0), "journal-1.ndjson": journal, "state.json.corrupt": "kept before"},
			want: "DIR/state.json: it is empty\nDIR/journal-1.ndjson: it continues snapshot 1, which is lost\n- keep a copy of it: state.json.corrupt.2\n" +
				"- go back to snapshot 0, DIR/state.json.backup\n- apply all 3 lines of DIR/journal-1.ndjson\nkept DIR/state.json.corrupt.2\n",
			read: "3, 1, r2/1 delete vm.dev", left: "lock state.json state.json.backup state.json.corrupt state.json.corrupt.2",
		},
		{
			name: "cut short, and so is the backup", files: map[string]string{"state.json": "{", "state.json.backup": "{"},
			want: "DIR/state.json: it does not say its format\nDIR/state.json.backup: it does not say its format\n" +
				"- keep a copy of it: state.json.corrupt\n- keep a copy of it: state.json.backup.corrupt\n- start without records: no snapshot can be read\n" +
				"kept DIR/state.json.corrupt\nkept DIR/state.json.backup.corrupt\n",
			read: "2, 0, ", left: "lock state.json state.json.backup state.json.backup.corrupt state.json.corrupt",
		},
		{
			name: "gone, with a backup", files: map[string]string{"state.json.backup": snapshot},
			want: "DIR/state.json: it does not exist\n- go back to snapshot 1, DIR/state.json.backup\n",
			read: "2, 1, ", left: "lock state.json state.json.backup",
		},
		{
			name: "gone, with a journal only", files: map[string]string{"journal-1.ndjson": journal},
			want: "DIR/state.json: it does not exist\nDIR/journal-1.ndjson: it continues snapshot 1, which is lost\n" +
				"- start without records: no snapshot can be read\n- apply all 3 lines of DIR/journal-1.ndjson\n",
			read: "2, 0, r2/1 delete vm.dev", left: "lock state.json state.json.backup",
		},
		{
			name: "a lost rename: older than its journal", files: map[string]string{"state.json": serial(0), "journal-1.ndjson": journal},
			want: "DIR/journal-1.ndjson: it continues snapshot 1, which is lost\n- apply all 3 lines of DIR/journal-1.ndjson\n",
			read: "2, 1, r2/1 delete vm.dev", left: "lock state.json state.json.backup",
		},
		{
			name: "a torn last line", files: map[string]string{"state.json": snapshot, "journal-1.ndjson": lines[0] + lines[1] + lines[2][:40]},
			want: "DIR/journal-1.ndjson:3: the last line was not written whole\n- drop that line, on which no step relied, and apply the 2 before it\n",
			read: "2, 1, ", left: "lock state.json state.json.backup",
		},
		{
			name:  "a journal that is damaged in the middle",
			files: map[string]string{"state.json": snapshot, "journal-1.ndjson": lines[0] + strings.Replace(lines[1], "graceful", "forceful", 1) + lines[2]},
			want: "DIR/journal-1.ndjson:2: the line is not whole: its checksum does not match\n- keep a copy of it: journal-1.ndjson.corrupt\n" +
				"- apply the 1 lines of DIR/journal-1.ndjson before that, and drop the rest\nkept DIR/journal-1.ndjson.corrupt\n",
			read: "2, 1, r2/0 stop vm.dev", left: "journal-1.ndjson.corrupt lock state.json state.json.backup",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			for name, text := range test.files {
				place(t, f, name, text)
			}
			before := contents(t, f)
			would, err := f.Diagnose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, contents(t, f)); d != "" {
				t.Errorf("diagnosing changed files (-before +after):\n%s", d)
			}
			did, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(would, did); d != "" {
				t.Errorf("said and done differ (-said +done):\n%s", d)
			}
			if d := cmp.Diff(test.want, strings.ReplaceAll(words(did), f.Dir, "DIR")); d != "" {
				t.Errorf("repair (-want +got):\n%s", d)
			}
			s := read(t, f)
			if got := fmt.Sprintf("%d, %d, %s", s.Serial, len(s.Records), interrupted(s)); got != test.read || len(s.Notes) > 0 {
				t.Errorf("afterwards it is %s with notes %v, want %s", got, s.Notes, test.read)
			}
			if s.Serial != did.Serial || len(s.Records) != did.Records {
				t.Errorf("it said serial %d and %d records", did.Serial, did.Records)
			}
			if got := strings.Join(names(t, f), " "); got != test.left {
				t.Errorf("files %s, want %s", got, test.left)
			}
			for i, path := range did.Kept {
				original := []string{"state.json", "state.json.backup"}[i]
				if strings.Contains(filepath.Base(path), "journal") {
					original = "journal-1.ndjson"
				}
				if got := file(t, f, filepath.Base(path)); got != test.files[original] {
					t.Errorf("%s is %q, want what was damaged", path, got)
				}
			}
			again, err := f.Diagnose(t.Context())
			if err != nil || len(again.Damage) > 0 {
				t.Errorf("after it is repaired: %+v, %v", again, err)
			}
		})
	}
}

// words is a repair as text.
func words(r state.Repair) string {
	var b strings.Builder
	for _, d := range r.Damage {
		where := d.Path
		if d.Line > 0 {
			where += fmt.Sprintf(":%d", d.Line)
		}
		fmt.Fprintf(&b, "%s: %s\n", where, d.Problem)
	}
	for _, does := range r.Steps {
		fmt.Fprintf(&b, "- %s\n", does)
	}
	for _, kept := range r.Kept {
		fmt.Fprintf(&b, "kept %s\n", kept)
	}
	return b.String()
}

func TestWhatIsNotDamagedIsNotRepaired(t *testing.T) {
	good, _ := whole(t)
	f := folder(t)
	refuse := func(what string, want error) {
		t.Helper()
		before := contents(t, f)
		_, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"})
		_, said := f.Diagnose(t.Context())
		if fmt.Sprint(err) != fmt.Sprint(want) || fmt.Sprint(said) != fmt.Sprint(want) {
			t.Errorf("%s: %v and %v, want %v", what, err, said, want)
		}
		if d := cmp.Diff(before, contents(t, f)); d != "" {
			t.Errorf("%s: files changed (-before +after):\n%s", what, d)
		}
	}
	readError := func() error {
		_, err := f.Read(t.Context())
		return err
	}
	place(t, f, "state.json", `{"format":3,"vmctl_version":"0.9.0"}`)
	refuse("a newer one", readError())
	place(t, f, "state.json", altered(t, good, id, "zzzzzzzzzz"))
	refuse("another project's", readError())
	if err := errors.Join(os.Remove(filepath.Join(f.Dir, "state.json")), os.Mkdir(filepath.Join(f.Dir, "state.json"), 0o700)); err != nil {
		t.Fatal(err)
	}
	refuse("a folder", readError())
}

func TestRepairTakesTheLock(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	_, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"})
	var locked *state.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("repaired under a writer: %v", err)
	}
	closeIt(t, j)
}
