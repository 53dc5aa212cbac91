package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vmctl/internal/clock"
)

// darwin asks the kernel, and runs no program: nobody's PATH matters.
type darwin struct{}

func thisSystem() system { return darwin{} }

func (darwin) HostIdentity() (hostIdentity, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return hostIdentity{}, fmt.Errorf("the boot ID cannot be read: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return hostIdentity{}, fmt.Errorf("the host's name cannot be read: %w", err)
	}
	return hostIdentity{Host: host, Boot: boot}, nil
}

// From sys/proc.h: SZOMB, only the exit status is left; P_WEXIT, on its way out.
const (
	zombie  = 5
	exiting = 0x2000
)

func (d darwin) Look(pid int) (processFacts, error) {
	before, err := d.info(pid)
	if err != nil {
		return processFacts{}, err
	}
	s := processFacts{Start: start(before), PGID: int(before.Eproc.Pgid), Parent: int(before.Eproc.Ppid), UID: int(before.Eproc.Pcred.P_ruid), Ended: before.Proc.P_stat == zombie}
	if s.Ended {
		return s, nil
	}
	s.Exe, s.Argv, s.ExeErr = arguments(pid)
	s.ArgvErr = s.ExeErr
	after, err := d.info(pid)
	if err != nil {
		return processFacts{}, err
	}
	if start(after) != s.Start {
		return processFacts{}, errors.New("its pid was given to another process meanwhile")
	}
	if after.Proc.P_stat == zombie {
		return processFacts{Start: s.Start, PGID: s.PGID, Ended: true}, nil
	}
	if s.ExeErr != nil && after.Proc.P_flag&exiting != 0 {
		s.Ending, s.ExeErr, s.ArgvErr = true, nil, nil
	}
	return s, nil
}

// info fails with errNone only where the kernel denies, in two ways, that the
// process exists.
func (darwin) info(pid int) (*unix.KinfoProc, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == nil && int(info.Proc.P_pid) == pid {
		return info, nil
	}
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return nil, errNone
	}
	if err == nil {
		err = fmt.Errorf("the kernel answered about pid %d", info.Proc.P_pid)
	}
	return nil, err
}

// start is microseconds of absolute time, as noted when the process began.
func start(info *unix.KinfoProc) uint64 {
	began := info.Proc.P_starttime
	return uint64(began.Sec)*1_000_000 + uint64(began.Usec)
}

// arguments returns the path that was executed, and the argument list.
func arguments(pid int) (exe string, argv []string, err error) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if errors.Is(err, unix.EINVAL) {
		// So the kernel says of other users' processes, and of those that end.
		return "", nil, unix.EPERM
	}
	if err != nil {
		return "", nil, err
	}
	return parseProcargs(data)
}

func (d darwin) PIDs() ([]int, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(all))
	for _, info := range all {
		pids = append(pids, int(info.Proc.P_pid))
	}
	slices.Sort(pids)
	return pids, nil
}

func (d darwin) Tree(pid int) ([]int, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pid)
	if err != nil {
		return nil, err
	}
	tree := []int{pid}
	for _, info := range all {
		if other := int(info.Proc.P_pid); other != pid {
			tree = append(tree, other)
		}
	}
	slices.Sort(tree[1:])
	return tree, nil
}

// darwinHandle is a pid: there is nothing better to hold on to.
type darwinHandle struct{ pid int }

func (darwin) Open(pid int) (handle, error) {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return nil, errNone
	}
	return darwinHandle{pid: pid}, nil
}

func (h darwinHandle) Close() error { return nil }

// Request sends what service managers send.
func (h darwinHandle) Request() error { return none(unix.Kill(h.pid, unix.SIGTERM)) }

// Force ends the group of which the process is the leader. The process itself is
// ended in any case: it may lead none, or have left the one that it made.
func (h darwinHandle) Force() error {
	group := unix.Kill(-h.pid, unix.SIGKILL)
	if err := unix.Kill(h.pid, unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return none(group)
}

func none(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return errNone
	}
	return err
}

func (h darwinHandle) Ended(ctx context.Context) bool {
	clock.Pause(ctx, pollEvery)
	return false
}
