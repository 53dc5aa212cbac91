package providers

import "context"

// Previewer is a provider whose system alone can tell what a change would do in it, such as Terraform. It is asked between
// the decision about a change and its steps; Steps gets the answer in the change.
type Previewer interface {
	// Preview asks the system what a change would do. It changes nothing that anybody else can see. nil: the system
	// cannot tell yet. The error says why the system cannot do it at all.
	Preview(ctx context.Context, c Change) (*Preview, error)
}

// Preview holds what a system would do.
type Preview struct {
	Acts []Act // in the order of the system
	// Basis is a digest of what the system reads beside the attributes, such as a module: with another one, the same acts may do
	// something else. "": it reads nothing else.
	Basis string `json:",omitempty"`
	// Reads holds a digest of each file that Basis covers, by its path: they name what changed.
	Reads map[string]string `json:"-"`
}

// Act is one thing that a system would do.
type Act struct {
	Text    string  // as in "update terraform_data.vm"
	Applies Applies // Live, or Replace if it destroys something
}

// Losing returns the acts that destroy something. p may be nil.
func (p *Preview) Losing() []Act {
	if p == nil {
		return nil
	}
	var all []Act
	for _, a := range p.Acts {
		if a.Applies == Replace {
			all = append(all, a)
		}
	}
	return all
}
