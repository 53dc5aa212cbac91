package sim_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/sim"
)

// meddler changes the files of a host's VMs in every way that a person, a program or a killed vmctl can.
type meddler struct {
	*rapid.T
	dir, outside string
}

func (m meddler) pick(from ...string) string { return rapid.SampledFrom(from).Draw(m.T, "one of") }
func (m meddler) vm() string                 { return m.pick("a", "b", "c", "d", "e") }
func (m meddler) path(vm string) string      { return filepath.Join(m.dir, "vms", vm+".json") }
func (m meddler) elsewhere() string          { return filepath.Join(m.outside, m.pick("x", "y")) }

// content returns the file of a VM: whole, half made, or nonsense.
func (m meddler) content(vm string) string {
	disks, run := "", ""
	for _, disk := range []string{"one", "two"} {
		if rapid.Bool().Draw(m.T, "has "+disk) {
			disks += fmt.Sprintf(`,{"name":%q}`, disk)
		}
	}
	if rapid.Bool().Draw(m.T, "runs") {
		run = fmt.Sprintf(`,"run":{"with":{"cpus":1,"memory":1,"accel":"tcg"},"ports":[{"host_ip":%q,"protocol":"tcp","got":8080}]}`, m.pick("127.0.0.1", "0.0.0.0", "127.0.0.2"))
	}
	whole := fmt.Sprintf(`{"format":1,"id":"id-%s","name":%q,"weightless":true,"config":{"cpus":1,"memory":1,"accel":"tcg","disks":[%s]}%s}`,
		vm, vm, strings.TrimPrefix(disks, ","), run)
	switch m.pick("whole", "whole", "whole", "whole", "half made", "cut", "empty") {
	case "half made":
		return fmt.Sprintf(`{"format":1,"id":"id-%s","name":%q}`, vm, vm)
	case "cut":
		return whole[:len(whole)/2]
	case "empty":
		return ""
	}
	return whole
}

func (m meddler) must(err error) {
	m.Helper()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		m.Fatal(err)
	}
}

// change changes something.
func (m meddler) change() {
	vm, other := m.vm(), m.vm()
	vms := filepath.Join(m.dir, "vms")
	m.must(os.MkdirAll(vms, 0o700))
	switch m.pick("write", "write", "replace", "replace", "leave", "append", "remove", "rename", "copy", "symlink", "hard link", "elsewhere", "exchange", "empty folder", "no folder") {
	case "write": // into the same file
		m.must(os.WriteFile(m.path(vm), []byte(m.content(vm)), 0o600))
	case "replace": // as vmctl does
		temp := filepath.Join(m.dir, "write.tmp")
		m.must(os.WriteFile(temp, []byte(m.content(vm)), 0o600))
		m.must(os.Rename(temp, m.path(vm)))
	case "leave": // what a killed vmctl leaves
		m.must(os.WriteFile(filepath.Join(m.dir, "write.tmp"), []byte("half"), 0o600))
	case "append":
		if f, err := os.OpenFile(m.path(vm), os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, err = f.WriteString(m.pick(" ", "}"))
			m.must(errors.Join(err, f.Close()))
		}
	case "remove":
		m.must(os.Remove(m.path(vm)))
	case "rename":
		m.must(os.Rename(m.path(vm), m.path(other)))
	case "copy": // another program
		if _, err := os.Stat(m.path(vm)); err == nil && vm != other {
			m.must(os.Remove(m.path(other)))
			m.must(exec.CommandContext(m.Context(), "cp", m.path(vm), m.path(other)).Run())
		}
	case "symlink":
		m.must(os.Remove(m.path(vm)))
		m.must(os.Symlink(m.elsewhere(), m.path(vm)))
	case "hard link":
		m.must(os.Remove(m.path(vm)))
		m.must(os.Link(m.elsewhere(), m.path(vm)))
	case "elsewhere":
		m.must(os.WriteFile(m.elsewhere(), []byte(m.content(vm)), 0o600))
	case "exchange": // the folder for a copy of it
		m.must(os.CopyFS(vms+".copy", os.DirFS(vms)))
		m.must(os.RemoveAll(vms))
		m.must(os.Rename(vms+".copy", vms))
	case "empty folder":
		m.must(os.RemoveAll(vms))
		m.must(os.MkdirAll(vms, 0o700))
	case "no folder":
		m.must(os.RemoveAll(vms))
	}
}

// The index agrees with the files after every change, in each of two vmctl.
func TestIndexAgreesWithFiles(t *testing.T) {
	disks := []string{"one", "two", "none"}
	ports := []providers.Claim{{Kind: providers.ClaimPort, Key: "127.0.0.1:8080/tcp"}, {Kind: providers.ClaimPort, Key: "127.0.0.1:8081/tcp"}}
	rapid.Check(t, func(rt *rapid.T) {
		data := t.TempDir()
		h := &house{t: t, data: data, dir: filepath.Join(data, "host")}
		m := meddler{T: rt, dir: h.dir, outside: data}
		m.must(os.MkdirAll(h.dir, 0o700))
		open := func() providers.Provider {
			p, err := simType(t).Open(t.Context(), h.settings(true))
			if err != nil {
				rt.Fatal(err)
			}
			sim.Watch(p)
			return p
		}
		both := [2]providers.Provider{open(), open()}
		defer func() { m.must(errors.Join(both[0].Close(), both[1].Close())) }()
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			m.change()
			i := rapid.IntRange(0, 5).Draw(rt, "asked")
			if i == 2 { // one of them is killed and begins again
				m.must(both[0].Close())
				both[0] = open()
			}
			if i > 1 {
				continue
			}
			if diff := cmp.Diff(sim.UsersInFiles(both[i], disks, ports), sim.Users(both[i], disks, ports)); diff != "" {
				rt.Fatalf("who uses what (-files +index):\n%s", diff)
			}
		}
	})
}
