package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vmctl/internal/real"
)

// Terraform's lock of a state is named with its holder by plan, status and errors, is never broken, and is waited for where the
// block says so.
func TestTerraformLocked(t *testing.T) {
	real.Long(t)
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		k := newKilled(t, program)
		k.run(0, "apply", "--auto-approve")
		release := k.lock("--a--")
		holder := fmt.Sprintf("someone@here, pid %d, since 2026-01-02T03:04:05Z, for Apply, lock ID 0a1b", os.Getpid())
		for _, args := range [][]string{{"plan"}, {"status"}} {
			if out := k.run(0, args...); !strings.Contains(out, holder) || !strings.Contains(out, "the lock is free as soon as") {
				t.Errorf("%v says\n%s\nwant %s", args, out, holder)
			}
		}
		edited := strings.Replace(killedSpec, `"one"`, `"replace-two"`, 1)
		k.write("main.vmctl.hcl", edited)
		if program.isReal {
			if out := k.run(1, "apply", "--auto-approve"); !strings.Contains(out, program.tool+"'s lock of its state is held by someone@here, since 2026-01-02 03:04:05") ||
				!strings.Contains(out, "the lock is free as soon as") {
				t.Errorf("apply says\n%s", out)
			}
		}
		k.write("main.vmctl.hcl", strings.Replace(edited, "  binary", "  lock_timeout = \"10m\"\n  binary", 1))
		cmd := k.command("apply", "--auto-approve")
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = writer, writer
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer k.end(cmd)
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		all, waited := "", false
		for lines := bufio.NewReader(reader); ; {
			line, err := lines.ReadString('\n')
			all += line
			if !waited && strings.Contains(line, "waiting for at most 10m0s for the state lock of "+holder) {
				waited = true
				release()
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Wait(); err != nil || !waited {
			t.Errorf("it waited: %t, and ended with %v:\n%s", waited, err, all)
		}
		k.run(0, "plan", "--detailed-exitcode")
		k.run(0, "destroy", "--auto-approve")
	})
}

// lock takes the lock of a state as Terraform does, and returns the function that frees it.
func (k *killed) lock(workspace string) (release func()) {
	k.t.Helper()
	paths, err := filepath.Glob(filepath.Join(k.home, "d", "terraform-cloud", "states", "*"+workspace+"*", "terraform.tfstate"))
	if err != nil || len(paths) != 1 {
		k.t.Fatalf("states: %v, %v", paths, err)
	}
	file, err := os.OpenFile(paths[0], os.O_RDWR, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	taken := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &taken); err != nil {
		k.t.Fatal(err)
	}
	info := filepath.Join(filepath.Dir(paths[0]), ".terraform.tfstate.lock.info")
	text := `{"ID":"0a1b","Operation":"OperationTypeApply","Info":"","Who":"someone@here","Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":"x"}`
	if err := os.WriteFile(info, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(info); err != nil {
			k.t.Error(err)
		}
		if err := file.Close(); err != nil {
			k.t.Error(err)
		}
	}
}
