package lima_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/wsl"
	"vmctl/providers"
	"vmctl/providers/lima"
	"vmctl/spec"
)

// Programs that Lima runs are named before anything is made. row L65
func TestMissingPrograms(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	var inWindows wsl.Host
	look := func(program string) providers.Inventory {
		t.Helper()
		typ := lima.Type(lima.Host{Program: program, WSL: inWindows, Getenv: func(name string) string {
			return map[string]string{"PATH": bin}[name]
		}})
		p, err := typ.Open(t.Context(), providers.Settings{
			Name: "here", Dir: filepath.Join(t.TempDir(), "h"), Attrs: cty.ObjectVal(map[string]cty.Value{"home": cty.NullVal(cty.String)}),
		})
		if err != nil {
			t.Fatal(err)
		}
		inv, err := p.Observe(t.Context(), providers.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return inv
	}
	says := func(inv providers.Inventory, kind spec.Kind, want string) {
		t.Helper()
		got := ""
		if lacking := inv.Missing[kind]; lacking != nil {
			got = lacking.Error()
		}
		if got != want {
			t.Errorf("missing for a %s: got %q, want %q", kind, got, want)
		}
	}

	nowhere := filepath.Join(bin, "vmctl-lima")
	if c := look(nowhere).Capacity; c.CPUs != uint64(runtime.NumCPU()) || runtime.GOOS == "linux" && c.Memory < 64<<20 { // row E51, of this host
		t.Errorf("this host has %+v, want its %d processors and its memory", c, runtime.NumCPU())
	}
	says(look(nowhere), spec.VM, "vmctl-lima, which runs Lima, is missing: "+nowhere)
	says(look(nowhere), spec.Disk, "vmctl-lima, which runs Lima, is missing: "+nowhere)

	// A file that may not be run is no program.
	for name, mode := range map[string]os.FileMode{"ssh": 0o755, "qemu-img": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), mode); err != nil { //nolint:gosec // programs may be run
			t.Fatal(err)
		}
	}
	if got := look(self).Missing[spec.VM]; got == nil || !strings.HasPrefix(got.Error(), "missing on the PATH: qemu-system-") ||
		!strings.HasSuffix(got.Error(), ", qemu-img") {
		t.Errorf("missing for a VM: got %v, want qemu-system and qemu-img", got)
	}
	says(look(self), spec.Disk, "missing on the PATH: qemu-img")
	inWindows = wsl.Host{Program: self, Registrations: func() ([]wsl.Registration, error) { return nil, nil }}
	says(look(self), spec.VM, "") // WSL needs none of QEMU's programs
	inWindows = wsl.Host{}

	if err := os.Chmod(filepath.Join(bin, "qemu-img"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	says(look(self), spec.Disk, "")
}

// The version of Lima is in the program's file. This test has no Lima in it.
func TestVersionOfLima(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lima.Version(self); err == nil || !strings.Contains(err.Error(), "it has no module github.com/lima-vm/lima/v2") {
		t.Errorf("version of the test itself: %q, %v", got, err)
	}
	if _, err := lima.Version(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a program that does not exist has a version")
	}
}
