// Package job runs agents and other commands in the background of a folder, and keeps the records
// of their runs. A record is the object: it is on this host, it outlives the run, and whatever
// ends the run, the record ends in a true status.
package job

import (
	"fmt"
	"slices"
	"time"

	"vmctl/internal/pattern"
	"vmctl/internal/process"
)

// FormatVersion is the version of the schema of records. Those of earlier versions are read too: they lack keys.
const FormatVersion = 6

// Record is all that is known about one job. Every key is always there. Records hold no secret: of
// the environment they hold the names, of the prompt the beginning.
type Record struct {
	FormatVersion int       `json:"format_version"`
	Revision      int64     `json:"revision"` // grows by one with each write
	ID            ID        `json:"id"`
	Status        Status    `json:"status"`
	Agent         string    `json:"agent"`
	Command       []string  `json:"command"`
	Dir           string    `json:"dir"`         // the folder that it runs in, absolute
	Workspace     string    `json:"workspace"`   // the address of the workspace that it runs in; "": none
	Inside        string    `json:"inside"`      // the address of the VM around it; "": it runs on this host
	Block         string    `json:"block"`       // the address of the job block that it is a run of; "": of none
	Run           int       `json:"run"`         // the number among the jobs of its block, from 1; 0: of none, or not known
	Digest        string    `json:"digest"`      // of the triggers and the command of its block, made with the key of the data directory
	Key           string    `json:"key"`         // the name of that key; "": it is not known
	Environment   []string  `json:"environment"` // the names of the variables that it gets
	Asked         Asked     `json:"asked"`       // the part of it that its own command line asked for
	PromptHead    string    `json:"prompt_head"` // at most 200 characters
	Timeout       Duration  `json:"timeout"`     // 0: none
	IdleTimeout   Duration  `json:"idle_timeout"`
	Grace         Duration  `json:"grace"`
	Window        Duration  `json:"window"`       // the time in which it has to get a known process; 0: the usual Window
	Mode          string    `json:"mode"`         // a word of its user's; "": none
	Unforced      bool      `json:"unforced"`     // it is asked to end, and never killed
	MaxParallel   int       `json:"max_parallel"` // of the jobs of its block with all keys; 0: any number
	Behind        []ID      `json:"behind"`       // the jobs of its block that had not ended when it was made, if it takes turns with them
	Parent        ID        `json:"parent"`       // the job that this one continues; "": none
	Session       string    `json:"session"`      // of the agent; "": it has none that is known
	Created       time.Time `json:"created"`
	Started       time.Time `json:"started"` // zero: it never ran
	Ended         time.Time `json:"ended"`   // zero: it has not ended
	// Launcher is the process that starts the worker: once it is gone, nobody does. nil: it is not known.
	Launcher *process.Identity `json:"launcher"`
	// Worker is the process that watches the job, Process the command itself. nil: it is not known yet.
	Worker    *process.Identity `json:"worker"`
	Process   *process.Identity `json:"process"`
	Cancel    *Cancel           `json:"cancel"`     // nil: nobody asked for its end
	Resists   bool              `json:"resists"`    // it was asked to end and runs on, and it may not be killed
	Retries   int               `json:"retries"`    // starts after the first, because its provider had refused the agent for its rate
	ExitCode  *int              `json:"exit_code"`  // nil: it is not known
	ErrorCode ErrorCode         `json:"error_code"` // "": no failure
	Reason    string            `json:"reason"`     // why the status is not completed, or why it waits
	Leftovers []string          `json:"leftovers"`  // processes that outlived the command, and were ended: at most 1,000
	Warnings  []string          `json:"warnings"`   // what failed that decides nothing
	// Changed names the files of its repository that differ from before the run, committed or not: paths
	// under the top, sorted, at most 1,000. null: nobody can tell.
	Changed []string `json:"changed"`
	// Containment says where the job may write; "": in the workspace, as in records of earlier versions. Scope is the part of the
	// workspace that the copy holds, and Base the commit that the scope branch-diff compares with.
	Containment Containment `json:"containment"`
	Scope       Scope       `json:"scope"`
	Base        string      `json:"base"`
	// Edits names what the job changed in its copy, sorted by path, at most 1,000; null: there is no copy, or nobody can tell.
	Edits      []Edit           `json:"edits"`
	EditCounts map[EditKind]int `json:"edit_counts"` // of all edits
	Ignored    int              `json:"ignored"`     // files that it made in its copy and git ignores: they are neither edits nor in the patch
	Patch      bool             `json:"patch"`       // the edits are in the file patch beside the record
	PatchBytes int64            `json:"patch_bytes"` // its size
	LeftCopy   *LeftCopy        `json:"left_copy"`   // the copy, if it has ended and that is still there; nil: it is gone, or there was none
}

// Asked holds the flags about the environment that a job was started with: neither its workspace nor its block says them again.
type Asked struct {
	Pass       []string `json:"pass"` // names
	Set        []string `json:"set"`  // names: a value may be a secret
	StripProxy bool     `json:"strip_proxy"`
}

// Flags returns the flags that ask for the same. The values of variables are in no record: VALUE stands for each.
func (a Asked) Flags() (flags []string) {
	for _, name := range a.Pass {
		flags = append(flags, "--pass-env="+name)
	}
	for _, name := range a.Set {
		flags = append(flags, "--set-env="+name+"=VALUE")
	}
	if a.StripProxy {
		flags = append(flags, "--strip-proxy")
	}
	return flags
}

// Marker is the variable that names the job to every process of it, also to its worker.
const Marker = "VMCTL_JOB"

// GuestMarker is the variable that names the job to its worker if it runs in a VM: processes there have the Marker, and
// those of a simulated VM are on this host too.
const GuestMarker = "VMCTL_WORKER_OF"

// marker returns the variable that all processes of a job have.
func (r Record) marker() string { return Marker + "=" + string(r.ID) }

// workerMarker returns the variable that the worker of a job has.
func (r Record) workerMarker() string {
	if r.Inside != "" {
		return GuestMarker + "=" + string(r.ID)
	}
	return r.marker()
}

// Cancel is the intent to end a job. It is written before anything is signalled.
type Cancel struct {
	At    time.Time `json:"at"`
	By    string    `json:"by"`
	Force bool      `json:"force"` // also a job that is Unforced is killed after the grace
}

// Duration is a length of time, as text in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// ID names a job. It is safe as the name of a folder.
type ID string

var safeID = pattern.New(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Check refuses an ID that could name anything but a folder of its own.
func (id ID) Check() error {
	if !safeID.MatchString(string(id)) {
		return fmt.Errorf("read the job ID %q: it has small letters, digits and dashes alone", string(id))
	}
	return nil
}

// Status is where a job is on its way.
type Status string

// The statuses. The last four are terminal.
const (
	Queued    Status = "queued"
	Starting  Status = "starting"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Stale     Status = "stale"
)

// Statuses lists all statuses in their order.
func Statuses() []Status {
	return []Status{Queued, Starting, Running, Completed, Failed, Cancelled, Stale}
}

// IsTerminal reports whether a job with this status has ended.
func (s Status) IsTerminal() bool {
	return slices.Contains([]Status{Completed, Failed, Cancelled, Stale}, s)
}

// May reports whether a record may go from s to next.
func (s Status) May(next Status) bool { return slices.Contains(transitions[s], next) }

// ErrorCode says what kind of failure ended a job.
type ErrorCode string

// The error codes of records.
const (
	SpawnFailed        ErrorCode = "spawn_failed"
	ExitStatus         ErrorCode = "exit_status"
	TimedOut           ErrorCode = "timeout"
	IdleTimedOut       ErrorCode = "idle_timeout"
	StopFailed         ErrorCode = "stop_failed"
	PromptMissing      ErrorCode = "prompt_missing"
	CopyFailed         ErrorCode = "copy_failed" // its copy was not made: it did not start
	FinalizationFailed ErrorCode = "finalization_failed"
	DiskFull           ErrorCode = "disk_full"
	Locked             ErrorCode = "locked"       // another process held the lock of its record for too long
	NoResult           ErrorCode = "no_result"    // the agent exited with 0, and gave no result
	AgentFailed        ErrorCode = "agent_failed" // as its result says
	RateLimited        ErrorCode = "rate_limited" // its provider refuses the agent for its rate
	NotLaunched        ErrorCode = "not_launched" // no worker was started: it never ran
	NotEntered         ErrorCode = "not_entered"  // its workspace, or what that is in, is being taken down
	StaleActiveJob     ErrorCode = "stale_active_job"
)
