package libvirt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// bootFiles holds the files of a vm in the pool.
type bootFiles struct {
	pool  pool
	boot  markedBoot
	image markedImage
	// hostKey is the public key that the guest shows; "": not known.
	hostKey string
}

// uploadAgain restores the boot files of a domain while it runs.
func (j *job) uploadAgain(ctx context.Context) (*guard.Outcome, error) {
	j.storage.Lock()
	defer j.storage.Unlock()
	if _, err := j.files(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// files makes the keys and uploads the boot files or the image of the vm.
func (j *job) files(ctx context.Context) (bootFiles, error) {
	var f bootFiles
	k, err := j.keys(ctx)
	if err != nil {
		return f, keyFailure(err, j.Name)
	}
	f.boot.Keys, f.hostKey = k.digest(), k.hostKey()
	if !k.isHere() {
		f.boot.Keys, f.hostKey = j.hasKeys()
	}
	if f.pool, err = j.usablePool(ctx, j.connection); err != nil {
		return f, asFailure(err, "find a pool for the files of "+j.Name)
	}
	if j.want.Image != nil {
		return f, j.imageFiles(ctx, &f, k)
	}
	if j.want.Boot == nil {
		return f, nil
	}
	return f, j.bootFiles(ctx, &f, k)
}

// bootFiles uploads the kernel, and an initial RAM disk with the keys in it.
func (j *job) bootFiles(ctx context.Context, f *bootFiles, k keyring) error {
	var err error
	b := j.want.Boot
	f.boot.KernelSHA256, f.boot.InitrdSHA256 = b.KernelSHA256, b.InitrdSHA256
	if f.boot.Kernel, f.boot.KernelStamp, err = j.upload(ctx, f.pool, content{
		volume: kernelVolume(j.Object, b.KernelSHA256), file: j.abs(b.Kernel), sha256: b.KernelSHA256,
	}); err != nil {
		return err
	}
	both := sha256.Sum256([]byte(b.InitrdSHA256 + " " + f.boot.Keys))
	c := content{volume: initrdVolume(j.Object, hex.EncodeToString(both[:])), sha256: b.InitrdSHA256}
	if k.isHere() {
		if c.appended, err = k.archive(); err != nil {
			return err
		}
	} else {
		c.lacks = j.elsewhere("its initial RAM disk")
	}
	if b.Initrd != "" {
		c.file = j.abs(b.Initrd)
	}
	f.boot.Initrd, f.boot.InitrdStamp, err = j.upload(ctx, f.pool, c)
	return err
}

func keyFailure(err error, name string) error {
	var said *providers.Problem
	if errors.As(err, &said) {
		return said
	}
	f := fail(err, "make the keys of %s", name)
	f.Code = "keys"
	return f
}

// abs makes a path of the spec absolute.
func (j *job) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(j.settings.Files, path)
}

// content describes the content of a volume: a file, followed by appended bytes at the next
// multiple of four bytes.
type content struct {
	volume   string
	file     string // "": none
	sha256   string // of the file
	appended []byte
	lacks    error // the reason why the volume can only be kept; nil: it can be written
}

// upload fills a volume and returns its path and stamp. It does nothing for a volume that the
// domain boots from and that nobody wrote to: the name says that it holds the same bytes.
func (j *job) upload(ctx context.Context, to pool, c content) (path, stamp string, err error) {
	path = pathIn(to, c.volume)
	if j.seen != nil && (j.seen.configured.Kernel == path || j.seen.configured.Initrd == path) {
		if now, err := j.VolumeInfo(ctx, to.Name, c.volume); err == nil && j.seen.owner().isAsUploaded(path, now) {
			return path, now.stamp(), nil
		}
	}
	if c.lacks != nil {
		return "", "", c.lacks
	}
	var file io.Reader = bytes.NewReader(nil)
	size := int64(0)
	sum := sha256.New()
	if c.file != "" {
		f, info, err := openRegular(c.file)
		if err != nil {
			return "", "", unreadable(err, c.file)
		}
		defer closeQuietly(f)
		file, size = io.TeeReader(f, sum), info.Size()
	}
	zeros := make([]byte, padding(size))
	if c.appended == nil {
		zeros = nil
	}
	total := uint64(size) + uint64(len(zeros)+len(c.appended))
	if total > to.Available {
		return "", "", diskFull(to, c.volume, total)
	}
	j.say("uploading %s (%d bytes) to pool %s", c.volume, total, to.Name)
	// The remains of an interrupted upload do not have the content that their name promises.
	if err := j.DeleteVolume(ctx, to.Name, c.volume); err != nil && !errors.Is(err, errAbsent) {
		return "", "", fail(err, "replace volume %s of pool %s", c.volume, to.Name)
	}
	path, err = j.Upload(ctx, to.Name, upload{
		Name: c.volume, Size: total,
		Content: io.MultiReader(file, bytes.NewReader(zeros), bytes.NewReader(c.appended)),
	})
	if err != nil {
		f := fail(err, "upload %s to pool %s", c.volume, to.Name)
		if f.Code == "disk_full" {
			if now, err := j.Pool(ctx, to.Name); err == nil {
				to = now
			}
			return "", "", diskFull(to, c.volume, total)
		}
		return "", "", f
	}
	if got := hex.EncodeToString(sum.Sum(nil)); c.file != "" && got != c.sha256 {
		return "", "", &providers.Problem{
			Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("upload %s: the file was changed since the plan was made", c.file),
		}
	}
	now, err := j.VolumeInfo(ctx, to.Name, c.volume)
	if err != nil {
		return "", "", fail(err, "read %s after it was uploaded", c.volume)
	}
	return path, now.stamp(), nil
}

// openRegular opens a regular file for reading. It fails for others: the opening of a pipe
// would wait for its writer without a deadline, and a device may have no end.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		closeQuietly(f)
		return nil, nil, err
	}
	return f, info, nil
}

func unreadable(err error, path string) error {
	f := fail(err, "read %s", path)
	f.Code, f.Next = "unreadable_file", providers.Say("make it readable: ls -l "+path)
	return f
}

func diskFull(to pool, volume string, need uint64) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "disk_full",
		Seen: []string{fmt.Sprintf("%d bytes are needed, and %s has %d", need, to.Path, to.Available)},
		Next: makeRoom(to),
		Err:  fmt.Errorf("upload %s: the disk of pool %s is full", volume, to.Name),
	}
}

func makeRoom(in pool) []providers.Advice {
	return providers.Say("make room: df -h "+in.Path, "or choose another pool in the provider's block")
}
