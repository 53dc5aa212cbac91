package view_test

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

func vm(name string) spec.Address { return spec.Address{Kind: spec.VM, Name: name} }

func str(s string) cty.Value     { return cty.StringVal(s) }
func num(n int64) cty.Value      { return cty.NumberIntVal(n) }
func nothing() cty.Value         { return cty.NullVal(cty.String) }
func mib(n int64) cty.Value      { return cty.NumberIntVal(n << 20) }
func yes() cty.Value             { return cty.True }
func later() cty.Value           { return cty.UnknownVal(cty.String) }
func session() cty.Value         { return object("uri", str("qemu:///session"), "pool", nothing()) }
func here() spec.ProviderRef     { return spec.ProviderRef{Type: "libvirt", Name: "default"} }
func project() providers.Project { return providers.Project{Name: "quickstart", ID: "k7m2qd9x4r"} }

func declared() []spec.Provider {
	silent := object("uri", nothing(), "pool", nothing())
	return []spec.Provider{{Ref: here(), Attrs: silent, BuiltIn: true}}
}

// object makes an object of names and values, by turns.
func object(pairs ...any) cty.Value {
	attrs := map[string]cty.Value{}
	for i := 0; i < len(pairs); i += 2 {
		attrs[pairs[i].(string)] = pairs[i+1].(cty.Value)
	}
	return cty.ObjectVal(attrs)
}

const kernelDigest = "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730"

// tiny returns the resource of a short block with a kernel.
func tiny(name string) *spec.Resource {
	return &spec.Resource{
		Address:  vm(name),
		Provider: here(),
		Want: object(
			"name", nothing(), "running", yes(), "cpus", num(2), "memory", mib(256), "accel", str("auto"),
			"boot", object("kernel", str("/home/ada/guest/vmlinuz"), "kernel_sha256", str(kernelDigest), "initrd", nothing(),
				"initrd_sha256", nothing(), "cmdline", str("console=ttyS0 quiet")),
			"port_forward", cty.TupleVal([]cty.Value{object("guest", num(8080), "host", str("auto"),
				"host_ip", str("127.0.0.1"), "protocol", str("tcp"))}),
			"ssh", object("user", str("root"), "identity", nothing(), "host_key", str("pin")),
		),
		Policy: object(
			"start", object("timeout", num(600)),
			"stop", object("grace", num(30), "force", yes(), "force_wait", num(10)),
			"ssh", object("wait", yes(), "wait_timeout", num(300)),
			"lifecycle", object("prevent_destroy", cty.False, "on_change", cty.MapValEmpty(cty.String)),
		),
		Defaults: []spec.Default{
			{Path: "provider", Value: str("provider.libvirt.default"), Origin: "built in"},
			{Path: "accel", Value: str("auto"), Origin: "default of vm"},
			{Path: "boot.initrd", Value: nothing(), Origin: "default of vm"},
			{Path: "cpus", Value: num(2), Origin: "default of vm"},
			{Path: "lifecycle.on_change", Value: cty.MapValEmpty(cty.String), Origin: "default of vm"},
			{Path: "lifecycle.prevent_destroy", Value: cty.False, Origin: "default of vm"},
			{Path: "running", Value: yes(), Origin: "default of vm"},
			{Path: "ssh.host_key", Value: str("pin"), Origin: "default of vm"},
			{Path: "ssh.identity", Value: nothing(), Origin: "default of vm"},
			{Path: "ssh.user", Value: str("root"), Origin: "default of vm"},
			{Path: "ssh.wait", Value: yes(), Origin: "default of vm"},
			{Path: "ssh.wait_timeout", Value: num(300), Origin: "default of vm"},
			{Path: "start.timeout", Value: num(600), Origin: "default of vm"},
			{Path: "stop.force", Value: yes(), Origin: "default of vm"},
			{Path: "stop.force_wait", Value: num(10), Origin: "default of vm"},
			{Path: "stop.grace", Value: num(30), Origin: "default of vm"},
		},
	}
}

func change(name string, action providers.Action, reason string) planner.Change {
	return planner.Change{
		Change: providers.Change{
			Address: vm(name), Kind: spec.VM, Action: action, Reason: reason, Name: "quickstart." + name,
		},
		Provider: here(), Place: planner.Place{Settings: session()},
	}
}

func creation(name string) planner.Change {
	c := change(name, providers.Create, "it does not exist")
	c.Want = tiny(name)
	return c
}

func step(id, of int, c planner.Change, op string, phase providers.Phase, timeout time.Duration, after ...int) planner.Step {
	return planner.Step{
		Step: providers.Step{
			Op: op, Words: machine.Words(op), Phase: phase, Address: c.Address, Class: providers.Contractual, Risk: providers.NoRisk, Timeout: timeout,
		},
		ID: id, Change: of, After: after,
	}
}

func count(changes ...planner.Change) planner.Summary {
	s := planner.Summary{Actions: map[providers.Action]int{}}
	for _, c := range changes {
		switch {
		case c.Blocked == nil:
			s.Actions[c.Action]++
		case c.Blocked.Kind() == planner.Refused:
			s.Refused++
		case c.Blocked.Kind() == planner.Unknown:
			s.Unknown++
		default:
			s.Blocked++
		}
	}
	return s
}

func makeSteps(c planner.Change, of, first int) []planner.Step {
	return []planner.Step{
		step(first, of, c, "boot_files", providers.PhaseReserve, 2*time.Minute),
		step(first+1, of, c, "define", providers.PhaseMake, time.Minute, first),
		step(first+2, of, c, "start", providers.PhaseUp, 10*time.Minute, first+1),
		step(first+3, of, c, "wait_ssh", providers.PhaseReady, 5*time.Minute, first+2),
	}
}

// createPlan returns a plan that makes one VM on an empty host.
func createPlan() *planner.Plan {
	c := creation("dev")
	return &planner.Plan{Project: project(), Changes: []planner.Change{c}, Steps: makeSteps(c, 0, 0), Summary: count(c)}
}

// riskyPlan returns a plan with one of everything that a reader must not overlook.
func riskyPlan() *planner.Plan {
	down := change("dev", providers.RestartIt, "memory cannot change while it runs")
	down.Altered = true
	down.Applies = providers.Restart
	down.Edits = []providers.Edit{
		{Path: "cpus", Before: num(2), After: num(4), Verdict: providers.Verdict{Applies: providers.Restart, Reason: "no hotplug"}},
		{Path: "memory", Before: mib(256), After: mib(1024), Verdict: providers.Verdict{Applies: providers.Restart, Reason: "no ballooning"}},
	}
	blocked := change("db", providers.ReplaceIt, "boot.kernel cannot change after it was made")
	blocked.Altered = true
	blocked.Applies = providers.Replace
	blocked.Edits = []providers.Edit{{
		Path: "boot.kernel_sha256", Before: str(kernelDigest), After: later(),
		Verdict: providers.Verdict{Applies: providers.Replace, Reason: "another kernel"},
	}}
	blocked.Blocked = &planner.Block{
		Cause: planner.CauseCeiling,
		Problem: providers.Refuse(
			"boot.kernel needs a replacement, and the block allows a restart",
			providers.Say(`add lifecycle { on_change = { "boot.kernel" = "replace" } } to vm.db`, "or --allow-replace=vm.db")),
	}
	refused := change("web", providers.Create, "it does not exist")
	refused.Blocked = &planner.Block{
		Cause: planner.CauseRefused,
		Problem: providers.Refuse(
			`libvirt vm "quickstart.web" exists and bears no mark of vmctl`,
			providers.Say("import it, or rename it: vm.web { name = \"...\" }")),
	}
	adopted := change("old", providers.Adopt, "it bears our mark and has no record")
	adopted.Warnings = []string{"stop.grace is not shown by the system: taken as applied"}
	gone := change("tmp", providers.Destroy, "it is no longer in the files")
	far := change("far", providers.NoOp, "")
	far.Blocked = &planner.Block{
		Cause: planner.CauseUnknown,
		Problem: providers.Refuse(
			"provider.libvirt.far could not be read: qemu+ssh://host/system does not answer",
			nil),
	}
	stay := change("zoo", providers.NoOp, "")
	p := &planner.Plan{
		Project: project(), Serial: 12,
		Changes: []planner.Change{blocked, down, far, adopted, gone, refused, stay},
		Findings: []providers.Finding{
			{
				Kind: providers.FindDrift, Address: vm("dev"), Object: "quickstart.dev",
				Evidence: []string{"recorded as running", "libvirt says shut off, reason crashed, since 2026-03-01T10:00:00Z"},
				Action:   "the plan starts it",
			},
			{
				Kind: providers.FindUnknown, Address: vm("far"),
				Evidence: []string{"qemu+ssh://host/system does not answer: connection refused"},
			},
			{Kind: providers.FindOrphan, Object: "quickstart.\x1b[31mred\xff", Evidence: []string{"mark of vm.red, line\nbreak and \u202ereversed"}},
		},
		Steps: []planner.Step{
			step(0, 1, down, "stop", providers.PhaseDown, 40*time.Second),
			step(1, 4, gone, "stop", providers.PhaseDown, 40*time.Second),
			step(2, 4, gone, "delete", providers.PhaseRemove, time.Minute, 1),
			step(3, 1, down, "define", providers.PhaseChange, time.Minute, 0),
			step(4, 3, adopted, "adopt", providers.PhaseMake, 0),
			step(5, 1, down, "start", providers.PhaseUp, 10*time.Minute, 3),
			step(6, 1, down, "wait_ssh", providers.PhaseReady, 5*time.Minute, 5),
		},
		Summary: count(blocked, down, far, adopted, gone, refused, stay),
	}
	p.Steps[0].Risk, p.Steps[1].Risk, p.Steps[2].Risk = providers.Downtime, providers.Downtime, providers.DataLoss
	p.Steps[4].Record = true
	p.Steps[6].Class = providers.Diagnostic
	return p
}

// emptyPlan returns a plan without changes: everything is as the files say.
func emptyPlan() *planner.Plan {
	c := change("dev", providers.NoOp, "")
	return &planner.Plan{Project: project(), Serial: 3, Changes: []planner.Change{c}, Summary: count(c)}
}
