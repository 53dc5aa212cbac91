package cli_test

import "testing"

// A resource that names no provider is libvirt's, and Lima's on macOS. The build of these tests has no Lima.
func TestBuiltInProvider(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("validate").exits(0)
	h.run("--help").exits(0).says("belong to provider.libvirt.default")
	h.platform = "darwin/arm64"
	h.run("validate").exits(3).warns(`this build of vmctl has none of type "lima"`)
	h.run("--help").exits(0).says("belong to provider.lima.default")
}
