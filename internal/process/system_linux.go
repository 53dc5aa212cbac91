package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// linux reads a proc file system, and runs no program: nobody's PATH matters.
type linux struct {
	proc      string // where it is mounted
	pidfdOpen func(pid, flags int) (int, error)
	pidfdSend func(fd int, s unix.Signal, info *unix.Siginfo, flags int) error
}

func thisSystem() system {
	return linux{proc: "/proc", pidfdOpen: unix.PidfdOpen, pidfdSend: unix.PidfdSendSignal}
}

// HostIdentity makes sure first that proc is one, and shows the pids that this process
// sees: an empty folder would say that everybody is gone.
func (l linux) HostIdentity() (hostIdentity, error) {
	self, err := l.stat("self")
	if isMissing(err) {
		return hostIdentity{}, fmt.Errorf("processes cannot be read: %w: mount proc at %s", err, l.proc)
	}
	if err != nil {
		return hostIdentity{}, fmt.Errorf("processes cannot be read: %w", err)
	}
	if self.pid != os.Getpid() {
		return hostIdentity{}, fmt.Errorf("processes cannot be read: %s is of another namespace, where pid %d is %d: mount this one's",
			l.proc, os.Getpid(), self.pid)
	}
	boot, err := os.ReadFile(filepath.Join(l.proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return hostIdentity{}, fmt.Errorf("the boot ID cannot be read: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return hostIdentity{}, fmt.Errorf("the host's name cannot be read: %w", err)
	}
	machine, err := machineID()
	if err != nil {
		return hostIdentity{}, err
	}
	namespace, err := l.namespace()
	return hostIdentity{Host: host, Machine: machine, Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, err
}

// machineID is a digest: machine-id(5) asks not to give the ID away.
func machineID() (string, error) {
	id, err := os.ReadFile("/etc/machine-id")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the machine's ID cannot be read: %w", err)
	}
	if id = bytes.TrimSpace(id); len(id) == 0 {
		return "", nil
	}
	sum := sha256.Sum256(append([]byte("vmctl process identity "), id...))
	return hex.EncodeToString(sum[:8]), nil
}

// namespace returns the names of the namespaces that number the pids and that set the
// zero of the start times.
func (l linux) namespace() (string, error) {
	var all []string
	for _, kind := range []string{"pid", "time"} {
		link, err := os.Readlink(filepath.Join(l.proc, "self/ns", kind))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without such namespaces
		}
		if err != nil {
			return "", fmt.Errorf("the process namespace cannot be read: %w", err)
		}
		all = append(all, link)
	}
	return strings.Join(all, " "), nil
}

// lookAttempts is the number of looks at a process that exists and that proc does not
// show: the pid may have been given to it between the two questions.
const lookAttempts = 3

func (l linux) Look(pid int) (processFacts, error) {
	var last error
	for range lookAttempts {
		s, err := l.look(pid)
		if err == nil {
			return s, nil
		}
		last = err
		if !isMissing(err) && !errors.Is(err, errChanged) {
			return processFacts{}, err
		}
		// proc may be mounted so that it hides other users' processes.
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return processFacts{}, errNone
		}
	}
	if errors.Is(last, errChanged) {
		return processFacts{}, last
	}
	return processFacts{}, fmt.Errorf("it exists, and %s hides it: %w", l.proc, fs.ErrPermission)
}

var errChanged = errors.New("its pid was given to another process meanwhile")

func (l linux) look(pid int) (processFacts, error) {
	before, err := l.stat(strconv.Itoa(pid))
	if err != nil {
		return processFacts{}, err
	}
	var s processFacts
	s.UID = l.user(pid)
	s.Exe, s.ExeErr = os.Readlink(l.path(pid, "exe"))
	s.Argv, s.ArgvErr = l.argv(pid)
	after, err := l.stat(strconv.Itoa(pid))
	if err != nil {
		return processFacts{}, err
	}
	if after.start != before.start {
		return processFacts{}, errChanged
	}
	s.Start, s.PGID, s.Parent, s.Ended = after.start, after.pgid, after.parent, after.ended()
	if isMissing(s.ExeErr) {
		s.Ending, s.ExeErr = true, nil
	}
	if isMissing(s.ArgvErr) {
		s.ArgvErr = nil
	}
	return s, nil
}

// isMissing reports whether err says that something does not exist. Files of a
// process that ends while they are open fail with the second one.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// Arguments returns the arguments of a process. It has no program if proc shows the process and no link to a file that
// it runs: a thread of the kernel, of which a machine has more than of all else, or one on its way out.
func (l linux) Arguments(pid int) (argv []string, none bool) {
	argv, err := l.argv(pid)
	if err != nil || len(argv) > 0 {
		return argv, false
	}
	var held [1]byte
	_, err = uninterrupted(func() (int, error) { return unix.Readlink(l.path(pid, "exe"), held[:]) })
	return nil, isMissing(err) && unix.Access(l.path(pid, "stat"), unix.F_OK) == nil
}

func (l linux) argv(pid int) ([]string, error) {
	data, err := readProc(l.path(pid, "cmdline"))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), nil
}

// user returns the real ID of the user who runs a process (proc_pid_status(5)); -1: it cannot be read. The owner of the
// files in proc is another one for programs that may not be dumped.
func (l linux) user(pid int) int {
	data, err := readProc(l.path(pid, "status"))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(data)) {
		ids, found := strings.CutPrefix(line, "Uid:")
		if !found {
			continue
		}
		if fields := strings.Fields(ids); len(fields) > 0 {
			if id, err := strconv.Atoi(fields[0]); err == nil {
				return id
			}
		}
	}
	return -1
}

func (l linux) path(pid int, file string) string {
	return filepath.Join(l.proc, strconv.Itoa(pid), file)
}

func (l linux) PIDs() ([]int, error) {
	entries, err := os.ReadDir(l.proc)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	// The first process always exists. proc may be mounted so that it shows only
	// this user's.
	if !slices.Contains(pids, 1) {
		return pids, fmt.Errorf("%s hides other users' processes: %w", l.proc, fs.ErrPermission)
	}
	return pids, nil
}

func (l linux) Tree(pid int) ([]int, error) {
	pids, err := l.PIDs()
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	tree := []int{pid}
	for _, other := range pids {
		s, err := l.stat(strconv.Itoa(other))
		if err != nil || other == pid || s.pgid != pid {
			continue // what cannot be read cannot be ended either
		}
		tree = append(tree, other)
	}
	return tree, nil
}

func (l linux) stat(name string) (stat, error) {
	path := filepath.Join(l.proc, name, "stat")
	data, err := readProc(path)
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(string(data))
	if err != nil {
		return stat{}, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}

// readProc reads a file of proc. It leaves out what os.ReadFile does for files that may block, which is most of the
// price of a search.
func readProc(path string) ([]byte, error) {
	fd, err := uninterrupted(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	data := make([]byte, 0, 1<<10)
	for {
		n, err := uninterrupted(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return data, nil
		}
		data = data[:len(data)+n]
		if len(data) == cap(data) {
			data = slices.Grow(data, cap(data))
		}
	}
}

// uninterrupted repeats a call of the system that a signal has interrupted.
func uninterrupted(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
