package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"vmctl/providers"
	vmspec "vmctl/spec"
)

// wantedDisk describes one disk of the spec.
type wantedDisk struct {
	size int64  // MiB; it only grows
	on   string // the label of the VM that it is to be attached to; "": of none
}

// diskUsers lists the VMs that may use each disk. No two disks can change places: a plan
// blocks disks that would wait for each other for ever.
var diskUsers = map[string][]string{"x": {"", "a", "b"}, "y": {"", "c", "d"}}

const imageText = "what VMs begin as\n"

// editDisks changes the wanted disks. A disk that is no longer wanted may lose its content.
func (w *simWorld) editDisks() {
	for _, label := range slices.Sorted(maps.Keys(diskUsers)) {
		switch rapid.SampledFrom([]string{"keep", "grow", "move", "drop"}).Draw(w.t, "edit of disk "+label) {
		case "grow":
			w.sizes[label] += rapid.Int64Range(1, 3).Draw(w.t, "larger by")
			w.disks[label] = wantedDisk{size: w.sizes[label], on: w.disks[label].on}
		case "move":
			if d, ok := w.disks[label]; ok {
				d.on = rapid.SampledFrom(diskUsers[label]).Draw(w.t, "user")
				w.disks[label] = d
			}
		case "drop":
			delete(w.disks, label)
			delete(w.kept, label)
		}
	}
}

// diskBlocks returns the blocks of the disks in the spec.
func (w *simWorld) diskBlocks() string {
	var text strings.Builder
	for _, label := range slices.Sorted(maps.Keys(w.disks)) {
		fmt.Fprintf(&text, "disk %q {\n  provider = provider.sim.here\n  size = \"%dMiB\"\n}\n", label, w.disks[label].size)
	}
	return text.String()
}

// usedBy lists the disks that the spec attaches to a VM.
func (w *simWorld) usedBy(label string) []string {
	var all []string
	for _, disk := range slices.Sorted(maps.Keys(w.disks)) {
		if w.disks[disk].on == label {
			all = append(all, disk)
		}
	}
	return all
}

// imaged reports whether a VM is made from an image. That never changes.
func imaged(label string) bool { return label == "b" || label == "c" }

func (w *simWorld) diskPath(label string) string {
	return filepath.Join(w.host(), "disks", "demo."+label+".disk")
}

func work(label string) string { return "work on " + label }

const workAt = 4096 // where guests write

// fill lets a guest write once to each wanted disk that exists.
func (w *simWorld) fill() {
	for _, label := range slices.Sorted(maps.Keys(w.disks)) {
		f, err := os.OpenFile(w.diskPath(label), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) || w.kept[label] {
			continue
		}
		w.must(err)
		_, err = f.WriteAt([]byte(work(label)), workAt)
		w.must(errors.Join(err, f.Close()))
		w.kept[label] = true
		w.say("a guest writes to %s", label)
	}
}

// keeps demands that the disks still have what guests wrote, unless the spec dropped the
// disk.
func (w *simWorld) keeps() {
	w.t.Helper()
	for _, label := range slices.Sorted(maps.Keys(w.kept)) {
		content, err := os.ReadFile(w.diskPath(label))
		if err != nil || !strings.HasPrefix(string(content[min(workAt, len(content)):]), work(label)) {
			w.failf("what was on disk %s is lost: %v", label, err)
		}
	}
}

// releases demands that a step deletes no disk that is locked.
func (w *simWorld) releases(work providers.Work) func() {
	if work.Address.Kind != vmspec.Disk {
		return func() {}
	}
	path := w.diskPath(strings.TrimPrefix(work.Name, "demo."))
	_, held := os.Lstat(path + ".lock")
	return func() {
		if _, err := os.Lstat(path); held == nil && errors.Is(err, fs.ErrNotExist) && work.Op == "delete" {
			w.t.Errorf("%s %s removed %s, which was locked (rule 17)", work.Op, work.Address, path)
		}
	}
}

func (w *simWorld) wantDisks() []string {
	var all []string
	for label, d := range w.disks {
		all = append(all, fmt.Sprintf("disk.%s %dMiB", label, d.size))
	}
	return all
}

func diskIs(o providers.Object) string {
	size, _ := o.Attrs.GetAttr("size").AsBigFloat().Int64()
	return fmt.Sprintf("%s %dMiB", o.Owner.Address, size>>20)
}

// attachedTo lists the disks of a VM.
func attachedTo(o providers.Object) []string {
	var all []string
	for _, e := range o.Attrs.GetAttr("additional_disk").AsValueSlice() {
		all = append(all, strings.TrimPrefix(e.GetAttr("disk").AsString(), "disk."))
	}
	return all
}
