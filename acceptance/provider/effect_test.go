//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// effects tells the conformance suite how real guests show attributes.
func (h *house) effects() providertest.Effects {
	h.t.Helper()
	images := [2]string{h.settings.Project.Name + "-one.qcow2", h.settings.Project.Name + "-two.qcow2"}
	for i, name := range images {
		size := strconv.Itoa(8*(i+1)) + "M"
		path := filepath.Join(h.settings.Files, name)
		if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", path, size).CombinedOutput(); err != nil {
			h.t.Fatalf("make %s: %v: %s", path, err, out)
		}
	}
	return providertest.Effects{
		Images: images, Reports: h.report,
		Lacks: providertest.WithoutLima(map[string]string{
			"vm.additional_disk.mount_point": "it reaches into no guest",
			"disk.fs_type":                   "it reaches into no guest",
		}),
		Idle: providertest.WithoutNetworks(nil), // an ordinary user makes none
	}
}

// report reads an attribute from the guest itself, or from its libvirt and its files.
func (h *house) report(o providers.Object, want cty.Value, path string) (text string, known bool) {
	h.t.Helper()
	switch path {
	case "cpus":
		return h.inside(o, want, "nproc"), true
	case "memory":
		return h.memory(o, want), true
	case "boot.cmdline":
		return h.inside(o, want, "cat", "/proc/cmdline"), true
	case "boot.kernel":
		file := h.found(h.virsh("dumpxml", o.Name), `<kernel>(.*)</kernel>`)[1]
		content, err := os.ReadFile(file)
		if err != nil {
			h.t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:]), true
	case "ssh.identity", "ssh.authorized_keys":
		return h.inside(o, want, "cat", "/vmctl/authorized_keys"), true
	case "port_forward.guest", "port_forward.host", "port_forward.host_ip", "port_forward.protocol":
		line := h.found(h.virsh("qemu-monitor-command", "--hmp", o.Name, "info usernet"),
			`(TCP|UDP)\[HOST_FORWARD\] +[0-9]+ +([0-9.]+) +([0-9]+) +[0-9.]+ +(80[0-9]+)`)
		return map[string]string{
			"port_forward.protocol": strings.ToLower(line[1]), "port_forward.host_ip": line[2],
			"port_forward.host": line[3], "port_forward.guest": line[4],
		}[path], true
	case "cloud_init.user_data", "cloud_init.network_config":
		seeds, err := filepath.Glob(filepath.Join(h.settings.Dir, "pool", string(o.ID)+".seed-*"))
		if err != nil || len(seeds) != 1 {
			h.t.Fatalf("its seeds are %q (%v)", seeds, err)
		}
		content, err := os.ReadFile(seeds[0])
		if err != nil {
			h.t.Fatal(err)
		}
		return string(content), true
	case "image.source":
		root := filepath.Join(h.settings.Dir, "pool", string(o.ID)+".root.qcow2")
		out, err := exec.Command("qemu-img", "info", root).CombinedOutput()
		if err != nil {
			h.t.Fatalf("qemu-img info: %v: %s", err, out)
		}
		return h.found(string(out), `backing file: .*-image-([0-9a-f]+)\.qcow2`)[1], true
	default:
		return "", false
	}
}

// memory returns the memory of a running guest (bytes) as libvirt says, if the guest sees most
// of it: its kernel keeps a part for itself.
func (h *house) memory(o providers.Object, want cty.Value) string {
	h.t.Helper()
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			h.t.Fatal(err)
		}
		return n
	}
	given := number(h.found(h.virsh("dominfo", o.Name), `Used memory: +([0-9]+) KiB`)[1])
	seen := number(h.inside(o, want, "awk", "/MemTotal/ { print $2 }", "/proc/meminfo"))
	if seen > given || seen < given*8/10 {
		return strconv.Itoa(seen << 10)
	}
	return strconv.Itoa(given << 10)
}

// found returns the first match of a pattern with its groups.
func (h *house) found(text, pattern string) []string {
	h.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		h.t.Fatalf("%s is not in\n%s", pattern, text)
	}
	return found
}
