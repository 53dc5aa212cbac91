package cli_test

import (
	"testing"
)

func TestFmt(t *testing.T) {
	h := newHouse(t, "vm \"dev\" {\ncpus=1 # one\n}\n")
	h.run("fmt", "--check").exits(3).says("main.vmctl.hcl")
	h.run("fmt").exits(0).says("main.vmctl.hcl")
	if got, want := h.read("main.vmctl.hcl"), "vm \"dev\" {\n  cpus = 1 # one\n}\n"; got != want {
		t.Errorf("formatted %q, want %q", got, want)
	}
	h.run("fmt", "--check").exits(0).silent("main")
	h.write("main.vmctl.hcl", "vm {{")
	h.run("fmt").exits(3).warns("main.vmctl.hcl")
}
