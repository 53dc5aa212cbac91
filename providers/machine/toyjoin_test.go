package machine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

// A driver for a system in memory keeps all promises of a provider of VMs and disks.
func TestToy(t *testing.T) {
	providertest.Run(t, providertest.Harness{New: func(t *testing.T) *providertest.World {
		return (&toy{things: map[providers.ID]*thing{}}).world(t.TempDir())
	}})
}

// Faults wrap that driver as they wrap any.
func TestToyWithFaults(t *testing.T) {
	providertest.RunFaults(t, providertest.Harness{New: func(t *testing.T) *providertest.World {
		return (&toy{things: map[providers.ID]*thing{}}).world(t.TempDir())
	}})
}

// world returns the toy for the conformance suite, with a folder for files.
func (t *toy) world(files string) *providertest.World {
	put := func(id providers.ID, o thing) { t.things[id] = &o }
	foreign := &machine.Config{CPUs: 1, Memory: 1}
	return &providertest.World{
		Type: t.providerType(), Want: providertest.VM(), Policy: providertest.Waits(time.Minute), Edits: providertest.Edits(), Traces: t.traces,
		Settings: providers.Settings{Files: files, Project: providers.Project{Name: "lab", ID: "k7m2qd9x4r"}, Now: time.Now},
		Foreign: func(name string) func() string {
			put("theirs", thing{kind: spec.VM, vm: machine.Seen{ID: "theirs", Name: name, Configured: foreign}})
			return func() string { return fmt.Sprintf("%+v", *t.things["theirs"]) }
		},
		Copy: func(o providers.Object) string {
			c := *t.things[o.ID]
			c.vm.ID, c.vm.Name = "copy", o.Name+"-copy"
			put("copy", c)
			return c.vm.Name
		},
		Kill:    func(o providers.Object) { t.things[o.ID].end() },
		Deafen:  func(w *providertest.World) { t.deaf, w.Policy = true, providertest.Waits(time.Millisecond) },
		Blind:   func(o providers.Object) { t.blind = o.ID },
		Cut:     func(*providertest.World) { t.down = true },
		Effects: providertest.Effects{Lacks: providertest.WithoutNetworks(providertest.WithoutLima(lacks())), Reports: func(providers.Object, cty.Value, string) (string, bool) { return "", false }},
		Disks: providertest.Disks{
			Want: providertest.Disk(), Policy: providertest.Waits(time.Minute),
			Foreign: func(name string) (string, func() string) {
				put("disk", thing{kind: spec.Disk, whole: true, vm: machine.Seen{Name: name}, disk: machine.SeenDisk{ID: "disk", Name: name, Size: 8 << 20, Claims: []providers.Claim{nameClaim(name)}}})
				return name, func() string { return fmt.Sprintf("%+v", *t.things["disk"]) }
			},
			Attach: func(vm string, o providers.Object) {
				with := *foreign
				with.DiskIDs, with.Disks, with.Files = []providers.ID{o.ID}, []string{o.Name}, []string{o.Name}
				put("theirs", thing{kind: spec.VM, vm: machine.Seen{ID: "theirs", Name: vm, Configured: &with}})
			},
			Fill:   func(o providers.Object) { t.things[o.ID].content = "filled" },
			Filled: func(o providers.Object) bool { return t.things[o.ID].content == "filled" },
			Halve:  func(o providers.Object) { t.things[o.ID].whole = false },
		},
	}
}

func (t *toy) providerType() providers.Type {
	return providers.Type{
		Name: "toy", Kinds: toyKinds, Produces: machine.Produces(),
		Check: func(_ spec.Kind, want cty.Value) []spec.Flaw {
			return machine.NoMounts(want, "Nothing is mounted in a toy.")
		},
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			return &toyProvider{t, s}, nil
		},
	}
}

// lacks lists the attributes that the toy does not support.
func lacks() map[string]string {
	all := map[string]string{}
	for _, key := range []string{
		"vm.additional_disk.mount_point", "vm.restart_triggers", "vm.image.source", "vm.image.sha256", "vm.root_disk.size",
		"vm.cloud_init.user_data", "vm.cloud_init.network_config", "vm.ssh.user", "vm.ssh.identity", "vm.ssh.authorized_keys", "vm.ssh.host_key",
		"disk.fs_type",
	} {
		all[key] = "it is a toy"
	}
	return all
}

// traces lists all that there is, with the number of the change that was its last.
func (t *toy) traces() []string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(t.things)) {
		o := t.things[id]
		all = append(all, fmt.Sprint(id, " ", o.vm.Name, " ", o.written, " ", o.vm.Running != nil))
	}
	return all
}
