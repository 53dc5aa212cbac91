//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers"
)

// An instance whose root disk is gone is broken, and not half made: whether the disk was moved or is a link to a drive
// that is not plugged in, nothing puts a blank one into its place. With the disk back it starts again.
func TestLostRootDisk(t *testing.T) {
	for _, test := range []struct {
		name string
		lose func(root, away string) error
	}{
		{"moved", os.Rename},
		{"a link that leads nowhere", func(root, away string) error {
			return errors.Join(os.Rename(root, away), os.Symlink(away+".unplugged", root))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.do(dev, providers.Stop)
			root, away := l.inDev("disk"), filepath.Join(l.data, "away")
			if err := test.lose(root, away); err != nil {
				t.Fatal(err)
			}
			link, _ := os.Readlink(root) //nolint:errcheck // it is none, or none is there
			o := l.object(devID)
			if said := findings(o); !strings.Contains(said, "broken: its root disk "+root+" is gone") || strings.Contains(said, "half made") {
				t.Errorf("it is seen as\n%s", said)
			}
			for _, action := range []providers.Action{providers.Update, providers.Start, providers.Recover, providers.RestartIt} {
				_, err := l.p.Steps(l.change(dev, action, o))
				if err == nil || !strings.Contains(err.Error(), root+" is gone") {
					t.Errorf("%s: %v", action, err)
				}
			}
			if now, _ := os.Readlink(root); now != link { //nolint:errcheck // as above
				t.Errorf("the link was to %q, and is to %q", link, now)
			}
			if _, err := os.Stat(root); err == nil {
				t.Error("a blank disk is in its place")
			}
			if _, err := l.p.Steps(l.change(dev, providers.ReplaceIt, o)); err != nil {
				t.Errorf("it cannot be replaced: %v", err)
			}
			_ = os.Remove(root) //nolint:errcheck // the link, if it is one
			if err := os.Rename(away, root); err != nil {
				t.Fatal(err)
			}
			l.do(dev, providers.Start)
		})
	}
}
