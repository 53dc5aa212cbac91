package sim_test

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// effects tells the conformance suite how the host shows attributes.
func (h *house) effects(weightless bool) providertest.Effects {
	h.write(filepath.Join(h.data, "one.img"), "image one")
	h.write(filepath.Join(h.data, "two.img"), "image two")
	const nobody = "nobody logs into a simulated guest"
	e := providertest.Effects{
		Images: [2]string{"one.img", "two.img"}, Reports: h.report,
		Lacks: providertest.WithoutLima(map[string]string{
			"vm.additional_disk.mount_point": "nothing is mounted in a simulated guest",
			"disk.fs_type":                   "nothing makes a file system in a simulated guest",
		}),
		Idle: map[string]string{"vm.ssh.user": nobody, "vm.ssh.identity": nobody, "vm.ssh.host_key": nobody, "vm.ssh.authorized_keys": nobody},
	}
	if weightless {
		e.Idle["vm.image.source"] = "a weightless VM has no disk"
		e.Idle["vm.image.sha256"] = e.Idle["vm.image.source"]
	}
	return e
}

// report reads an attribute from the files of the host.
func (h *house) report(o providers.Object, _ cty.Value, path string) (text string, known bool) {
	h.t.Helper()
	var file struct {
		Config struct {
			CPUs, Memory json.Number
			Accel        string
			Boot         struct{ Cmdline string }
			Forwards     []struct {
				Guest    json.Number
				Protocol string
			}
		}
	}
	if err := json.Unmarshal([]byte(h.read(h.vmPath(o.Name))), &file); err != nil {
		h.t.Fatal(err)
	}
	switch c := file.Config; path {
	case "cpus":
		return c.CPUs.String(), true
	case "memory":
		return c.Memory.String(), true
	case "accel":
		return c.Accel, true
	case "boot.cmdline":
		return c.Boot.Cmdline, true
	case "port_forward.guest":
		return c.Forwards[0].Guest.String(), true
	case "port_forward.protocol":
		return c.Forwards[0].Protocol, true
	case "image.source":
		var head struct{ Image string }
		first, _, _ := strings.Cut(h.read(filepath.Join(h.dir, "disks", o.Name+".root")), "\n")
		if err := json.Unmarshal([]byte(first), &head); err != nil {
			h.t.Fatal(err)
		}
		return head.Image, true
	default:
		return "", false
	}
}
