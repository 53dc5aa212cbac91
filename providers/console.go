package providers

import (
	"context"
	"errors"

	"vmctl/spec"
)

// ErrNoConsole is the error of ConsoleReader.Console for a VM that has never written anything.
var ErrNoConsole = errors.New("it has no console output")

// ConsoleReader is a provider that keeps the console output of its VMs.
type ConsoleReader interface {
	// Console reads a part of a VM's console output, as the system keeps it, whether the VM
	// runs or not. It returns at most that many bytes from the place from on. A negative from
	// counts back from the end. If the output is shorter than from, the system began it anew,
	// and Console reads from its start. The error gives the reason if nothing can be read.
	Console(ctx context.Context, o Object, from int64, most int) (Console, error)
}

// Console holds a part of a VM's console output.
type Console struct {
	Text  []byte // as the guest wrote it
	Start int64  // the place of the first byte
	More  bool   // the VM may write more: something of it runs
}

// Next returns the place after the part.
func (c Console) Next() int64 { return c.Start + int64(len(c.Text)) }

// PartOf returns the start and the length of the part to read from an output of that size, by
// the rules of ConsoleReader.Console.
func PartOf(size, from int64, most int) (start, length int64) {
	switch {
	case from < 0:
		from = max(0, size+from)
	case from > size:
		from = 0
	}
	return from, min(size-from, int64(most))
}

// LogLister is a provider that has logs of its VMs on this host, beside their console output.
type LogLister interface {
	// Logs lists the logs of a VM. A file may be missing.
	Logs(a spec.Address, o Object) ([]LogFile, error)
}

// HostLogger is a provider that has logs of the processes which run its VMs on this host.
type HostLogger interface {
	// HostLogs lists the logs of a VM's processes, of its present or its last run. A file may be missing.
	HostLogs(o Object) []LogFile
}

// LogFile is one log.
type LogFile struct {
	Name string // ends with .log, or with .log.1 for the run before; no other log of the VM has it
	Path string
}
