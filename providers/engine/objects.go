package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Objects manages the images, volumes, networks and containers of one engine.
type Objects struct {
	settings providers.Settings
	c        *connection
	contents contents
	loads    loads
	prepared sync.Map // of an address of an image: its new content
	removed  sync.Map // of an address of a container that a run removed: its *others, for its successor
	sleep    func(context.Context, time.Duration) error
}

var (
	_ providers.Provider = (*Objects)(nil)
	_ guard.Driver       = (*Objects)(nil)
)

func newObjects(s providers.Settings, h Host) (*Objects, error) {
	c, err := newConnection(s.Via.Address.String(), func(ctx context.Context) (net.Conn, error) {
		g, err := s.Via.Enter(ctx)
		if err != nil {
			return nil, err
		}
		return g.Dial(ctx, "unix", "engine")
	})
	if err != nil {
		return nil, err
	}
	p := &Objects{settings: s, c: c, sleep: h.Sleep}
	if p.sleep == nil {
		p.sleep = clock.Sleep
	}
	return p, nil
}

// Close implements providers.Provider.
func (p *Objects) Close() error {
	p.c.close()
	return nil
}

// Observe implements providers.Provider. An engine that gives no answer makes every kind partial.
func (p *Objects) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	lists := p.lists(ctx)
	images, err := p.list(&inv, spec.Image, lists[spec.Image])
	p.contents.observed(q, images)
	var dangling []providers.Object
	if err == nil {
		known := knownImages(q)
		for _, s := range images {
			if s.isDangling() {
				dangling = append(dangling, p.imageObject(s, providers.Known{}))
				continue
			}
			inv.Objects = append(inv.Objects, p.imageObject(s, known[s.id]))
		}
	}
	for _, kind := range []spec.Kind{spec.Volume, spec.Network} {
		all, err := p.list(&inv, kind, lists[kind])
		if err != nil {
			continue
		}
		for _, s := range all {
			inv.Objects = append(inv.Objects, p.object(s, recordsOf(q, kind), false))
		}
	}
	p.containers(ctx, q, &inv, lists[spec.Container], images)
	p.adoptImages(q, &inv)
	p.askRegistries(ctx, q, &inv, images)
	sortObjects(inv.Objects)
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	inv.FindImports(q)
	inv.Objects = append(inv.Objects, dangling...) // an image without a name cannot be taken over
	sortObjects(inv.Objects)
	return inv, ctx.Err()
}

// paths has the path of the list of each kind.
func listPath(kind spec.Kind) string {
	switch kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Image:
		return "/images/json"
	case spec.Volume:
		return "/volumes"
	case spec.Network:
		return "/networks"
	case spec.Container:
		return "/containers/json?all=1"
	default:
		panic("unknown kind " + string(kind))
	}
}

// listing is the answer of an engine that is asked for the objects of a kind.
type listing struct {
	raws        []json.RawMessage
	warned, err error
}

// lists asks for the objects of each kind, all at once.
func (p *Objects) lists(ctx context.Context) map[spec.Kind]listing {
	kinds := []spec.Kind{spec.Image, spec.Volume, spec.Network, spec.Container}
	answers := make([]listing, len(kinds))
	parallel.Do(inFlight, len(kinds), func(i int) {
		l := &answers[i]
		l.raws, l.warned, l.err = p.raw(ctx, kinds[i])
	})
	all := map[spec.Kind]listing{}
	for i, kind := range kinds {
		all[kind] = answers[i]
	}
	return all
}

// list reads the objects of a kind. What cannot be read makes the kind partial and is left out.
func (p *Objects) list(inv *providers.Inventory, kind spec.Kind, l listing) ([]seen, error) {
	if l.err != nil {
		inv.Partial[kind] = providers.Unread(fmt.Errorf("list the %ss of %s: %w", things[kind], p.settings.Via.Address, l.err))
		return nil, l.err
	}
	if l.warned != nil {
		inv.Partial[kind] = providers.Unread(fmt.Errorf("list the %ss of %s: %w", things[kind], p.settings.Via.Address, l.warned))
	}
	var all []seen
	for _, raw := range l.raws {
		for _, s := range read(kind, raw) {
			switch {
			case s.flaw != nil:
				p.unreadable(inv, s)
			default:
				all = append(all, s)
			}
		}
	}
	return all, nil
}

func (p *Objects) raw(ctx context.Context, kind spec.Kind) (all []json.RawMessage, warned, err error) {
	if kind != spec.Volume {
		all, err = p.c.getItems(ctx, listPath(kind))
		return all, nil, err
	}
	var answer struct {
		Volumes  json.RawMessage
		Warnings []string
	}
	if err := p.c.getInto(ctx, listPath(kind), &answer); err != nil {
		return nil, nil, err
	}
	if len(answer.Warnings) > 0 {
		warned = fmt.Errorf("a driver gave no answer: %s", answer.Warnings[0])
	}
	if string(answer.Volumes) == "null" { // an old engine without volumes
		return nil, warned, nil
	}
	all, err = items(answer.Volumes)
	return all, warned, err
}

func read(kind spec.Kind, raw json.RawMessage) []seen {
	switch kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Image:
		return listedImages(raw)
	case spec.Volume:
		return []seen{readVolume(raw)}
	case spec.Network:
		return []seen{readNetwork(raw)}
	case spec.Container:
		return []seen{listedContainer(raw)}
	default:
		panic("unknown kind " + string(kind))
	}
}

// unreadable notes an object that could not be read. Nobody knows which one it is: nothing of its kind is absent
// for sure.
func (p *Objects) unreadable(inv *providers.Inventory, s seen) {
	id, _ := s.identity(p.settings.Project, nil, false)
	inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: s.kind, ID: id, Name: s.name, Reason: s.flaw.Error()})
	if inv.Partial[s.kind] == nil {
		inv.Partial[s.kind] = providers.Unread(fmt.Errorf("a %s in %s cannot be read: %w", things[s.kind], p.settings.Via.Address, s.flaw))
	}
}

// isImported reports whether a container is to be imported: then all of it counts, as of those of vmctl.
func isImported(q providers.Query, s seen) bool {
	return slices.ContainsFunc(q.Known, func(k providers.Known) bool {
		return k.Kind == s.kind && k.Import != "" && (string(k.Import) == s.name || string(k.Import) == s.id)
	})
}

// containers reads the containers. Those of vmctl are inspected, several at a time.
func (p *Objects) containers(ctx context.Context, q providers.Query, inv *providers.Inventory, listed listing, images []seen) {
	all, err := p.list(inv, spec.Container, listed)
	if err != nil {
		return
	}
	records := recordsOf(q, spec.Container)
	tokens := map[string]string{} // by image
	for _, i := range images {
		tokens[i.imageID] = i.labels[labelToken]
	}
	whole := slices.Clone(all)
	gone := make([]bool, len(all))
	parallel.Do(inFlight, len(all), func(i int) {
		s := all[i]
		isRecorded := slices.ContainsFunc(records, func(r recorded) bool { return string(r.id) == s.id })
		if s.labels[labelToken] == "" && !isRecorded && !isImported(q, s) {
			return
		}
		var flaw error
		if whole[i], flaw = p.details(ctx, s); flaw != nil {
			gone[i] = isAbsent(flaw)
			whole[i] = s
			whole[i].flaw = flaw
		}
	})
	expected := expectedImages(q, images)
	for i, s := range whole {
		switch {
		case gone[i]: // removed meanwhile
		case s.flaw != nil:
			p.unreadable(inv, s)
		default:
			isCopy := s.labels[labelToken] != "" && tokens[s.imageID] == s.labels[labelToken]
			o := p.object(s, records, isCopy)
			if s.inspected {
				o.Attrs = cty.ObjectVal(withImage(s.values(o.ID), expected[o.ID], s))
			}
			p.parking(q, &o, s, whole)
			inv.Objects = append(inv.Objects, o)
		}
	}
}

// inspect reads one container.
func (p *Objects) inspect(ctx context.Context, id string) (seen, error) {
	raw, err := p.c.get(ctx, "/containers/"+url.PathEscape(id)+"/json")
	if err != nil {
		return seen{}, err
	}
	s := inspectedContainer(raw)
	return s, s.flaw
}

// details reads a container that a list shows. An answer that has lost its mark proves nothing.
func (p *Objects) details(ctx context.Context, listed seen) (seen, error) {
	s, err := p.inspect(ctx, listed.id)
	if err == nil && s.labels[labelToken] != listed.labels[labelToken] {
		err = fmt.Errorf("its labels are not those that the list of the engine shows")
	}
	return s, err
}

// recordsOf lists what the records say of objects of a kind.
func recordsOf(q providers.Query, kind spec.Kind) []recorded {
	var all []recorded
	for _, k := range q.Known {
		if k.Kind == kind && k.ID != "" {
			forgotten := k.Name == "" && k.Prior == cty.NilVal && k.Want == cty.NilVal
			all = append(all, recorded{k.ID, k.Address, ctyread.Text(k.Prior, "container_id"), forgotten})
		}
	}
	return all
}

// object returns an object that is no image. A container has its attributes only once it was inspected.
func (p *Objects) object(s seen, records []recorded, isCopy bool) providers.Object {
	o := providers.Object{Kind: s.kind, Name: s.name, State: s.state, Unreadable: map[string]string{}, Holds: []providers.Claim{nameClaim(s.kind, s.name)}}
	o.ID, o.Owner = s.identity(p.settings.Project, records, isCopy)
	if o.Owner != nil && o.Owner.Of != o.ID {
		o.Findings = []providers.Finding{{
			Kind: providers.FindCopy, Object: o.Name, Address: o.Owner.Address, Action: "left alone",
			Evidence: []string{"its labels were written for " + s.labels[labelName]},
		}}
	}
	if s.kind == spec.Container {
		s.addUses(&o)
	}
	if s.state == stateDead {
		o.Spent = "the engine failed to remove it, and never starts it again"
	}
	if s.kind == spec.Network && predefined[s.name] {
		o.Protected = "every engine has it"
	}
	for _, b := range s.bound {
		o.HoldsUp = append(o.HoldsUp, portClaim(b.ip, b.port, b.protocol))
	}
	o.Attrs, o.Fingerprint = cty.ObjectVal(s.values(o.ID)), s.fingerprint()
	return o
}

// values returns the attributes that the engine shows. What cannot differ from the record, since the engine
// never changes it, is left out.
func (s seen) values(id providers.ID) map[string]cty.Value {
	all := map[string]cty.Value{"id": cty.StringVal(string(id))}
	switch s.kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Container:
		all["container_id"] = cty.StringVal(s.id)
		if state := s.wantable(); state != "" {
			all["state"] = cty.StringVal(state)
		}
		if s.inspected {
			all["restart"], all["memory"], all["cpus"] = cty.StringVal(s.restart), cty.NullVal(cty.Number), cty.NullVal(cty.Number)
			if s.memory > 0 {
				all["memory"] = cty.NumberIntVal(s.memory)
			}
			if s.nanoCPUs > 0 {
				all["cpus"] = cpus(s.nanoCPUs)
			}
		}
	case spec.Volume, spec.Network:
		all["driver"] = cty.StringVal(s.driver)
	case spec.Image:
		all["image_id"], all["digest"] = cty.StringVal(s.imageID), cty.NullVal(cty.String)
		if digests := s.digestsOf(s.id); len(digests) > 0 {
			all["digest"] = cty.StringVal(digests[0])
		}
	default:
		panic("unknown kind " + string(s.kind))
	}
	return all
}

// cpus returns a number of CPUs.
func cpus(nano int64) cty.Value {
	return cty.MustParseNumberVal(fmt.Sprintf("%d.%09d", nano/1e9, nano%1e9))
}

// fingerprint returns the fingerprint of an object.
func (s seen) fingerprint() string {
	var print guard.Print
	print.Add("id", s.id)
	print.Add("name", s.name)
	print.Add("token", s.labels[labelToken])
	switch s.kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Container:
		print.Add("image", s.imageID)
		print.Add("state", s.wantable())
		print.Add("memory", fmt.Sprint(s.memory))
		print.Add("cpus", fmt.Sprint(s.nanoCPUs))
		print.Add("restart", s.restart)
	case spec.Image:
		print.Add("content", s.imageID)
	case spec.Volume, spec.Network:
		print.Add("driver", s.driver)
	default:
		panic("unknown kind " + string(s.kind))
	}
	return print.String()
}
