package libvirt

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	if f.pool, err = j.usablePool(ctx, "the files of "+j.Name); err != nil {
		return f, err
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
	if f.boot.Kernel, f.boot.KernelStamp, err = j.kernel(ctx, f.pool); err != nil {
		return err
	}
	var c content
	var lacks error
	if b.Initrd != "" {
		c = content{source: j.abs(b.Initrd), sha256: b.InitrdSHA256}
	}
	if k.isHere() {
		if c.bytes, err = k.archive(); err != nil {
			return err
		}
	} else {
		lacks = j.elsewhere("its initial RAM disk")
	}
	both := sha256.Sum256([]byte(b.InitrdSHA256 + " " + f.boot.Keys))
	initrd := f.pool.file(kindInitrd.name(string(j.Object), hex.EncodeToString(both[:])))
	f.boot.Initrd, f.boot.InitrdStamp, err = j.bootFile(ctx, initrd, c, lacks)
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

// bootFile puts a boot file into a pool and returns its path and stamp. It does nothing for a
// file that the domain boots from and that nobody wrote to: the name says that it holds the
// same bytes. lacks is the reason why the file can only be kept; nil: it can be written.
func (j *job) bootFile(ctx context.Context, f poolFile, c content, lacks error) (file, stamp string, err error) {
	file = f.path()
	if j.seen != nil && (j.seen.configured.Kernel == file || j.seen.configured.Initrd == file) {
		if now, err := f.see(ctx, j.connection); err == nil && now != nil && j.seen.mark().isAsUploaded(file, *now) {
			return file, now.stamp(), nil
		}
	}
	if lacks != nil {
		return "", "", lacks
	}
	c.as = f.name
	if err := j.put(ctx, f, c); err != nil {
		return "", "", err
	}
	now, err := f.see(ctx, j.connection)
	if err != nil || now == nil {
		return "", "", fail(cmp.Or(err, errAbsent), "read %s after it was uploaded", f.name)
	}
	return file, now.stamp(), nil
}

// kernel puts the wanted kernel into a pool.
func (j *job) kernel(ctx context.Context, in pool) (file, stamp string, err error) {
	b := j.want.Boot
	return j.bootFile(ctx, in.file(kindKernel.name(string(j.Object), b.KernelSHA256)), content{source: j.abs(b.Kernel), sha256: b.KernelSHA256}, nil)
}

// A boot archive is a cpio archive in the kernel's "newc" format, compressed:
// appended to an initial RAM disk, its files appear in the same root folder
// (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

type archiveFile struct {
	Name    string
	Mode    uint32 // with the type bits
	Content []byte
}

const (
	folderMode = 0o040700
	secretMode = 0o100600
)

// bootArchive returns the archive. The same files give the same bytes.
func bootArchive(files []archiveFile) ([]byte, error) {
	var raw bytes.Buffer
	for i, f := range append(files, archiveFile{Name: "TRAILER!!!"}) {
		links := 1
		if f.Mode == folderMode {
			links = 2
		}
		fmt.Fprintf(&raw, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			i+1, f.Mode, 0, 0, links, 0, len(f.Content), 0, 0, 0, 0, len(f.Name)+1, 0)
		raw.WriteString(f.Name)
		raw.WriteByte(0)
		pad(&raw)
		raw.Write(f.Content)
		pad(&raw)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(raw.Bytes()); err != nil {
		return nil, fmt.Errorf("pack the keys: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the keys: %w", err)
	}
	return packed.Bytes(), nil
}

// pad aligns to four bytes with zeros, as the format and the kernel want it.
func pad(b *bytes.Buffer) { b.Write(make([]byte, padding(int64(b.Len())))) }

func padding(size int64) int64 { return (4 - size%4) % 4 }
