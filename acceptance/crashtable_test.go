//go:build linux

package acceptance_test

import (
	"strings"
	"syscall"
)

const (
	simHost = "provider \"sim\" \"here\" {}\n"
	simVM   = simHost + `vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
  lifecycle {
    on_change = { name = "replace" }
  }
}
`
	qemuVM = `vm "dev" {
  cpus   = 1
  memory = "256MiB"
  accel  = "tcg"
  boot {
    kernel  = "guest/vmlinuz"
    initrd  = "guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check"
  }
}
`
)

// imageVM is off: nothing boots.
const imageVM = `vm "dev" {
  name    = "one"
  running = false
  accel   = "tcg"
  image   = "guest/empty.qcow2"
  root_disk { size = "2MiB" }
  lifecycle {
    on_change = { name = "replace" }
  }
}
`

func edited(spec, old, text string) string {
	if !strings.Contains(spec, old) {
		panic("the spec does not hold " + old)
	}
	return strings.Replace(spec, old, text, 1)
}

func off(spec string) string { return edited(spec, "  cpus ", "  running = false\n  cpus ") }

func bigger(spec string) string { return edited(spec, "256MiB", "320MiB") }

var startDev = []string{"vm", "start", "dev"}

var destroyAll = []string{"destroy", "--auto-approve"}

// simOperations are all that a simulated host can do.
var simOperations = []operation{
	{name: "create", once: true, spec: simVM},
	{name: "create, off", spec: off(simVM)},
	{name: "create two", spec: simVM + strings.Replace(strings.TrimPrefix(simVM, simHost), "dev", "ops", 1)},
	{name: "change what only vmctl heeds", before: simVM, spec: edited(simVM, "  lifecycle", "  stop {\n    grace = \"7s\"\n  }\n  lifecycle")},
	{name: "change while off", before: off(simVM), spec: bigger(off(simVM))},
	{name: "restart", once: true, before: simVM, spec: bigger(simVM)},
	{name: "replace", renews: true, before: simVM, spec: edited(simVM, "  cpus ", "  name = \"other\"\n  cpus ")},
	{name: "stop", before: simVM, spec: off(simVM)},
	{name: "start", once: true, before: off(simVM), spec: simVM},
	{name: "stop by command", before: simVM, spec: simVM, args: []string{"vm", "stop", "dev"}},
	{name: "start by command", before: off(simVM), spec: off(simVM), args: startDev, again: startDev},
	{name: "restart by command", before: simVM, spec: simVM, args: []string{"vm", "restart", "dev"}},
	{name: "start what was killed", before: simVM, spec: simVM, damage: killed},
	{name: "recover what is broken", before: simVM, spec: simVM, damage: func(s *crashSite) { s.remove("sim-here/run/*.pid") }},
	{name: "make again what is gone", before: simVM, spec: simVM, damage: gone},
	{name: "adopt", before: simVM, spec: simVM, damage: forgotten},
	{name: "adopt and restart", once: true, before: simVM, spec: bigger(simVM), damage: forgotten},
	{name: "forget", before: simVM, spec: simHost, damage: gone},
	{name: "delete", before: simVM, spec: simHost},
	{name: "delete what is off", before: off(simVM), spec: simHost},
	{name: "destroy", before: simVM, spec: simVM, args: destroyAll, again: destroyAll},
	{name: "destroy what is broken", before: simVM, spec: simVM, args: destroyAll, again: destroyAll, damage: func(s *crashSite) { s.remove("sim-here/run/*.pid") }},
	{name: "destroy what no state knows", before: simVM, spec: simVM, args: destroyAll, again: destroyAll, damage: forgotten},
}

// killed ends the process of a simulated VM at once.
func killed(s *crashSite) {
	id := s.simProcess("demo.dev")
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// gone removes a simulated VM altogether, as somebody else would.
func gone(s *crashSite) {
	killed(s)
	s.remove("sim-here/vms/*")
	s.remove("sim-here/run/*")
}

// forgotten loses the state.
func forgotten(s *crashSite) { s.remove("state.json*") }

// qemuOperations are what real QEMU goes through.
var qemuOperations = []operation{
	{name: "create", once: true, spec: qemuVM},
	{name: "stop", before: qemuVM, spec: off(qemuVM)},
	{name: "restart", once: true, before: qemuVM, spec: bigger(qemuVM)},
	{name: "delete", before: qemuVM, spec: ""},
	{name: "create from an image", spec: imageVM},
	{name: "grow its own disk", before: imageVM, spec: edited(imageVM, "2MiB", "4MiB")},
	{name: "replace with its own disk", renews: true, before: imageVM, spec: edited(imageVM, `"one"`, `"two"`)},
	{name: "delete with its image", before: imageVM, spec: ""},
}
