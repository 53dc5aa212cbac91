package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mistake in the YAML is reported, also those that Lima only logs, and nothing is written.
func TestCheckReportsMistakes(t *testing.T) {
	for _, c := range []struct{ name, instance, yaml, want string }{
		{"unknown field", "a", document("IMAGE", "bogus: 1"), `unknown field "bogus"`},
		{"unknown option of QEMU", "a", document("IMAGE", "vmOpts: {qemu: {cpu: max}}"), `vmOpts.qemu: [1:1] unknown field "cpu"`},
		{"unknown field of a disk", "a", document("IMAGE", "additionalDisks: [{name: d, fomat: false}]"), `unknown field "fomat"`},
		{"field in lower case", "a", document("IMAGE", "mountInotify: true", "hostresolver: {}"), `unknown field "hostresolver"`},
		{"unknown field of a file", "a", document("IMAGE", "probes: [{file: {uri: a}}]"), `unknown field "uri"`},
		{"file of a script", "a", document("IMAGE", "provision: [{mode: user, file: a.sh}]"), "must be empty"},
		{"no images", "a", "vmType: qemu\n", "field `images` must be set"},
		{"image that is missing", "a", document("/nowhere.qcow2"), "images: stat /nowhere.qcow2: no such file or directory"},
		{"image of another architecture", "a", "vmType: qemu\narch: aarch64\nimages: [{location: /x, arch: x86_64}]\n", "none is for the architecture aarch64"},
		{"template", "a", document("IMAGE", "base: [{url: 'template:debian'}]"), "field `base` must be empty"},
		{"driver that is not there", "a", document("IMAGE", "vmOpts: {}")[len("vmType: qemu\n"):] + "vmType: vz\n", "unknown or unsupported VM type: vz"},
		{"name", "a/b", document("IMAGE"), "is not a valid identifier"},
		{"long name", fmt.Sprintf("%076d", 1), document("IMAGE"), "use a shorter name or LIMA_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			_, failed := h.try(replaceImage(t, c.yaml), "check", c.instance)
			contains(t, failed, c.want)
			if got := h.files(); got != "" {
				t.Errorf("check wrote %s", got)
			}
		})
	}
}

// What is right passes with Lima's warnings, and nothing is written: not the networks either, which
// Lima writes when an instance has one.
func TestCheckPasses(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"plain", document("IMAGE"), "[]"},
		{"network", document("IMAGE", "networks: [{lima: user-v2}]"), "[]"},
		{"disk by its name", document("IMAGE", "additionalDisks: [d]"), "[]"},
		{"one image of two", document("IMAGE", "- {location: /nowhere.qcow2, arch: x86_64}"), "[images: stat /nowhere.qcow2: no such file or directory]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			if got := fmt.Sprint(h.run(replaceImage(t, c.yaml), "check", "a")["warnings"]); got != c.want {
				t.Errorf("warnings %s, want %s", got, c.want)
			}
			if got := h.files(); got != "" {
				t.Errorf("check wrote %s", got)
			}
		})
	}
}

// The images of an instance that has its root disk have no effect any more.
func TestCheckOfAnInstanceWithItsDisk(t *testing.T) {
	h := newHome(t)
	dir := h.instance("a", document("/nowhere.qcow2"))
	h.write(filepath.Join(dir, "disk"), "")
	h.run(document("/nowhere.qcow2"), "check", "a")
}

// replaceImage replaces the word IMAGE by the path of a file.
func replaceImage(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "IMAGE", path)
}
