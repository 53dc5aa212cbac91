package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// image is the file of a VM's image on this machine.
type image struct {
	machine.Image
	path string
}

func (p *Provider) imagePath(digest string) string { return p.path(imagesDir, digest+imageSuffix) }

// partPath returns the path of the unfinished copy of an image for an address.
func (p *Provider) partPath(a spec.Address) string {
	return p.path(imagesDir, key(providers.ID(a.String()))+partSuffix)
}

// reservation returns the path of a link to the image that a new VM of an address is to be
// made from. The link keeps the image until the VM's root disk does. It belongs to the
// address, so that a VM that is not made after all leaves nothing else behind.
func (p *Provider) reservation(a spec.Address) string {
	return p.path(imagesDir, key(providers.ID(a.String()))+reservedSuffix)
}

// upload copies the image of a VM into the host's folder, and reserves it. All VMs of the
// same image share one copy.
func (j *job) upload(ctx context.Context) (*guard.Outcome, error) {
	of := machine.DecodeImage(j.Want)
	if of == nil {
		return nil, fail(errors.New("it has no image"), "upload %s", j.Name)
	}
	i := image{Image: *of, path: of.Source}
	if !filepath.IsAbs(i.path) {
		i.path = filepath.Join(j.settings.Files, i.path)
	}
	j.imaging.Lock()
	defer j.imaging.Unlock()
	how, err := j.bring(ctx, i)
	if err != nil {
		var f *providers.Problem
		if !errors.As(err, &f) {
			f = fail(err, "upload %s: copy %s", j.Address, i.Source)
			f.Next = slices.Concat(providers.Say("see that the file can be read"), providers.Vmctl("apply"))
		}
		return nil, f
	}
	return &guard.Outcome{How: how, NotGone: true}, nil
}

func (j *job) bring(ctx context.Context, i image) (providers.How, error) {
	digest, err := j.copyTo(ctx, io.Discard, i)
	if err != nil {
		return "", err
	}
	if i.SHA256 != "" && digest != i.SHA256 {
		return "", &providers.Problem{
			Outcome: providers.Failed, Code: "wrong_digest",
			Seen: []string{i.Source + " has the sha256 " + digest},
			Next: providers.Say("see that it is the right file, and whole", fmt.Sprintf("or write what it is into the block of %s: sha256 = %q", j.Address, digest)),
			Err:  fmt.Errorf("upload %s: %s is not what sha256 = %q says", j.Address, i.Source, i.SHA256),
		}
	}
	if _, err := os.Lstat(j.imagePath(digest)); err == nil {
		if target, err := os.Readlink(j.reservation(j.Address)); err == nil && target == digest {
			return providers.AlreadyTrue, nil
		}
		j.log(providers.Progress{Text: "the host has its image already"})
		return providers.Done, j.reserve(digest)
	}
	if err := j.copyImage(ctx, i, digest); err != nil {
		return "", err
	}
	return providers.Done, j.reserve(digest)
}

// copyImage makes a copy that gets its name only when it is whole.
func (j *job) copyImage(ctx context.Context, i image, digest string) error {
	part := j.partPath(j.Address)
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	copied, err := j.copyTo(ctx, f, i)
	if err = errors.Join(err, f.Close()); err == nil && copied != digest {
		err = errors.New("it was changed while it was copied")
	}
	if err != nil {
		return errors.Join(err, atomicfile.Remove(part))
	}
	return os.Rename(part, j.imagePath(digest))
}

// copyTo copies an image's content, and returns its digest.
func (j *job) copyTo(ctx context.Context, w io.Writer, i image) (string, error) {
	f, err := os.Open(i.path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), reader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context //nolint:containedctx // a reader has no other place for it
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

func (j *job) reserve(digest string) error {
	link := j.reservation(j.Address)
	if err := atomicfile.Remove(link); err != nil {
		return err
	}
	return os.Symlink(digest, link)
}

// reserved returns the digest of the image that the VM is to be made from; "": there is none.
func (j *job) reserved() (string, error) {
	if machine.DecodeImage(j.Want) == nil {
		return "", nil
	}
	return os.Readlink(j.reservation(j.Address))
}

// dropReserved removes the reservation and the unfinished copy of the step's address, and the
// images that nothing needs any more.
func (j *job) dropReserved() error {
	var errs []error
	for _, a := range append([]spec.Address{j.Address}, j.Was...) {
		errs = append(errs, atomicfile.Remove(j.partPath(a)), atomicfile.Remove(j.reservation(a)))
	}
	return errors.Join(append(errs, j.dropImages())...)
}

// dropImages removes the images that nothing needs any more.
func (p *Provider) dropImages() error {
	p.imaging.Lock()
	defer p.imaging.Unlock()
	images, err := p.named(imagesDir, imageSuffix)
	if err != nil || len(images) == 0 {
		return err
	}
	needed, err := p.needed()
	if err != nil {
		return err
	}
	var errs []error
	for _, digest := range images {
		if !slices.Contains(needed, digest) {
			errs = append(errs, atomicfile.Remove(p.imagePath(digest)))
		}
	}
	return errors.Join(errs...)
}

// needed returns the digests of the images that root disks, or VMs to be made, begin as.
func (p *Provider) needed() ([]string, error) {
	roots, err := p.named(disksDir, rootSuffix)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range roots {
		h, err := p.readRoot(name)
		if err != nil {
			return nil, err
		}
		all = append(all, h.Image)
	}
	reserved, err := p.named(imagesDir, reservedSuffix)
	if err != nil {
		return nil, err
	}
	for _, k := range reserved {
		digest, err := os.Readlink(p.path(imagesDir, k+reservedSuffix))
		if err != nil {
			return nil, err
		}
		all = append(all, digest)
	}
	return all, nil
}
