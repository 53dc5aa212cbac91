package workspace

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

var _ providers.Host = (*Provider)(nil)

// Enter implements providers.Host: the inside of a workspace is its folder in the guest around it, with the
// environment that values sets.
func (p *Provider) Enter(ctx context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	at, err := p.Place(ctx, o, values)
	if err != nil {
		return nil, err
	}
	return folder{around: p.settings.Via, dir: at.Dir, env: at.Env}, nil
}

// Placer tells where the files of workspaces are.
type Placer interface {
	// Place returns the place of a workspace in the guest around it, with the environment that values sets.
	Place(ctx context.Context, o providers.Object, values cty.Value) (Place, error)
}

var _ Placer = (*Provider)(nil)

// Place is a folder in a guest, and the variables (NAME=value) of commands in it.
type Place struct {
	Dir string // absolute
	Env []string
}

// Place implements Placer.
func (p *Provider) Place(ctx context.Context, o providers.Object, values cty.Value) (Place, error) {
	if isPartial(&o) {
		return Place{}, fmt.Errorf("workspace %s is only half there: vmctl apply completes it", o.Name)
	}
	env, err := p.environ(ctx, ctyread.Attr(values, "env"))
	return Place{Dir: ctyread.Text(o.Attrs, "path"), Env: env}, err
}

// environ returns the variables that an env block sets: NAME=value, by name.
func (p *Provider) environ(ctx context.Context, env cty.Value) ([]string, error) {
	set := ctyread.Attr(env, "set")
	if !ctyread.Known(set) {
		return nil, nil
	}
	var all []string
	under := ""
	for it := set.ElementIterator(); it.Next(); {
		name, v := it.Element()
		value := v.AsString()
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			if under == "" {
				out, err := p.inside(ctx, `printf %s "$HOME"`, nil)
				if err != nil {
					return nil, fmt.Errorf("find the home in %s: %w", p.settings.Via.Address, err)
				}
				under = string(out)
			}
			value = under + "/" + rest
		}
		all = append(all, name.AsString()+"="+value)
	}
	return all, nil
}

// folder is the inside of a workspace. It enters the guest around it anew for each call.
type folder struct {
	around *providers.Via
	dir    string
	env    []string
}

// Run implements providers.Guest.
func (f folder) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	g, err := f.around.Enter(ctx)
	if err != nil {
		return providers.Output{}, err
	}
	if !path.IsAbs(c.Dir) {
		c.Dir = path.Join(f.dir, c.Dir)
	}
	c.Env = append(f.env[:len(f.env):len(f.env)], c.Env...)
	return g.Run(ctx, c)
}

// Dial implements providers.Guest.
func (f folder) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	g, err := f.around.Enter(ctx)
	if err != nil {
		return nil, err
	}
	if network == "unix" && !path.IsAbs(address) {
		address = path.Join(f.dir, address)
	}
	return g.Dial(ctx, network, address)
}

// Close implements providers.Guest.
func (folder) Close() error { return nil }
