package providers

import (
	"cmp"
	"context"

	"vmctl/spec"
)

// ProvisionAttr is the attribute with the scripts of a VM, by their names.
const ProvisionAttr = "provision"

// OpProvision returns the operation that runs the script of that name.
func OpProvision(name string) string { return ProvisionAttr + " " + name }

// ProvisionRun says when a script of a VM runs (provision.run).
type ProvisionRun string

// The values of ProvisionRun.
const (
	RunOnce      ProvisionRun = "once"       // once in the life of the VM
	RunOnChange  ProvisionRun = "on_change"  // again whenever the script or its variables change
	RunEachStart ProvisionRun = "each_start" // after each start of the VM
)

// RunOf reads when a script runs. "", which is not known yet, counts as once: that runs a script least often.
func RunOf(run string) ProvisionRun { return cmp.Or(ProvisionRun(run), RunOnce) }

// Provision holds the decision of a change about one script of a VM (provision NAME).
type Provision struct {
	Name string
	Due  bool // it runs once the VM is ready
	// AtStart says that it is due only because the VM starts.
	AtStart bool
	// IfChanged says that it is due only if a value that is known during apply differs from that of
	// its last run.
	IfChanged bool
	// Fresh says that no run of it is known to have begun: what the guest remembers of one is older.
	Fresh bool
	// Assumed says that no record tells whether it ran, and that it is taken as done.
	Assumed bool
	Reason  string // why it is due; "": it is not
}

// ScriptLogger is a provider that keeps the logs of the scripts of its VMs.
type ScriptLogger interface {
	// ScriptLog reads a part of the log of the last run of the script of that name, by the rules of
	// ConsoleReader.Console. The error gives the reason if nothing can be read.
	ScriptLog(ctx context.Context, a spec.Address, name string, from int64, most int) (Console, error)
}
