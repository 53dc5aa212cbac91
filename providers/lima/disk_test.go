//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vmctl/providers"
)

// When two make a disk of one name at once, the second touches nothing of the first one's, and says whose it
// is.
func TestDiskMadeMeanwhile(t *testing.T) {
	for _, test := range []struct {
		name, mark string // mark edits the mark of the first one's
		code       string
	}{
		{"by the project", "0305e82c3302 0305e82c3999", "made_elsewhere"},
		{"by another project", "k7m2qd9x4r another000", "name_taken"},
		{"by somebody else", "", "name_taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.do(dev, providers.Stop)
			l.do(dev, providers.Destroy)
			l.do(cache, providers.Destroy)
			l.write(test.mark, "race")
			err := l.try(cache, providers.Create)
			if problem := (*providers.Problem)(nil); !errors.As(err, &problem) || problem.Code != test.code {
				t.Errorf("%v, want %s", err, test.code)
			}
			entries, err := os.ReadDir(filepath.Join(l.home, "_disks"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				files, err := os.ReadDir(filepath.Join(l.home, "_disks", e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					got = append(got, e.Name()+"/"+f.Name())
				}
			}
			want := []string{"lab.cache/datadisk", "lab.cache/in_use_by", "lab.cache/vmctl.json"}
			if test.mark == "" {
				want = want[:2]
			}
			if !slices.Equal(got, want) {
				t.Errorf("files %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
			}
		})
	}
}

// A disk that QEMU has is not deleted, also if the folder of QEMU's instance and the lock of the disk are gone.
func TestDiskOfQEMUAlone(t *testing.T) {
	l := newLab(t)
	disk := filepath.Join(l.home, "_disks", "lab.cache")
	if err := errors.Join(os.Rename(l.inDev(""), filepath.Join(l.data, "away")), os.Remove(filepath.Join(disk, "in_use_by"))); err != nil {
		t.Fatal(err)
	}
	if err := l.try(cache, providers.Destroy); err == nil || !strings.Contains(err.Error(), "the instance lab.dev is defined with it") {
		t.Errorf("deleted while QEMU has it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(disk, "datadisk")); err != nil {
		t.Error(err)
	}
}
