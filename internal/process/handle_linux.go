package process

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vmctl/internal/clock"
)

// pidfdGroup sends to the group that the process leads, since Linux 6.9
// (PIDFD_SIGNAL_PROCESS_GROUP in linux/pidfd.h).
const pidfdGroup = 1 << 2

// linuxHandle is a pidfd: it never refers to another process.
type linuxHandle struct {
	linux
	pid int
	fd  int
	// file is fd; nil where the kernel has none (before Linux 5.3) or gives none.
	file *os.File
}

func (l linux) Open(pid int) (handle, error) {
	fd, err := l.pidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, errNone
	}
	if err != nil {
		// The pid has to do. What verifies it comes next.
		return &linuxHandle{linux: l, pid: pid}, nil
	}
	// So that waiting for it is left to the runtime, and can be ended.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &linuxHandle{linux: l, pid: pid, fd: fd, file: os.NewFile(uintptr(fd), "pidfd")}, nil
}

func (h *linuxHandle) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

// Request sends SIGTERM, as service managers do.
func (h *linuxHandle) Request() error { return none(h.send(unix.SIGTERM)) }

// Force ends the group of which the process is the leader. The process itself is
// ended in any case: it may lead none, or have left the one that it made.
func (h *linuxHandle) Force() error {
	group := h.sendGroup(unix.SIGKILL)
	if err := h.send(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return none(group)
}

func (h *linuxHandle) send(s unix.Signal) error {
	if h.file == nil {
		return unix.Kill(h.pid, s)
	}
	return h.pidfdSend(h.fd, s, nil, 0)
}

func (h *linuxHandle) sendGroup(s unix.Signal) error {
	if h.file != nil {
		if err := h.pidfdSend(h.fd, s, nil, pidfdGroup); !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	// A group of this number can only be the one that this process made: the
	// number is in use as long as either exists.
	return unix.Kill(-h.pid, s)
}

func none(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return errNone
	}
	return err
}

// Ended asks the kernel. A process that its parent has not collected yet has ended, too.
func (h *linuxHandle) Ended(ctx context.Context) bool {
	if h.file == nil {
		clock.Pause(ctx, pollEvery)
		return false
	}
	raw, err := h.file.SyscallConn()
	if err != nil {
		clock.Pause(ctx, pollEvery)
		return false
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		if err := h.file.SetReadDeadline(time.Unix(1, 0)); err != nil {
			return // what has no deadline is not waited for either
		}
	})
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		ended = isReadable(fd)
		return ended
	})
	if !stop() {
		<-told
	} else if err != nil {
		clock.Pause(ctx, pollEvery) // it cannot be waited for
	}
	return ended
}

func isReadable(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}
