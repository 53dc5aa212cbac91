package libvirt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

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

// completeImage finds a whole image of that content; false: there is none.
func (j *job) completeImage(ctx context.Context, in pool, sha256 string) (imageVolume, bool, error) {
	f := in.file(kindImage.name(j.imagesOf(), sha256))
	text, _, err := j.Part(ctx, in.Name, noteOf(f.name), 0, noteLimit)
	var note imageNote
	switch {
	case errors.Is(err, errAbsent):
		return imageVolume{}, false, nil
	case err != nil:
		return imageVolume{}, false, fail(err, "look for image %s in pool %s", f.name, in.Name)
	case json.Unmarshal(bytes.Trim(text, "\x00"), &note) != nil || note.SHA256 != sha256:
		return imageVolume{}, false, nil
	}
	found, err := f.see(ctx, j.connection)
	if err != nil {
		return imageVolume{}, false, fail(err, "look for image %s in pool %s", f.name, in.Name)
	}
	if found == nil {
		return imageVolume{}, false, nil
	}
	return imageVolume{Path: found.Path, SHA256: sha256}, true, j.rootFits(note.Virtual)
}

// uploadImage puts an image into a pool.
func (j *job) uploadImage(ctx context.Context, to pool, f imageFile) (imageVolume, error) {
	image := to.file(kindImage.name(j.imagesOf(), f.sha256))
	note := to.file(noteOf(image.name))
	if _, err := note.remove(ctx, j.connection); err != nil {
		return imageVolume{}, fail(err, "replace what is left of image %s", image.name)
	}
	if err := j.put(ctx, image, content{source: f.path, sha256: f.sha256, as: "image " + image.name, percent: true}); err != nil {
		return imageVolume{}, err
	}
	text, err := json.Marshal(imageNote{SHA256: f.sha256, Size: f.size, Virtual: f.virtual})
	if err != nil {
		return imageVolume{}, err
	}
	return imageVolume{Path: image.path(), SHA256: f.sha256}, j.put(ctx, note, content{bytes: text})
}

// removeUnusedImages removes this project's images in a pool if no disk begins from them any
// more, each after its note.
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
	for _, name := range all {
		v, err := in.file(name).see(ctx, j.connection)
		if err != nil { // it may be an overlay
			return nil, fmt.Errorf("see what volume %s of pool %s begins from: %w", name, in.Name, err)
		}
		if v != nil {
			used = append(used, v.Backing)
		}
	}
	for _, image := range images {
		if slices.Contains(used, in.file(image).path()) {
			continue
		}
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
