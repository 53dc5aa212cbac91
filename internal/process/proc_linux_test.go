package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vmctl/internal/process"
)

// fakeProc is a folder in the place of /proc, with the real entries that it is
// given. Everybody can enter it.
func fakeProc(t *testing.T, entries ...string) string {
	t.Helper()
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	must(t, os.Chmod(filepath.Dir(root), 0o755))
	for _, entry := range entries {
		must(t, os.Symlink("/proc/"+entry, filepath.Join(root, entry)))
	}
	return root
}

func hostAt(proc string) process.Host { return process.NewHost(process.LinuxAt(proc)) }

// Without a /proc that can be trusted nobody is gone.
//
// row J28
// row J29
func TestNoProc(t *testing.T) {
	a := realWorld{}.Run(t, "deaf")
	missing := filepath.Join(t.TempDir(), "proc")
	foreign := fakeProc(t, "sys", strconv.Itoa(a.PID))
	must(t, os.Symlink("/proc/"+strconv.Itoa(a.PID), filepath.Join(foreign, "self")))
	garbage := fakeProc(t, "sys")
	must(t, os.Mkdir(filepath.Join(garbage, "self"), 0o755))
	must(t, os.WriteFile(filepath.Join(garbage, "self/stat"), []byte("what"), 0o644))
	for name, c := range map[string]struct{ proc, want string }{
		"not there":   {missing, "processes cannot be read: open %s/self/stat: no such file or directory: mount proc at %[1]s"},
		"not mounted": {fakeProc(t), "processes cannot be read: open %s/self/stat: no such file or directory: mount proc at %[1]s"},
		"only itself": {fakeProc(t, "self"), "the boot ID cannot be read: open %s/sys/kernel/random/boot_id: no such file or directory"},
		"garbage":     {garbage, `processes cannot be read: read %s/self/stat: no line of a process: "what"`},
		"of another namespace": {foreign, "processes cannot be read: %s is of another namespace, where pid " +
			fmt.Sprintf("%d is %d", os.Getpid(), a.PID) + ": mount this one's"},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostAt(c.proc)
			want := fmt.Sprintf(c.want, c.proc)
			if verdict, reason := host.Verify(a.Identity); verdict != process.Unknown || reason != want {
				t.Errorf("got  %s: %s\nwant unknown: %s", verdict, reason, want)
			}
			refused(t, host, a.Identity, process.Unknown)
			if _, err := host.Capture(t.Context(), a.PID); err == nil || errors.Is(err, process.ErrGone) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("capture: %v, want %s", err, want)
			}
			if _, err := host.Find(t.Context(), process.HasArgument(mark)); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("find: %v, want %s", err, want)
			}
			if err := host.Wait(t.Context(), a.Identity); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("wait: %v, want %s", err, want)
			}
			if _, err := host.Start(process.Command{Path: self(t)}); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("start: %v, want %s", err, want)
			}
		})
	}
	verify(t, process.Host{}, a.Identity, process.Match)
}

// A process that proc does not show is asked for in another way.
//
// row J28
func TestHiddenProcessIsNotGone(t *testing.T) {
	a := realWorld{}.Run(t, "deaf")
	host := hostAt(fakeProc(t, "self", "sys"))
	verdict, reason := host.Verify(a.Identity)
	if verdict != process.Unknown || !strings.Contains(reason, " hides it: permission denied") {
		t.Errorf("%s: %s, want unknown: hidden", verdict, reason)
	}
	refused(t, host, a.Identity, process.Unknown)
	if _, err := host.Capture(t.Context(), a.PID); !errors.Is(err, fs.ErrPermission) || errors.Is(err, process.ErrGone) {
		t.Errorf("capture: %v", err)
	}
	if found, err := host.Find(t.Context(), process.HasArgument(mark)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("found %v, %v, want to hear that more is hidden", found, err)
	}
	a.End()
	must(t, host.Wait(t.Context(), a.Identity))
	a.Collect()
	verify(t, host, a.Identity, process.Gone)
}

// A process whose program has left the memory is on its way out, and not there
// yet.
func TestEndingProcessIsNotGone(t *testing.T) {
	a := realWorld{}.Run(t, "deaf")
	proc := fakeProc(t, "self", "sys")
	pid := strconv.Itoa(a.PID)
	must(t, os.Mkdir(filepath.Join(proc, pid), 0o755))
	must(t, os.Symlink("/proc/"+pid+"/stat", filepath.Join(proc, pid, "stat")))
	verdict, reason := hostAt(proc).Verify(a.Identity)
	if verdict != process.Match || !strings.HasSuffix(reason, " is ending") {
		t.Errorf("%s: %s, want match: ending", verdict, reason)
	}
	if _, err := hostAt(proc).Capture(over(t), a.PID); err == nil || errors.Is(err, process.ErrGone) {
		t.Errorf("capture: %v", err)
	}
}

// A search passes over what runs no program, as a thread of the kernel, before it reads the rest; the rest is garbage here.
// A program whose arguments are not there yet is looked at.
func TestSearchPassesOverWhatRunsNoProgram(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		looked  bool
	}{"a thread of the kernel": {}, "a program": {program: "/bin/true", looked: true}} {
		t.Run(name, func(t *testing.T) {
			proc := fakeProc(t, "1", "self", "sys")
			pid := filepath.Join(proc, strconv.Itoa(os.Getppid()))
			must(t, os.Mkdir(pid, 0o755))
			must(t, os.WriteFile(filepath.Join(pid, "cmdline"), nil, 0o644))
			must(t, os.WriteFile(filepath.Join(pid, "stat"), []byte("garbage"), 0o644))
			if c.program != "" {
				must(t, os.Symlink(c.program, filepath.Join(pid, "exe")))
			}
			_, err := hostAt(proc).Find(t.Context(), process.HasArgument(mark))
			if looked := err != nil && strings.Contains(err.Error(), "garbage"); looked != c.looked {
				t.Errorf("find: %v, want it looked at: %t", err, c.looked)
			}
		})
	}
}

// What may not be read is unknown. Whoever may read everything tests as a user
// who may not.
//
// row J28
// row X01
func TestNoPermission(t *testing.T) {
	a := realWorld{}.Run(t, "deaf")
	pid := strconv.Itoa(a.PID)
	closed := fakeProc(t, "self", "sys")
	must(t, os.Mkdir(filepath.Join(closed, pid), 0))
	self := fakeProc(t, "sys", pid)
	must(t, os.Mkdir(filepath.Join(self, "self"), 0))
	look := func(name, proc string, of *os.File, found string) {
		t.Run(name, func(t *testing.T) {
			said := seeAsUser(t, a.Identity, proc, of)
			t.Log(said)
			for _, want := range []string{"verify: unknown: ", "capture: identify pid " + pid + ": ", "request: ", "force: ", "wait: ", "find: " + found} {
				if !strings.Contains("\n"+said, "\n"+want) {
					t.Errorf("did not say %q", want)
				}
			}
			if strings.Contains(said, "gone") || strings.Contains(said, process.ErrGone.Error()) || strings.Contains(said, "<nil>\nforce") {
				t.Error("said that it is gone, or asked it")
			}
			verify(t, process.Host{}, a.Identity, process.Match)
		})
	}
	look("process", closed, nil, "0 find processes: 1 could not be read, of which pid "+pid+": ")
	look("self", self, nil, "0 find processes: processes cannot be read: open "+self+"/self/stat: permission denied\n")
	if os.Getuid() != 0 {
		return
	}
	// Only root has processes that a user may not read, and file systems of its own.
	look("another's process", "/proc", nil, "1 <nil>\n")
	for hidepid, found := range map[string]string{
		"1": "0 find processes: ", // how many could not be read is not known here
		"2": "0 find processes: /proc/self/fd/4 hides other users' processes: permission denied\n",
	} {
		if mount, err := mountProc(hidepid); err != nil {
			t.Logf("root may not mount proc here: %v", err)
		} else {
			look("hidepid="+hidepid, "/proc/self/fd/4", mount, found)
			must(t, mount.Close())
		}
	}
}

// mountProc mounts proc where only its file descriptor leads.
func mountProc(hidepid string) (proc *os.File, err error) {
	system, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(system)) }()
	if err := unix.FsconfigSetString(system, "hidepid", hidepid); err != nil {
		return nil, err
	}
	if err := unix.FsconfigCreate(system); err != nil {
		return nil, err
	}
	mount, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(mount), "proc"), nil
}

// seeAsUser returns what a process without privileges says of id.
func seeAsUser(t *testing.T, id process.Identity, proc string, of *os.File) string {
	t.Helper()
	record, err := json.Marshal(id)
	must(t, err)
	// Such a user may not enter the folder of this program.
	program, err := os.Open(self(t))
	must(t, err)
	defer func() { must(t, program.Close()) }()
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	var said bytes.Buffer
	cmd := &exec.Cmd{
		Path: "/proc/self/fd/3", Args: []string{"see", proc, mark}, Env: append(os.Environ(), role+"=see"),
		Stdin: bytes.NewReader(record), Stdout: &said, Stderr: os.Stderr,
		ExtraFiles: []*os.File{program}, SysProcAttr: attr, Dir: "/",
	}
	if of != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, of)
	}
	must(t, cmd.Run())
	return said.String()
}
