//go:build amd64 || arm64

package faultinject

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run runs do, which works on files from its own goroutine only, and lets decide
// judge every call of it that concerns files in dir. An error means that the
// calls could not be watched (Linux 5.5 is needed), and do did not run.
func Run(dir string, decide Decide, do func()) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	ended, end, err := os.Pipe()
	if err != nil {
		return err
	}
	listening, done := make(chan listener), make(chan struct{})
	go func() {
		defer close(done)
		// The thread is never unlocked: no other goroutine gets it.
		runtime.LockOSThread()
		fd, err := watchThread()
		listening <- listener{fd, err}
		if err == nil {
			do()
		}
		_ = end.Close() //nolint:errcheck // the other end sees it closed either way
	}()
	l := <-listening
	if l.err != nil {
		return errors.Join(l.err, ended.Close())
	}
	w := watcher{listener: l.fd, dir: dir, decide: decide}
	err = w.serve(int(ended.Fd()))
	err = errors.Join(err, unix.Close(l.fd), ended.Close())
	<-done
	return err
}

type listener struct {
	fd  int
	err error
}

// watchThread makes the calls of this thread wait for who has the descriptor.
func watchThread() (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("give up new privileges: %w", err)
	}
	filter := program()
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return -1, fmt.Errorf("watch the system calls of this thread: %w", errno)
	}
	return int(fd), nil
}

// program asks about the calls of the table, and lets all others pass. It also
// lets pass what Go's runtime writes to wake itself: whoever has to answer may
// have to wait for that.
func program() []unix.SockFilter {
	numbers := slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(nr int) bool { return nr == unix.SYS_WRITE })
	own := wakers()
	ask := 3 + len(numbers) + len(own)                                              // index of the instruction that asks; the next one lets pass
	all := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	jump := func(value uint32, yes, no int) {
		next := len(all) + 1
		all = append(all, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(yes - next), Jf: uint8(no - next), K: value})
	}
	for _, nr := range numbers {
		jump(uint32(nr), ask, len(all)+1)
	}
	jump(unix.SYS_WRITE, len(all)+1, ask+1)
	all = append(all, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}) // seccomp_data.args[0]
	for _, fd := range own {
		jump(uint32(fd), ask+1, len(all)+1)
	}
	return append(all,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
}

// wakers are the descriptors by which the runtime wakes itself.
func wakers() []int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range open {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		fd, notNumber := strconv.Atoi(e.Name())
		if err == nil && notNumber == nil && target == "anon_inode:[eventfd]" {
			all = append(all, fd)
		}
	}
	return all
}

// notification is struct seccomp_notif, reply is struct seccomp_notif_resp.
type notification struct {
	ID                 uint64
	PID, Flags         uint32
	Number             int32
	Arch               uint32
	InstructionPointer uint64
	Args               [6]uint64
}

type reply struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

const goOn = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE

type watcher struct {
	listener int
	dir      string
	decide   Decide
	calls    int
}

// serve answers until the other end of ended is closed.
func (w *watcher) serve(ended int) error {
	for {
		poll := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}, {Fd: int32(ended)}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for a call: %w", err)
		}
		switch {
		case poll[0].Revents&unix.POLLIN != 0:
			if err := w.answer(); err != nil {
				return err
			}
		case poll[1].Revents&unix.POLLHUP != 0:
			return nil
		}
	}
}

func (w *watcher) answer() error {
	var n notification
	if err := w.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) { // a signal took it back
			return nil
		}
		return fmt.Errorf("read a call: %w", err)
	}
	r := reply{ID: n.ID, Flags: goOn}
	if call, ok := w.call(n); ok {
		errno := w.decide(call)
		if errno != 0 {
			r.Flags = 0
		}
		if errno != Pretended {
			r.Error = -int32(errno)
		}
	}
	if err := w.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("answer a call: %w", err)
	}
	return nil
}

func (w *watcher) ioctl(request uint, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), uintptr(request), uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// call is false for a call that is none of do's: of the runtime, or elsewhere.
func (w *watcher) call(n notification) (Call, bool) {
	k, ok := kinds[int(n.Number)]
	if !ok || k.flags > 0 && n.Args[k.flags]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return Call{}, false
	}
	var path string
	if k.byPath {
		path = text(n.Args[k.file])
	} else if target, err := os.Readlink("/proc/self/fd/" + strconv.FormatUint(n.Args[k.file], 10)); err == nil {
		path = strings.TrimSuffix(target, " (deleted)")
	}
	if path != w.dir && !strings.HasPrefix(path, w.dir+"/") {
		return Call{}, false
	}
	w.calls++
	return Call{N: w.calls, Name: k.name, Path: path}, true
}

// text reads a string of this process by its address.
func text(address uint64) string {
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return ""
	}
	defer mem.Close() //nolint:errcheck // it was read
	buffer := make([]byte, 4096)
	n, err := mem.ReadAt(buffer, int64(address))
	if n == 0 && err != nil {
		return ""
	}
	path, _, _ := bytes.Cut(buffer[:n], []byte{0})
	return string(path)
}
