package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Open opens a provider. A system that does not answer is no error of Open: its
// Observe says so. The provider gets values that are marked as sensitive (package
// providers/secret makes any provider fit for that).
type Open func(context.Context, Opening) (providers.Provider, error)

// Opening describes the system that Open is to open.
type Opening struct {
	Ref   spec.ProviderRef
	Type  providers.Type
	Attrs cty.Value      // resolved; sensitive values are marked
	Via   *providers.Via // leads to the object whose inside is opened; nil: it is a system of its own
}

// SystemError says that two provider blocks lead to one system and disagree about
// how to use it: it cannot be opened both ways, or each would take the other's
// objects for orphans.
type SystemError struct{ One, Other spec.ProviderRef }

// Error names both blocks.
func (e *SystemError) Error() string {
	return fmt.Sprintf("%s and %s lead to the same system and say different things about it: let all resources use one of them", e.One, e.Other)
}

// World holds the observed systems, and the system of each address. It owns the providers that it
// opened.
type World struct {
	systems map[string]*System
	wanted  map[spec.Address]string // key of the system that the spec names
	placed  map[spec.Address]string // key of the system that the record names, else the wanted one
	// led maps objects without a record to the addresses to which moved blocks lead them from
	// their marks.
	led map[*providers.Object]spec.Address
	// along holds the addresses of orphans that go with the objects that they are inside of.
	along map[spec.Address]bool

	keys  *systemKeys
	known map[string][]providers.Known // what each system is asked about
	read  map[string]bool              // the keys of systems that were read

	limit time.Duration // of reading a system; 0: its provider's own

	parents parents
}

// System is one opened provider with what it showed.
type System struct {
	Key       string
	Ref       spec.ProviderRef
	Settings  cty.Value          // resolved
	Provider  providers.Provider // nil: nothing of it was read
	Inventory providers.Inventory
	Inside    spec.Address          // the object whose inside it is; zero: of none
	Panic     *providers.PanicError // the last one of its provider; nil: there was none
	Long      []string              // the reasons in the inventory that were cut, whole

	typ     providers.Type
	sleep   sleep
	home    string             // the key of the outermost system around it; "": it is one itself
	off     spec.Address       // the object around it for which it sleeps: one that is off, or has a setting under which nothing inside is managed
	setting string             // the setting of off under which nothing inside is managed, as a spec has it; "": none
	limit   time.Duration      // of reading it; 0: none
	lacks   *providers.Problem // that sensitive settings are missing; nil: none is
	unseen  *providers.Problem // why nothing of it could be read; nil: it was
}

// Observe opens every system that the spec or a record names and reads each of them once, side by
// side. Then it reads the insides of the objects that run, and so on inwards (DESIGN.md, rule 7).
// The caller closes the World, also after an error.
func Observe(ctx context.Context, open Open, c *spec.Config, s *state.Snapshot, o Options) (*World, error) {
	w := &World{
		systems: map[string]*System{}, wanted: map[spec.Address]string{}, placed: map[spec.Address]string{}, along: map[spec.Address]bool{},
		keys: newSystemKeys(c, o.Types), read: map[string]bool{}, limit: c.Settings.ReadTimeout,
	}
	var err error
	if w.known, err = w.place(w.keys, c, s, o); err != nil {
		return w, err
	}
	layer := w.outermost()
	if err := w.observeAll(ctx, open, layer, w.known); err != nil {
		return w, err
	}
	w.placeRemoved(layer, func(a spec.Address) bool { return o.CleanUp[a] || isRemoved(c, a) || o.Inward && IsInhabited(a.Kind) }, o.Project)
	w.follow(layer, c, s, o.Project)
	layer, err = w.around(layer, s, o)
	if err != nil {
		return w, err
	}
	return w, w.observeInwards(ctx, open, layer, c, s, o)
}

// around notes that systems were read, and returns those to read next.
func (w *World) around(layer []*System, s *state.Snapshot, o Options) ([]*System, error) {
	for _, system := range layer {
		w.read[system.Key] = true
	}
	if err := w.searchInside(w.keys, layer, s, o); err != nil {
		return nil, err
	}
	return w.nextLayer(), nil
}

// observeInwards reads systems that are inside of objects, and what is inside of those.
func (w *World) observeInwards(ctx context.Context, open Open, layer []*System, c *spec.Config, s *state.Snapshot, o Options) error {
	for seen := w.Observations(s, o.Project); len(layer) > 0; {
		for _, system := range layer {
			w.rouse(system, seen, c, s, o)
		}
		if err := w.observeAll(ctx, open, layer, w.known); err != nil {
			return err
		}
		w.placeFound(layer, s, o.Project)
		w.placeRemoved(layer, func(a spec.Address) bool { return o.CleanUp[a] }, o.Project)
		seen.read(layer)
		var err error
		if layer, err = w.around(layer, s, o); err != nil {
			return err
		}
	}
	return nil
}

// isRemoved reports whether a removed block names an address.
func isRemoved(c *spec.Config, a spec.Address) bool {
	return slices.ContainsFunc(c.Removals, func(r spec.Removal) bool { return covers(r.From, a) })
}

// placeRemoved places the objects that are to go and whose address only their mark
// knows: a run that was cut short made or imported them, or their record was lost.
func (w *World) placeRemoved(systems []*System, isRemoved func(spec.Address) bool, p providers.Project) {
	for _, system := range systems {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if MarkingOf(o, p) != Ours || w.placed[o.Owner.Address] != "" {
				continue
			}
			if isRemoved(o.Owner.Address) {
				w.placed[o.Owner.Address] = system.Key
			}
		}
	}
}

// follow lets moved blocks lead objects whose records were lost to their new addresses. An
// object stays where its mark says if its new address has a record or an object of its own
// in that system.
func (w *World) follow(systems []*System, c *spec.Config, s *state.Snapshot, p providers.Project) {
	w.led = map[*providers.Object]spec.Address{}
	recorded := map[string]bool{}
	for _, r := range s.Records {
		recorded[r.ID] = true
	}
	for _, system := range systems {
		marked := map[spec.Address]*providers.Object{}
		for i := range system.Inventory.Objects {
			if o := &system.Inventory.Objects[i]; MarkingOf(o, p) == Ours && o.Owner.Address.Kind == o.Kind {
				first(marked, o.Owner.Address, o)
			}
		}
		for _, from := range slices.SortedFunc(maps.Keys(marked), spec.Address.Compare) {
			o, to := marked[from], destination(c, from)
			_, atFrom := s.Records[from]
			_, atTo := s.Records[to]
			if to == from || atFrom || atTo || recorded[string(o.ID)] || marked[to] != nil || w.wanted[to] != system.Key {
				continue
			}
			w.led[o], marked[to] = to, o
		}
	}
}

// addressOf returns the address of an object that bears our mark, by the mark and the moved
// blocks.
func (w *World) addressOf(o *providers.Object) spec.Address {
	if to, led := w.led[o]; led {
		return to
	}
	return o.Owner.Address
}

// observeAll opens systems and reads them, side by side.
func (w *World) observeAll(ctx context.Context, open Open, systems []*System, known map[string][]providers.Known) error {
	var wait sync.WaitGroup
	errs := make([]error, len(systems))
	for i, system := range systems {
		wait.Go(func() {
			errs[i] = system.open(ctx, open, w.via(system))
			if errs[i] == nil && system.Provider != nil && system.sleep == "" {
				errs[i] = system.observe(ctx, known[system.Key])
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("observe %s: %w", system, errs[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// place decides to which system each address belongs, and returns the objects that each system is
// asked about.
func (w *World) place(keys *systemKeys, c *spec.Config, s *state.Snapshot, o Options) (map[string][]providers.Known, error) {
	known := map[string][]providers.Known{}
	for i := range c.Resources {
		r := &c.Resources[i]
		if (r.Inside != spec.Address{}) {
			continue
		}
		key, err := w.add(keys, r.Provider, keys.ofBlock(r.Provider))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Address, err)
		}
		if system := w.systems[key]; system.Ref != r.Provider && !r.Provider.IsOnThisHost() && !system.Settings.RawEquals(keys.blocks[r.Provider]) {
			return nil, &SystemError{One: system.Ref, Other: r.Provider}
		}
		w.wanted[r.Address], w.placed[r.Address] = key, key
	}
	for _, p := range c.Providers { // objects of ours may be there that no block has any more
		if _, err := w.add(keys, p.Ref, keys.ofBlock(p.Ref)); err != nil {
			return nil, err
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare) {
		r := s.Records[a]
		if (r.Inside != spec.Address{}) {
			continue
		}
		key, err := w.add(keys, r.Provider, keys.current(r))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		w.placed[a] = key
	}
	if err := w.placeInside(keys, c, s); err != nil {
		return nil, err
	}
	w.recallSettings(c, s.Records, keys.blocks, o.DigestKey)
	imports, interrupted := importsOf(c, o), map[spec.Address]bool{}
	for _, e := range s.Interrupted {
		interrupted[e.Address] = true
	}
	for _, a := range w.addresses() {
		k := providers.Known{Address: a, Kind: a.Kind, Name: ObjectName(o.Project, a), Import: imports[a]}
		if r, ok := c.Resource(a); ok {
			k.Want, k.Policy = r.Want, r.Policy
			if name := nameOf(r.Want); name != "" {
				k.Name = name
			}
		}
		if key, ok := w.wanted[a]; ok && key != w.placed[a] {
			known[key] = append(known[key], k)
		}
		if r, ok := s.Records[a]; ok {
			if k.Name != r.Name && k.Want != cty.NilVal && nameOf(k.Want) != "" { // who holds the name that it is to get?
				known[w.placed[a]] = append(known[w.placed[a]], providers.Known{Address: a, Kind: a.Kind, Name: k.Name})
			}
			k.ID, k.Name, k.Prior, k.Kept = providers.ID(r.ID), r.Name, r.Values, !r.Reserved && !interrupted[a]
		}
		known[w.placed[a]] = append(known[w.placed[a]], k)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Forgotten)) {
		if a := s.Forgotten[id]; w.placed[a] != "" { // so that no second object is made beside it
			known[w.placed[a]] = append(known[w.placed[a]], providers.Known{Address: a, Kind: a.Kind, ID: providers.ID(id)})
		}
	}
	return known, nil
}

func (w *World) addresses() []spec.Address {
	return slices.SortedFunc(maps.Keys(w.placed), spec.Address.Compare)
}

// add registers the system of a provider, and returns its key. Two blocks are one system if the
// settings that identify a system are equal: those that the type names, else all. The first
// settings count, so that the spec's count before a record's.
func (w *World) add(keys *systemKeys, ref spec.ProviderRef, k systemKey) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if _, ok := w.systems[k.key]; !ok {
		w.systems[k.key] = &System{Key: k.key, Ref: ref, Settings: k.settings, typ: keys.types.System(ref), limit: w.limit}
	}
	return k.key, nil
}

// open opens the provider of a system that can be read now, or in which objects are to be made.
func (s *System) open(ctx context.Context, open Open, via *providers.Via) (err error) {
	switch {
	case s.unseen != nil || s.sleep != "" && s.sleep != unmade:
		return nil
	case s.lacks != nil:
		s.unseen = s.lacks
		return nil
	}
	s.Provider, err = open(ctx, Opening{Ref: s.Ref, Type: s.typ, Attrs: s.Settings, Via: via})
	return err
}

// observe reads the system. If the provider panics, nothing of the system is known.
func (s *System) observe(ctx context.Context, known []providers.Known) error {
	whole := ctx
	if s.limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, s.limit)
		defer stop()
	}
	err := providers.Contain(func() (err error) {
		s.Inventory, err = s.Provider.Observe(ctx, providers.Query{Known: known})
		return err
	})
	if errors.As(err, &s.Panic) {
		s.Inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}}
		for kind := range s.typ.Kinds {
			s.Inventory.Partial[kind] = providers.Unread(s.Panic)
		}
		return nil
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && whole.Err() == nil {
		s.Inventory, s.unseen = providers.Inventory{}, providers.Refuse(fmt.Sprintf("it gave no answer within %s", s.limit), nil)
		return nil
	}
	s.Long = s.Inventory.Cut()
	return err
}

// steps asks the provider for the steps of a change.
func (s *System) steps(c providers.Change) (steps []providers.Step, err error) {
	err = providers.Contain(func() (err error) {
		steps, err = s.Provider.Steps(c)
		return err
	})
	errors.As(err, &s.Panic)
	return steps, err
}

// Close ends all guests, and closes every provider.
func (w *World) Close() error {
	errs := []error{w.parents.close()}
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		if p := w.systems[key].Provider; p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// Systems returns every system that was read, by key.
func (w *World) Systems() []*System {
	var all []*System
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		if w.systems[key].Provider != nil {
			all = append(all, w.systems[key])
		}
	}
	return all
}

// System returns the system with a key that this World made.
func (w *World) System(key string) *System { return w.systems[key] }

// nameOf returns the name that a block sets, "" if it sets none.
func nameOf(v cty.Value) string { return ctyread.Text(v, "name") }
