package terraform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/internal/lockfile"
	"vmctl/providers"
)

// shared holds the resources of the module that belong to all its VMs: IDs by address, as the provider block has
// them. An ID is "" where the block has none.
type shared map[string]string

func sharedOf(attrs cty.Value) shared {
	all := shared{}
	if v := ctyread.Attr(attrs, "shared"); ctyread.Known(v) {
		for address, id := range v.AsValueMap() {
			all[address] = id.AsString()
		}
	}
	return all
}

// has reports whether an instance belongs to all VMs: its address is in the list, or that of its resource.
func (s shared) has(e located) bool {
	_, instance := s[e.address]
	_, resource := s[e.base]
	return instance || resource
}

// located is an instance of a resource.
type located struct {
	address string
	base    string // the address of its resource, without an index
}

// sharedDir returns the folder of the state in which vmctl keeps the shared resources once a VM that had them goes.
func (p *Provider) sharedDir() string { return filepath.Join(p.settings.Dir, "shared") }

// keptPath returns the file with that state. It is never the state of a VM.
func (p *Provider) keptPath() string { return filepath.Join(p.sharedDir(), stateName) }

// kept lists the shared resources in that state.
func (p *Provider) kept() ([]entry, error) {
	text, err := os.ReadFile(p.keptPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.sharedIn(p.keptPath(), text)
}

// sharedIn lists the shared resources in a state, which has a place.
func (p *Provider) sharedIn(place string, text []byte) ([]entry, error) {
	if _, err := readState(text); err != nil {
		return nil, fmt.Errorf("read %s: %w", place, err)
	}
	all, err := entriesOf(text)
	return slices.DeleteFunc(all, func(e entry) bool { return !p.shared.has(e.located) }), err
}

// sharedKnown lists the shared resources that exist as far as the states of the other workspaces tell, or else the
// state of those that stayed.
func (p *Provider) sharedKnown(ctx context.Context, from states, except string) ([]entry, error) {
	workspaces, err := from.list(ctx)
	if err != nil {
		return nil, err
	}
	known, where, flawed := map[string]entry{}, map[string]string{}, map[string]error{}
	take := func(place string, found []entry) error {
		for _, e := range found {
			other, twice := known[e.address]
			switch {
			case e.flaw != "":
				flawed[e.address] = fmt.Errorf("the shared %s is %s in %s", e.address, e.flaw, place)
			case !twice:
				known[e.address], where[e.address] = e, place
			case other.id != e.id && place != p.keptPath() && p.shared[e.address] == "":
				return p.ambiguous(e.address, []string{other.id + " in " + where[e.address], e.id + " in " + place})
			}
		}
		return nil
	}
	for _, w := range workspaces {
		if w.name == except {
			continue
		}
		text, err := from.read(ctx, w.name)
		if err != nil {
			return nil, err
		}
		found, err := p.sharedIn("the workspace "+w.name, text)
		if err == nil {
			err = take("the workspace "+w.name, found)
		}
		if err != nil {
			return nil, err
		}
	}
	kept, err := p.kept()
	if err == nil {
		err = take(p.keptPath(), kept)
	}
	if err != nil {
		return nil, err
	}
	for _, address := range slices.Sorted(maps.Keys(flawed)) {
		if _, ok := known[address]; !ok {
			return nil, &providers.Problem{Outcome: providers.Failed, Code: "terraform_shared", Err: flawed[address], Next: providers.Vmctl("plan")}
		}
	}
	var all []entry
	for _, address := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[address])
	}
	return all, nil
}

func (p *Provider) ambiguous(address string, seen []string) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_shared", Seen: seen,
		Err:  fmt.Errorf("the VMs of provider.terraform.%s have different objects as the shared %s", p.settings.Name, address),
		Next: providers.Say(fmt.Sprintf("say in the provider block which it is: shared = { %q = \"ID\" }", address)),
	}
}

// joining holds what a workspace lacks of the shared resources that exist.
type joining struct {
	copies  []entry           // they go into its state as another state has them
	imports map[string]string // IDs by address: Terraform reads the objects
	// first says that of some shared resources none is known: Terraform makes those that the module still has.
	first bool
}

func (j joining) none() bool { return len(j.copies)+len(j.imports) == 0 }

// joiningOf compares the state of a workspace, which may be absent, with the shared resources that exist.
func (p *Provider) joiningOf(ctx context.Context, from states, name string, text []byte) (joining, error) {
	if len(p.shared) == 0 {
		return joining{}, nil
	}
	all, err := entriesOf(text)
	if err != nil {
		return joining{}, err
	}
	there := map[string]bool{}
	for _, e := range all {
		there[e.address], there[e.base] = true, true
	}
	known, err := p.sharedKnown(ctx, from, name)
	if err != nil {
		return joining{}, err
	}
	j := joining{imports: map[string]string{}}
	for _, e := range known {
		if id := p.shared[e.address]; !there[e.address] && (id == "" || id == e.id) {
			j.copies = append(j.copies, e)
			there[e.address], there[e.base] = true, true
		}
	}
	for address, id := range p.shared {
		switch {
		case there[address]:
		case id != "":
			j.imports[address] = id
		default:
			j.first = true
		}
	}
	return j, nil
}

// join gives the state of a workspace the shared resources that it lacks. The caller holds the turn.
func (p *Provider) join(ctx context.Context, s *session, add joining, into target) error {
	if len(add.copies) > 0 {
		text, err := stateEdit{lineage: into.lineage, add: add.copies}.apply(into.text)
		if err != nil {
			return err
		}
		if err := into.write(text); err != nil {
			return err
		}
	}
	for _, address := range slices.Sorted(maps.Keys(add.imports)) {
		id := add.imports[address]
		if err := s.importResource(ctx, into.option, address, id); err != nil {
			return &providers.Problem{
				Outcome: providers.Failed, Code: "terraform_shared", Err: fmt.Errorf("import the shared %s (%s): %w", address, id, err),
				Next: providers.Say(fmt.Sprintf("correct the ID in the block of provider.terraform.%s: shared = { %q = \"ID\" }", p.settings.Name, address)),
			}
		}
	}
	return nil
}

// target is the state that shared resources join.
type target struct {
	write   func(text []byte) error
	option  string // the value of -state; "": that of the workspace
	lineage string // of a new state
	text    []byte // nil: there is none yet
}

// takeTurn waits until no other step makes or keeps shared resources of the module. One that waits for the first VM
// takes as long as that. nil: the module has no shared resources.
func (p *Provider) takeTurn(ctx context.Context, log providers.Log) (*lockfile.Lock, error) {
	if len(p.shared) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(p.sharedDir(), 0o700); err != nil {
		return nil, err
	}
	return lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(p.sharedDir(), "lock"), Wait: 24 * time.Hour, Waiting: func(lockfile.Owner) {
		if log != nil {
			log(providers.Progress{Text: "waiting for the step that makes the shared resources of the module"})
		}
	}})
}

// endTurn lets the next one have its turn.
func endTurn(l *lockfile.Lock) error {
	if l == nil {
		return nil
	}
	return l.Release()
}

// keepShared notes the shared resources of a state, so that they are found when the state goes.
func (p *Provider) keepShared(now *seen) ([]entry, error) {
	found, err := p.sharedIn("the workspace "+now.name, now.raw)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	whole := slices.DeleteFunc(slices.Clone(found), func(e entry) bool { return e.flaw != "" })
	text, err := os.ReadFile(p.keptPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, err = stateEdit{
		lineage: "vmctl-shared-" + p.settings.Project.Lineage(), add: whole,
		drop: func(address string) bool {
			return slices.ContainsFunc(whole, func(e entry) bool { return e.address == address })
		},
	}.apply(text)
	if err != nil {
		return nil, err
	}
	return found, atomicfile.Write(p.keptPath(), text, 0o600)
}

// stay describes the shared resources that stay though no VM of the module is left, and how to remove them. nil: there
// are none, or a VM is left.
func (p *Provider) stay(ctx context.Context, where states) ([]string, error) {
	if len(p.shared) == 0 {
		return nil, nil
	}
	left, err := where.list(ctx)
	if err != nil || len(left) > 0 {
		return nil, err
	}
	kept, err := p.kept()
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	var names []string
	for _, e := range kept {
		name := e.address
		if e.id != "" {
			name += " (" + e.id + ")"
		}
		names = append(names, name)
	}
	said := []string{"no VM of the module is left, and its shared resources stay: " + strings.Join(names, ", ")}
	m, err := p.readModule()
	if err != nil {
		return nil, err
	}
	return append(said, p.removal(m)...), nil
}
