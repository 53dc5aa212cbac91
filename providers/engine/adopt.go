package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// unrecorded returns the engine at the socket that a block without a record names, so that what is ours in there is found
// again. An engine that gives no answer is not there yet: connecting to it waits for it.
func (p *Engines) unrecorded(ctx context.Context, k providers.Known) (providers.Object, bool) {
	socket := ctyread.Text(k.Want, "host")
	if socket == "" || isContainerd(k.Want) {
		return providers.Object{}, false
	}
	about, err := p.ask(ctx, socket)
	if err != nil {
		return providers.Object{}, false
	}
	id := providers.ID(guard.Short(p.settings.Project.Lineage() + " " + k.Address.String() + " " + about.identity(socket)))
	p.sockets.Store(id, socket)
	k.ID = id
	o := p.object(k, socket, about)
	p.addServing(ctx, &o, k, socket)
	return o, true
}

// adoptImages gives images whose records are lost to their blocks. An image can bear no mark: a container that bears
// ours, and whose block names the image, proves that this very content has the name because of us. Any other image of
// that name was put there by others.
func (p *Objects) adoptImages(q providers.Query, inv *providers.Inventory) {
	wants := map[spec.Address]string{} // the image of each container, as its block writes it
	for _, k := range q.Known {
		if k.Kind == spec.Container {
			wants[k.Address] = ctyread.Text(k.Want, "image")
		}
	}
	for _, k := range q.Known {
		if k.Kind != spec.Image || k.ID != "" || k.Want == cty.NilVal || refOf(k) == "" {
			continue
		}
		i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool {
			return o.Kind == spec.Image && o.Owner == nil && string(o.ID) == refOf(k)
		})
		if i < 0 {
			continue
		}
		image := &inv.Objects[i]
		use := useClaim("image", ctyread.Text(image.Attrs, "image_id"))
		proven := slices.ContainsFunc(inv.Objects, func(o providers.Object) bool {
			ours := o.Kind == spec.Container && o.Owner != nil && o.Owner.ID == p.settings.Project.Lineage() && o.Owner.Of == o.ID
			return ours && wants[o.Owner.Address] == k.Address.String() && slices.Contains(o.Holds, use)
		})
		if proven {
			image.Name = k.Name
			image.Owner = &providers.Mark{ID: p.settings.Project.Lineage(), Project: p.settings.Project.Name, Address: k.Address, Of: image.ID}
		}
	}
}

// unnamed fails if another image got the name of the one that is to be made: loading or pulling would take the name from it.
// A content that the records know is one that is replaced.
func (j *job) unnamed() error {
	if j.seen == nil || j.Expect != "" || j.p.contents.fate(j.seen.imageID).recorded {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Stale, Code: "name_taken", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: an image %s exists (%s), and the plan was made when there was none", j.Op, j.Address, j.seen.name, j.seen.imageID),
	}
}
