package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/state"
)

// long ago: a file that was written to has another time.
var untouched = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// place puts a file into the data directory, last changed long ago.
func place(t *testing.T, f dataDir, name, text string) {
	t.Helper()
	path := filepath.Join(f.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, untouched, untouched); err != nil {
		t.Fatal(err)
	}
}

// contents is every file with its bytes and time, but for the lock.
func contents(t *testing.T, f dataDir) string {
	t.Helper()
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "lock" || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(f.Dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %q\n", e.Name(), info.ModTime().UTC(), data)
	}
	return b.String()
}

// refused reads and opens a state that must be refused, and returns why. Nothing
// may change, and the lock must be free afterwards.
func refused(t *testing.T, f dataDir) error {
	t.Helper()
	before := contents(t, f)
	s, err := f.Read(t.Context())
	if err == nil {
		t.Fatalf("read as %+v, want an error", s)
	}
	j, openErr := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	if openErr == nil {
		t.Errorf("opened as %+v, want an error", j.Snapshot())
		closeIt(t, j)
	} else if openErr.Error() != err.Error() {
		t.Errorf("open says %q, read says %q", openErr, err)
	}
	if holder, err := f.Holder(t.Context()); holder != nil || err != nil {
		t.Errorf("lock held by %v, %v; want it free", holder, err)
	}
	if d := cmp.Diff(before, contents(t, f)); d != "" {
		t.Errorf("files changed (-before +after):\n%s", d)
	}
	return err
}

// whole is the bytes of a state and of a journal that continues it.
func whole(t *testing.T) (snapshot, journal string) {
	t.Helper()
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1<<30)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &r})
	closeIt(t, j)
	j = open(t, f)
	defer closeIt(t, j)
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Begin, Step: 0, Op: "stop", Address: dev})
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Done, Step: 0, Op: "stop", Address: dev, How: "graceful"})
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Begin, Step: 1, Op: "delete", Address: dev})
	return file(t, f, "state.json"), file(t, f, "journal-1.ndjson")
}

func file(t *testing.T, f dataDir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// altered returns a snapshot with other text in it, and with its checksum.
func altered(t *testing.T, snapshot, old, text string) string {
	t.Helper()
	if !strings.Contains(snapshot, old) {
		t.Fatalf("%s is not in %s", old, snapshot)
	}
	return string(state.Summed([]byte(strings.Replace(snapshot, old, text, 1))))
}

// row J44
func TestCorruptSnapshotIsNeverEmpty(t *testing.T) {
	good, _ := whole(t)
	const changed = "its checksum does not match: it was changed after vmctl wrote it"
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "it is empty"},
		{"blank", " \n", "it is empty"},
		{"zeros", "\x00\x00\x00", `invalid character '\x00' looking for beginning of value, at byte 1`},
		{"truncated", good[:len(good)/2], changed},
		{"garbage", "not a state", `invalid character 'o' in literal null (expecting 'u'), at byte 2`},
		{"another kind of file", `["a"]`, "it is no JSON object"},
		{"null", "null", "it is no JSON object"},
		{"a head that breaks off in a name", `{"vmctl_version":"1","for`, "unexpected EOF"},
		{"a head that breaks off in a value", `{"vmctl_version":"1`, "unexpected EOF"},
		{"empty object", "{}", "it does not say its format"},
		{"format 0", `{"format":0}`, "it says that it has format 0, and no vmctl ever wrote that"},
		{"negative format", `{"format":-1}`, "it says that it has format -1, and no vmctl ever wrote that"},
		{"twice", good + good, changed},
		{"twice, with its checksum", string(state.Summed([]byte(good + good))), "something follows the end of the content, at byte "},
		{"a bit of a value", strings.Replace(good, "1073741824", "1073741825", 1), changed},
		{"unknown field", altered(t, good, `"serial"`, `"serials"`), `unknown field "serials"`},
		{"unknown field of a record", altered(t, good, `"starts"`, `"started"`), `unknown field "started"`},
		{"address", altered(t, good, `"vm.dev":{`, `"dev":{`), `"dev" is not an address: write it like vm.dev or vm.web["a"]`},
		{"a policy that is in no table", altered(t, good, "\"policies\":{\n\"", "\"policies\":{\n\"0"), "the record of vm.dev: its policy "},
		{"a provider that is in no table", altered(t, good, "\"providers\":{\n\"", "\"providers\":{\n\"0"), "the record of vm.dev: its provider "},
		{"values that are no object", altered(t, good, `"values":{`, `"values":["a"],"was":{`), "unexpected object, at byte "},
		{"interrupted", altered(t, good, `"interrupted":[]`, `"interrupted":[{"kind":"ended"}]`), `an entry of the unknown kind "ended"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			place(t, f, "state.json", test.text)
			err := refused(t, f)
			var corrupt *state.CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("error %v, want a *CorruptError", err)
			}
			path := filepath.Join(f.Dir, "state.json")
			before, after := "read the state: "+path+" is corrupt: "+test.want, "; nothing was changed\n"+
				"to keep what can be read, and find by its marks what this project owns:\n"+
				"vmctl state repair"
			if got := told(err); !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
				t.Errorf("error %s\nwant %s…%s", got, before, after)
			}
		})
	}
}

// row J44
func TestCorruptSnapshotNamesItsBackup(t *testing.T) {
	good, _ := whole(t)
	f := folderAt(filepath.Join(t.TempDir(), "with space"))
	if err := os.Mkdir(f.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, f, "state.json", good[:100])
	place(t, f, "state.json.backup", good)
	err := refused(t, f)
	path := filepath.Join(f.Dir, "state.json")
	want := fmt.Sprintf("read the state: %[1]s is corrupt: its checksum does not match: it was changed after vmctl wrote it; nothing was changed\n"+
		"to go back to the snapshot before it, %[1]s.backup:\n", path)
	if d := cmp.Diff(want+"vmctl state repair", told(err)); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	f.RepairWith = "vmctl state repair -C elsewhere"
	if d := cmp.Diff(want+f.RepairWith, told(refused(t, f))); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	// What no command repairs has to be moved by hand.
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf("read the state: %[1]s is corrupt: it is a folder; nothing was changed\n"+
		"to go back to the snapshot before it, %[1]s.backup:\n"+
		"mv '%[1]s' '%[1]s.corrupt' && cp -p '%[1]s.backup' '%[1]s'", path)
	if d := cmp.Diff(want, told(refused(t, f))); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}

// row J44
func TestUnreadableSnapshotIsNeverEmpty(t *testing.T) {
	f := folder(t)
	path := filepath.Join(f.Dir, "state.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, f); !strings.Contains(told(err), path+" is corrupt: it is a folder; nothing was changed\n"+
		"to go on without it, and find by its marks what this project owns:\nmv "+path+" "+path+".corrupt") {
		t.Errorf("a folder in its place: %v", err)
	}
	for target, want := range map[string]string{
		"state.json": "too many levels of symbolic links", // itself
		"gone":       "no such file or directory",
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		want := "read the state: open " + path + ": " + want + "; nothing was changed\nmake that file readable, or choose another data directory with --data-dir"
		if d := cmp.Diff(want, told(refused(t, f))); d != "" {
			t.Errorf("error (-want +got):\n%s", d)
		}
	}
}

func TestNewerAndForeignStatesAreRefused(t *testing.T) {
	good, _ := whole(t)
	f := folder(t)
	path := filepath.Join(f.Dir, "state.json")

	place(t, f, "state.json", `{"format":3,"vmctl_version":"0.9.0","everything":"is different"}`)
	err := refused(t, f)
	want := "read the state: " + path + " has format 3, and this vmctl knows formats up to 2; nothing was changed\nuse vmctl 0.9.0"
	var newer *state.NewerError
	if d := cmp.Diff(want, told(err)); d != "" || !errors.As(err, &newer) {
		t.Errorf("newer (-want +got):\n%s", d)
	}
	place(t, f, "state.json", `{"format":4}`)
	if err := refused(t, f); !strings.HasSuffix(told(err), "nothing was changed\nuse a newer vmctl") {
		t.Errorf("newer without a version: %v", err)
	}

	place(t, f, "state.json", altered(t, good, id, "zzzzzzzzzz"))
	err = refused(t, f)
	want = "read the state: " + path + ` belongs to project "example" (id zzzzzzzzzz), and the spec is project "example" (id ` + id + "); nothing was changed\nchoose another data directory with --data-dir"
	var mismatch *state.MismatchError
	if d := cmp.Diff(want, told(err)); d != "" || !errors.As(err, &mismatch) {
		t.Errorf("foreign (-want +got):\n%s", d)
	}
}

func TestTornLastLineIsDroppedWithANote(t *testing.T) {
	snapshot, journal := whole(t)
	lines := strings.SplitAfter(journal, "\n")
	last := lines[2]
	for name, torn := range map[string]string{
		"no newline":    last[:len(last)-1],
		"half":          last[:len(last)/2],
		"one byte":      last[:1],
		"bad checksum":  strings.Replace(last, "delete", "create", 1),
		"zeros":         strings.Repeat("\x00", len(last)),
		"no checksum":   "{}\n",
		"only newline":  "\n",
		"unknown field": strings.Replace(last, `"sum"`, `"some"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := folder(t)
			place(t, f, "state.json", snapshot)
			place(t, f, "journal-1.ndjson", lines[0]+lines[1]+torn)
			before := contents(t, f)
			s := read(t, f)
			if d := cmp.Diff(before, contents(t, f)); d != "" {
				t.Errorf("read changed files (-before +after):\n%s", d)
			}
			want := []string{filepath.Join(f.Dir, "journal-1.ndjson") + ": line 3, the last, was not written whole and was dropped"}
			if d := cmp.Diff(want, s.Notes); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
			if s.Serial != 1 || len(s.Records) != 1 || len(s.Interrupted) != 0 {
				t.Errorf("read serial %d, %d records, interrupted %v; want what the whole lines say", s.Serial, len(s.Records), s.Interrupted)
			}
			j := open(t, f)
			if d := cmp.Diff(want, j.Snapshot().Notes); d != "" {
				t.Errorf("notes after open (-want +got):\n%s", d)
			}
			closeIt(t, j)
			if s := read(t, f); s.Serial != 2 || len(s.Notes) != 0 {
				t.Errorf("after open and close: serial %d, notes %v; want 2 and none", s.Serial, s.Notes)
			}
		})
	}
}

func TestCorruptJournalIsRefused(t *testing.T) {
	snapshot, journal := whole(t)
	l := strings.SplitAfter(journal, "\n")
	other := altered(t, snapshot, `"serial":1`, `"serial":2`)
	for _, test := range []struct {
		name, snapshot, journal string
		line                    int
		want                    string
	}{
		{"changed in the middle", snapshot, l[0] + strings.Replace(l[1], "graceful", "forceful", 1) + l[2], 2, "the line is not whole: its checksum does not match"},
		{"torn in the middle", snapshot, l[0][:20] + "\n" + l[1] + l[2], 1, "the line is not whole: its checksum does not match"},
		{"two lines in one", snapshot, l[0] + strings.TrimSuffix(l[1], "\n") + l[2] + l[2], 2, "the line is not whole: its checksum does not match"},
		{"line lost", snapshot, l[0] + l[2], 2, "it is entry 3, and entry 2 is missing"},
		{"line twice", snapshot, l[0] + l[0] + l[1], 2, "it is entry 1, and entry 2 is missing"},
		{"of another snapshot", other, "", 1, "it belongs to the journal of snapshot 1"},
		{"newer than its snapshot", altered(t, snapshot, `"serial":1`, `"serial":0`), journal, 0, "it continues snapshot 1, but DIR/state.json is snapshot 0"},
		{"without its snapshot", "", journal, 0, "it continues DIR/state.json, which does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			name := "journal-1.ndjson"
			if test.snapshot != "" {
				place(t, f, "state.json", test.snapshot)
			}
			if test.journal == "" {
				name, test.journal = "journal-2.ndjson", journal
			}
			place(t, f, name, test.journal)
			err := refused(t, f)
			path := filepath.Join(f.Dir, name)
			where := path
			if test.line > 0 {
				where += fmt.Sprintf(", line %d,", test.line)
			}
			what := "to keep what can be read, and find by its marks what this project owns:"
			if test.line > 0 {
				what = "to keep the lines before it, and go on:"
			}
			want := "read the state: " + where + " is corrupt: " + strings.ReplaceAll(test.want, "DIR", f.Dir) + "; nothing was changed\n" +
				what + "\nvmctl state repair"
			var corrupt *state.CorruptError
			if d := cmp.Diff(want, told(err)); d != "" || !errors.As(err, &corrupt) {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}

func TestJournalThatTheSnapshotContainsIsIgnored(t *testing.T) {
	snapshot, journal := whole(t)
	f := folder(t)
	place(t, f, "state.json", altered(t, snapshot, `"serial":1`, `"serial":5`))
	place(t, f, "journal-1.ndjson", journal)
	place(t, f, "journal-4.ndjson", "whatever")
	place(t, f, "journal-9.ndjson.corrupt", "moved away")
	place(t, f, "journal-04.ndjson", "a copy")
	if s := read(t, f); s.Serial != 5 || len(s.Interrupted) != 0 {
		t.Errorf("read serial %d, interrupted %v; want 5 and none", s.Serial, s.Interrupted)
	}
	closeIt(t, open(t, f))
	if d := cmp.Diff([]string{"journal-04.ndjson", "journal-9.ndjson.corrupt", "journal.ndjson.backup", "lock", "state.json"}, names(t, f)); d != "" {
		t.Errorf("files after open (-want +got):\n%s", d)
	}
	if got := read(t, f).Serial; got != 5 {
		t.Errorf("serial %d after an open that changed nothing, want 5", got)
	}
}

// told returns the message of an error and its advice, one line each.
func told(err error) string {
	var e state.Advised
	if !errors.As(err, &e) {
		return err.Error()
	}
	return strings.Join(append([]string{err.Error()}, e.Next()...), "\n")
}
