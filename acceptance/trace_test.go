//go:build linux

package acceptance_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mutation is a system call by which a program changes something outside of
// itself: a file, a process, or what another program knows. A kill before it and
// a kill after the one before it leave the same world.
type mutation struct {
	Journal int    // writes of a journal before it
	What    string // "write state.json", "call libvirt 33"
	Nth     int    // of those that are alike since the last write of a journal, from 1
}

func (m mutation) String() string { return fmt.Sprintf("%d: %s #%d", m.Journal, m.What, m.Nth) }

// execution is a program that was run under the eyes of the tracer.
type execution struct {
	Mutations []mutation
	Killed    bool
	Code      int // exit code, of one that was not killed
}

// tracee is a program to run.
type tracee struct {
	path string
	args []string
	env  []string
	dir  string
	out  *os.File // standard output and error
	uid  int
	gid  int

	repeats int // the most mutations that are alike between one journal write and the next, and are told
}

// trace runs a program and kills it, as kill -9 does, right before a mutation;
// nil: it lives. Processes that the program started go on without it.
func trace(t *testing.T, p tracee, at *mutation) execution {
	t.Helper()
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // it was only read
	process, err := os.StartProcess(p.path, append([]string{p.path}, p.args...), &os.ProcAttr{
		Dir: p.dir, Env: append(p.env, "GODEBUG=asyncpreemptoff=1"), Files: []*os.File{null, p.out, p.out},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Credential: credential(p)},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := tracer{t: t, pid: process.Pid, at: at, seen: map[mutation]int{}, threads: map[int]bool{process.Pid: true}, repeats: p.repeats}
	defer process.Release() //nolint:errcheck // it was waited for by its ID
	// A program that hangs prints its goroutines, and is ended soon after.
	var late atomic.Bool
	forced := time.AfterFunc(runLimit+endLimit, func() { process.Kill() }) //nolint:errcheck // it may have ended by itself
	defer forced.Stop()
	asked := time.AfterFunc(runLimit, func() {
		late.Store(true)
		process.Signal(syscall.SIGQUIT) //nolint:errcheck // see above
	})
	defer asked.Stop()
	result, err := x.run()
	if late.Load() {
		said, _ := os.ReadFile(p.out.Name()) //nolint:errcheck // the message goes without it
		t.Fatalf("%s %s did not end within %s, and was ended. It had said:\n%s", p.path, strings.Join(p.args, " "), runLimit, said)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func credential(p tracee) *syscall.Credential {
	if p.uid == os.Getuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.gid)} //nolint:gosec // IDs of a user
}

type tracer struct {
	t       *testing.T
	pid     int
	at      *mutation
	result  execution
	journal int
	seen    map[mutation]int
	threads map[int]bool
	repeats int
}

// run returns when the program has ended.
func (x *tracer) run() (execution, error) {
	for first := true; ; first = false {
		var status unix.WaitStatus
		// Its threads are of its group, and this thread may have other children.
		tid, err := unix.Wait4(-x.pid, &status, unix.WALL|unix.WNOTHREAD, nil)
		if err != nil {
			return x.result, fmt.Errorf("wait for the traced program: %w", err)
		}
		switch {
		case status.Exited() && tid == x.pid:
			x.result.Code = status.ExitStatus()
			return x.result, nil
		case status.Signaled() && tid == x.pid:
			if !x.result.Killed {
				return x.result, fmt.Errorf("the traced program ended by signal %v", status.Signal())
			}
			return x.result, nil
		case !status.Stopped():
			continue
		}
		if first {
			if err := unix.PtraceSetOptions(tid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
				x.t.Fatalf("trace: %v", err)
			}
		}
		x.resume(tid, x.stopped(tid, status, first))
	}
}

// stopped looks at a stop, and returns the signal to go on with.
func (x *tracer) stopped(tid int, status unix.WaitStatus, first bool) int {
	known := x.threads[tid]
	x.threads[tid] = true
	switch signal := status.StopSignal(); {
	case first, !known && signal == unix.SIGSTOP: // how a new thread begins
		return 0
	case signal == unix.SIGTRAP|0x80:
		x.call(tid)
		return 0
	case signal == unix.SIGTRAP:
		return 0
	default:
		return int(signal)
	}
}

func (x *tracer) resume(tid, signal int) {
	if err := unix.PtraceSyscall(tid, signal); err != nil && err != unix.ESRCH {
		x.t.Fatalf("trace: %v", err)
	}
}

// syscallEntry is the description by the kernel of a system call that begins
// (struct ptrace_syscall_info of linux/ptrace.h).
type syscallEntry struct {
	Op     uint8
	_      [3]uint8
	_      uint32
	_, _   uint64
	Number uint64
	Args   [6]uint64
}

func (x *tracer) call(tid int) {
	var e syscallEntry
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(e), uintptr(unsafe.Pointer(&e)), 0, 0)
	const entering = 1
	if errno != 0 || e.Op != entering || x.result.Killed {
		return
	}
	what := x.mutationName(tid, e)
	if what == "" {
		return
	}
	m := mutation{Journal: x.journal, What: what}
	x.seen[m]++
	m.Nth = x.seen[m]
	if m.Nth > x.repeats {
		return
	}
	x.result.Mutations = append(x.result.Mutations, m)
	if x.at != nil && *x.at == m {
		x.result.Killed = true
		if err := unix.Kill(x.pid, unix.SIGKILL); err != nil {
			x.t.Errorf("kill the traced program: %v", err)
		}
		return
	}
	if strings.HasPrefix(what, "write journal") {
		x.journal++
	}
}

// mutationName names the change that a system call makes; "": no change that lasts.
func (x *tracer) mutationName(tid int, e syscallEntry) string {
	a := e.Args
	switch e.Number {
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG:
		return x.write(tid, e)
	case unix.SYS_FTRUNCATE:
		return "truncate " + x.file(tid, a[0])
	case unix.SYS_FCHMOD:
		return unlessTemp("mode of ", x.file(tid, a[0]))
	case unix.SYS_OPENAT:
		path := x.path(tid, a[0], a[1])
		if _, err := os.Lstat(path); a[2]&unix.O_CREAT == 0 || err == nil {
			return ""
		}
		return "make " + name(path)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename " + name(x.path(tid, a[2], a[3]))
	case unix.SYS_LINKAT:
		return "link " + name(x.path(tid, a[2], a[3]))
	case unix.SYS_SYMLINKAT:
		return "link " + name(x.path(tid, a[1], a[2]))
	case unix.SYS_UNLINKAT:
		path := x.path(tid, a[0], a[1])
		if _, err := os.Lstat(path); err != nil {
			return ""
		}
		return "remove " + name(path)
	case unix.SYS_MKDIRAT:
		path := x.path(tid, a[0], a[1])
		if _, err := os.Lstat(path); err == nil {
			return ""
		}
		return "make folder " + name(path)
	case unix.SYS_FCHMODAT:
		return "mode of " + name(x.path(tid, a[0], a[1]))
	case unix.SYS_PIDFD_SEND_SIGNAL:
		return signalled(a[1])
	case unix.SYS_KILL:
		return signalled(a[1])
	case unix.SYS_CLONE:
		if a[0]&unix.CLONE_THREAD != 0 {
			return ""
		}
		return "start a process"
	case unix.SYS_CLONE3:
		return "start a process"
	}
	return ""
}

func signalled(signal uint64) string {
	if signal == 0 {
		return ""
	}
	return "signal " + strconv.FormatUint(signal, 10)
}

// write names a write to a file, or to another program; "": a write that changes nothing.
func (x *tracer) write(tid int, e syscallEntry) string {
	file := x.file(tid, e.Args[0])
	switch {
	case e.Args[0] <= 2, strings.HasPrefix(file, "/dev/"), strings.HasPrefix(file, "anon_inode:"), strings.HasPrefix(file, "pipe:"):
		return ""
	case !strings.HasPrefix(file, "socket:"):
		return unlessTemp("write ", file)
	}
	address, length := e.Args[1], e.Args[2]
	if e.Number == unix.SYS_WRITEV || e.Number == unix.SYS_SENDMSG {
		return "send"
	}
	return sent(x.memory(tid, address, int(min(length, 28)))) //nolint:gosec // at most 28
}

// A message of libvirt's protocol begins with its length, the program, the version, the
// procedure and the type (rpc/virnetprotocol.x in libvirt's source).
const (
	libvirtProgram = 0x20008086
	qemuProgram    = 0x20008087
	libvirtCall    = 0
	libvirtStream  = 3
)

func sent(message []byte) string {
	if len(message) < 20 {
		return "send"
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(message[4*i:]) }
	program, procedure, kind := word(1), word(3), word(4)
	switch {
	case program != libvirtProgram && program != qemuProgram:
		return "send"
	case kind == libvirtCall && program == qemuProgram:
		return fmt.Sprintf("call qemu %d", procedure)
	case kind == libvirtCall:
		return fmt.Sprintf("call libvirt %d", procedure)
	case kind == libvirtStream:
		return fmt.Sprintf("stream libvirt %d", procedure)
	}
	return "send"
}

// unlessTemp leaves out what happens to a temporary file between its making and
// its renaming: the kill points are before and after.
func unlessTemp(what, file string) string {
	if strings.HasSuffix(file, temporary) {
		return ""
	}
	return what + file
}

// file names what a descriptor leads to.
func (x *tracer) file(tid int, fd uint64) string {
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, fd))
	if err != nil {
		x.t.Errorf("look at a file of the traced program: %v", err)
	}
	if filepath.IsAbs(target) && !strings.HasPrefix(target, "/dev/") {
		return name(target)
	}
	return target
}

// path reads an argument that is a path.
func (x *tracer) path(tid int, dir, address uint64) string {
	text, _, _ := bytes.Cut(x.memory(tid, address, unix.PathMax), []byte{0})
	path := string(text)
	if filepath.IsAbs(path) {
		return path
	}
	base := fmt.Sprintf("/proc/%d/cwd", tid)
	if int32(dir) != unix.AT_FDCWD { //nolint:gosec // a file descriptor
		base = fmt.Sprintf("/proc/%d/fd/%d", tid, dir)
	}
	if target, err := os.Readlink(base); err == nil {
		base = target
	}
	return filepath.Join(base, path)
}

func (x *tracer) memory(tid int, address uint64, length int) []byte {
	file, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		x.t.Errorf("look into the traced program: %v", err)
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	data := make([]byte, length)
	n, _ := file.ReadAt(data, int64(address)) //nolint:errcheck,gosec // what follows the text may not be there
	return data[:n]
}

// Parts of file names that differ from run to run.
var (
	accidental = regexp.MustCompile(`[0-9a-f]{12,}`)
	numbered   = regexp.MustCompile(`\.[0-9]+\.tmp$`)
)

// temporary ends the name of a file that is being written.
const temporary = ".tmp"

// name returns a file's name without the parts that differ from run to run.
func name(path string) string {
	return numbered.ReplaceAllString(accidental.ReplaceAllString(filepath.Base(path), "N"), temporary)
}
