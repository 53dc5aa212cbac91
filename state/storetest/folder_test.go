package storetest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vmctl/state"
	"vmctl/state/storetest"
)

// A data directory keeps all promises of a store.
func TestFolder(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return folder(t.TempDir()) })
}

func folder(dir string) storetest.Harness {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	lockFile := filepath.Join(dir, "lock")
	return storetest.Harness{
		Connect: func() state.Backend { return state.Folder{Dir: dir, Now: time.Now} },
		// The kernel frees the lock of a process that ended.
		End: func(l state.Lease) { must(l.Release()) },
		Take: func() {
			must(os.Remove(lockFile))
			if err := os.Remove(lockFile + ".owner"); !errors.Is(err, os.ErrNotExist) {
				must(err)
			}
		},
	}
}
