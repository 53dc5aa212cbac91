package sim_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vmctl/providers/sim"
)

// opened counts the files of a folder that were opened since the last call.
func opened(t *testing.T, folder string) func() int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	buffer := make([]byte, 1<<20)
	return func() (count int) {
		n, err := unix.Read(fd, buffer)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
		for at := 0; at < n; count++ {
			at += unix.SizeofInotifyEvent + int(buffer[at+12]) // the length of the name: less than 256
		}
		return count
	}
}

// On a large host, a question about a disk reads only the files that have changed.
func TestIndexReadsOnlyWhatChanged(t *testing.T) {
	h := &house{t: t, dir: t.TempDir()}
	p, err := simType(t).Open(t.Context(), h.settings(true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	const count = 200
	vm := func(i int) string {
		return fmt.Sprintf(`{"format":1,"id":"%d","name":"vm%d","config":{"cpus":1,"memory":1,"accel":"tcg","disks":[{"name":"disk%d"}]}}`, i, i, i)
	}
	for i := range count {
		h.write(h.vmPath(fmt.Sprint("vm", i)), vm(i))
	}
	reads := opened(t, h.dir+"/vms")
	for _, step := range []struct {
		name   string
		change func()
		least  int
		most   int
	}{
		{"the first question", func() {}, count, 2 * count},
		{"nothing has changed", func() {}, 0, 0},
		{"one file was written", func() { h.write(h.vmPath("vm7"), vm(7)); reads() }, 1, 1},
		{"one was deleted", func() {
			if err := os.Remove(h.vmPath("vm8")); err != nil {
				t.Fatal(err)
			}
		}, 0, 0},
	} {
		step.change()
		sim.Users(p, []string{"disk7"}, nil)
		if n := reads(); n < step.least || n > step.most {
			t.Errorf("%s: %d files were read, want %d to %d", step.name, n, step.least, step.most)
		}
	}
}

// A VM that could not be read is read again, though nobody writes its file.
func TestIndexForgetsReadErrors(t *testing.T) {
	h := &house{t: t, dir: t.TempDir()}
	p, err := simType(t).Open(t.Context(), h.settings(true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	vm := func(i int) string {
		return fmt.Sprintf(`{"format":1,"id":"%d","name":"vm%d","config":{"cpus":1,"memory":1,"accel":"tcg","disks":[{"name":"disk%d"}]}}`, i, i, i)
	}
	for i := range 200 { // the folder of a large host is watched
		h.write(h.vmPath(fmt.Sprint("vm", i)), vm(i))
	}
	disks := []string{"disk7"}
	want := sim.Users(p, disks, nil)
	h.write(h.vmPath("vm7"), vm(7))
	var without string
	withoutFiles(t, func() { without = sim.Users(p, disks, nil) })
	if !strings.Contains(without, "too many open files") {
		t.Fatalf("the VM was read: %s", without)
	}
	if got := sim.Users(p, disks, nil); got != want {
		t.Errorf("afterwards %s, want %s", got, want)
	}
}

// withoutFiles calls do while this process can open no more files.
func withoutFiles(t *testing.T, do func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}
