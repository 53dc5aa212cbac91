// Package process identifies processes, and is the only package that ends any. It starts processes
// that outlive their starter, recognises them later without trusting a pid, requests them to end,
// forces them to end, and waits until they are gone.
//
// A pid alone proves nothing: another process may have it by now. An Identity is recorded once the
// program runs, and every function that signals a process verifies its Identity first. Only
// positive proof makes a process Gone; a process that cannot be examined is Unknown, and Unknown
// permits nothing.
package process

// Identity is one process, for as long as its machine runs and afterwards. It is
// taken by Capture, Child.Capture, Find or Force, and can be kept as JSON.
type Identity struct {
	// Host is the name of the machine, Machine a digest of its lasting ID where
	// it has one: two machines can have one name.
	Host    string `json:"host"`
	Machine string `json:"machine,omitempty"`
	// BootID changes whenever the machine starts.
	BootID string `json:"boot_id"`
	// Namespace names the namespaces in which the pid and the start time count: a
	// container has its own. Empty if the system has no namespaces.
	Namespace string `json:"namespace,omitempty"`
	PID       int    `json:"pid"`
	// StartTime is as the kernel gives it, to be compared with nothing but
	// itself: on Linux clock ticks since boot, on macOS microseconds and on
	// Windows hundreds of nanoseconds of absolute time.
	StartTime uint64 `json:"start_time"`
	// Exe is the program's file, empty where it could not be read. Argv0 is how
	// the process calls itself. Both are valid UTF-8.
	Exe   string `json:"exe"`
	Argv0 string `json:"argv0"`
	// PGID is the process group: the PID of its leader, 0 where the system has
	// no groups.
	PGID int `json:"pgid"`
}

// Verdict is the result of comparing a recorded process with the present ones.
type Verdict string

// Match is the recorded process, running: the only one that may be signalled.
// Gone is a process that has ended, on positive proof; one that its parent has
// not collected yet, and one of an earlier boot, have ended too. Reused is a
// pid that belongs to another process now: the recorded one is gone. Unknown is
// all that cannot be told, and is never taken for Gone.
const (
	Match   Verdict = "match"
	Gone    Verdict = "gone"
	Reused  Verdict = "reused"
	Unknown Verdict = "unknown"
)

// Host gives access to the processes of this machine. The zero Host is ready for use, and may
// be used by several goroutines.
type Host struct {
	system system // nil: the operating system's own
}

func (h Host) sys() system {
	if h.system == nil {
		return thisSystem()
	}
	return h.system
}

// identity returns the Identity of pid according to a look at it.
func (p hostIdentity) identity(pid int, s processFacts) Identity {
	id := Identity{
		Host: p.Host, Machine: p.Machine, BootID: p.Boot, Namespace: p.Namespace,
		PID: pid, StartTime: s.Start, Exe: program(s.Exe), PGID: s.PGID,
	}
	if len(s.Argv) > 0 {
		id.Argv0 = valid(s.Argv[0])
	}
	return id
}
