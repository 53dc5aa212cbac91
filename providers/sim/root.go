package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"vmctl/providers"
)

// rootHead is the first line of a VM's root disk. It names the owner. The rest is the
// guest's, and vmctl never reads it.
type rootHead struct {
	Format int          `json:"format"`
	ID     providers.ID `json:"id"`
	Name   string       `json:"name"`
	Owner  *owner       `json:"owner,omitempty"`
	Image  string       `json:"image,omitempty"` // the digest of the image that it was made from
}

const (
	rootFormat = 1
	headLimit  = 64 << 10 // bytes of the first line
)

func (p *Provider) rootPath(name string) string { return p.path(disksDir, name+rootSuffix) }
func (p *Provider) rootLock(name string) string { return p.rootPath(name) + lockSuffix }

// readRoot reads the first line of a root disk. A missing disk is fs.ErrNotExist.
func (p *Provider) readRoot(name string) (rootHead, error) {
	var h rootHead
	path := p.rootPath(name)
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	line, err := bufio.NewReader(io.LimitReader(f, headLimit)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("read %s: %w", path, err)
	}
	switch {
	case h.Format != rootFormat:
		return h, fmt.Errorf("read %s: it has format %d, and this vmctl knows format %d", path, h.Format, rootFormat)
	case h.Name != name || h.ID == "":
		return h, fmt.Errorf("read %s: it is the disk of VM %q (%s)", path, h.Name, h.ID)
	}
	return h, nil
}

// makeRoot makes the VM's root disk. It keeps an existing one as it is.
func (j *job) makeRoot(f vmFile) error {
	p := j.Provider
	h, err := p.readRoot(f.Name)
	switch {
	case err == nil && h.ID == f.ID:
		return nil
	case err == nil:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "disk_taken", Next: providers.Say("look at it: " + p.rootPath(f.Name)),
			Err: fmt.Errorf("make the disk of %s: %s is the disk of %s", f.Name, p.rootPath(f.Name), h.ID),
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	digest, err := j.reserved()
	if err != nil {
		return err
	}
	head, err := json.Marshal(rootHead{Format: rootFormat, ID: f.ID, Name: f.Name, Owner: f.Owner, Image: digest})
	if err != nil {
		return err
	}
	return p.writeText(p.rootPath(f.Name), append(head, '\n'))
}

// growRoot makes the root disk as large as wanted. It never makes it smaller.
func (j *job) growRoot(f vmFile) error {
	if j.want.RootSize == 0 {
		return nil
	}
	info, err := os.Lstat(j.rootPath(f.Name))
	if err != nil {
		return err
	}
	if uint64(info.Size()) >= j.want.RootSize {
		return nil
	}
	return os.Truncate(j.rootPath(f.Name), int64(j.want.RootSize))
}
