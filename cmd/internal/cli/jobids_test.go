package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers/job"
)

// A tampered record names a job that is elsewhere: every command of jobs rejects the ID, and writes nothing outside of the folder of jobs.
//
// row J42, of the commands
func TestHostileIDsOfJobs(t *testing.T) {
	h := newHouse(t, withID)
	h.record("j-0", job.Queued, nil)
	outside := func() (all string) {
		for _, root := range []string{h.dir, h.home} {
			if err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
				if e != nil && e.IsDir() && path == h.records().Dir {
					return filepath.SkipDir
				}
				all += path + "\n"
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	text, err := os.ReadFile(h.records().Path("j-0", "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.run("job", "list", "--all").exits(0)
	before := outside()
	for _, id := range []string{".", "..", "../x", "../../x", "a/b", "/etc", "a b", "A"} {
		tampered := strings.Replace(string(text), `"id": "j-0"`, `"id": "`+id+`"`, 1)
		if err := os.WriteFile(h.records().Path("j-0", "record.json"), []byte(tampered), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"status", "result", "logs", "cancel", "continue", "wait"} {
			h.run("job", command, "--json", id).exits(3).says(`"code": "bad_args"`)
			h.run("job", command, "--json", "j-0").exits(1).says(`"code": "bad_state"`)
		}
		h.run("job", "list", "--all").exits(0).warns("it is the record of job")
		if after := outside(); after != before {
			t.Errorf("%q: there is now\n%s\nbefore\n%s", id, after, before)
		}
	}
}
