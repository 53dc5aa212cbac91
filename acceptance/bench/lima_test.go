//go:build cgo && libvirt_dlopen && linux

package bench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// boots is the number of alternating boots of which the medians count.
const boots = 3

// BenchmarkLima starts an instance of Lima by turns with vmctl and with limactl, until each calls it ready, and prints the
// medians: the Debian guest under plain emulation. It takes minutes, and runs with VMCTL_BENCH=lima.
func BenchmarkLima(b *testing.B) {
	if os.Getenv("VMCTL_BENCH") != "lima" {
		b.Skip("it boots a guest six times: VMCTL_BENCH=lima make bench")
	}
	h := newHome(b)
	h.addLima(b)
	h.write(b, "one", limaSpec)
	h.run(b, "one", "vmctl", "apply", "--auto-approve")
	start := func(name string, args ...string) func(*testing.B) used {
		return func(b *testing.B) used {
			b.Helper()
			u := h.timed(args...)(b)
			b.Logf("%-8s %.1fs", name, u.wall.Seconds())
			h.run(b, "one", "vmctl", "vm", "stop", "dev")
			return u
		}
	}
	h.run(b, "one", "vmctl", "vm", "start", "dev") // the first boot sets the guest up
	h.run(b, "one", "vmctl", "vm", "stop", "dev")
	vmctl, bare := byTurns(b, boots, start("vmctl", "vmctl", "vm", "start", "dev"), start("limactl", "limactl", "start", "--tty=false", "one.dev"))
	report(b, "start of an instance until ready, wall", "1.05", wallOf, vmctl, bare)
}

const limaSpec = `vmctl {
  project = "one"
  id      = "k7m2qd9x4r"
}

provider "lima" "here" {}

vm "dev" {
  provider = provider.lima.here
  running  = false
  image    = "../debian.qcow2"
  cpus     = 1
  memory   = "512MiB"
  accel    = "tcg"
  plain    = true
  template = "user: {name: lima, uid: 1000}" # the user of this home may have no shell in the guest

  root_disk {
    size = "3GiB"
  }

  start {
    timeout = "20m"
  }

  stop {
    grace = "5m"
  }

  ssh {
    wait_timeout = "20m"
  }
}
`

// addLima adds the Debian guest, vmctl-lima beside vmctl, and limactl, which emulates as vmctl does.
func (h *home) addLima(b *testing.B) {
	b.Helper()
	const module = "../../cmd/vmctl-lima"
	libexec := filepath.Join(h.dir, "libexec")
	build := exec.CommandContext(b.Context(), "go", "build", "-C", module, "-buildvcs=false", "-trimpath",
		"-ldflags", "-s -w -X github.com/lima-vm/lima/v2/pkg/version.Version="+limaVersion(b, module), "-o", libexec+"/", ".", "github.com/lima-vm/lima/v2/cmd/limactl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	check(b, os.Mkdir(libexec, 0o700))
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build vmctl-lima and limactl: %v\n%s", err, out)
	}
	h.programs["limactl"] = filepath.Join(libexec, "limactl")
	h.more = []string{
		"LIMA_HOME=" + filepath.Join(h.dir, "s/vmctl/one-k7m2qd9x4r/lima-here"),
		"QEMU_SYSTEM_X86_64=qemu-system-x86_64 -machine q35,vmport=off -accel tcg,thread=multi",
	}
	image := filepath.Join(os.Getenv("VMCTL_TEST_IMAGE"), "debian.qcow2")
	if out, err := exec.CommandContext(b.Context(), "cp", "--reflink=auto", image, filepath.Join(h.dir, "debian.qcow2")).CombinedOutput(); err != nil {
		b.Fatalf("copy the Debian guest: %v: %s", err, out)
	}
	h.own(b)
}

func limaVersion(b *testing.B, module string) string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "go", "list", "-C", module, "-m", "-f", "{{.Version}}", "github.com/lima-vm/lima/v2").Output()
	check(b, err)
	return strings.TrimSpace(string(out))
}
