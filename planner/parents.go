package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// parents finds the objects that contain others, as they are now, and enters them.
type parents struct {
	mu    sync.Mutex
	found map[spec.Address]*parent
	errs  []error // of guests that were closed
}

// parent is an object that contains others.
type parent struct {
	provider providers.Provider
	inside   spec.Address // what the object itself is inside of; zero: of nothing
	known    providers.Known
	values   cty.Value // the attributes with the login to it

	mu     sync.Mutex
	object *providers.Object // nil: it changed since it was seen
	guest  providers.Guest   // nil: nobody has entered it
}

// saw notes an object that was observed. Its attributes are those of the spec, or of the record.
func (p *parents) saw(system *System, o *providers.Object, a spec.Address, values cty.Value) {
	p.put(a, &parent{
		provider: system.Provider, inside: system.Inside, object: o, values: values,
		known: providers.Known{Address: a, Kind: a.Kind, ID: o.ID, Name: o.Name},
	})
}

// put notes an object, or with nil that there is none.
func (p *parents) put(a spec.Address, found *parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		p.found = map[spec.Address]*parent{}
	}
	p.found[a] = found
}

// end ends the guests of an object and of all inside of it.
func (p *parents) end(a spec.Address) {
	p.leave(func(inner spec.Address) bool { return p.within(inner, a) })
}

// leave ends the guests of some objects. It holds no lock while it does: a guest may be about to be entered through another
// one.
func (p *parents) leave(those func(spec.Address) bool) {
	p.mu.Lock()
	var all []*parent
	for _, a := range slices.SortedFunc(maps.Keys(p.found), spec.Address.Compare) {
		if those(a) {
			all = append(all, p.found[a])
		}
	}
	p.mu.Unlock()
	for _, left := range all {
		err := left.leave()
		p.mu.Lock()
		p.errs = append(p.errs, err)
		p.mu.Unlock()
	}
}

// within reports whether an object is another one, or inside of it.
func (p *parents) within(a, outer spec.Address) bool {
	for range len(p.found) + 1 {
		if a == outer {
			return true
		}
		at := p.found[a]
		if at == nil {
			return false
		}
		a = at.inside
	}
	return false
}

// close ends all guests.
func (p *parents) close() error {
	p.leave(func(spec.Address) bool { return true })
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// Became notes that a step changed the object of an address, which has an ID, a name and attributes
// now: what is inside of it is found anew, and entered anew if the step stopped it.
func (w *World) Became(step Step, id providers.ID, name string, values cty.Value) {
	system := w.systems[step.System]
	next := &parent{
		provider: system.Provider, inside: system.Inside, values: values,
		known: providers.Known{Address: step.Address, Kind: step.Address.Kind, ID: id, Name: name, Prior: values},
	}
	if lowers(step.Step) {
		w.parents.end(step.Address)
	}
	next.guest = w.parents.handOver(step.Address)
	w.parents.put(step.Address, next)
}

// Went notes that the object of an address is gone.
func (w *World) Went(a spec.Address) {
	w.parents.end(a)
	w.parents.put(a, nil)
}

// handOver takes the guest from an object, which stays open.
func (p *parents) handOver(a spec.Address) providers.Guest {
	p.mu.Lock()
	before := p.found[a]
	p.mu.Unlock()
	if before == nil {
		return nil
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	guest := before.guest
	before.guest = nil
	return guest
}

// via returns the way from a system to the object that it is inside of; nil: it is inside of none.
func (w *World) via(s *System) *providers.Via {
	if (s.Inside == spec.Address{}) {
		return nil
	}
	return &providers.Via{
		Address: s.Inside,
		Object: func(ctx context.Context) (o providers.Object, err error) {
			found, err := w.parents.at(s.Inside)
			if err != nil {
				return o, err
			}
			found.mu.Lock()
			defer found.mu.Unlock()
			return found.now(ctx)
		},
		Enter: func(ctx context.Context) (providers.Guest, error) {
			found, err := w.parents.at(s.Inside)
			if err != nil {
				return nil, err
			}
			return found.enter(ctx)
		},
	}
}

// at returns the object of an address.
func (p *parents) at(a spec.Address) (*parent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.found[a]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s does not exist", a)
}

// now returns the object. It observes it again if it changed since it was seen. The caller holds the
// lock.
func (p *parent) now(ctx context.Context) (providers.Object, error) {
	if p.object == nil {
		if err := p.observe(ctx); err != nil {
			return providers.Object{}, err
		}
	}
	return *p.object, nil
}

// observe observes the object again.
func (p *parent) observe(ctx context.Context) error {
	a := p.known.Address
	inv, err := p.provider.Observe(ctx, providers.Query{Known: []providers.Known{p.known}})
	if err != nil {
		return fmt.Errorf("observe %s again: %w", a, err)
	}
	for i := range inv.Objects {
		if o := &inv.Objects[i]; o.Kind == a.Kind && o.ID == p.known.ID {
			p.object = o
			return nil
		}
	}
	return fmt.Errorf("%s could not be found again: %s %q (%s)", a, a.Kind, p.known.Name, p.known.ID)
}

// enter returns the inside of the object, which all share.
func (p *parent) enter(ctx context.Context) (providers.Guest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guest != nil {
		return sharedGuest{p.guest}, nil
	}
	host, ok := providers.Ability[providers.Host](p.provider)
	if !ok {
		return nil, fmt.Errorf("%s cannot be entered", p.known.Address)
	}
	o, err := p.now(ctx)
	if err != nil {
		return nil, err
	}
	if p.guest, err = host.Enter(ctx, o, p.values); err != nil {
		p.guest = nil
		return nil, fmt.Errorf("enter %s: %w", p.known.Address, err)
	}
	return sharedGuest{p.guest}, nil
}

// leave closes the guest. A parent may be nil.
func (p *parent) leave() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guest == nil {
		return nil
	}
	err := p.guest.Close()
	p.guest = nil
	return err
}

// sharedGuest is a guest that others use, too.
type sharedGuest struct{ providers.Guest }

// Close does nothing: the guest ends with the object, or with the world.
func (sharedGuest) Close() error { return nil }
