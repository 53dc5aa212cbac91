package engine

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// isArchived reports whether an image comes from an archive.
func isArchived(want cty.Value) bool { return ctyread.Known(ctyread.Attr(want, "archive")) }

// archivePath returns the path of the archive of the step.
func (j *job) archivePath() string {
	return j.hostPath(ctyread.Text(j.Want, "archive"))
}

// hostPath returns the path on this host of a file or a folder that a block names.
func (j *job) hostPath(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.p.settings.Files, path)
	}
	return path
}

// archived lists the images of an archive by name, each with the IDs that an engine may give to it: the digest of its
// configuration, or in containerd's store that of its manifest. It fails for an archive that is compressed or damaged.
func archived(path string) (map[string][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() //nolint:errcheck // it was only read
	const longest = 8 << 20          // of a file that is no layer
	digests := map[string]string{}
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	var index struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if h.Typeflag != tar.TypeReg || h.Size > longest {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		sum := sha256.Sum256(text)
		digests[h.Name] = "sha256:" + hex.EncodeToString(sum[:])
		switch h.Name {
		case "manifest.json":
			err = json.Unmarshal(text, &manifest)
		case "index.json":
			err = json.Unmarshal(text, &index)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", h.Name, path, err)
		}
	}
	all := map[string][]string{}
	add := func(name, id string) {
		if ref := canonical(name); ref != "" && id != "" {
			all[ref] = append(all[ref], id)
		}
	}
	for _, m := range manifest {
		for _, name := range m.RepoTags {
			add(name, digests[m.Config])
		}
	}
	for _, m := range index.Manifests {
		add(m.Annotations["io.containerd.image.name"], m.Digest)
	}
	return all, nil
}

// loaded returns the outcome for an image that is there because another block of the same archive was loaded meanwhile.
func (j *job) loaded() (*guard.Outcome, error) {
	if !isArchived(j.Want) || j.seen == nil || j.Expect == j.seen.fingerprint() {
		return nil, nil
	}
	all, err := archived(j.archivePath())
	isIn := err == nil && slices.Contains(all[j.seen.id], j.seen.imageID)
	if came, moved := j.p.loads.of(*j.seen); !isIn && (!moved || came != j.archivePath()) {
		return nil, nil // unnamed tells
	}
	return guard.Did(providers.AlreadyTrue, "it came with another image of this archive"), nil
}

// loads remembers the images whose names the loads of this run have moved: an archive brings all of its images.
type loads struct {
	all  sync.Map
	turn sync.Mutex // of the steps that load, which move the names of all images of an archive
}

type load struct{ imageID, path string }

// note remembers the names that lead to other contents after the load of an archive than before.
func (l *loads) note(path string, before, after []seen) {
	was := map[string]string{}
	for _, s := range before {
		was[s.id] = s.imageID
	}
	for _, s := range after {
		if was[s.id] != s.imageID {
			l.all.Store(s.id, load{s.imageID, path})
		}
	}
}

// of returns the archive whose load gave an image its name, if one did.
func (l *loads) of(s seen) (path string, moved bool) {
	kept, _ := l.all.Load(s.id)
	one, moved := kept.(load)
	return one.path, moved && one.imageID == s.imageID
}

// load loads the archive of the image of the step. It returns the images before and after it.
func (j *job) load(ctx context.Context, ref string) (before, after []seen, err error) {
	if err := j.takesNone(ctx); err != nil {
		return nil, nil, err
	}
	path := j.archivePath()
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() //nolint:errcheck // it was only read
	if before, err = j.p.images(ctx); err != nil {
		return nil, nil, err
	}
	answer, err := j.p.c.ImageLoad(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Close() }() //nolint:errcheck // it was read to its end
	said, err := readStream(answer)
	if err != nil {
		return nil, nil, err
	}
	if after, err = j.p.images(ctx); err != nil {
		return nil, nil, err
	}
	j.p.loads.note(path, before, after)
	if contentOf(after, ref) == "" {
		err = &providers.Problem{
			Outcome: providers.Failed, Code: "other_image",
			Next: providers.Say("name in `ref` the image that is in the archive, or write the archive anew: docker save -o FILE " + ref),
			Err:  fmt.Errorf("%s %s: %s has no image %s; the engine says: %s", j.Op, j.Address, path, ref, said),
		}
	}
	return before, after, err
}

// loadAside loads the archive of the image of the step, and lets each name that this has moved lead to its content from before again. It
// returns the new content.
func (j *job) loadAside(ctx context.Context, ref string) (content, error) {
	before, after, err := j.load(ctx, ref)
	if err != nil {
		return content{}, err
	}
	c := content{source: contentOf(after, ref)}
	for _, s := range before {
		now := contentOf(after, s.id)
		if s.isDangling() || now == "" || now == s.imageID {
			continue
		}
		if err := j.tag(ctx, s.imageID, s.id); err != nil {
			return content{}, fmt.Errorf("give %s back to its content from before: %w", s.id, err)
		}
		j.p.loads.all.Delete(s.id)
		if s.id != ref {
			c.along = append(c.along, [2]string{s.id, now})
		}
	}
	return c, nil
}

// contentOf returns the engine's ID of the image that has a name; "": none has.
func contentOf(all []seen, ref string) string {
	if i := slices.IndexFunc(all, func(s seen) bool { return s.id == ref }); i >= 0 {
		return all[i].imageID
	}
	return ""
}

// images lists the images of the engine.
func (p *Objects) images(ctx context.Context) ([]seen, error) {
	raws, err := p.c.getItems(ctx, listPath(spec.Image))
	var all []seen
	for _, raw := range raws {
		all = append(all, listedImages(raw)...)
	}
	return all, err
}

// movedMeanwhile removes an image whose name the load of another image of this run has moved. The plan did not expect that.
func (j *job) movedMeanwhile(ctx context.Context) (*guard.Outcome, error) {
	if j.kind != spec.Image || j.seen == nil || j.Expect == j.seen.fingerprint() {
		return nil, nil
	}
	if _, moved := j.p.loads.of(*j.seen); !moved {
		return nil, nil
	}
	return j.remove(ctx)
}

// takesNone fails if the archive has a name, beside the one that is wanted, that another image has: the engine would take that
// name from the other image. An archive that only the engine can read is left to it.
func (j *job) takesNone(ctx context.Context) error {
	all, err := archived(j.archivePath())
	if err != nil {
		return nil //nolint:nilerr // the engine says what is wrong with it
	}
	delete(all, canonical(ctyread.Text(j.Want, "ref")))
	if len(all) == 0 {
		return nil
	}
	raws, err := j.p.c.getItems(ctx, listPath(spec.Image))
	if err != nil {
		return err
	}
	for _, raw := range raws {
		for _, s := range listedImages(raw) {
			ids, has := all[s.id]
			if !has || slices.Contains(ids, s.imageID) || j.p.contents.fate(s.imageID).recorded {
				continue
			}
			return &providers.Problem{
				Outcome: providers.Unsafe, Code: "name_taken",
				Next: providers.Say("write the archive anew with the image alone: docker save -o FILE " + ctyread.Text(j.Want, "ref")),
				Err: fmt.Errorf("%s %s: %s has %s, too, a name of another image (%s), which would lose it", j.Op, j.Address,
					j.archivePath(), strings.Join(slices.Sorted(maps.Keys(all)), ", "), s.imageID),
			}
		}
	}
	return nil
}
