//go:build cgo && libvirt_dlopen

package libvirt_test

import (
	"os"
	"strings"
	"testing"
)

// mapsAtStart lists what was mapped into this process before any test ran.
var mapsAtStart, errMaps = os.ReadFile("/proc/self/maps")

// What has nothing to do with libvirt does not open its library.
func TestTheLibraryIsOpenedLate(t *testing.T) {
	if errMaps != nil {
		t.Fatal(errMaps)
	}
	for line := range strings.Lines(string(mapsAtStart)) {
		if strings.Contains(line, "libvirt.so") {
			t.Fatalf("the library is open at the start of the process: %s", line)
		}
	}
}
