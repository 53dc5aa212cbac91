package sim_test

import (
	"os"
	"strings"
	"testing"

	"vmctl/providers"
)

// A step in a folder that cannot be written names the file that it could not write. Nothing
// is half there when the folder can be written again.
func TestFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{
		"vms":   "define failed (host): read lab.dev: open DIR/vms/lab.dev.json: not a directory",
		"disks": "define failed (host): read lab.dev: open DIR/disks/lab.dev.root: not a directory",
		"run":   "define failed (host): read what runs lab.dev: open DIR/run/KEY.pid: not a directory",
	} {
		l := newLab(t)
		l.write(l.dir+"/"+folder, "")
		if got := l.apply(providers.Create); !strings.HasPrefix(got, want) {
			t.Errorf("%s is no folder: %s\nwant %s", folder, got, want)
		}
		if len(l.processes(t.Context())) > 0 {
			t.Errorf("%s is no folder, and something runs", folder)
		}
		l.remove(l.dir + "/" + folder)
		action := providers.Create
		if len(l.observe().Objects) > 0 {
			action = providers.Start
		}
		l.apply(action)
		l.sees("lab.dev running")
		l.does(providers.Destroy, destroyed)
		l.isEmpty()
	}
}

// The same holds for a user who may only read.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.does(providers.Stop, "stop graceful")
	before := l.tracesButLogs()
	for _, dir := range []string{l.dir + "/run", l.dir + "/vms", l.dir + "/disks", l.dir} {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, dir := range []string{l.dir, l.dir + "/run", l.dir + "/vms", l.dir + "/disks"} {
			_ = os.Chmod(dir, 0o700) //nolint:errcheck // it may be gone
		}
	})
	l.sees("lab.dev off")
	if os.Getuid() == 0 { // root may write anywhere
		return
	}
	if got := l.apply(providers.Destroy); !strings.Contains(got, "permission denied") {
		t.Errorf("deleted from a folder that is only to be read: %s", got)
	}
	if got := l.apply(providers.Start); !strings.Contains(got, "permission denied") {
		t.Errorf("started in a folder that is only to be read: %s", got)
	}
	for i, trace := range l.tracesButLogs() {
		if i >= len(before) || trace != before[i] {
			t.Errorf("was changed: %s", trace)
		}
	}
}
