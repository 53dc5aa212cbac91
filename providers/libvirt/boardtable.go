package libvirt

// boards lists the kinds of computers that vmctl builds, by architecture. Both have a PCI
// Express root complex that is called pcie.0.
var boards = map[string]board{
	"x86_64":  {Machine: "q35", ACPI: true, SparePorts: 4, CPUs: 255},
	"aarch64": {Machine: "virt", SparePorts: 4, CPUs: 512},
}
