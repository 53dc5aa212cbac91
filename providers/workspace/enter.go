package workspace

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/procenv"
	"vmctl/providers"
	"vmctl/providers/guest"
)

var _ providers.Host = (*Provider)(nil)

// Enter implements providers.Host: the inside of a workspace is its folder in the guest around it, with the
// environment that values sets.
func (p *Provider) Enter(ctx context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	at, err := p.Place(ctx, o, values)
	if err != nil {
		return nil, err
	}
	enter := p.settings.Via.Enter
	if at.StripProxy {
		enter = p.enterWithoutProxies
	}
	return folder{enter: enter, dir: at.Dir, env: at.Env}, nil
}

// enterWithoutProxies is Via.Enter, but commands on this host get no variables of proxies from vmctl's own environment. In a VM
// none of that environment passes by itself.
func (p *Provider) enterWithoutProxies(ctx context.Context) (providers.Guest, error) {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil || !p.onHost() {
		return g, err
	}
	return guest.OnHost(p.host.Home, procenv.WithoutProxies(procenv.WithoutVariables(p.host.Environ))), nil
}

// Passed returns the variables of an environment (NAME=value) that an env block passes on. A variable that the block sets has the value
// of the block.
func Passed(block cty.Value, environ []string) []string {
	var names []string
	for _, v := range ctyread.List(ctyread.Attr(block, "pass")) {
		names = append(names, v.AsString())
	}
	all := procenv.Named(environ, names)
	if set := ctyread.Attr(block, "set"); ctyread.Known(set) {
		values := set.AsValueMap()
		all = slices.DeleteFunc(all, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			_, own := values[name]
			return own
		})
	}
	if ctyread.True(block, "strip_proxy") {
		all = procenv.WithoutProxies(all)
	}
	return all
}

// Placer tells where the files of workspaces are.
type Placer interface {
	// Place returns the place of a workspace in the guest around it, with the environment that values sets.
	Place(ctx context.Context, o providers.Object, values cty.Value) (Place, error)
	// Variables returns the variables that an env block sets, as commands in that guest get them: NAME=value, by name.
	Variables(ctx context.Context, env cty.Value) ([]string, error)
}

var _ Placer = (*Provider)(nil)

// Place is a folder in a guest, and the variables (NAME=value) of commands in it.
type Place struct {
	Dir        string // absolute
	Env        []string
	StripProxy bool // the variables of proxies in vmctl's own environment do not pass
}

// Place implements Placer.
func (p *Provider) Place(ctx context.Context, o providers.Object, values cty.Value) (Place, error) {
	if isPartial(&o) {
		return Place{}, fmt.Errorf("workspace %s is only half there: vmctl apply completes it", o.Name)
	}
	block := ctyread.Attr(values, "env")
	env, err := p.Variables(ctx, block)
	return Place{Dir: ctyread.Text(o.Attrs, "path"), Env: env, StripProxy: ctyread.True(block, "strip_proxy")}, err
}

// Variables implements Placer.
func (p *Provider) Variables(ctx context.Context, env cty.Value) ([]string, error) {
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
	enter func(context.Context) (providers.Guest, error)
	dir   string
	env   []string
}

// Run implements providers.Guest.
func (f folder) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	g, err := f.enter(ctx)
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
	g, err := f.enter(ctx)
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
