package fetch_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"vmctl/internal/faultinject"
	"vmctl/internal/fetch"
)

// Wherever the disk fills up or a write fails, the cache never has a file that
// is not whole, and the next download ends well.
func TestDiskTroubleAnywhere(t *testing.T) {
	file := content(600) // more than one buffer
	for _, trouble := range []struct {
		name  string
		errno syscall.Errno
		fails func(call string) bool
		code  string
	}{
		{"full", syscall.ENOSPC, func(call string) bool {
			return strings.HasPrefix(call, "write") || call == "openat" || call == "mkdirat"
		}, "disk_full"},
		{"broken", syscall.EIO, func(string) bool { return true }, "cache"},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			for at, struck := 1, true; struck; at++ {
				s := serve(t, file)
				c, r := cache(t), fetch.Request{URL: s.URL}
				if err := os.MkdirAll(c.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
				struck = false
				var failed error
				var got fetch.File
				err := faultinject.Run(c.Dir, func(call faultinject.Call) syscall.Errno {
					switch {
					case call.N < at || strings.Contains(call.Path, "/lock") || !trouble.fails(call.Name):
						return 0
					}
					struck = true
					return trouble.errno
				}, func() { got, failed = c.Get(t.Context(), r) })
				if err != nil {
					t.Fatal(err)
				}
				var e *fetch.Error
				switch {
				case !struck && failed != nil:
					t.Errorf("call %d: %v", at, failed)
				case failed == nil:
					is(t, got, file)
				case !errors.As(failed, &e) || e.Code != trouble.code:
					t.Errorf("call %d: %v; want the code %s", at, failed, trouble.code)
				}
				get(t, c, r, file)
			}
		})
	}
}
