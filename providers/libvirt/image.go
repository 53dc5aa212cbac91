package libvirt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/fetch"
	"vmctl/internal/qcow2"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// imageFile describes the file of an image on this machine.
type imageFile struct {
	path, sha256 string
	size         uint64 // bytes of the file
	virtual      uint64 // bytes of the disk that is in it
}

// ensureImage returns the image in a pool with its digest, and uploads it if it is missing. A
// pool has one volume per content: an image that is uploaded already is not read again.
func (j *job) ensureImage(ctx context.Context, to pool) (image poolFile, sha256 string, err error) {
	want := *j.want.Image
	if sha256 = strings.ToLower(want.SHA256); sha256 != "" {
		if image, ok, err := j.completeImage(ctx, to, sha256); ok || err != nil {
			return image, sha256, err
		}
	}
	f, err := j.imageFile(ctx, want)
	if err != nil {
		return image, "", err
	}
	if err := j.rootFits(f.virtual); err != nil {
		return image, "", err
	}
	image, ok, err := j.completeImage(ctx, to, f.sha256)
	if !ok && err == nil {
		err = j.uploadImage(ctx, image, f)
	}
	return image, f.sha256, err
}

// imageFile finds, or downloads, the file of an image and reads its properties.
func (j *job) imageFile(ctx context.Context, want machine.Image) (imageFile, error) {
	f := imageFile{path: j.abs(want.Source)}
	if want.IsURL() {
		got, err := j.download(ctx, want)
		if err != nil {
			return f, err
		}
		f.path, f.sha256 = got.Path, got.SHA256
	}
	file, info, err := openRegular(f.path)
	if err != nil {
		return f, unreadable(err, f.path)
	}
	defer closeQuietly(file)
	f.size = uint64(info.Size())
	h, err := qcow2.Read(file, info.Size())
	if err == nil {
		err = h.Standalone()
	}
	if err != nil {
		return f, j.noImage(err, f.path)
	}
	f.virtual = h.VirtualSize
	if f.sha256 != "" {
		return f, nil
	}
	j.say("reading %s (%d bytes)", want.Source, f.size)
	if f.sha256, err = digestOf(stopping(ctx, file)); err != nil {
		return f, unreadable(err, f.path)
	}
	if want.SHA256 != "" && !strings.EqualFold(f.sha256, want.SHA256) {
		return f, &providers.Problem{
			Outcome: providers.Failed, Code: "wrong_sha256",
			Seen: []string{"wanted sha256 " + strings.ToLower(want.SHA256), "found sha256 " + f.sha256},
			Next: providers.Say(
				"see that it is the file that was meant: ls -l "+shellword.Quote(f.path),
				fmt.Sprintf("if it is, write sha256 = %q", f.sha256),
			),
			Err: fmt.Errorf("upload the image of %s: checksum mismatch: %s is not the file that sha256 names", j.Address, want.Source),
		}
	}
	return f, nil
}

// noImage returns the failure for a file that no disk can begin as.
func (j *job) noImage(err error, path string) error {
	var format *qcow2.FormatError
	if !errors.As(err, &format) {
		return unreadable(err, path)
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "no_image",
		Next: providers.Say(strings.ReplaceAll(string(format.Fix), qcow2.FileWord, shellword.Quote(path))),
		Err:  fmt.Errorf("upload the image of %s: %s is no qcow2 image to start from: %w", j.Address, j.want.Image.Source, err),
	}
}

func (j *job) download(ctx context.Context, want machine.Image) (fetch.File, error) {
	if j.host.Cache == "" {
		return fetch.File{}, &providers.Problem{
			Outcome: providers.Failed, Code: "no_cache", Next: providers.Say("set HOME or XDG_CACHE_HOME"),
			Err: fmt.Errorf("fetch the image of %s: neither HOME nor XDG_CACHE_HOME names a folder to keep it in", j.Address),
		}
	}
	ctx, stop := j.UntilHalt(ctx)
	defer stop()
	f, err := j.host.downloads.Get(ctx, fetch.Request{URL: want.Source, SHA256: want.SHA256, Watch: func(p fetch.Progress) {
		switch {
		case p.Note != "":
			j.say("%s", p.Note)
		case p.Total > 0:
			j.say("downloading %s: %d%% of %d bytes", want.Source, p.Done*100/p.Total, p.Total)
		default:
			j.say("downloading %s: %d bytes", want.Source, p.Done)
		}
	}})
	var failed *fetch.Error
	switch {
	case errors.Is(err, providers.ErrHalted):
		return f, &providers.Problem{
			Outcome: providers.Failed, Code: "interrupted", Seen: []string{"what has arrived is kept: the next run goes on after it"},
			Next: providers.Vmctl("apply"), Err: fmt.Errorf("fetch the image of %s: %w", j.Address, err),
		}
	case !errors.As(err, &failed):
		return f, err
	}
	outcome := providers.Failed
	if failed.Code == "stalled" {
		outcome = providers.Timeout
	}
	return f, &providers.Problem{
		Outcome: outcome, Code: failed.Code, Seen: failed.Seen, Next: providers.Say(failed.Next...),
		Err: fmt.Errorf("fetch the image of %s: %w", j.Address, err),
	}
}

// rootFits fails if the vm's root disk would be smaller than the disk in its image.
func (j *job) rootFits(virtual uint64) error {
	if j.want.RootDisk >= virtual {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "root_disk_too_small",
		Next: providers.Say(fmt.Sprintf("write root_disk { size = %q } into %s, or more", sizeWord(virtual), j.Address)),
		Err: fmt.Errorf("make the root disk of %s: its size is %d bytes, and the disk in the image %s has %d",
			j.Address, j.want.RootDisk, j.want.Image.Source, virtual),
	}
}

// sizeWord returns a size in a spec's words, rounded up to whole MiB.
func sizeWord(bytes uint64) string {
	const mib, gib = 1 << 20, 1 << 30
	if bytes%gib == 0 {
		return fmt.Sprintf("%dGiB", bytes/gib)
	}
	return fmt.Sprintf("%dMiB", (bytes+mib-1)/mib)
}

// An image is a volume of its project, named by its content. It is whole only with the note
// beside it, which is written last. Each project has its own images: two projects have no
// common lock, and the deletion of an image would destroy every disk that begins from it.

// imagesOf begins the names of this project's images.
func (p *Provider) imagesOf() string { return "vmctl-" + p.settings.Project.Lineage() }

func noteOf(image string) string { return kindNote.name(image, "") }

// imageNote says that an image is whole, and describes it.
type imageNote struct {
	SHA256  string `json:"sha256"`
	Size    uint64 `json:"size"`         // bytes of the volume
	Virtual uint64 `json:"virtual_size"` // bytes of the disk
}

const noteLimit = 4096

// completeImage returns the image of that content, and reports whether it exists and is whole.
func (j *job) completeImage(ctx context.Context, in pool, sha256 string) (image poolFile, whole bool, err error) {
	image = in.file(kindImage.name(j.imagesOf(), sha256))
	text, _, err := j.Part(ctx, in.Name, noteOf(image.name), 0, noteLimit)
	var note imageNote
	if errors.Is(err, errAbsent) || err == nil && (json.Unmarshal(bytes.Trim(text, "\x00"), &note) != nil || note.SHA256 != sha256) {
		return image, false, nil
	}
	var v *volume
	if err == nil {
		v, err = image.see(ctx, j.connection)
	}
	switch {
	case err != nil:
		return image, false, fail(err, "look for image %s in pool %s", image.name, in.Name)
	case v == nil:
		return image, false, nil
	}
	return image, true, j.rootFits(note.Virtual)
}

// uploadImage puts an image into its place, and then its note.
func (j *job) uploadImage(ctx context.Context, image poolFile, f imageFile) error {
	note := image.in.file(noteOf(image.name))
	if _, err := note.remove(ctx, j.connection); err != nil {
		return fail(err, "replace what is left of image %s", image.name)
	}
	if err := j.put(ctx, image, content{source: f.path, sha256: f.sha256, as: "image " + image.name, percent: true}); err != nil {
		return err
	}
	text, err := json.Marshal(imageNote{SHA256: f.sha256, Size: f.size, Virtual: f.virtual})
	if err != nil {
		return err
	}
	return j.put(ctx, note, content{bytes: text})
}

// removeUnusedImages removes this project's images in a pool if no domain has them and no disk
// begins from them any more, in whatever pool, each after its note.
func (j *job) removeUnusedImages(ctx context.Context, in pool) (removed []string, err error) {
	all, err := j.volumes(ctx, in)
	if err != nil {
		return nil, err
	}
	images := j.imagesAmong(all)
	if len(images) == 0 {
		return nil, nil
	}
	var used []string
	files := j.sameFiles()
	for _, name := range all {
		v, err := in.file(name).see(ctx, j.connection)
		if err != nil { // it may be an overlay
			return nil, fmt.Errorf("see what volume %s of pool %s begins from: %w", name, in.Name, err)
		}
		if v != nil {
			used = append(used, v.Backing)
		}
	}
	images = slices.DeleteFunc(images, func(image string) bool { return files.maybe(in.file(image).path(), used) })
	for _, image := range j.unusedElsewhere(ctx, in, images) {
		for _, name := range []string{noteOf(image), image} {
			gone, err := in.file(name).remove(ctx, j.connection)
			if err != nil {
				return removed, err
			}
			if gone {
				removed = append(removed, name)
			}
		}
	}
	return removed, nil
}

// unusedElsewhere returns those of some images in a pool that no volume of another pool begins from,
// and that no domain has. It returns none if that cannot be known.
func (j *job) unusedElsewhere(ctx context.Context, in pool, images []string) []string {
	if len(images) == 0 {
		return nil
	}
	pools, asleep, err := j.activePools(ctx, j.connection)
	if asleep != nil || err != nil {
		return nil
	}
	all := listing{files: j.sameFiles()}
	for _, found := range pools {
		if !found.ofFiles() {
			continue
		}
		names, err := j.volumes(ctx, found)
		if err != nil {
			return nil
		}
		all.pools = append(all.pools, filePool{pool: found, names: names})
	}
	return slices.DeleteFunc(images, func(image string) bool {
		file := in.file(image).path()
		over, err := all.overlaysOf(ctx, j.connection, file)
		if err != nil || len(over) > 0 {
			return true
		}
		users, err := j.usersOf(ctx, all, file, "see who uses "+image)
		return err != nil || len(users) > 0
	})
}

// imagesAmong returns this project's images among the volumes of a pool, also those that have
// only a note left.
func (p *Provider) imagesAmong(volumes []string) []string {
	var all []string
	for _, name := range volumes {
		image, _ := kindNote.owner(name)
		if kindImage.has(image, p.imagesOf()) {
			all = append(all, image)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
