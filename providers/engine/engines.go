package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Engines manages the engines of one machine: a VM, or this host. An engine is not made or removed:
// connecting to it records it.
type Engines struct {
	settings providers.Settings
	sockets  sync.Map // of the engines that were seen, by ID
	contexts contexts
	host     Host
}

var (
	_ providers.Provider = (*Engines)(nil)
	_ providers.Host     = (*Engines)(nil)
	_ guard.Driver       = (*Engines)(nil)
)

// Close implements providers.Provider.
func (p *Engines) Close() error { return nil }

// Observe implements providers.Provider. There is no list of engines: it reads those that are recorded, and those that
// a block names by their sockets.
func (p *Engines) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	for _, k := range q.Known {
		if k.ID == "" {
			if o, found := p.unrecorded(ctx, k); found {
				inv.Objects = append(inv.Objects, o)
			}
			continue
		}
		socket := socketIn(k.Prior)
		if socket == "" {
			socket = p.socketOf(k.ID)
		}
		if socket == "" { // it was only reserved
			continue
		}
		p.sockets.Store(k.ID, socket)
		if isContainerd(k.Prior) {
			inv.Objects = append(inv.Objects, p.unasked(ctx, k))
			continue
		}
		about, err := p.ask(ctx, socket)
		if err != nil && isContainerd(k.Want) && k.Prior != cty.NilVal { // it may be off already, and is not needed
			inv.Objects = append(inv.Objects, p.unasked(ctx, k))
			continue
		}
		if err != nil {
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: k.Kind, ID: k.ID, Name: k.Name, Reason: err.Error()})
			continue
		}
		o := p.object(k, socket, about)
		p.addServing(ctx, &o, k, socket)
		inv.Objects = append(inv.Objects, o)
	}
	return inv, ctx.Err()
}

// socketOf returns the socket of an engine that was seen; "": none was.
func (p *Engines) socketOf(id providers.ID) string {
	socket, _ := p.sockets.Load(id)
	text, _ := socket.(string)
	return text
}

// mark returns the mark of an engine: its record is the ownership.
func (p *Engines) mark(a spec.Address, id providers.ID) *providers.Mark {
	return p.settings.Project.MarkOf(a, id)
}

// about is an engine's answer about itself.
type about struct{ ID, ServerVersion, DockerRootDir string }

// identity returns the text that only this engine has: several may share their ID.
func (a about) identity(socket string) string { return socket + " " + a.ID + " " + a.DockerRootDir }

// ask asks the engine at a socket about itself.
func (p *Engines) ask(ctx context.Context, socket string) (about, error) {
	c, err := newConnection("engine", func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, socket) })
	if err != nil {
		return about{}, err
	}
	defer c.close()
	var a about
	if err := c.getInto(ctx, "/info", &a); err != nil {
		return about{}, fmt.Errorf("ask the engine at %s: %w", socket, err)
	}
	if a.ID == "" {
		return about{}, fmt.Errorf("ask the engine at %s: it does not say which one it is", socket)
	}
	return a, nil
}

// dial connects to the socket of an engine through the machine around it.
func (p *Engines) dial(ctx context.Context, socket string) (net.Conn, error) {
	path, isUnix := strings.CutPrefix(socket, "unix://")
	if !isUnix {
		return nil, fmt.Errorf("%s is no socket: write unix:// and its path", socket)
	}
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return nil, err
	}
	return g.Dial(ctx, "unix", path)
}

// object returns the engine at a socket that answers, as the object of an address.
func (p *Engines) object(k providers.Known, socket string, a about) providers.Object {
	all := p.values(k.ID, socket, a)
	if shown := p.shownContext(k, socket); shown != cty.NilVal {
		all["docker_context"] = shown
	}
	return providers.Object{
		Kind: spec.Engine, ID: k.ID, Name: k.Name, State: providers.StateRunning, Owner: p.mark(k.Address, k.ID),
		Attrs: cty.ObjectVal(all), Unreadable: map[string]string{}, Fingerprint: p.fingerprint(k.ID, socket, a),
	}
}

func (p *Engines) values(id providers.ID, socket string, a about) map[string]cty.Value {
	endpoint := cty.NullVal(cty.String)
	if p.settings.Via.Address == spec.ThisHost {
		endpoint = cty.StringVal(socket)
	}
	return map[string]cty.Value{
		"id": cty.StringVal(string(id)), "type": cty.StringVal(typeMoby), "host": cty.StringVal(socket), "endpoint": endpoint,
		"version": cty.StringVal(a.ServerVersion),
	}
}

func (p *Engines) fingerprint(id providers.ID, socket string, a about) string {
	var print guard.Print
	print.Add("id", string(id))
	print.Add("engine", a.identity(socket))
	return print.String()
}

// Steps implements providers.Provider.
func (p *Engines) Steps(c providers.Change) ([]providers.Step, error) {
	s := steps{change: c}
	if c.Object != nil {
		s.now = c.Object.ID
	}
	switch c.Action {
	case providers.Create, providers.ReplaceIt:
		if c.Action == providers.ReplaceIt {
			step := s.add(opDisconnect, providers.PhaseRemove, s.now)
			if name := contextName(c.Want); name != "" {
				step.Args = keeping{name}
			}
		}
		s.add(opConnect, providers.PhaseMake, c.ID).Timeout = readyTimeout(c.Policy)
		if p.wantsServing(c.Want, c.Policy) {
			s.serveStep(opServe, providers.PhaseChange, c.ID)
		}
		if ctyread.Known(ctyread.Attr(c.Want, "docker_context")) && !isContainerd(c.Want) {
			s.add(opContext, providers.PhaseChange, c.ID)
		}
	case providers.Destroy:
		s.add(opDisconnect, providers.PhaseRemove, s.now)
	case providers.Update, providers.Import, providers.Recover:
		if s.switchSteps() || isContainerd(c.Want) {
			break
		}
		isDue := s.dueSteps()
		if !isDue && p.wantsServing(c.Want, c.Policy) && !p.isServed(s.now) {
			s.serveStep(opServe, providers.PhaseChange, s.now)
		}
		if slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return strings.HasPrefix(e.Path, "docker_context") }) {
			s.add(opContext, providers.PhaseChange, s.now)
		}
	case providers.Release:
		if c.Object == nil || !ctyread.Known(ctyread.Attr(c.Object.Attrs, "endpoint")) || !p.inVM() {
			break
		}
		s.serveStep(opUnserve, providers.PhaseRelease, s.now)
		if p.wantsServing(c.Want, c.Policy) {
			s.serveStep(opServe, providers.PhaseResume, s.now)
		}
	case providers.Forget:
		if c.Object != nil && p.inVM() && ctyread.Known(ctyread.Attr(c.Object.Attrs, "endpoint")) {
			s.serveStep(opUnserve, providers.PhaseFree, s.now)
		}
	case providers.RestartIt, providers.Start, providers.Stop, providers.Adopt, providers.NoOp: // an engine has nothing else to change
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.all, nil
}

// readyTimeout returns how long a step waits until an engine answers.
func readyTimeout(policy cty.Value) time.Duration {
	return ctyread.Seconds(policy, "ready_timeout", 5*time.Minute)
}

// Enter implements providers.Host: every connection into an engine leads to its API.
func (p *Engines) Enter(_ context.Context, o providers.Object, _ cty.Value) (providers.Guest, error) {
	if isContainerd(o.Attrs) {
		return nil, fmt.Errorf("enter engine %s: its type is %s, which has no API that vmctl speaks", o.Name, typeContainerd)
	}
	socket := ctyread.Text(o.Attrs, "host")
	if socket == "" {
		return nil, fmt.Errorf("enter engine %s: its socket is not known", o.Name)
	}
	return inside{p: p, socket: socket}, nil
}

// inside is the inside of an engine. It enters the machine around it anew for each connection.
type inside struct {
	p      *Engines
	socket string
}

// Run implements providers.Guest.
func (inside) Run(context.Context, providers.Command) (providers.Output, error) {
	return providers.Output{}, errors.New("an engine runs no commands: its containers do")
}

// Dial implements providers.Guest.
func (g inside) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return g.p.dial(ctx, g.socket)
}

// Close implements providers.Guest.
func (inside) Close() error { return nil }
