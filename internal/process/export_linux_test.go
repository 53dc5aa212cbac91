package process

import "golang.org/x/sys/unix"

// Stat holds the fields that ParseStat reads from a line.
type Stat struct {
	PID, PGID int
	Ended     bool
	Start     uint64
}

func ParseStat(line string) (Stat, error) {
	s, err := parseStat(line)
	return Stat{PID: s.pid, PGID: s.pgid, Ended: s.ended(), Start: s.start}, err
}

// LinuxAt reads the processes of another folder than /proc.
func LinuxAt(proc string) System {
	return linux{proc: proc, pidfdOpen: unix.PidfdOpen, pidfdSend: unix.PidfdSendSignal}
}

// LinuxBefore6 is a kernel that can hold a process, and not end its group.
func LinuxBefore6() System {
	send := func(fd int, s unix.Signal, info *unix.Siginfo, flags int) error {
		if flags != 0 {
			return unix.EINVAL
		}
		return unix.PidfdSendSignal(fd, s, info, flags)
	}
	return linux{proc: "/proc", pidfdOpen: unix.PidfdOpen, pidfdSend: send}
}

// LinuxBefore5 is a kernel that cannot hold a process.
func LinuxBefore5() System {
	return linux{proc: "/proc", pidfdOpen: func(int, int) (int, error) { return 0, unix.ENOSYS }}
}
