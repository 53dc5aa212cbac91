package lima

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/spec"
)

// The files of a home (https://lima-vm.io/docs/dev/internals/), and vmctl's own beside them:
//
//	NAME/lima.yaml        an instance: its definition
//	NAME/vmctl.json       its owner mark
//	NAME/vmctl.run.json   the definition that its processes were started with
//	NAME/disk             its root disk; NAME/ext4.vhdx of an instance that WSL runs
//	NAME/ha.pid, ha.sock  its host agent
//	NAME/qemu.pid, qmp.sock  its driver, QEMU
//	NAME/ha.stdout.log    the events of its host agent; ha.stderr.log its log
//	NAME/serial*.log      its consoles
//	_disks/NAME/datadisk  an additional disk, with vmctl.json, its owner mark
//	_disks/NAME/in_use_by its lock: a symbolic link to the folder of the instance that has it
//	_config/user          the key pair that all instances let in
//	.vmctl-ID             an instance or a disk that is being made; renamed when it has its mark
const (
	disksDir    = "_disks"
	configDir   = "_config"
	defsFile    = "lima.yaml"
	limaVersion = "lima-version" // of the Lima that made the instance
	markName    = "vmctl.json"
	runName     = "vmctl.run.json"
	rootName    = "disk"
	oldRoot     = "diffdisk"  // of instances that older versions of Lima made
	wslDisk     = "ext4.vhdx" // the root disk of an instance of WSL
	agentPid    = "ha.pid"
	agentSock   = "ha.sock"
	driverPid   = "qemu.pid"
	qmpSock     = "qmp.sock"
	eventsLog   = "ha.stdout.log"
	agentLog    = "ha.stderr.log"
	protection  = "protected"
	dataDisk    = "datadisk"
	lockName    = "in_use_by"
	makingTemp  = ".vmctl-"
)

// markFormat is the format of an owner mark's file.
const markFormat = 1

// mark is the file with the owner mark of an instance or a disk.
type mark struct {
	Format int          `json:"format"`
	ID     providers.ID `json:"id"`
	Name   string       `json:"name"` // of the folder that the mark was written for
	Owner  *owner       `json:"owner,omitempty"`
	// Keys lists the top-level keys of the definition that attributes set, Params the parameters;
	// the others are of the template. Template is its canonical text, and Base the digest of
	// what the template came to in the definition.
	Keys     []string `json:"keys,omitempty"`
	Params   []string `json:"params,omitempty"`
	Template string   `json:"template,omitempty"`
	Base     string   `json:"base,omitempty"`
	Accel    string   `json:"accel,omitempty"`   // as wanted
	FSType   string   `json:"fs_type,omitempty"` // of a disk: the file system that the guest makes on it while it is empty; "": none
	// Forwards lists the forwarded ports in the spec's order, and Auto those whose host port is chosen
	// at each start, as forwardKey names them.
	Forwards []string `json:"forwards,omitempty"`
	Auto     []string `json:"auto,omitempty"`
	// Empty lists the attributes that the spec sets to what they are without it: plain = false, or
	// params = {}.
	Empty []string `json:"empty,omitempty"`
	// Sources maps the folders that are mounted, as sourceKey names them, to their paths in the spec.
	Sources map[string]string `json:"sources,omitempty"`
	// MountPoints maps additional disks to the paths at which the guest mounts them.
	MountPoints map[string]string `json:"mount_points,omitempty"`
	// Originals has the values of an imported instance's parameters that the spec overrides.
	Originals map[string]any `json:"originals,omitempty"`
	// HadRoot says that the root disk was there: one that is missing was not still to be made.
	HadRoot bool `json:"had_root,omitempty"`
	// Imported says that vmctl did not make the instance: its user and its keys are its own.
	Imported bool `json:"imported,omitempty"`
}

// sourceKey names a mount in mark.Sources.
func sourceKey(folder, target string) string { return target + " of " + folder }

// source returns a mounted folder as the spec names it.
func (m *mark) source(folder, target string) string {
	if m == nil {
		return folder
	}
	return cmp.Or(m.Sources[sourceKey(folder, target)], folder)
}

// hasEmpty reports whether the spec sets an attribute to what it is without it.
func (m *mark) hasEmpty(attr string) bool { return m != nil && slices.Contains(m.Empty, attr) }

// emptyIn lists the attributes that a wanted VM sets to what they are without it.
func emptyIn(want cty.Value) []string {
	var all []string
	if params := ctyread.KnownAttr(want, "params"); params != cty.NilVal && params.LengthInt() == 0 {
		all = append(all, "params")
	}
	if plain := ctyread.KnownAttr(want, "plain"); plain != cty.NilVal && plain.False() {
		all = append(all, "plain")
	}
	return all
}

// owner is the owner mark.
type owner struct {
	ID         string       `json:"id"`
	Project    string       `json:"project"`
	Address    spec.Address `json:"address"`
	Of         providers.ID `json:"of"`
	Generation uint64       `json:"generation"`
	HostKey    string       `json:"host_key,omitempty"`
}

func (o *owner) mark() *providers.Mark {
	if o == nil {
		return nil
	}
	return &providers.Mark{ID: o.ID, Project: o.Project, Address: o.Address, Of: o.Of, Generation: o.Generation, HostKey: o.HostKey}
}

// runRecord is the definition that an instance was started with.
type runRecord struct {
	Agent      *process.Identity `json:"agent,omitempty"` // nil: the start was not seen to its end
	Definition string            `json:"definition"`      // canonical
	Accel      string            `json:"accel"`
	Lima       string            `json:"lima,omitempty"` // the version of the host agent
	Auto       []string          `json:"auto,omitempty"`
}

func (p *Provider) dir(name string) string        { return filepath.Join(p.home, name) }
func (p *Provider) path(name, file string) string { return filepath.Join(p.home, name, file) }
func (p *Provider) diskDir(name string) string    { return filepath.Join(p.home, disksDir, name) }

func (p *Provider) diskPath(name, file string) string { return filepath.Join(p.diskDir(name), file) }

// names lists the folders of instances, or of disks. A home that does not exist has none.
func (p *Provider) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() && e.Type()&fs.ModeSymlink == 0 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}

// unmarkedID returns the ID of an object without a mark of its own.
func unmarkedID(kind spec.Kind, name string) providers.ID {
	return providers.ID(TypeName + ":" + string(kind) + ":" + name)
}

// readMark reads the mark in a folder; fs.ErrNotExist: there is none.
func readMark(path string) (mark, error) {
	var m mark
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", path, err)
	}
	switch {
	case m.Format != markFormat:
		return m, fmt.Errorf("read %s: it has format %d, and this vmctl knows format %d", path, m.Format, markFormat)
	case m.ID == "":
		return m, fmt.Errorf("read %s: it says nothing of an ID", path)
	}
	return m, nil
}

// writeJSON writes a file of vmctl's own, whole or not at all.
func writeJSON(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, string(text)+"\n")
}

// writeFile writes a file, whole or not at all, and removes what earlier writers that were killed left of it.
// The run lock keeps others from writing at the same time.
func writeFile(path, content string) error {
	return errors.Join(atomicfile.Clean(path), atomicfile.Write(path, []byte(content), 0o600))
}

// sweep removes vmctl's own home once it is empty but for its key pair, and no step is at work in it. A
// home that a provider block names is left as it is.
func (p *Provider) sweep() error {
	if p.home != p.settings.Dir || !p.locks.steps.TryLock() {
		return nil
	}
	defer p.locks.steps.Unlock()
	instances, err := p.names(p.home)
	disks, err2 := p.names(filepath.Join(p.home, disksDir))
	if err := errors.Join(err, err2); err != nil || len(instances)+len(disks) > 0 {
		return err
	}
	return removeTree(p.home)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
