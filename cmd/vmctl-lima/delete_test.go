package main

import (
	"strings"
	"testing"
)

// The driver of WSL, which a machine without WSL lacks, has no part in a deletion: vmctl has unregistered the
// distribution, and the driver's own way fails where none is left.
func TestDeleteInWSL(t *testing.T) {
	h := newHome(t)
	h.instance("a", strings.Replace(document("/nowhere.tar"), "vmType: qemu", "vmType: wsl2", 1))
	h.run("", "delete", "a")
	if got := h.files(); got != "a/lima.yaml" {
		t.Errorf("files are %s, want a/lima.yaml", got)
	}
}
