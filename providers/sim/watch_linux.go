package sim

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// folderWatch collects the changes of the files in a folder, by whichever process: the kernel has queued a change when the
// call that makes it returns (inotify(7)).
type folderWatch struct {
	queue  *os.File
	folder os.FileInfo
	buffer []byte
}

// watchedEvents are the events that tell of a change of a file in the folder, or of the folder itself.
const watchedEvents = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// watchFolder watches a folder. nil: that cannot be done, or other machines may change the files, too.
func watchFolder(path string) *folderWatch {
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil || !isLocal(int64(system.Type)) { //nolint:unconvert // its type is another on some processors
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &folderWatch{queue: os.NewFile(uintptr(fd), "inotify"), buffer: make([]byte, 64<<10)}
	_, err = unix.InotifyAddWatch(fd, path, watchedEvents)
	if err == nil {
		w.folder, err = os.Stat(path)
	}
	if err != nil {
		_ = w.close() //nolint:errcheck // it watches nothing
		return nil
	}
	return w
}

// isLocal reports whether only this machine changes files of a file system, by its number in statfs(2).
func isLocal(magic int64) bool {
	const zfs = 0x2fc12fc1
	switch magic {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs:
		return true
	}
	return false
}

// changed returns the names of the files that have changed since the last call. false: the watch has ended or lost changes,
// or the folder is another.
func (w *folderWatch) changed(path string) ([]string, bool) {
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(now, w.folder) {
		return nil, false
	}
	var names []string
	for {
		n, err := w.next()
		if err != nil || n == 0 {
			return names, err == nil
		}
		for rest := w.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			mask, size := binary.NativeEndian.Uint32(rest[4:]), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(rest[12:]))
			if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 || size > len(rest) {
				return nil, false
			}
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:size]), "\x00")
			if name == "" { // the event is of the folder itself
				return nil, false
			}
			names, rest = append(names, name), rest[size:]
		}
	}
}

// next reads events into the buffer. 0: there are none now.
func (w *folderWatch) next() (n int, err error) {
	queue, err := w.queue.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failure error
	err = queue.Read(func(fd uintptr) bool {
		n, failure = unix.Read(int(fd), w.buffer)
		return true
	})
	if errors.Is(failure, unix.EAGAIN) {
		return 0, err
	}
	return n, errors.Join(err, failure)
}

// reports reports whether the watch tells of each change of a file that is there or missing. It does not see what is
// written through a link that lies elsewhere.
func (w *folderWatch) reports(path string) bool {
	var info unix.Stat_t
	err := unix.Lstat(path, &info)
	return errors.Is(err, unix.ENOENT) || err == nil && info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink == 1
}

func (w *folderWatch) close() error { return w.queue.Close() }
