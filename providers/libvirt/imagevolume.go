package libvirt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"vmctl/providers"
)

// An image is a volume of its project, named by its content. It is whole only with the note
// beside it, which is written last. Each project has its own images: two projects have no
// common lock, and the deletion of an image would destroy every disk that begins from it.
const (
	imagePart   = "-image-"
	imageSuffix = ".qcow2"
	noteSuffix  = ".complete"
	imageDigest = 16 // hex digits of the digest in the name
)

// imagePrefix returns the beginning of the names of this project's images.
func (p *Provider) imagePrefix() string { return "vmctl-" + p.settings.Project.Lineage() + imagePart }

func (p *Provider) imageVolume(sha256 string) string {
	return p.imagePrefix() + sha256[:imageDigest] + imageSuffix
}

func noteOf(image string) string { return image + noteSuffix }

// imageNote says that an image is whole, and describes it.
type imageNote struct {
	SHA256  string `json:"sha256"`
	Size    uint64 `json:"size"`         // bytes of the volume
	Virtual uint64 `json:"virtual_size"` // bytes of the disk
}

const noteLimit = 4096

// completeImage finds a whole image of that content; false: there is none.
func (j *job) completeImage(ctx context.Context, in pool, sha256 string) (imageVolume, bool, error) {
	name := j.imageVolume(sha256)
	text, err := j.Tail(ctx, in.Name, noteOf(name), noteLimit)
	if errors.Is(err, errAbsent) {
		return imageVolume{}, false, nil
	}
	if err != nil {
		return imageVolume{}, false, fail(err, "look for image %s in pool %s", name, in.Name)
	}
	var note imageNote
	if json.Unmarshal(bytes.Trim(text, "\x00"), &note) != nil || note.SHA256 != sha256 {
		return imageVolume{}, false, nil
	}
	found, err := j.VolumeInfo(ctx, in.Name, name)
	if errors.Is(err, errAbsent) {
		return imageVolume{}, false, nil
	}
	if err != nil {
		return imageVolume{}, false, fail(err, "look for image %s in pool %s", name, in.Name)
	}
	if err := j.rootFits(note.Virtual); err != nil {
		return imageVolume{}, false, err
	}
	return imageVolume{Path: found.Path, SHA256: sha256, Virtual: note.Virtual}, true, nil
}

// uploadImage puts an image into a pool. It replaces the remains of an interrupted upload.
func (j *job) uploadImage(ctx context.Context, to pool, f imageFile) (imageVolume, error) {
	name := j.imageVolume(f.sha256)
	if f.size > to.Available {
		return imageVolume{}, diskFull(to, name, f.size)
	}
	if _, err := j.removeImage(ctx, to.Name, name); err != nil {
		return imageVolume{}, fail(err, "replace what is left of image %s in pool %s", name, to.Name)
	}
	file, _, err := openRegular(f.path)
	if err != nil {
		return imageVolume{}, unreadable(err, f.path)
	}
	defer closeQuietly(file)
	sum := sha256.New()
	j.say("uploading image %s (%d bytes) to pool %s", name, f.size, to.Name)
	path, err := j.Upload(ctx, to.Name, upload{
		Name: name, Size: f.size,
		Content: &counted{
			r: io.TeeReader(stopping(ctx, io.LimitReader(file, int64(f.size))), sum), total: f.size,
			say: func(done uint64) {
				j.say("uploading image %s: %d%% of %d bytes", name, done*100/f.size, f.size)
			},
		},
	})
	if err != nil {
		return imageVolume{}, j.uploadFailure(ctx, to, name, f.size, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.sha256 {
		_, err := j.removeImage(ctx, to.Name, name)
		return imageVolume{}, &providers.Problem{
			Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"), Seen: staysBehind(err),
			Err: fmt.Errorf("upload %s: the file was changed while it was read", f.path),
		}
	}
	note, err := json.Marshal(imageNote{SHA256: f.sha256, Size: f.size, Virtual: f.virtual})
	if err != nil {
		return imageVolume{}, err
	}
	if _, err := j.Upload(ctx, to.Name, upload{
		Name: noteOf(name), Size: uint64(len(note)), Content: strings.NewReader(string(note)),
	}); err != nil {
		return imageVolume{}, j.uploadFailure(ctx, to, noteOf(name), uint64(len(note)), err)
	}
	return imageVolume{Path: path, SHA256: f.sha256, Virtual: f.virtual}, nil
}

// uploadFailure returns the failure of an upload. If the disk was full, it adds the free
// space.
func (j *job) uploadFailure(ctx context.Context, to pool, name string, size uint64, err error) error {
	f := fail(err, "upload %s to pool %s", name, to.Name)
	if f.Code != "disk_full" {
		return f
	}
	if now, err := j.Pool(ctx, to.Name); err == nil {
		to = now
	}
	return diskFull(to, name, size)
}

// removeImage removes an image: first its note, and then the volume.
func (j *job) removeImage(ctx context.Context, poolName, name string) (removed []string, err error) {
	for _, v := range []string{noteOf(name), name} {
		err := j.DeleteVolume(ctx, poolName, v)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("delete volume %s of pool %s: %w", v, poolName, err)
		}
		removed = append(removed, v)
	}
	return removed, nil
}

// removeUnusedImages removes this project's images in a pool if no disk begins from them any
// more. A missing pool has none.
func (j *job) removeUnusedImages(ctx context.Context, poolName string) ([]string, error) {
	found, all, err := j.volumesOf(ctx, poolName)
	if err != nil {
		return nil, err
	}
	images := j.imagesAmong(all)
	if len(images) == 0 {
		return nil, nil
	}
	var used []string
	for _, v := range all {
		info, err := j.VolumeInfo(ctx, poolName, v)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil { // it may be an overlay
			return nil, fmt.Errorf("see what volume %s of pool %s begins from: %w", v, poolName, err)
		}
		used = append(used, info.Backing)
	}
	var removed []string
	for _, name := range images {
		if slices.Contains(used, pathIn(found, name)) {
			continue
		}
		gone, err := j.removeImage(ctx, poolName, name)
		removed = append(removed, gone...)
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// imagesAmong returns this project's images among the volumes of a pool, also those that have
// only a note left.
func (p *Provider) imagesAmong(volumes []string) []string {
	var all []string
	for _, v := range volumes {
		v = strings.TrimSuffix(v, noteSuffix)
		digest, ok := strings.CutPrefix(v, p.imagePrefix())
		digest, isImage := strings.CutSuffix(digest, imageSuffix)
		if ok && isImage && len(digest) == imageDigest && strings.Trim(digest, "0123456789abcdef") == "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
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
