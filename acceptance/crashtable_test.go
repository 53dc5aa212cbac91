//go:build linux

package acceptance_test

import (
	"os"
	"path/filepath"
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

// Specs of a Lima home.
const (
	limaHost = "provider \"lima\" \"here\" {}\n"
	limaVM   = limaHost + `vm "dev" {
  provider = provider.lima.here
  cpus     = 1
  running  = false
  memory   = "256MiB"
  accel    = "tcg"
  plain    = true
  image    = "guest/empty.qcow2"
  root_disk { size = "2MiB" }
  lifecycle {
    on_change = { name = "replace" }
  }
}
`
	limaDisk = `disk "cache" {
  provider = provider.lima.here
  size     = "8MiB"
}
`
)

// limaUsing is a VM of Lima with a disk.
var limaUsing = limaDisk + edited(limaVM, "  cpus ", usesDisk+"  cpus ")

// limaDeaf is a VM of Lima, off, whose QEMU runs a BIOS that finds nothing to boot: it is up at once, and hears no request
// to end.
var limaDeaf = edited(limaUsing, "  lifecycle", "  stop {\n    grace = \"1s\"\n  }\n  ssh {\n    wait         = false\n    wait_timeout = \"1s\"\n  }\n  lifecycle")

// limaGuest is a VM of Lima with the Debian guest, off: a boot takes a minute.
var limaGuest = strings.NewReplacer("guest/empty.qcow2", "debian.qcow2", "256MiB", "512MiB", "2MiB", "3GiB").Replace(
	edited(limaUsing, "  lifecycle", "  stop {\n    grace = \"5m\"\n  }\n  ssh {\n    wait_timeout = \"20m\"\n  }\n  lifecycle"))

// Blocks and arguments of the specs of a simulated host with a disk.
const (
	simDisk = `disk "cache" {
  provider = provider.sim.here
  size     = "8MiB"
  lifecycle {
    on_change = { format = "replace" }
  }
}
`
	usesDisk  = "  additional_disk {\n    disk = disk.cache\n  }\n"
	hasImage  = "  image = \"base.img\"\n"
	simInside = `box "motd" {
  in      = vm.dev
  label   = "motd"
  content = "be kind"
}
`
	simTaken = simHost + `import {
  to = disk.cache
  id = "theirs"
}
import {
  to = vm.dev
  id = "theirs"
}
`
)

// simScripts is a VM whose scripts make a file at each of their runs: a run too many is a file too many.
var simScripts = edited(simVM, "  lifecycle", `  provision "first" {
    script = "n=$(ls | grep -c '^first'); : >first.$n"
  }
  provision "edited" {
    script = "n=$(ls | grep -c '^edited'); : >edited.$n # `+": edit"+`"
    run    = "on_change"
  }
  lifecycle`)

// using is a VM with a disk that is there.
func using(spec string) string { return simDisk + edited(spec, "  cpus ", usesDisk+"  cpus ") }

// secondVM is another VM of the host of a first one.
func secondVM(spec string) string {
	return strings.ReplaceAll(strings.Replace(spec, simHost, "", 1), `"dev"`, `"ops"`)
}

func edited(spec, old, text string) string {
	if !strings.Contains(spec, old) {
		panic("the spec does not hold " + old)
	}
	return strings.Replace(spec, old, text, 1)
}

func off(spec string) string { return edited(spec, "  cpus ", "  running = false\n  cpus ") }

func on(spec string) string { return edited(spec, "  running  = false\n", "") }

func bigger(spec string) string { return edited(spec, "256MiB", "320MiB") }

var startDev = []string{"vm", "start", "dev"}

var destroyAll = []string{"destroy", "--auto-approve"}

// unseenToo destroys a VM of which no record says what is inside, also where the first try has taken it down and not begun to delete it.
var unseenToo = []string{"destroy", "--auto-approve", "--allow-dirty=vm.dev"}

// twoWithDisks are two VMs with a disk each.
var twoWithDisks = using(simVM) + strings.ReplaceAll(strings.Replace(using(secondVM(simVM)), "cache", "store", 1), "disk.cache", "disk.store")

// simOperations lists all operations of a simulated host.
var simOperations = []operation{
	{name: "create", once: true, spec: simVM},
	{name: "create with scripts", once: true, spec: simScripts},
	{name: "restart with scripts", before: simScripts, spec: bigger(simScripts)},
	{name: "change a script", before: simScripts, spec: edited(simScripts, ": edit", ": another edit")},
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
	{name: "create with a disk", once: true, spec: using(simVM)},
	{name: "create two with a disk each", spec: twoWithDisks},
	{name: "grow", before: using(simVM), spec: edited(using(simVM), "8MiB", "16MiB")},
	{name: "grow what nobody uses", before: simHost + simDisk, spec: simHost + edited(simDisk, "8MiB", "16MiB")},
	{name: "attach", before: simDisk + simVM, spec: using(simVM)},
	{name: "detach", once: true, before: using(simVM), spec: simDisk + simVM},
	{name: "move between VMs", before: using(simVM) + secondVM(simVM), spec: simVM + using(secondVM(simVM))},
	{name: "swap disks between VMs", before: twoWithDisks, spec: strings.NewReplacer("= disk.cache", "= disk.store", "= disk.store", "= disk.cache").Replace(twoWithDisks)},
	{name: "let go of a VM", before: off(simVM), spec: simHost + "removed {\n  from    = vm.dev\n  destroy = false\n}\n"},
	{name: "replace a disk under a VM", renews: true, before: using(simVM), spec: edited(using(simVM), "8MiB\"\n", "8MiB\"\n  format = \"raw\"\n")},
	{name: "delete a disk", before: simHost + simDisk, spec: simHost},
	{name: "delete a VM with its disk", before: using(simVM), spec: simHost},
	{name: "free a disk", once: true, before: using(simVM), spec: using(simVM), damage: killed},
	{name: "adopt a disk", before: using(simVM), spec: using(simVM), damage: forgotten},
	{name: "import", before: simHost, spec: simTaken + using(strings.Replace(off(simVM), simHost, "", 1)), damage: handmade},
	{name: "create from an image", once: true, spec: edited(simVM, "  cpus ", hasImage+"  cpus ")},
	{name: "replace what is from an image", renews: true, before: edited(simVM, "  cpus ", hasImage+"  cpus "), spec: edited(simVM, "  cpus ", hasImage+"  name = \"other\"\n  cpus ")},
	{name: "delete what is from an image", before: edited(simVM, "  cpus ", hasImage+"  cpus "), spec: simHost},
	{name: "make inside", boxes: true, once: true, spec: simVM + simInside},
	{name: "write inside", boxes: true, before: simVM + simInside, spec: simVM + edited(simInside, "kind", "brave")},
	{name: "restart with something inside", boxes: true, once: true, before: simVM + simInside, spec: bigger(simVM) + simInside},
	{name: "delete with something inside", boxes: true, before: simVM + simInside, spec: simHost},
	{name: "serve an engine", engine: true, spec: simServed},
	{name: "serve an engine again", engine: true, before: simServed, spec: simServed, damage: unserved},
	{name: "serve an engine no more", engine: true, before: simServed, spec: edited(simServed, "  serve = true\n", "")},
	{name: "let go of an engine", engine: true, before: simServed, spec: simVM},
	{name: "restart under an engine", engine: true, before: simServed, spec: bigger(simServed)},
	{name: "delete with an engine", engine: true, before: simServed, spec: simHost},
	{name: "check a workspace out", repo: true, spec: simHost + simDev + workIn},
	{name: "check a worktree out", repo: true, spec: workHere},
	{name: "save and destroy a workspace", repo: true, before: simHost + simDev + saved(workIn), spec: simHost + simDev, damage: worked},
	{name: "save and destroy a worktree", repo: true, before: saved(workHere), spec: "", damage: worked},
	{name: "fetch and destroy a workspace", repo: true, before: simHost + simDev + fetched(workIn), spec: simHost + simDev, damage: committed},
	{name: "replace a worktree with work", repo: true, renews: true, before: saved(workHere), spec: elsewhere(saved(workHere)), damage: worked, args: replaceWork, again: replaceWork},
	{name: "fetch a workspace", repo: true, before: simHost + simDev + workIn, spec: simHost + simDev + workIn, damage: committed, args: fetchWork, again: fetchWork},
	{name: "push to a workspace", repo: true, before: simHost + simDev + workIn, spec: simHost + simDev + workIn, damage: advanced, args: pushWork, again: pushWork},
	{name: "save a workspace", repo: true, before: simHost + simDev + workIn, spec: simHost + simDev + workIn, damage: worked, args: saveWork, again: saveWork},
	{name: "restore a workspace", repo: true, before: simHost + simDev + workIn, spec: simHost + simDev + workIn, damage: savedBefore, args: restoreWork, again: restoreWork},
	{name: "destroy what no state knows", before: simVM, spec: simVM, args: destroyAll, again: unseenToo, damage: forgotten},
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

// handmade is a VM with a disk that vmctl did not make.
func handmade(s *crashSite) {
	s.put("sim-here/vms/theirs.json", `{"format":1,"id":"somebody","name":"theirs","config":{"cpus":1,"memory":268435456,"accel":"auto","disks":[{"name":"theirs"}]}}`)
	s.put("sim-here/disks/theirs.root", `{"format":1,"id":"somebody","name":"theirs"}`+"\n")
	s.put("sim-here/disks/theirs.disk", strings.Repeat("\x00", 8<<20))
}

// forgotten loses the state.
func forgotten(s *crashSite) { s.remove("state.json*") }

// qemuOperations lists the operations that run on real QEMU.
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

// limaOperations lists the operations that run on a real Lima home.
var limaOperations = []operation{
	{name: "create, off", spec: limaVM},
	{name: "create with a disk", spec: limaUsing},
	{name: "change while off", before: limaVM, spec: bigger(limaVM)},
	{name: "grow its own disk", before: limaVM, spec: edited(limaVM, "2MiB", "4MiB")},
	{name: "replace", renews: true, before: limaVM, spec: edited(limaVM, "  cpus ", "  name = \"other\"\n  cpus ")},
	{name: "grow", before: limaUsing, spec: edited(limaUsing, "8MiB", "16MiB")},
	{name: "detach", before: limaUsing, spec: limaDisk + limaVM},
	{name: "free a disk", before: limaUsing, spec: limaUsing, damage: locked},
	{name: "let go of a VM", before: limaVM, spec: limaHost + "removed {\n  from    = vm.dev\n  destroy = false\n}\n"},
	{name: "delete", before: limaVM, spec: limaHost},
	{name: "destroy with its disk", before: limaUsing, spec: limaUsing, args: destroyAll, again: destroyAll},
	{name: "start", once: true, before: limaDeaf, spec: on(limaDeaf)},
	{name: "start by command", before: limaDeaf, spec: limaDeaf, args: startDev, again: startDev},
	{name: "forced stop with a locked disk", before: on(limaDeaf), spec: limaDeaf},
	{name: "restart", once: true, before: on(limaDeaf), spec: bigger(on(limaDeaf))},
	{name: "recover what lost its host agent", once: true, before: on(limaDeaf), spec: on(limaDeaf), damage: withoutAgent},
	{name: "destroy what runs", before: on(limaDeaf), spec: limaDeaf, args: destroyAll, again: destroyAll},
	{name: "stop a guest that is up", boots: true, before: on(limaGuest), spec: limaGuest},
	{name: "start until the guest is ready", boots: true, once: true, before: limaGuest, spec: on(limaGuest)},
}

// withoutAgent ends the host agent of a VM of Lima at once.
func withoutAgent(s *crashSite) {
	for _, pid := range processesWith(s.home) {
		if m := limaProcess.FindStringSubmatch(commandLine(pid)); m != nil && m[2] == "ha" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// locked leaves the lock of a VM that is off at its disk, as a power failure does.
func locked(s *crashSite) {
	home := filepath.Join(s.data, "lima-here")
	if err := os.Symlink(filepath.Join(home, "demo.dev"), filepath.Join(home, "_disks", "demo.cache", "in_use_by")); err != nil {
		s.t.Fatal(err)
	}
}
