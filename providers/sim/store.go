package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// A host's folder holds
//
//	vms/NAME.json  a VM: its owner mark and its configuration
//	run/KEY.pid    the process that runs it, with its running configuration
//	run/KEY.sock   the socket on which the process answers
//	run/KEY.ha.pid and run/KEY.ha.sock, those of its host agent
//	run/KEY.log    the output of the process, kept until the next start
//	disks/NAME.root its root disk: a line with the owner mark, and the guest's data
//	disks/NAME.root.lock the lock of the root disk: a symbolic link to the holder
//	disks/NAME.disk a disk, which is a resource of its own
//	disks/NAME.mark the owner mark of that disk
//	disks/NAME.disk.lock the lock of that disk
//	networks/NAME.json a network: its owner mark and its prefix
//	homes/KEY/     the inside of a VM, once somebody has entered it
//	images/DIGEST.image an image, as long as root disks begin as it
//	images/KEY.for  the digest that a VM is about to be made from: a symbolic link
//	images/KEY.part an image while it is copied
//	faults         how often each fault has struck
//	write.tmp      a file that is being written; renamed when it is whole
//	turn.lock      the lock of a shared host: its holder has the turn
//
// and nothing once its last VM and disk are deleted.
const (
	vmsDir   = "vms"
	runDir   = "run"
	disksDir = "disks"
	homesDir = "homes"

	networksDir = "networks"

	imagesDir  = "images"
	faultsFile = "faults"
	tempFile   = "write.tmp"
	vmSuffix   = ".json"
	rootSuffix = ".root"
	diskSuffix = ".disk"
	markSuffix = ".mark"
	lockSuffix = ".lock"

	imageSuffix    = ".image"
	partSuffix     = ".part"
	reservedSuffix = ".for"
)

// socketLimit is the longest path of a unix socket: sun_path of unix(7) holds
// 108 bytes, the last of them zero.
const socketLimit = 107

// vmFormat is the format of a VM's file.
const vmFormat = 1

// vmFile is one VM.
type vmFile struct {
	Format     int          `json:"format"`
	ID         providers.ID `json:"id"`
	Name       string       `json:"name"`
	Owner      *owner       `json:"owner,omitempty"`
	Config     *config      `json:"config,omitempty"` // nil: half made
	Weightless bool         `json:"weightless,omitempty"`
	HostAgent  bool         `json:"host_agent,omitempty"`
	Token      string       `json:"token,omitempty"` // whoever reads or changes the VM needs it; "": none
	Run        *runFile     `json:"run,omitempty"`   // of a weightless VM
}

// owner is the mark.
type owner struct {
	ID         string       `json:"id"`
	Project    string       `json:"project"`
	Address    spec.Address `json:"address"`
	Of         providers.ID `json:"of"`
	Generation uint64       `json:"generation"`
}

func (o *owner) mark() *providers.Mark {
	if o == nil {
		return nil
	}
	return &providers.Mark{ID: o.ID, Project: o.Project, Address: o.Address, Of: o.Of, Generation: o.Generation}
}

// oursFor reports whether vmctl made the VM for an address of that project.
func (f vmFile) oursFor(p providers.Project, a spec.Address) bool {
	o := f.Owner
	return o != nil && o.ID == p.Lineage() && o.Of == f.ID && o.Address == a
}

// runFile describes the process of a VM, or the run of a weightless VM.
type runFile struct {
	Process *process.Identity `json:"process,omitempty"` // nil: weightless
	Agent   *process.Identity `json:"-"`                 // of its host agent, which has a file of its own
	With    config            `json:"with"`
	Ports   []heldPort        `json:"ports,omitempty"`

	// Only for a weightless VM, which has no process:
	Deaf  bool      `json:"deaf,omitempty"`  // it ignores a request
	Delay float64   `json:"delay,omitempty"` // in seconds, from the request to the end
	Ends  time.Time `json:"ends,omitzero"`   // the time when it ends
	Ended bool      `json:"ended,omitempty"`
}

// heldPort is a forward with the host port that the process got.
type heldPort struct {
	machine.Forward
	Got uint16 `json:"got"`
}

// got returns the forward with the host port that it got.
func (h heldPort) got() machine.Forward {
	f := h.Forward
	f.Host = h.Got
	return f
}

func (p *Provider) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

func (p *Provider) vmPath(name string) string { return p.path(vmsDir, name+vmSuffix) }

// key returns a short name for an ID, so that the path of a socket is short.
func key(id providers.ID) string { return guard.Short(string(id)) }

func (p *Provider) pidPath(id providers.ID) string { return p.path(runDir, key(id)+".pid") }
func (p *Provider) socket(id providers.ID) string  { return p.path(runDir, key(id)+".sock") }
func (p *Provider) homePath(id providers.ID) string {
	return p.path(homesDir, key(id))
}
func (p *Provider) logPath(id providers.ID) string { return p.path(runDir, key(id)+".log") }

// named lists the names of the files in a folder that end with the suffix, sorted, without
// it.
func (p *Provider) named(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(p.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the %s of host %s: %w", dir, p.settings.Name, err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// readVM reads a VM's file. A missing file is fs.ErrNotExist.
func (p *Provider) readVM(name string) (vmFile, error) {
	var f vmFile
	if err := readJSON(p.vmPath(name), &f); err != nil {
		return f, err
	}
	switch {
	case f.Format != vmFormat:
		return f, fmt.Errorf("read %s: it has format %d, and this vmctl knows format %d", p.vmPath(name), f.Format, vmFormat)
	case f.Name != name || f.ID == "":
		return f, fmt.Errorf("read %s: it is the file of VM %q (%s)", p.vmPath(name), f.Name, f.ID)
	case f.Token != "" && f.Token != p.token:
		return f, fmt.Errorf("read VM %s: it refuses the token %q", name, p.token)
	}
	return f, nil
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func (p *Provider) writeVM(f vmFile) error {
	f.Format = vmFormat
	return p.write(p.vmPath(f.Name), f)
}

// write replaces a file of the host. If vmctl is killed meanwhile, the file is the old one or
// the new one, and at most one temporary file is left, which the next step removes. A
// simulated host does not outlive a power failure, so nothing is synced.
func (p *Provider) write(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return p.writeText(path, append(text, '\n'))
}

func (p *Provider) writeText(path string, text []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temp := p.path(tempFile)
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// allocate makes a file of zeros that takes no disk space.
func (p *Provider) allocate(path string, size int64) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	temp := p.path(tempFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err := os.WriteFile(temp, nil, 0o600)
	if err == nil {
		err = os.Truncate(temp, size)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// clean removes the temporary file that an interrupted write left.
func (p *Provider) clean() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := os.Remove(p.path(tempFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier run left half written: %w", err)
	}
	return nil
}

// sweep removes the host's folders once they are empty.
func (p *Provider) sweep() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	used, err := hasFile(p.path(vmsDir), vmSuffix)
	if err != nil || used {
		return err
	}
	errs := []error{atomicfile.Remove(p.path(tempFile))}
	for _, dir := range []string{p.path(vmsDir), p.path(runDir), p.path(disksDir), p.path(homesDir), p.path(imagesDir), p.path(networksDir), p.dir} {
		used, err := hasFile(dir, "")
		if err == nil && !used {
			err = atomicfile.Remove(dir)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hasFile reports whether a folder has a file whose name ends with the suffix. It reads no more of a large folder than it
// needs.
func hasFile(dir, suffix string) (bool, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer folder.Close() //nolint:errcheck // it is only read
	for {
		names, err := folder.Readdirnames(100)
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, suffix) }) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
