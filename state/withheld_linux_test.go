package state_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/faultinject"
	"vmctl/state"
)

const canary = "canary-of-a-secret"

// openly returns an entry with a record that has a value at a path in plain text.
func openly(path string) state.Entry {
	r := record("dev", 1<<30)
	into := &r.Values
	name, setting := strings.CutPrefix(path, state.SettingPrefix)
	if setting {
		into = &r.Settings
	}
	values := (*into).AsValueMap()
	values[name] = cty.StringVal(canary)
	*into = cty.ObjectVal(values)
	return state.Entry{Run: "r1", Kind: state.Note, Op: "record", Address: dev, Put: &r}
}

// withheld returns an entry with a record that has only the digest of that value.
func withheld(path string) state.Entry {
	r := record("dev", 1<<30)
	if name, setting := strings.CutPrefix(path, state.SettingPrefix); setting {
		values := r.Settings.AsValueMap()
		delete(values, name)
		r.Settings = cty.ObjectVal(values)
	}
	r.Digests = map[string]string{path: "k.00"}
	return state.Entry{Run: "r2", Kind: state.Note, Op: "record", Address: dev, Put: &r}
}

// exposed returns a data directory of which every document has the value in plain text.
func exposed(t *testing.T, path string) dataDir {
	t.Helper()
	f := folder(t)
	for range 2 {
		j := open(t, f)
		appendTo(t, j, openly(path))
		closeIt(t, j)
	}
	place(t, f, "state.json.v1", canary)
	if got := holders(t, f); got != "journal.ndjson.backup state.json state.json.backup state.json.v1" {
		t.Fatalf("the value is in %s", got)
	}
	return f
}

// holders lists the files that have the value in plain text.
func holders(t *testing.T, f dataDir) string {
	t.Helper()
	var all []string
	for _, name := range names(t, f) {
		if strings.Contains(file(t, f, name), canary) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// Once a value became sensitive, no document keeps its plain text, wherever the run that wrote the digest was killed.
//
// row A48
func TestNoCopyOfWhatBecameSensitive(t *testing.T) {
	for _, path := range []string{"content", "provider.pool"} {
		t.Run(path, func(t *testing.T) {
			struck := true
			for from := 1; struck; from++ {
				f := exposed(t, path)
				struck = false
				at := ""
				if err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
					switch {
					case c.N < from && c.Name == "fsync":
						return faultinject.Pretended
					case c.N < from:
						return 0
					}
					struck, at = true, c.Name+" "+strings.TrimPrefix(c.Path, f.Dir)
					return syscall.EIO
				}, func() { _ = becomes(t.Context(), f, path) }); err != nil { //nolint:errcheck // it was killed
					t.Fatal(err)
				}
				j := open(t, f)
				if j.Snapshot().Records[dev].Digests == nil {
					appendTo(t, j, openly(path), withheld(path))
				}
				closeIt(t, j)
				if got := holders(t, f); got != "" {
					t.Errorf("killed at call %d, %s: the value is in %s", from, at, got)
				}
				if s := read(t, f); s.Records[dev].Digests[path] == "" || len(s.Notes) > 0 {
					t.Errorf("killed at call %d: the record has the digests %v, notes %v", from, s.Records[dev].Digests, s.Notes)
				}
				place(t, f, "state.json", "damaged")
				if _, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err != nil {
					t.Fatal(err)
				}
				if s := read(t, f); s.Records[dev].Digests[path] == "" {
					t.Errorf("killed at call %d: repaired, the record has the digests %v", from, s.Records[dev].Digests)
				}
			}
		})
	}
}

// becomes writes the record with a value first, as the first step of a change does, and then with the digest.
func becomes(ctx context.Context, f dataDir, path string) error {
	j, err := f.Open(ctx, state.Owner{Command: "vmctl apply"})
	if err != nil {
		return err
	}
	return errors.Join(j.Append(ctx, openly(path)), j.Append(ctx, withheld(path)), j.Close())
}

// What did not become sensitive keeps its backup.
func TestBackupOfSecretsIsKept(t *testing.T) {
	f := folder(t)
	for range 2 {
		j := open(t, f)
		appendTo(t, j, withheld("content"))
		closeIt(t, j)
	}
	before := file(t, f, "state.json")
	j := open(t, f)
	appendTo(t, j, withheld("content"))
	closeIt(t, j)
	if got := file(t, f, "state.json.backup"); got != before {
		t.Errorf("the backup is %s, want the snapshot before: %s", got, before)
	}
	if !strings.Contains(strings.Join(names(t, f), " "), "journal.ndjson.backup") {
		t.Errorf("no journal leads from the backup: %s", names(t, f))
	}
}

// The record of a value that became sensitive may have moved in the same run.
func TestNoCopyOfWhatBecameSensitiveAndMoved(t *testing.T) {
	f := exposed(t, "content")
	to := withheld("content")
	to.Address = webA
	j := open(t, f)
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Note, Op: state.Moved, From: dev, Address: webA}, to)
	closeIt(t, j)
	if got := holders(t, f); got != "" {
		t.Errorf("the value is in %s", got)
	}
}
