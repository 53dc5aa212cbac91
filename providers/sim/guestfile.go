package sim

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// guestFile is one file as it was seen.
type guestFile struct {
	keptFile
	path   string
	digest func(string) string // of its content; nil: there is no key
}

// id returns the file's ID: the path, if nobody marked the file.
func (f guestFile) id() providers.ID {
	if f.ID == "" {
		return providers.ID(f.path)
	}
	return f.ID
}

func pathClaim(path string) providers.Claim {
	return providers.Claim{Kind: "the path", Key: path}
}

func (f guestFile) object(name string) providers.Object {
	if name == "" {
		name = f.path
	}
	o := providers.Object{
		Kind: spec.GuestFile, ID: f.id(), Name: name, Owner: f.Owner.mark(), Holds: []providers.Claim{pathClaim(f.path)},
		Attrs: cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(string(f.id())), "path": cty.StringVal(f.path), "content": cty.StringVal(f.Content),
		}),
		Unreadable: map[string]string{}, Fingerprint: f.fingerprint(),
	}
	if f.Owner != nil && f.Owner.Of != f.ID {
		o.Findings = []providers.Finding{{
			Kind: providers.FindCopy, Object: f.path, Address: f.Owner.Address, Action: "left alone",
			Evidence: []string{"its mark was written for " + string(f.Owner.Of)},
		}}
	}
	return o
}

func (f guestFile) fingerprint() string {
	var p guard.Print
	p.Add("id", string(f.id()))
	p.Add("path", f.path)
	p.Add("content", guard.Keyed(f.digest, f.Content))
	p.AddMark(f.Owner.mark())
	return p.String()
}
