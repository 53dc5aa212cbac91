//go:build linux

package bench_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cost is the price of one run.
type cost struct {
	cpu, elapsed time.Duration
	memory       uint64 // bytes, at its peak
	output       string
}

// tool is a program that plans and applies.
type tool struct {
	name    string
	program string
	dir     string // of its files
	env     []string
	file    string // name of its file
	init    []string
	// texts writes its file for a number of pairs.
	texts map[layout]func(n int) string
	apply []string
}

// layout is the way in which the objects are written down.
type layout string

// The layouts.
const (
	blocks  layout = "blocks"   // a block for each
	forEach layout = "for_each" // one block for all
)

// tools returns vmctl, built anew, and whichever of the others is installed.
func tools(b *testing.B) []tool {
	b.Helper()
	dir := b.TempDir()
	program := filepath.Join(dir, "vmctl")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", program, "vmctl/cmd/vmctl")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build vmctl: %v\n%s", err, out)
	}
	home := "HOME=" + filepath.Join(dir, "home")
	path := "PATH=" + os.Getenv("PATH")
	all := []tool{{
		name: "vmctl", program: program, dir: filepath.Join(dir, "vmctl.d"), file: "main.vmctl.hcl", apply: []string{"apply", "--auto-approve"},
		env: []string{home, path, "VMCTL_DATA_DIR=" + filepath.Join(dir, "data")}, texts: map[layout]func(int) string{blocks: vmBlocks, forEach: vmEach},
	}}
	for _, other := range []string{"terraform", "tofu"} {
		found, err := exec.LookPath(other)
		if err != nil {
			continue
		}
		all = append(all, tool{
			name: other, program: found, dir: filepath.Join(dir, other+".d"), file: "main.tf", init: []string{"init", "-input=false"},
			apply: []string{"apply", "-auto-approve", "-input=false"}, env: []string{home, path, "CHECKPOINT_DISABLE=1"},
			texts: map[layout]func(int) string{blocks: dataBlocks, forEach: dataEach},
		})
	}
	for _, t := range all {
		if err := os.MkdirAll(t.dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

const head = `vmctl {
  project = "bench"
  id      = "k7m2qd9x4r"
}

provider "sim" "here" {
  weightless = true
}
`

func vmBlocks(n int) string {
	var text strings.Builder
	text.WriteString(head)
	for i := range n {
		fmt.Fprintf(&text, "\ndisk \"d%[1]d\" {\n  provider = provider.sim.here\n  size     = \"1GiB\"\n}\n\nvm \"v%[1]d\" {\n  provider = provider.sim.here\n"+
			"  memory   = \"256MiB\"\n\n  additional_disk {\n    disk = disk.d%[1]d\n  }\n}\n", i)
	}
	return text.String()
}

func vmEach(n int) string {
	return head + fmt.Sprintf(`
locals {
  all = toset([for p in setproduct(range(100), range(%d)) : "${p[0]}-${p[1]}"])
}

disk "d" {
  for_each = local.all
  provider = provider.sim.here
  size     = "1GiB"
}

vm "v" {
  for_each = local.all
  provider = provider.sim.here

  additional_disk {
    disk = disk.d[each.key]
  }
}
`, n/100)
}

func dataBlocks(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "resource \"terraform_data\" \"d%[1]d\" {\n  input = \"1GiB\"\n}\n\nresource \"terraform_data\" \"v%[1]d\" {\n"+
			"  input = [\"256MiB\", terraform_data.d%[1]d.id]\n}\n\n", i)
	}
	return text.String()
}

func dataEach(n int) string {
	return fmt.Sprintf(`locals {
  all = toset([for p in setproduct(range(100), range(%d)) : "${p[0]}-${p[1]}"])
}

resource "terraform_data" "d" {
  for_each = local.all
  input    = "1GiB"
}

resource "terraform_data" "v" {
  for_each = local.all
  input    = ["256MiB", terraform_data.d[each.key].id]
}
`, n/100)
}

func (t tool) write(b *testing.B, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(t.dir, t.file), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// freshPlan plans a world of which nothing exists.
func (t tool) freshPlan(b *testing.B, how layout, n int) cost {
	b.Helper()
	t.write(b, t.texts[how](n))
	if t.init != nil {
		t.run(b, true, t.init...)
	}
	return t.run(b, true, "plan")
}

func (t tool) freshPlans(b *testing.B, how layout, n int) []cost {
	b.Helper()
	all := []cost{t.freshPlan(b, how, n)}
	return append(all, t.again(b, rounds-1, "plan")...)
}

// applied makes a world.
func (t tool) applied(b *testing.B, how layout, n int) cost {
	b.Helper()
	t.write(b, t.texts[how](n))
	return t.run(b, true, t.apply...)
}

func (t tool) plans(b *testing.B) []cost { b.Helper(); return t.again(b, rounds, "plan") }

func (t tool) versions(b *testing.B) []cost { b.Helper(); return t.again(b, 2*rounds+1, "version") }

func (t tool) again(b *testing.B, times int, args ...string) []cost {
	b.Helper()
	var all []cost
	for range times {
		all = append(all, t.run(b, true, args...))
	}
	return all
}

// run runs the tool to its end. If it must succeed, another status ends the benchmark.
func (t tool) run(b *testing.B, must bool, args ...string) cost {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), t.program, args...)
	cmd.Dir, cmd.Env = t.dir, t.env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && (must || !errors.As(err, &exit)) {
		b.Fatalf("%s %s: %v\n%s", t.name, strings.Join(args, " "), err, out[max(0, len(out)-2000):])
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("the system does not say what the run used")
	}
	const kibibyte = 1024 // the unit of ru_maxrss on Linux, getrusage(2)
	return cost{
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), elapsed: took, memory: uint64(used.Maxrss) * kibibyte, output: string(out),
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
