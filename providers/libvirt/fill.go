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

	"vmctl/providers"
)

// content describes the content of a file in a pool: a file of this machine, followed by other
// bytes at the next multiple of four bytes.
type content struct {
	source string // "": none
	sha256 string // of the source
	bytes  []byte // that follow

	as      string // its name in progress messages; "": the upload is not reported
	percent bool   // report the progress
	doing   string // the attempt in words, for a failure; "": upload NAME
	fresh   bool   // the file must not exist; otherwise put replaces it
}

// put fills a file. It replaces the remains of an interrupted upload, which do not have the
// content that their name promises.
func (j *job) put(ctx context.Context, f poolFile, c content) error {
	if c.doing == "" {
		c.doing = "upload " + f.name
	}
	source, size, err := c.open()
	if err != nil {
		return err
	}
	defer closeQuietly(source)
	var zeros []byte
	if len(c.bytes) > 0 {
		zeros = make([]byte, padding(int64(size)))
	}
	total := size + uint64(len(zeros)+len(c.bytes))
	if f.in, err = j.roomFor(ctx, f.in, total, c.fresh); err != nil {
		return fail(err, "%s", c.doing)
	}
	if total > f.in.Available {
		return f.in.full(c.doing, total)
	}
	if c.as != "" {
		j.say("uploading %s (%d bytes) to pool %s", c.as, total, f.in.Name)
	}
	if !c.fresh {
		if err := j.clear(ctx, f); err != nil {
			return fail(err, "%s: replace what is left of an earlier one", c.doing)
		}
	}
	sum := sha256.New()
	read := io.TeeReader(stopping(ctx, io.LimitReader(source, int64(size))), sum)
	if c.percent {
		read = &counted{r: read, total: size, say: func(done uint64) { j.say("uploading %s: %d%% of %d bytes", c.as, done*100/size, size) }}
	}
	if err := j.Upload(ctx, f.in.Name, upload{
		Name: f.name, Size: total, Content: io.MultiReader(read, bytes.NewReader(zeros), bytes.NewReader(c.bytes)),
	}); err != nil {
		return j.notMade(ctx, f, c.doing, total, err)
	}
	j.made = append(j.made, f)
	if c.source == "" || hex.EncodeToString(sum.Sum(nil)) == c.sha256 {
		return nil
	}
	_, err = f.remove(ctx, j.connection)
	return &providers.Problem{
		Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"), Seen: staysBehind(err),
		Err: fmt.Errorf("upload %s: the file was changed since the plan was made", c.source),
	}
}

// roomFor reads a pool for a file of that size (bytes). It lists the pool anew, which takes as long
// as the pool is large, unless the file is known to be new and the pool has plenty of room.
func (j *job) roomFor(ctx context.Context, in pool, size uint64, fresh bool) (pool, error) {
	if fresh {
		now, err := j.Pool(ctx, in.Name)
		if err != nil || size <= now.Available/plenty {
			return now, err
		}
	}
	return j.Refresh(ctx, in.Name)
}

// plenty is the number of times that a file has to fit into a pool whose free space is not asked
// for anew.
const plenty = 1000

// clear removes a file if the last listing of its pool has it: to look for another one, libvirt
// would list the pool again.
func (j *job) clear(ctx context.Context, f poolFile) error {
	has, err := j.Has(ctx, f.in.Name, f.name)
	if has {
		_, err = f.remove(ctx, j.connection)
	}
	return err
}

// open opens the source and returns its size (bytes).
func (c content) open() (io.ReadCloser, uint64, error) {
	if c.source == "" {
		return io.NopCloser(bytes.NewReader(nil)), 0, nil
	}
	f, info, err := openRegular(c.source)
	if err != nil {
		return nil, 0, unreadable(err, c.source)
	}
	return f, uint64(info.Size()), nil
}

// libvirtUnit is the unit to which libvirt has qemu-img round up the size of a new volume
// (bytes). vmctl makes the volume smaller and grows it to an exact size.
const libvirtUnit = 1024

// makeEmpty makes an empty disk or an overlay, which takes room only when it is written to.
func (j *job) makeEmpty(ctx context.Context, f poolFile, v volume, doing string) error {
	size := v.Capacity
	v.Name, v.Capacity = f.name, size/libvirtUnit*libvirtUnit
	err := j.MakeVolume(ctx, f.in.Name, v)
	if err == nil || !isTaken(err) { // an answer that is lost hides a volume
		j.made = append(j.made, f)
	}
	if err == nil && v.Capacity != size {
		err = j.ResizeVolume(ctx, f.in.Name, f.name, size)
	}
	if err != nil {
		return j.notMade(ctx, f, doing, 0, err)
	}
	return nil
}

// resize grows a disk, and tells the domain that runs with it.
func (j *job) resize(ctx context.Context, f poolFile, size uint64, runs bool, uuid string) error {
	if runs {
		return j.ResizeDisk(ctx, uuid, f.path(), size)
	}
	return j.ResizeVolume(ctx, f.in.Name, f.name, size)
}

// notMade returns the failure to make a file that needs that much room (bytes).
func (j *job) notMade(ctx context.Context, f poolFile, doing string, need uint64, err error) *providers.Problem {
	p := fail(err, "%s in pool %s", doing, f.in.Name)
	switch p.Code {
	case "disk_full":
		if now, err := j.Refresh(ctx, f.in.Name); err == nil {
			f.in = now
		}
		return f.in.full(doing, need)
	case "no_permission":
		p.Next = providers.Say("see who may write there: ls -ld "+f.in.Path, otherPool)
	}
	return p
}

// otherPool advises to use a pool with room, or with permission.
const otherPool = "or choose another pool in the provider's block"

// full returns the failure to make a file in a pool whose disk is full. need is its size
// (bytes); 0: unknown.
func (p pool) full(doing string, need uint64) *providers.Problem {
	seen := fmt.Sprintf("%d bytes are needed, and %s has %d", need, p.Path, p.Available)
	if need == 0 {
		seen = fmt.Sprintf("%s has %d bytes left", p.Path, p.Available)
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "disk_full", Seen: []string{seen}, Next: providers.Say("make room: df -h "+p.Path, otherPool),
		Err: fmt.Errorf("%s: the disk of pool %s is full", doing, p.Name),
	}
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

// digestOf returns the digest of the rest of a reader.
func digestOf(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stopping reads until ctx ends.
func stopping(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(b)
	})
}

type readFunc func([]byte) (int, error)

func (r readFunc) Read(b []byte) (int, error) { return r(b) }

// counted reports the progress of a reader, after every twentieth.
type counted struct {
	r                 io.Reader
	done, told, total uint64
	say               func(done uint64)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.done += uint64(n)
	if c.done-c.told >= max(c.total/20, 1) || n > 0 && c.done == c.total {
		c.told = c.done
		c.say(c.done)
	}
	return n, err
}
