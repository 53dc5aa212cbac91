package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

func TestSteps(t *testing.T) {
	l := newLab(t)
	state := func(state string, findings ...providers.FindingKind) *providers.Object {
		o := &providers.Object{
			Kind: spec.VM, ID: devID, Name: "lab.dev", State: state,
			Holds: []providers.Claim{{Kind: "name", Key: "qemu:///session lab.dev"}, {Kind: "host port", Key: "127.0.0.1:8080/tcp"}},
		}
		for _, f := range findings {
			o.Findings = append(o.Findings, providers.Finding{Kind: f})
		}
		return o
	}
	on, off, paused := state("running"), state("off"), state("paused")
	having := func(o *providers.Object) *providers.Object {
		o.Holds = append(o.Holds, providers.Claim{Kind: providers.ClaimDisk, Key: "OLD"})
		return o
	}
	swapped := map[spec.Address]providers.Used{cache: {Kind: spec.Disk, ID: cacheID, Name: "lab.cache"}}
	fixed, stopped := vm(map[string]cty.Value{"port_forward": forwards("8080")}), vm(map[string]cty.Value{"running": cty.False})
	waits := policy(map[string]cty.Value{
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(60)}),
	})
	var all strings.Builder
	for _, tc := range []struct {
		name   string
		change providers.Change
		edits  []string
	}{
		{name: "create", change: providers.Change{Action: providers.Create, Want: fixed, Policy: waits}},
		{name: "create, wanted off", change: providers.Change{Action: providers.Create, Want: stopped, Policy: waits}},
		{name: "create, without waiting", change: providers.Change{Action: providers.Create, Want: vm(nil), Policy: policy(nil)}},
		{name: "create what refers to another resource", change: providers.Change{
			Action: providers.Create, Policy: waits,
			Want: vm(map[string]cty.Value{"cpus": cty.UnknownVal(cty.Number), "boot": cty.DynamicVal}),
		}},
		{name: "update what is off", change: providers.Change{Action: providers.Update, Object: off, Want: vm(nil)}, edits: []string{"memory"}},
		{name: "update that frees a port", change: providers.Change{Action: providers.Update, Object: off, Want: vm(map[string]cty.Value{"port_forward": forwards("9090")})}, edits: []string{"port_forward"}},
		{name: "update of what the domain does not know", change: providers.Change{Action: providers.Update, Object: on, Want: vm(nil)}, edits: []string{"ssh.user", "ssh.host_key", "boot.kernel", "boot.initrd"}},
		{name: "update of the policy alone", change: providers.Change{Action: providers.Update, Object: on, Want: vm(nil)}},
		{name: "restart for an edit", change: providers.Change{Action: providers.RestartIt, Object: on, Want: fixed, Policy: waits}, edits: []string{"memory", "ssh.user"}},
		{name: "restart that was asked for", change: providers.Change{Action: providers.RestartIt, Object: on, Want: fixed, Policy: waits}},
		{name: "restart of what was undefined while it ran", change: providers.Change{Action: providers.RestartIt, Object: state("running", providers.FindPartial), Want: fixed, Policy: waits}},
		{name: "replace what runs", change: providers.Change{Action: providers.ReplaceIt, Object: on, ID: otherID, Name: "lab.new", Want: fixed, Policy: waits}},
		{name: "replace what is off", change: providers.Change{Action: providers.ReplaceIt, Object: off, ID: otherID, Want: stopped, Policy: waits}},
		{name: "destroy what runs", change: providers.Change{Action: providers.Destroy, Object: on, Want: cty.NilVal}},
		{name: "destroy what is paused", change: providers.Change{Action: providers.Destroy, Object: paused, Want: cty.NilVal}},
		{name: "destroy what is off", change: providers.Change{Action: providers.Destroy, Object: off, Want: cty.NilVal}},
		{name: "another disk for one that runs", change: providers.Change{Action: providers.RestartIt, Object: having(state("running")), Want: dev2(nil), Uses: swapped}, edits: []string{"additional_disk"}},
		{name: "another disk for one that is off", change: providers.Change{Action: providers.Update, Object: having(state("off")), Want: dev2(nil), Uses: swapped}, edits: []string{"additional_disk"}},
		{name: "no disk for one that runs", change: providers.Change{Action: providers.RestartIt, Object: having(state("running")), Want: vm(nil)}, edits: []string{"additional_disk"}},
		{name: "a disk for one that runs", change: providers.Change{Action: providers.Update, Object: on, Want: dev2(nil), Uses: swapped}, edits: []string{"additional_disk"}},
		{name: "start", change: providers.Change{Action: providers.Start, Object: off, Want: vm(nil), Policy: waits}},
		{name: "start with an edit", change: providers.Change{Action: providers.Start, Object: off, Want: vm(nil), Policy: waits}, edits: []string{"memory"}},
		{name: "start what the user paused", change: providers.Change{Action: providers.Start, Object: paused, Want: vm(nil), Policy: waits}},
		{name: "start what the user paused, with an edit", change: providers.Change{Action: providers.Start, Object: paused, Want: vm(nil), Policy: waits}, edits: []string{"memory"}},
		{name: "start what broke", change: providers.Change{Action: providers.Start, Object: state("paused", providers.FindBroken), Want: vm(nil), Policy: waits}},
		{name: "recover", change: providers.Change{Action: providers.Recover, Object: state("paused", providers.FindBroken), Want: vm(nil), Policy: waits}},
		{name: "start what crashed", change: providers.Change{Action: providers.Start, Object: state("off", providers.FindCrashed), Want: vm(nil), Policy: waits}},
		{name: "stop", change: providers.Change{Action: providers.Stop, Object: on, Want: stopped}},
		{name: "stop with an edit", change: providers.Change{Action: providers.Stop, Object: on, Want: stopped}, edits: []string{"cpus"}},
		{name: "adopt", change: providers.Change{Action: providers.Adopt, Object: on, Want: vm(nil)}},
		{name: "forget", change: providers.Change{Action: providers.Forget}},
		{name: "noop", change: providers.Change{Action: providers.NoOp, Object: on, Want: vm(nil)}},
	} {
		c := tc.change
		c.Address, c.Kind = dev, spec.VM
		if c.ID == "" {
			c.ID = devID
		}
		if c.Name == "" {
			c.Name = "lab.dev"
		}
		for _, path := range tc.edits {
			c.Edits = append(c.Edits, providers.Edit{Path: path})
		}
		fmt.Fprintf(&all, "== %s\n", tc.name)
		steps, err := l.provider.Steps(c)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		for i, s := range steps {
			fmt.Fprintf(&all, "%d %-8s %-9s %s %s %s", i, s.Phase, s.Op, s.Name, s.Object[:4], s.Timeout)
			if s.Risk != providers.NoRisk {
				fmt.Fprintf(&all, " risk %s", s.Risk)
			}
			for _, claim := range s.Frees {
				fmt.Fprintf(&all, " frees %s,", claim)
			}
			for _, claim := range s.Takes {
				fmt.Fprintf(&all, " takes %s,", claim)
			}
			if fmt.Sprint(s.After) != fmt.Sprint(after(i)) || s.Class != providers.Contractual || s.Address != dev {
				t.Errorf("%s: step %d: after %v, class %s, address %s", tc.name, i, s.After, s.Class, s.Address)
			}
			all.WriteString("\n")
		}
	}
	wantGolden(t, "steps.txt", all.String())
}

// after returns the indices for a step that follows the one before it.
func after(i int) []int {
	if i == 0 {
		return nil
	}
	return []int{i - 1}
}

func TestLeavesNamesWhatAnInterruptedStepMayLeave(t *testing.T) {
	l := newLab(t)
	steps, err := l.provider.Steps(create(vm(nil)))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "what define may leave", `
domain lab.dev (11111111-2222-8333-8444-555555555555) at qemu:///session
volumes DEV.kernel-*, DEV.initrd-*
keys in KEYS`, l.plain(strings.Join(steps[0].Leaves, "\n")))
}

func TestStepsRefuseWhatCanNeverBe(t *testing.T) {
	for _, tc := range []struct {
		name, object, want string
		changes            map[string]cty.Value
	}{
		{
			name: "nothing to boot", changes: map[string]cty.Value{"boot": cty.NullVal(cty.DynamicPseudoType)},
			want: `vm.dev: nothing to boot: write boot { kernel = "…" }`,
		},
		{
			name: "the same port twice", changes: map[string]cty.Value{"port_forward": forwards("8080", "8080")},
			want: `vm.dev: port_forward: 127.0.0.1:8080/tcp is forwarded twice`,
		},
		{
			name: "a port on every address, and on one of them", changes: map[string]cty.Value{"port_forward": wildcard()},
			want: `vm.dev: port_forward: 127.0.0.1:8080/tcp is forwarded twice`,
		},
		{
			name: "IPv6", changes: map[string]cty.Value{"port_forward": ipv6()},
			want: `vm.dev: port_forward.host_ip = "::1": QEMU's user network forwards IPv4 addresses only`,
		},
		{
			name: "a name that is a path", object: "../dev",
			want: `vm.dev: name = "../dev": a name begins with a letter or a digit and has letters, digits and . _ + = ~ - only`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := create(vm(tc.changes))
			if tc.object != "" {
				c.Name = tc.object
			}
			_, err := newLab(t).provider.Steps(c)
			wantText(t, "error", tc.want, fmt.Sprint(err))
		})
	}
}

func wildcard() cty.Value {
	both := forwards("8080", "8080").AsValueSlice()
	first := both[0].AsValueMap()
	first["host_ip"] = cty.StringVal("0.0.0.0")
	return cty.ListVal([]cty.Value{cty.ObjectVal(first), both[1]})
}

func ipv6() cty.Value {
	f := forwards("auto").AsValueSlice()[0].AsValueMap()
	f["host_ip"] = cty.StringVal("::1")
	return cty.ListVal([]cty.Value{cty.ObjectVal(f)})
}
