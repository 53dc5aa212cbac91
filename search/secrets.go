package search

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"pgregory.net/rapid"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
	"vmctl/state"
)

// Secrets places secrets at attributes that may be sensitive, and checks the laws of secrets: after an apply nothing is left
// to do; a changed secret is one edit, of its attribute; without the key of the digests a secret that the
// system does not show counts as unchanged, with a warning, and no other edit is held up; and no record, plan or seal has a secret.
func Secrets(t *testing.T, host Host) {
	t.Helper()
	dir := scratch(t, host)
	rapid.Check(t, func(r *rapid.T) {
		b := newHarness(t.Context(), r, host, dir)
		b.draw, b.total, b.faultless = r, newTally(), true
		s := secretCase{harness: b, values: map[secretPlace]secretValue{}}
		b.hidden = below(r, 2, "hidden") == 0
		s.drawValues()
		s.applied("made")
		s.changeOne()
		s.applied("changed")
		s.loseKey()
		s.applied("without the key")
	})
}

// secretPlace is an attribute that may be sensitive, of one resource.
type secretPlace struct{ address, path string }

func (p secretPlace) String() string { return p.address + " " + p.path }

type secretValue struct {
	word      int // 0: the attribute is absent
	sensitive bool
}

type secretCase struct {
	*harness
	values map[secretPlace]secretValue
	labels []string
	cpus   int
	lost   bool // the key was
}

func secretWord(n int) string { return fmt.Sprintf("hush-hush-%d", n) }

func (s *secretCase) drawValues() {
	s.cpus = 1
	s.labels = []string{"a", "b", "c"}[:1+below(s.draw, 3, "VMs")]
	for _, label := range s.labels {
		for _, kind := range []spec.Kind{spec.VM, box.Kind} {
			for _, path := range spec.SensitivePaths(kind) {
				if strings.HasPrefix(path, "provision.") || // scripts run around providers, not in them
					!supports(s.types().Of(s.host.Type.Name, kind, spec.ThisHost).Kinds, kind, path) {
					continue
				}
				s.values[secretPlace{string(kind) + "." + label, path}] = secretValue{word: below(s.draw, 3, "word"), sensitive: below(s.draw, 3, "sensitive") > 0}
			}
		}
	}
}

func (s *secretCase) text() string {
	var b strings.Builder
	for _, label := range s.labels {
		fmt.Fprintf(&b, "vm %q {\n  provider = provider.sim.here\n  cpus = %d\n", label, s.cpus)
		s.attributes(&b, "vm."+label)
		fmt.Fprintf(&b, "}\nbox %q {\n  in = vm.%s\n  label = %q\n", label, label, label)
		s.attributes(&b, "box."+label)
		b.WriteString("}\n")
	}
	return b.String()
}

// attributes writes the attributes of a resource, those of one block together.
func (s *secretCase) attributes(b *strings.Builder, address string) {
	blocks := map[string]string{}
	for _, place := range s.places(func(p secretPlace, v secretValue) bool { return p.address == address && v.word > 0 }) {
		kind, _, _ := strings.Cut(address, ".")
		attr, _ := spec.AttrAt(spec.Kind(kind), place.path)
		v := s.values[place]
		value := fmt.Sprintf("%q", secretWord(v.word))
		if v.sensitive {
			value = "sensitive(" + value + ")"
		}
		if attr.Type.IsMapType() {
			value = "{ k = " + value + " }"
		}
		block, name, nested := strings.Cut(place.path, ".")
		if !nested {
			block, name = "", place.path
		}
		blocks[block] += fmt.Sprintf("  %s = %s\n", name, value)
	}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		if block == "" {
			b.WriteString(blocks[block])
			continue
		}
		fmt.Fprintf(b, "  %s {\n%s  }\n", block, blocks[block])
	}
}

// places lists the attributes that fit, sorted.
func (s *secretCase) places(fits func(secretPlace, secretValue) bool) []secretPlace {
	var all []secretPlace
	for place, v := range s.values {
		if fits(place, v) {
			all = append(all, place)
		}
	}
	slices.SortFunc(all, func(a, b secretPlace) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// applied applies the spec, and checks that nothing is left to do and that no secret is recorded.
func (s *secretCase) applied(what string) {
	s.t.Helper()
	s.spec = s.text()
	s.say("%s:\n%s", what, s.spec)
	if out := s.apply(nil); !out.ok {
		s.failf("secrets", "the apply failed: %+v", out)
	}
	if plan, _ := s.planned(); plan.Pending() {
		s.failf("secrets", "there is left: %s", planText(plan))
	}
	digests := map[string]string{}
	for a, r := range s.store.snapshot.Records {
		text := fmt.Sprintf("%#v %#v", r.Values, r.Settings)
		for path, digest := range r.Digests {
			if !s.values[secretPlace{a.String(), path}].sensitive || digests[digest] != "" || !s.lost && !s.key.Made(digest) {
				s.failf("secrets", "%s %s has the digest %q, which %q has, too", a, path, digest, digests[digest])
			}
			digests[digest] = a.String() + " " + path
		}
		for _, p := range s.places(func(p secretPlace, v secretValue) bool { return p.address == a.String() && v.word > 0 && v.sensitive }) {
			if r.Digests[p.path] == "" {
				s.failf("secrets", "%s has no digest", p)
			}
		}
		for _, v := range []cty.Value{r.Values, r.Settings} {
			if v == cty.NilVal {
				continue
			}
			if _, err := json.Marshal(ctyjson.SimpleJSONValue{Value: v}); err != nil {
				s.failf("secrets", "the record of %s cannot be written: %v", a, err)
			}
		}
		plain := s.places(func(p secretPlace, v secretValue) bool { return p.address == a.String() && v.word > 0 && !v.sensitive })
		if strings.Count(text, "hush-hush") != len(plain) {
			s.failf("secrets", "the record of %s has a secret: %s", a, text)
		}
	}
}

// planned returns the plan of the spec and its text, and checks that this has no secret.
func (s *secretCase) planned() (*planner.Plan, string) {
	s.t.Helper()
	c := s.load()
	plan, world, err := planner.Make(s.ctx, s.open, c, s.store.snapshot, s.options(c))
	s.must(err)
	s.must(world.Close())
	seal, err := plan.Seal(s.store.snapshot, s.key)
	s.must(err)
	text := planText(plan)
	sealed, err := json.Marshal(seal)
	s.must(err)
	if strings.Contains(text+string(sealed), "hush-hush") {
		s.failf("secrets", "the plan has a secret: %s %s", text, sealed)
	}
	return plan, text
}

func (s *secretCase) edits(plan *planner.Plan) (all []string) {
	for _, c := range plan.Changes {
		for _, e := range c.Edits {
			if s.values[secretPlace{c.Address.String(), e.Path}].sensitive && (!e.Before.IsMarked() || !e.After.IsMarked() || !strings.HasPrefix(e.Verdict.Reason, "sensitive value changed")) {
				s.failf("secrets", "the edit of %s %s is not withheld: %#v", c.Address, e.Path, e.Verdict)
			}
			all = append(all, c.Address.String()+" "+e.Path)
		}
	}
	return all
}

// changeOne changes one secret, or makes one that was open a secret.
func (s *secretCase) changeOne() {
	s.t.Helper()
	all := s.places(func(_ secretPlace, v secretValue) bool { return v.word > 0 && v.sensitive })
	if len(all) == 0 {
		return
	}
	place := all[below(s.draw, len(all), "changed")]
	v := s.values[place]
	if below(s.draw, 3, "opened") == 0 { // the same value, no secret any more
		s.values[place] = secretValue{word: v.word}
		s.expect()
		return
	}
	s.values[place] = secretValue{word: v.word + 3, sensitive: true}
	s.expect(place.String())
}

// expect checks that a plan has these edits and no others.
func (s *secretCase) expect(want ...string) {
	s.t.Helper()
	s.spec = s.text()
	plan, text := s.planned()
	if got := s.edits(plan); !slices.Equal(got, want) {
		s.failf("secrets", "the edits are %q, want %q: %s\n%s", got, want, text, s.spec)
	}
	for _, f := range plan.Findings {
		if f.Kind == providers.FindDrift {
			s.failf("secrets", "nobody changed an object, and there is drift: %+v\n%s", f, s.spec)
		}
	}
}

// loseKey loses the key of the digests, and changes a secret and another attribute.
func (s *secretCase) loseKey() {
	s.t.Helper()
	key, err := state.NewDigestKey(rand.Reader)
	s.must(err)
	if below(s.draw, 2, "new key") == 0 {
		key = state.DigestKey{}
	}
	s.key, s.lost = key, true
	s.spec = s.text()
	if plan, text := s.planned(); len(plan.Steps) > 0 || len(s.edits(plan)) > 0 {
		s.failf("secrets", "without the key something is to be done: %s", text)
	} else {
		s.checkWarned(plan)
	}
	if s.key, err = state.NewDigestKey(rand.Reader); err != nil {
		s.must(err)
	}
	if all := s.places(func(_ secretPlace, v secretValue) bool { return v.word > 0 && v.sensitive }); s.hidden && len(all) > 0 {
		place := all[below(s.draw, len(all), "changed unseen")]
		s.values[place] = secretValue{word: s.values[place].word + 3, sensitive: true}
		s.expect()
	}
	s.cpus++
	var want []string
	for _, label := range s.labels {
		want = append(want, "vm."+label+" cpus")
	}
	s.expect(want...)
}

// checkWarned checks that there is a warning about every record whose digests another key made, if the system does not show
// the values either.
func (s *secretCase) checkWarned(plan *planner.Plan) {
	s.t.Helper()
	for _, c := range plan.Changes {
		var unseen []string // the paths of digests whose values the system does not show
		for path := range s.store.snapshot.Records[c.Address].Digests {
			if c.Object == nil || !shows(c.Object.Attrs, path) {
				unseen = append(unseen, path)
			}
		}
		warned := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "whether the sensitive value changed is not known") })
		if warned != (len(unseen) > 0) {
			s.failf("secrets", "%s has digests of the unseen %q and the warnings %q", c.Address, unseen, c.Warnings)
		}
	}
}

// shows reports whether an object has a value at a dotted path.
func shows(v cty.Value, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		v, _ = v.Unmark()
		if v == cty.NilVal || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
			return false
		}
		v = v.GetAttr(name)
	}
	return !v.IsNull()
}

// secretive is a provider whose system never shows an attribute that may be sensitive.
type secretive struct{ providers.Provider }

// Unwrap implements providers.Wrapper.
func (p secretive) Unwrap() providers.Provider { return p.Provider }

// Observe leaves these attributes out.
func (p secretive) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv, err := p.Provider.Observe(ctx, q)
	for i := range inv.Objects {
		o := &inv.Objects[i]
		for _, path := range spec.SensitivePaths(o.Kind) {
			name, _, _ := strings.Cut(path, ".")
			o.Attrs, o.Live = lacking(o.Attrs, name), lacking(o.Live, name)
		}
	}
	return inv, err
}

// lacking returns an object without an attribute.
func lacking(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || !v.Type().HasAttribute(name) {
		return v
	}
	all := v.AsValueMap()
	delete(all, name)
	return cty.ObjectVal(all)
}
