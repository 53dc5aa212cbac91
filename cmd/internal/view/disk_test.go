package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

func disk(name string) spec.Address { return spec.Address{Kind: spec.Disk, Name: name} }

func motd() spec.Address { return spec.Address{Kind: box.Kind, Name: "motd"} }

func diskChange(name string, action providers.Action, reason string) planner.Change {
	c := change(name, action, reason)
	c.Address, c.Kind = disk(name), spec.Disk
	return c
}

func disksOf(names ...string) cty.Value {
	var all []cty.Value
	for _, name := range names {
		all = append(all, object("disk", str(name), "mount_point", nothing()))
	}
	return cty.TupleVal(all)
}

// disksPlan returns a plan with disks, images, imports and resources inside VMs.
func disksPlan() *planner.Plan {
	cache := diskChange("cache", providers.Create, "it does not exist")
	cache.Want = &spec.Resource{
		Address: disk("cache"), Provider: here(),
		Want:   object("name", nothing(), "size", mib(10<<10), "format", str("qcow2"), "fs_type", nothing()),
		Policy: object("on_stale_lock", str("unlock")),
		Defaults: []spec.Default{
			{Path: "format", Value: str("qcow2"), Origin: "default of disk"},
			{Path: "on_stale_lock", Value: str("unlock"), Origin: "default of disk"},
		},
	}
	grown := diskChange("data", providers.Update, "size: grown in place")
	grown.Applies, grown.Altered = providers.Live, true
	grown.Edits = []providers.Edit{{
		Path: "size", Before: mib(10 << 10), After: mib(20 << 10), Verdict: providers.Verdict{Applies: providers.Live, Reason: "grown in place"},
	}}
	small := diskChange("small", providers.Update, "size: a disk never shrinks")
	small.Applies, small.Altered = providers.Refused, true
	small.Edits = []providers.Edit{{
		Path: "size", Before: mib(10 << 10), After: mib(5 << 10), Verdict: providers.Verdict{Applies: providers.Refused, Reason: "a disk never shrinks"},
	}}
	small.Blocked = &planner.Block{Cause: planner.CauseRefused, Attr: "size", Problem: providers.Refuse("size: a disk never shrinks", nil)}
	dev := change("dev", providers.Update, "additional_disk: attached while it runs")
	dev.Altered = true
	dev.Applies = providers.Live
	dev.Edits = []providers.Edit{{
		Path: "additional_disk", Before: disksOf(), After: disksOf("disk.cache"),
		Verdict: providers.Verdict{Applies: providers.Live, Reason: "attached while it runs"},
	}}
	theirs := change("theirs", providers.Import, "it is taken over as it is")
	theirs.Applies = providers.Live
	theirs.Warnings = []string{"attributes that the system does not report are assumed to match the spec"}
	theirs.Mark = &providers.MarkEdit{Reason: "it is imported: vmctl marks it as its own"}
	locked := change("locked", providers.RestartIt, "ssh.keys: the guest gets its keys when it boots")
	locked.Altered = true
	locked.Applies, locked.Rekey = providers.Restart, &providers.Verdict{Applies: providers.Restart, Reason: "the guest gets its keys when it boots"}
	held := change("web", providers.RestartIt, "additional_disk: the guest sees it at its next start")
	held.Blocked = &planner.Block{
		Cause: planner.CauseForeign,
		Problem: providers.Refuse(
			`disk 6c1f is held by libvirt vm "other" (1234)`,
			providers.Say("choose another in the block of vm.web, or free it first")),
	}
	lost := change("img", providers.Create, "it does not exist")
	lost.Want = &spec.Resource{
		Address: vm("img"), Provider: here(),
		Want: object("image", object("source", str("images/debian.qcow2"), "sha256", nothing()), "additional_disk", disksOf("disk.data", "disk.cache"),
			"cloud_init", object("user_data", str(strings.Repeat("#cloud-config\nusers: [ada]\n", 20)), "network_config", nothing())),
		Policy: object("rollout", object("max_unavailable", num(2))),
	}
	lost.Blocked = &planner.Block{
		Cause: planner.CauseMissing,
		Problem: providers.Refuse(
			`image "images/debian.qcow2" cannot be read: open images/debian.qcow2: no such file or directory`,
			providers.Say("put the file there, or correct image in the block of vm.img")),
	}
	file := change("motd", providers.Release, "vm.dev goes down")
	file.Address, file.Kind = motd(), box.Kind
	p := &planner.Plan{
		Project: project(), Serial: 12, Changes: []planner.Change{cache, grown, small, file, dev, lost, theirs, locked, held},
		Findings: []providers.Finding{
			{
				Kind: providers.FindStaleLock, Address: disk("data"), Object: "quickstart.data", Claim: providers.Claim{Kind: "disk lock", Key: "quickstart.data"},
				Evidence: []string{"it names a process that is gone: no process has pid 4711"}, Action: "released, unless on_stale_lock = \"refuse\"",
			},
		},
		Deferred: []planner.Deferred{{Address: motd(), Until: vm("dev")}, {Address: spec.Address{Kind: box.Kind, Name: "issue"}, Until: vm("dev")}},
		Steps: []planner.Step{
			step(0, 1, grown, "unlock", providers.PhaseRelease, time.Minute),
			step(1, 0, cache, "define", providers.PhaseMake, 30*time.Minute),
			step(2, 1, grown, "grow", providers.PhaseChange, time.Minute, 0),
			step(3, 4, dev, "redefine", providers.PhaseChange, time.Minute, 1),
			step(4, 6, theirs, "redefine", providers.PhaseChange, time.Minute),
		},
		Summary: count(cache, grown, small, file, dev, lost, theirs, locked, held),
	}
	p.Summary.Deferred = 2
	return p
}

func TestPlanOfDisks(t *testing.T) {
	free := disksPlan()
	free.Changes = free.Changes[:2]
	free.Summary = count(free.Changes...)
	free.Summary.Deferred = 2
	free.Steps = free.Steps[:3]
	later := options()
	later.Title, later.Offer = "Plan for quickstart, what could be read only now", view.Offer{Running: true, Later: true}
	for _, columns := range []int{80, 40} {
		golden(t, fmt.Sprintf("plan-disks-%d", columns), on(columns, func(s view.Screen) { view.Plan(s, disksPlan(), options()) }))
		golden(t, fmt.Sprintf("plan-deferred-%d", columns), on(columns, func(s view.Screen) { view.Plan(s, free, options()) }))
		golden(t, fmt.Sprintf("plan-later-%d", columns), on(columns, func(s view.Screen) { view.Plan(s, disksPlan(), later) }))
		golden(t, fmt.Sprintf("summary-deferred-%d", columns), on(columns, func(s view.Screen) {
			done := executor.Summary{Done: []executor.StepResult{{Step: free.Steps[0]}, {Step: free.Steps[1]}}}
			view.Summary(s, done, view.SummaryOptions{Command: "Apply", Deferred: free.Deferred})
			view.Summary(s, executor.Summary{}, view.SummaryOptions{Command: "Apply", Later: true, Before: done})
		}))
	}
	verbose := options()
	verbose.Verbose = true
	if got := on(80, func(s view.Screen) { view.Plan(s, disksPlan(), verbose) }); strings.Count(got, "#cloud-config") != 20 {
		t.Errorf("--verbose cuts a long value:\n%s", got)
	}
	var out bytes.Buffer
	if err := view.JSON(&out, view.PlanJSON(disksPlan(), view.OwnFlags{})); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-disks-json", out.String())
}

func TestDisks(t *testing.T) {
	size := func(n uint64) *uint64 { return &n }
	finding := disksPlan().Findings
	doc := view.DisksDocument{
		FormatVersion: view.FormatVersion, Project: "quickstart", ID: "k7m2qd9x4r",
		Disks: []view.DiskEntry{
			{
				Address: "disk.cache", Object: "quickstart.cache", ID: "6c1f", Path: "/pool/quickstart.cache.qcow2", State: "present", Size: size(10 << 30), Format: "qcow2",
				UsedBy: []string{"vm.dev", `libvirt vm "other\x1b[2J"`}, Lock: view.DiskLock{State: "held", Holders: []string{"vm.dev"}}, Findings: view.FindingEntries(nil, view.OwnFlags{}),
			},
			{
				Address: "disk.data", Object: "quickstart.data", ID: "7d2e", State: "present", Size: size(5 << 20), Format: "raw",
				UsedBy: []string{}, Lock: view.DiskLock{State: "stale", Holders: finding[0].Evidence}, Findings: view.FindingEntries(finding, view.OwnFlags{}),
			},
			{
				Address: "disk.far", State: "unknown", Reason: "qemu+ssh://host/system does not answer", UsedBy: []string{},
				Lock: view.DiskLock{State: "unknown", Holders: []string{}}, Findings: view.FindingEntries(nil, view.OwnFlags{}),
			},
			{
				Address: `disk.new["a"]`, Object: "quickstart.new.a", State: "missing", Reason: "not made yet", Size: size(1 << 30), Format: "qcow2", UsedBy: []string{},
				Lock: view.DiskLock{State: "unknown", Holders: []string{}}, Findings: view.FindingEntries(nil, view.OwnFlags{}),
			},
			{
				Address: "disk.old", Object: "quickstart.old", State: "orphan", Reason: "it is in neither the spec nor the state", Size: size(1 << 30), Format: "qcow2", UsedBy: []string{},
				Lock: view.DiskLock{State: "free", Holders: []string{}}, Findings: view.FindingEntries(nil, view.OwnFlags{}),
			},
		},
	}
	for _, columns := range []int{80, 40} {
		golden(t, fmt.Sprintf("disks-%d", columns), on(columns, func(s view.Screen) { view.Disks(s, doc) }))
	}
	golden(t, "disks-none-80", on(80, func(s view.Screen) { view.Disks(s, view.DisksDocument{}) }))
	var out bytes.Buffer
	if err := view.JSON(&out, doc); err != nil {
		t.Fatal(err)
	}
	golden(t, "disks-json", out.String())
}
