package lima

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/spec"
)

// Whoever makes disks of one name at once, and whoever removes the remains of an earlier one meanwhile: one maker gets
// the name, its disk is whole with its mark, and no maker touches anything of another one's.
func TestMakersOfOneDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		home, err := os.MkdirTemp("", "l") //nolint:usetesting // each case removes its own
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home) //nolint:errcheck // of a test
		locks := new(homeLocks)
		maker := func(id, lineage string) *diskJob {
			p := &Provider{home: home, locks: locks}
			p.settings.Project.ID = lineage
			j := &diskJob{Provider: p}
			j.Op, j.Address, j.Name, j.Object = "define", spec.Address{Kind: spec.Disk, Name: "cache"}, "cache", providers.ID(id)
			return j
		}
		write := func(folder string, m *mark, files ...string) {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if m != nil {
				files = append(files, markName)
			}
			for _, name := range files {
				content := ""
				if name == dataDisk {
					content = "disk of " + string(m.ID)
				}
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if m != nil {
				if err := writeJSON(filepath.Join(folder, markName), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		earlier := maker("earlier", "ours")
		earlierMark := earlier.newMark()
		before := rapid.SampledFrom([]string{"nothing", "an empty folder", "remains", "remains of another project"}).Draw(t, "before")
		switch before {
		case "an empty folder":
			write(earlier.diskDir("cache"), nil)
		case "remains of another project":
			earlier = maker("earlier", "theirs")
			earlierMark = earlier.newMark()
			write(earlier.diskDir("cache"), &earlierMark, lockName)
		case "remains":
			write(earlier.diskDir("cache"), &earlierMark, lockName)
		}
		var all []*diskJob
		var together sync.WaitGroup
		begin := make(chan struct{})
		errs := make([]error, rapid.IntRange(1, 4).Draw(t, "makers"))
		for i := range errs {
			j := maker(fmt.Sprint("maker", i), rapid.SampledFrom([]string{"ours", "others"}).Draw(t, "lineage"))
			all = append(all, j)
			m := j.newMark()
			temp := j.diskDir(makingTemp + string(j.Object))
			write(temp, &m, dataDisk)
			together.Go(func() {
				<-begin
				errs[i] = j.locked(t.Context(), func() error { return j.publish(temp) })
			})
		}
		removed := rapid.Bool().Draw(t, "the remains are removed meanwhile")
		if removed {
			together.Go(func() {
				<-begin
				_ = earlier.locked(t.Context(), func() error { return earlier.removeFolder(earlier.diskDir("cache"), &earlierMark) }) //nolint:errcheck // a maker may have the name
			})
		}
		close(begin)
		together.Wait()

		var winner *diskJob
		for i, err := range errs {
			switch {
			case err == nil && winner != nil:
				t.Fatalf("%s and %s got the name", winner.Object, all[i].Object)
			case err == nil:
				winner = all[i]
			case !errors.Is(err, fs.ErrExist) && !isNotEmpty(err):
				t.Fatalf("%s: %v", all[i].Object, err)
			}
		}
		if winner == nil {
			if before != "remains of another project" && !slices.ContainsFunc(all, func(j *diskJob) bool { return before == "remains" && j.settings.Project.ID == "others" }) {
				t.Fatalf("nobody got the name: %v", errs)
			}
			return
		}
		text, err := os.ReadFile(winner.diskPath("cache", dataDisk))
		if m := winner.markNow(); err != nil || m == nil || m.ID != winner.Object || string(text) != "disk of "+string(winner.Object) {
			t.Fatalf("%s has won, and its disk is %q, %v, with the mark %+v", winner.Object, text, err, m)
		}
		entries, err := os.ReadDir(winner.diskDir("cache"))
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, e := range entries {
			files = append(files, e.Name())
		}
		if got := strings.Join(files, " "); got != dataDisk+" "+markName {
			t.Fatalf("the disk of %s has the files %s", winner.Object, got)
		}
	})
}
