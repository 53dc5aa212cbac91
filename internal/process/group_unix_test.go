//go:build unix

package process_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/process"
)

// What a process has started lives on when it is killed with all its group, and
// is found by its arguments.
//
// row L16
func TestChildOutlivesItsStarter(t *testing.T) {
	host := process.Host{}
	starter := realWorld{}.Run(t, "keeper")
	child := starter.Below[0]
	ended, err := host.Force(starter.Identity)
	must(t, err)
	if !slices.Equal(ended, []process.Identity{starter.Identity}) {
		t.Errorf("forced %v, want the starter alone", ended)
	}
	must(t, host.Wait(t.Context(), starter.Identity))
	starter.Collect()
	verify(t, host, child, process.Match)
	found, err := host.Find(t.Context(), process.HasArgument(mark))
	must(t, err)
	if !slices.Contains(found, child) {
		t.Errorf("found %v, want the orphan %v", found, child)
	}
	_, err = host.Force(child)
	must(t, err)
	must(t, host.Wait(t.Context(), child))
	verify(t, host, child, process.Gone)
}

// A command never ends itself, which would end it halfway.
func TestForceSparesItself(t *testing.T) {
	me, err := process.Host{}.Capture(t.Context(), os.Getpid())
	must(t, err)
	_, err = process.Host{}.Force(me)
	want := "this command runs inside it and would end too: run it from elsewhere"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFindOverlooksItself(t *testing.T) {
	found, err := process.Host{}.Find(t.Context(), func(argv []string) bool { return argv[0] == os.Args[0] })
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	for _, id := range found {
		if id.PID == os.Getpid() {
			t.Errorf("found itself: %v", id)
		}
	}
}
