package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// stateDangling is Docker's word for an image that has no name.
const stateDangling = "dangling"

// isImageID reports whether a text is an engine's own ID of an image. IDs go into the paths of requests.
func isImageID(text string) bool {
	digits, isDigest := strings.CutPrefix(text, "sha256:")
	return isDigest && isID(digits)
}

// isDangling reports whether an image has no name: it is seen by its ID.
func (s seen) isDangling() bool { return s.kind == spec.Image && s.tags == 0 && s.id != "" }

// contents remembers the contents of images that the records know: vmctl made them, or took them over.
type contents struct {
	fates atomic.Pointer[map[string]contentFate] // by the engine's ID
}

type contentFate struct {
	recorded bool
	dangling bool // it had no name when the engine was observed
}

// observed notes the recorded contents, and those of them that have no name any more.
func (c *contents) observed(q providers.Query, images []seen) {
	fates := map[string]contentFate{}
	for _, k := range q.Known {
		if id := ctyread.Text(k.Prior, "image_id"); k.Kind == spec.Image && id != "" {
			fates[id] = contentFate{recorded: true}
		}
	}
	for _, s := range images {
		if s.isDangling() && fates[s.imageID].recorded {
			fates[s.imageID] = contentFate{recorded: true, dangling: true}
		}
	}
	c.fates.Store(&fates)
}

// fate says what was noted of a content.
func (c *contents) fate(id string) contentFate {
	all := c.fates.Load()
	if all == nil {
		return contentFate{}
	}
	return (*all)[id]
}

// dropDangling removes the images that lost their names to others, if a record knows them as ours and nobody uses them. It is
// never forced: whoever still uses such an image, or was made of it, keeps it. It returns what was done, for people.
func (p *Objects) dropDangling(ctx context.Context) []string {
	raws, err := p.c.getItems(ctx, listPath(spec.Image))
	if err != nil {
		return []string{"it could not be seen which images have no name any more: " + err.Error()}
	}
	var said []string
	for _, raw := range raws {
		for _, s := range listedImages(raw) {
			if s.flaw != nil || !s.isDangling() || !p.contents.fate(s.imageID).recorded {
				continue
			}
			switch _, err := p.c.ImageRemove(ctx, s.imageID, client.ImageRemoveOptions{PruneChildren: true}); {
			case err == nil:
				said = append(said, "image "+s.imageID+", which has no name any more, is removed")
			case !errdefs.IsNotFound(err) && !errdefs.IsConflict(err): // a container uses it: it goes with that one
				said = append(said, "image "+s.imageID+" has no name any more, and stays: "+err.Error())
			}
		}
	}
	return said
}

// movingName is the argument of the removal of an image that is replaced and has other names, too: if a container that waits for
// its successor still uses the image, the engine keeps the last name until the new image gets it.
type movingName struct{}

// Words implements providers.Args.
func (movingName) Words() [][2]string { return nil }

// keepsName reports whether the engine keeps the name of an image that is replaced, since a container still uses the image.
func (j *job) keepsName(err error) bool {
	_, moves := j.Args.(movingName)
	return moves && j.kind == spec.Image && errdefs.IsConflict(err)
}

// sortObjects brings objects into the order in which they are shown.
func sortObjects(all []providers.Object) {
	slices.SortFunc(all, func(a, b providers.Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}
