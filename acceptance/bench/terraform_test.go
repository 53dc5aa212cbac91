//go:build linux

package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vmctl/internal/process"
)

// modules is the number of VMs of the module.
const modules = 100

// BenchmarkTerraform makes, observes and destroys VMs of one Terraform module, and prints vmctl's own share of the CPU time: that of
// its process, and of the step through which it starts a Terraform that outlives it. It needs Terraform, and runs with
// VMCTL_BENCH=terraform.
func BenchmarkTerraform(b *testing.B) {
	if os.Getenv("VMCTL_BENCH") != "terraform" {
		b.Skip("it starts Terraform some 1,000 times: VMCTL_BENCH=terraform make bench")
	}
	program, err := exec.LookPath("terraform")
	check(b, err)
	t := tools(b)[0]
	if _, err := os.Stat("/dev/shm"); err == nil { // no disk counts
		home, err := os.MkdirTemp("/dev/shm", "vmctl-bench-") //nolint:usetesting // b.TempDir is on a disk
		check(b, err)
		b.Cleanup(func() { check(b, os.RemoveAll(home)) })
		t.env = append(t.env, "VMCTL_DATA_DIR="+filepath.Join(home, "data"), "XDG_RUNTIME_DIR="+home, "TMPDIR="+home)
	}
	check(b, os.Mkdir(filepath.Join(t.dir, "module"), 0o700))
	check(b, os.WriteFile(filepath.Join(t.dir, "module", "main.tf"), []byte(oneModule), 0o600))
	t.write(b, fmt.Sprintf(moduleSpec, program, modules))
	step := startCost(b, t.env)
	b.Logf("the step that starts Terraform takes %s of CPU time", step)
	for _, run := range []struct {
		args   []string
		starts int // of a Terraform that outlives vmctl
	}{{[]string{"plan"}, 0}, {[]string{"apply", "--auto-approve"}, modules}, {[]string{"plan"}, 0}, {[]string{"destroy", "--auto-approve"}, modules}} {
		s := t.shares(b, run.args...)
		own := s.own + time.Duration(run.starts)*step
		b.Logf("%d VMs: %-8s %5.1f %% of %s, goal 5 %%: vmctl itself %.1f %% (%.1f %% in the system), starts %.1f %%", modules, run.args[0],
			percent(own, s.all), s.all, percent(s.own, s.all), percent(s.system, s.all), percent(own-s.own, s.all))
	}
}

const oneModule = `variable "name" {
  type = string
}

resource "terraform_data" "vm" {
  input = var.name
}

output "ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
`

const moduleSpec = `vmctl {
  project = "bench"
  id      = "k7m2qd9x4r"
}

provider "terraform" "cloud" {
  dir    = "module"
  binary = %q
}

vm "v" {
  for_each  = toset([for i in range(%d) : tostring(i)])
  provider  = provider.terraform.cloud
  variables = { name = each.key }
  outputs   = { address = "ip" }

  ssh {
    wait = false
  }
}
`

func percent(part, whole time.Duration) float64 { return 100 * float64(part) / float64(whole) }

// share is the CPU time of a run.
type share struct {
	own, system time.Duration // of vmctl itself, and its part in the system
	all         time.Duration // with its children and theirs
}

// shares runs the tool to its end.
func (t tool) shares(b *testing.B, args ...string) share {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), t.program, args...)
	cmd.Dir, cmd.Env = t.dir, t.env
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	check(b, cmd.Start())
	// An ended process shows its own time, without that of its children, until it is collected.
	check(b, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	user, system := ownTime(b, cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	return share{own: user + system, system: system, all: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// ownTime reads the CPU time of a process: the fields 14 and 15 of its stat file, in hundredths of a second (proc_pid_stat(5)).
func ownTime(b *testing.B, pid int) (user, system time.Duration) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third on
	read := func(field int) time.Duration {
		n, err := strconv.Atoi(fields[field-3])
		check(b, err)
		return time.Duration(n) * 10 * time.Millisecond
	}
	return read(14), read(15)
}

// startCost returns the CPU time of the step that starts Terraform: a program through its gate, less the program.
func startCost(b *testing.B, env []string) time.Duration {
	b.Helper()
	const times = 200
	program, err := exec.LookPath("true")
	check(b, err)
	bare, gated := time.Duration(0), time.Duration(0)
	for range times {
		bare += cpuTime(b, &exec.Cmd{Path: program, Args: []string{program}, Env: env}, func(c *exec.Cmd) error { return c.Start() })
		command, ok := process.ShellGate(program, nil, env)
		if !ok {
			b.Fatal("the shell does not start it")
		}
		gated += cpuTime(b, &exec.Cmd{Path: command[0], Args: command, Env: env}, func(c *exec.Cmd) error {
			held, err := process.Host{}.Hold(c, program)
			if err != nil {
				return err
			}
			return held.Begin()
		})
	}
	return (gated - bare) / times
}

// cpuTime returns the CPU time of a process.
func cpuTime(b *testing.B, cmd *exec.Cmd, start func(*exec.Cmd) error) time.Duration {
	b.Helper()
	check(b, start(cmd))
	check(b, cmd.Wait())
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("the system does not say what the run used")
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
