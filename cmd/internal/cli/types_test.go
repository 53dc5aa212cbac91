package cli_test

import "testing"

// On Windows, and there alone, Lima's instances may be distributions of WSL.
func TestWSL(t *testing.T) {
	const spec = `
provider "lima" "here" {}

vm "dev" {
  provider = provider.lima.here
  image    = "rootfs.tar"
  template = "vmType: wsl2"
  cpus     = 1
  memory   = "512MiB"
}
`
	h := newHouse(t, withID+spec)
	h.builtIn = true
	h.platform = "linux/amd64"
	h.run("validate").exits(3).warns(`Its vmType is "wsl2", and this machine runs qemu only`)
	h.platform = "windows/amd64"
	h.run("validate").exits(0)
	h.replace("wsl2", "vz")
	h.run("validate").exits(3).warns(`Its vmType is "vz", and this machine runs qemu and wsl2 only`)
}

// A resource that names no provider is libvirt's, and Lima's on macOS: also in a build without that type.
func TestBuiltInProvider(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("validate").exits(0)
	h.run("--help").exits(0).says("belong to provider.libvirt.default")
	h.platform = "darwin/arm64"
	h.run("validate").exits(3).warns(`this build of vmctl has none of type "lima"`)
	h.run("--help").exits(0).says("belong to provider.lima.default")

	h.builtIn = true // the types of a build
	h.write("main.vmctl.hcl", withID+"vm \"dev\" {\n  image = \"vmlinuz\"\n  plain = true\n}\n")
	h.run("doctor").exits(1).says("provider.lima.default: vmctl-lima, which runs Lima, is missing")
	h.platform = "linux/amd64"
	h.run("validate").exits(3).warns("Provider libvirt does not support `plain`")
}
