package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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
	Ref    spec.ProviderRef
	Attrs  cty.Value         // resolved; sensitive values are marked
	Inside spec.Address      // the VM whose inside is opened, by Type.Inside; zero: the system itself
	Via    *providers.Object // that VM, which runs; nil: the system itself
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
}

// System is one opened provider with what it showed.
type System struct {
	Key       string
	Ref       spec.ProviderRef
	Settings  cty.Value          // resolved
	Provider  providers.Provider // nil: nothing of it was read
	Inventory providers.Inventory
	Inside    spec.Address          // the VM whose inside it is; zero: of none
	Panic     *providers.PanicError // the last one of its provider; nil: there was none
	Long      []string              // the reasons in the inventory that were cut, whole

	via    *providers.Object // the VM, as it was observed
	sleep  sleep
	lacks  *providers.Problem // that sensitive settings are missing; nil: none is
	unseen *providers.Problem // why nothing of it could be read; nil: it was
}

// Observe opens every system that the spec or a record names and reads each of them once, side by
// side. Then it reads the insides of the VMs that run (DESIGN.md, rule 7). The caller closes the
// World, also after an error.
func Observe(ctx context.Context, open Open, c *spec.Config, s *state.Snapshot, o Options) (*World, error) {
	w := &World{systems: map[string]*System{}, wanted: map[spec.Address]string{}, placed: map[spec.Address]string{}}
	known, err := w.place(c, s, o)
	if err != nil {
		return w, err
	}
	var systems, insides []*System
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		if system := w.systems[key]; (system.Inside == spec.Address{}) {
			systems = append(systems, system)
		} else {
			insides = append(insides, system)
		}
	}
	if err := observeAll(ctx, open, systems, known, o.Types); err != nil {
		return w, err
	}
	w.placeRemoved(systems, c.Removals, o.Project)
	w.follow(systems, c, s, o.Project)
	return w, observeAll(ctx, open, w.awake(insides, c, s, o), known, o.Types)
}

// placeRemoved places the objects that a removed block names and whose address only their mark
// knows: a run that was cut short made or imported them, or their record was lost.
func (w *World) placeRemoved(systems []*System, removals []spec.Removal, p providers.Project) {
	for _, system := range systems {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if MarkingOf(o, p) != Ours || w.placed[o.Owner.Address] != "" {
				continue
			}
			if slices.ContainsFunc(removals, func(r spec.Removal) bool { return covers(r.From, o.Owner.Address) }) {
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

// observeAll reads systems side by side.
func observeAll(ctx context.Context, open Open, systems []*System, known map[string][]providers.Known, types map[string]providers.Type) error {
	var wait sync.WaitGroup
	errs := make([]error, len(systems))
	for i, system := range systems {
		wait.Go(func() {
			if errs[i] = system.observe(ctx, open, known[system.Key], types[system.Ref.Type]); errs[i] != nil {
				errs[i] = fmt.Errorf("observe %s: %w", system, errs[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// place decides to which system each address belongs, and returns the objects that each system is
// asked about.
func (w *World) place(c *spec.Config, s *state.Snapshot, o Options) (map[string][]providers.Known, error) {
	keys := &systemKeys{types: o.Types, made: map[spec.ProviderRef][]madeKey{}}
	known := map[string][]providers.Known{}
	attrs := map[spec.ProviderRef]cty.Value{}
	for _, p := range c.Providers {
		attrs[p.Ref] = p.Attrs
		if t := o.Types[p.Ref.Type]; t.Resolve != nil {
			attrs[p.Ref] = t.Resolve(p.Attrs)
		}
	}
	for _, r := range c.Resources {
		if (r.Inside != spec.Address{}) {
			ref, settings := r.Provider, attrs[r.Provider]
			if vm, recorded := s.Records[r.Inside]; recorded { // it stays in its system, whatever its block says
				ref, settings = keys.home(vm, attrs, ref)
			}
			key, err := w.addInside(keys, r.Inside, ref, settings)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Address, err)
			}
			w.wanted[r.Address], w.placed[r.Address] = key, key
			continue
		}
		key, err := w.add(keys, r.Provider, attrs[r.Provider])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Address, err)
		}
		if system := w.systems[key]; system.Ref != r.Provider && !system.Settings.RawEquals(attrs[r.Provider]) {
			return nil, &SystemError{One: system.Ref, Other: r.Provider}
		}
		w.wanted[r.Address], w.placed[r.Address] = key, key
	}
	for _, p := range c.Providers { // objects of ours may be there that no block has any more
		if _, err := w.add(keys, p.Ref, attrs[p.Ref]); err != nil {
			return nil, err
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare) {
		r := s.Records[a]
		settings := keys.current(r, attrs[r.Provider])
		key, err := "", error(nil)
		if (r.Inside != spec.Address{}) {
			key, err = w.addInside(keys, r.Inside, r.Provider, settings)
		} else {
			key, err = w.add(keys, r.Provider, settings)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		w.placed[a] = key
	}
	w.recallSettings(c, s.Records, attrs, o.DigestKey)
	for a, r := range s.Records { // objects inside of a VM that has no block and no record any more
		if key, wanted := w.wanted[a]; wanted && (r.Inside != spec.Address{}) && w.placed[r.Inside] == "" {
			w.placed[a] = key
		}
	}
	imports := importsOf(c, o)
	for _, a := range w.addresses() {
		k := providers.Known{Address: a, Kind: a.Kind, Name: ObjectName(o.Project, a), Import: imports[a]}
		if r, ok := c.Resource(a); ok {
			k.Want = r.Want
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
			k.ID, k.Name, k.Prior = providers.ID(r.ID), r.Name, r.Values
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

// home returns the provider through which the inside of a recorded VM is reached, with its
// settings: the wanted provider if it leads to the VM's system, else the recorded one.
func (k *systemKeys) home(vm state.Record, attrs map[spec.ProviderRef]cty.Value, wanted spec.ProviderRef) (spec.ProviderRef, cty.Value) {
	recorded := k.current(vm, attrs[vm.Provider])
	there, err := k.of(vm.Provider, recorded)
	if k.types[vm.Provider.Type].Inside == nil || err != nil {
		return wanted, attrs[wanted]
	}
	if here, err := k.of(wanted, attrs[wanted]); err == nil && here == there {
		return wanted, attrs[wanted]
	}
	return vm.Provider, recorded
}

func (w *World) addresses() []spec.Address {
	return slices.SortedFunc(maps.Keys(w.placed), spec.Address.Compare)
}

// current returns the settings with which a record's system is reached now: those of its provider
// block, if that is still there and leads to the same system, else the recorded ones.
func (k *systemKeys) current(r state.Record, block cty.Value) cty.Value {
	if block == cty.NilVal {
		return r.Settings
	}
	now, err := k.of(r.Provider, block)
	if err != nil {
		return r.Settings
	}
	if then, err := k.of(r.Provider, r.Settings); err != nil || now != then {
		return r.Settings
	}
	return block
}

// add registers the system of a provider, and returns its key. Two blocks are one system if the
// settings that identify a system are equal: those that the type names, else all. The first
// settings count, so that the spec's count before a record's.
func (w *World) add(keys *systemKeys, ref spec.ProviderRef, settings cty.Value) (string, error) {
	key, err := keys.of(ref, settings)
	if err != nil {
		return "", err
	}
	if _, ok := w.systems[key]; !ok {
		w.systems[key] = &System{Key: key, Ref: ref, Settings: settings}
	}
	return key, nil
}

// observe opens the system and reads it. If the provider panics, nothing of the system is known.
func (s *System) observe(ctx context.Context, open Open, known []providers.Known, t providers.Type) error {
	if s.lacks != nil {
		s.unseen = s.lacks
		return nil
	}
	p, err := open(ctx, Opening{Ref: s.Ref, Attrs: s.Settings, Inside: s.Inside, Via: s.via})
	if err != nil {
		return err
	}
	s.Provider = p
	err = providers.Contain(func() (err error) {
		s.Inventory, err = p.Observe(ctx, providers.Query{Known: known})
		return err
	})
	if errors.As(err, &s.Panic) {
		if (s.Inside != spec.Address{}) {
			t = *t.Inside
		}
		s.Inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}}
		for kind := range t.Kinds {
			s.Inventory.Partial[kind] = providers.Unread(s.Panic)
		}
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

// Close closes every provider.
func (w *World) Close() error {
	var errs []error
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
