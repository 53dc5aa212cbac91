package engine

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// knownImages returns the resources and the records that name an image, by its full name.
func knownImages(q providers.Query) map[string]providers.Known {
	all := map[string]providers.Known{}
	for _, k := range q.Known {
		if ref := refOf(k); k.Kind == spec.Image && ref != "" && k.ID != "" {
			all[ref] = k
		}
	}
	return all
}

// refOf returns the full name of the image at an address, as its record says, else its block.
func refOf(k providers.Known) string {
	if ref := ctyread.Text(k.Prior, "ref"); ref != "" {
		return canonical(ref)
	}
	return canonical(ctyread.Text(k.Want, "ref"))
}

// imageObject returns an image. An image can bear no mark: its record is the ownership. An image that has
// the recorded name and another content was put there by others, and belongs to the address only as long as a block
// wants that name.
func (p *Objects) imageObject(s seen, k providers.Known) providers.Object {
	o := providers.Object{
		Kind: spec.Image, ID: providers.ID(s.id), Name: s.name, Unreadable: map[string]string{},
		Fingerprint: s.fingerprint(), State: s.state,
	}
	if !s.isDangling() {
		o.Holds = append(o.Holds, refClaim(s.id))
	}
	if s.tags <= 1 { // else removing this name leaves the image to its users
		o.Holds = append(o.Holds, providers.Claim{Kind: claimOnlyName, Key: s.imageID})
	}
	content := ctyread.Text(k.Prior, "image_id")
	if k.ID != "" && (k.Want != cty.NilVal || content == s.imageID) {
		if k.Name != "" { // an engine knows no name but ref
			o.Name = k.Name
		}
		o.Owner = &providers.Mark{ID: p.settings.Project.Lineage(), Project: p.settings.Project.Name, Address: k.Address, Of: o.ID}
	}
	o.Attrs = cty.ObjectVal(s.values(o.ID))
	return o
}

// expectedImage is the image that a container is to be made of.
type expectedImage struct {
	address string // as its block writes it
	content string // the engine's ID of the image that has the name now; "": none has
}

// expectedImages returns the image of each recorded container.
func expectedImages(q providers.Query, images []seen) map[providers.ID]expectedImage {
	content := map[string]string{} // by name
	for _, s := range images {
		content[s.id] = s.imageID
	}
	refs := map[string]string{} // by address
	for _, k := range q.Known {
		if k.Kind == spec.Image && refOf(k) != "" {
			refs[k.Address.String()] = refOf(k)
		}
	}
	all := map[providers.ID]expectedImage{}
	for _, k := range q.Known {
		if a := ctyread.Text(k.Prior, "image"); k.Kind == spec.Container && k.ID != "" && a != "" {
			all[k.ID] = expectedImage{a, content[refs[a]]}
		}
	}
	return all
}

// withImage adds the image of a container to its attributes: the address in its record, or what the engine
// says where the name of that image leads to another one by now.
func withImage(all map[string]cty.Value, want expectedImage, s seen) map[string]cty.Value {
	if want.content == "" {
		return all
	}
	all["image"] = cty.StringVal(want.address)
	if want.content != s.imageID {
		all["image"] = cty.StringVal(s.imageID)
	}
	return all
}
