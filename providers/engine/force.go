package engine

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// forces reports whether an object is removed although others use it: an image whose block says so.
func forces(kind spec.Kind, policy cty.Value) bool {
	return kind == spec.Image && ctyread.True(policy, "force")
}

// forcing is the argument of the forced removal of an image.
type forcing struct{}

// Words implements providers.Args.
func (forcing) Words() [][2]string { return [][2]string{{"force", "true"}} }

// users says, for people, which containers still use an image that has lost its name.
func (p *Objects) users(ctx context.Context, imageID string) []string {
	raws, err := p.c.getItems(ctx, listPath(spec.Container))
	if err != nil {
		return []string{"it could not be seen which containers use it: " + err.Error()}
	}
	var said []string
	for _, raw := range raws {
		if s := listedContainer(raw); s.imageID == imageID {
			said = append(said, "container "+s.name+" uses it, and stays as it is")
		}
	}
	return said
}

var _ providers.Args = forcing{}
