package providertest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// Effects tells the suite how a system shows the effects of attributes.
type Effects struct {
	// Images are two different images that a VM can begin as, by their paths in
	// Settings.Files.
	Images [2]string
	// Lacks lists the attributes that the type does not support, by kind and path
	// ("vm.additional_disk.mount_point"), with the reason.
	Lacks map[string]string
	// Idle lists the attributes that the type accepts and that cannot act on this system, by
	// kind and path, with the reason.
	Idle map[string]string
	// Reports reads an attribute from the system itself, not through the provider. want has
	// the attributes that the VM was made with. false: only the provider shows the attribute.
	Reports func(o providers.Object, want cty.Value, path string) (text string, known bool)
}

// WithoutTerraform adds the attributes that only Terraform has to those that another type lacks, and
// returns them all.
func WithoutTerraform(lacks map[string]string) map[string]string {
	all := map[string]string{"vm.variables": "only Terraform has it", "vm.variables_json": "only Terraform has it", "vm.outputs": "only Terraform has it"}
	maps.Copy(all, lacks)
	return all
}

// WithoutLima adds the attributes that only Lima or only Terraform has to those that another type
// lacks, and returns them all.
func WithoutLima(lacks map[string]string) map[string]string {
	all := WithoutTerraform(lacks)
	for _, path := range []string{"template", "params", "plain", "mount.source", "mount.target", "mount.writable"} {
		all["vm."+path] = "only Lima has it"
	}
	return all
}

// WithoutNetworks adds the attributes that only systems with networks for VMs have to those that another type lacks, and
// returns them all.
func WithoutNetworks(lacks map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, lacks)
	for _, e := range effects {
		if e.kind == spec.Network || strings.HasPrefix(e.path, "network_interface.") {
			all[e.key()] = "it makes no networks for VMs"
		}
	}
	return all
}

// scene names the object on which the effect of an attribute is tried.
type scene string

// The scenes: a running VM of a kernel, a VM of an image that is off, a running VM that ignores
// requests to end, one that survives force too, a disk, a network, and a box inside a VM.
const (
	onKernel scene = "a VM of a kernel"
	onImage  scene = "a VM of an image"
	onDeaf   scene = "a VM that ignores requests"
	onStuck  scene = "a VM that survives force"
	onDisk   scene = "a disk"

	onNetwork scene = "a network"

	onBox scene = "a box inside a VM"
)

// effect is the proof that an attribute acts: two values, and how a system shows them.
type effect struct {
	kind   spec.Kind
	path   string
	on     scene
	values func(*stage) [2]cty.Value
	// shows returns the reason why an object does not have a value; "": it has the value.
	// nil: its attributes show it, or the system reports it.
	shows func(sample) string
	// says reports whether a system's text shows a value. nil: it is the value.
	says func(text string, value cty.Value) bool
	// acts proves an effect on the steps of a change, or on the outcome of a step. nil: the
	// object alone shows the attribute.
	acts func(*actor, effect)
}

// key names the attribute in the maps of Effects.
func (e effect) key() string { return string(e.kind) + "." + e.path }

// documented lists the attributes that a spec can set in a block, by their paths.
func documented(b spec.Block, prefix string) []string {
	var all []string
	for _, a := range b.Attrs {
		if !a.Computed && !a.Derived && !a.Own {
			all = append(all, prefix+a.Name)
		}
	}
	for _, nested := range b.Blocks {
		all = append(all, documented(nested, prefix+nested.Name+".")...)
	}
	return all
}

// Gaps lists the attributes that the shape of a kind documents and that no row proves, and the
// rows without an attribute.
func Gaps(kind spec.Kind, shape spec.Block) []string {
	var complaints []string
	has, proven := documented(shape, ""), Planned(kind)
	for _, e := range effects {
		if e.kind == kind {
			proven = append(proven, e.path)
		}
	}
	for _, path := range has {
		if !slices.Contains(proven, path) {
			complaints = append(complaints, fmt.Sprintf("%s.%s: no row proves its effect", kind, path))
		}
	}
	for i, path := range proven {
		if !slices.Contains(has, path) {
			complaints = append(complaints, fmt.Sprintf("%s.%s: the row has no attribute", kind, path))
		}
		if slices.Contains(proven[:i], path) {
			complaints = append(complaints, fmt.Sprintf("%s.%s: two rows prove it", kind, path))
		}
	}
	return complaints
}

// Planned lists the attributes of a kind that no provider acts on.
func Planned(kind spec.Kind) []string { return slices.Clone(planned[kind]) }

// registered checks that each attribute that the shape of a kind documents has a row, that each
// row has an attribute, and that the type supports all attributes but those that the world
// lacks.
func registered(s *stage) {
	for _, kind := range []spec.Kind{spec.VM, spec.Disk, spec.Network, box.Kind} {
		shape, _ := spec.Shape(kind)
		for _, complaint := range Gaps(kind, shape) {
			s.t.Error(complaint)
		}
		typ, known := s.typeOf(kind)
		if !known {
			continue
		}
		for _, path := range documented(shape, "") {
			a, _ := spec.AttrAt(kind, path)
			_, supported := supportOf(path, typ.Kinds[kind])
			_, lacked := s.Effects.Lacks[string(kind)+"."+path]
			if !supported && !lacked && !slices.Contains(Planned(kind), path) && !a.Meta && !a.Policy && !inPolicy(shape, path) {
				s.t.Errorf("%s.%s: the provider does not support it, and the world does not list it as lacking", kind, path)
			}
		}
	}
	s.lacks()
}

// lacks checks that the type rejects each attribute that the world lists as lacking, and that
// the world lists attributes that have rows.
func (s *stage) lacks() {
	for _, listed := range []map[string]string{s.Effects.Lacks, s.Effects.Idle} {
		for _, key := range slices.Sorted(maps.Keys(listed)) {
			if !slices.ContainsFunc(effects, func(e effect) bool { return e.key() == key }) {
				s.t.Errorf("%s: the world lists it, and no row has it", key)
			}
		}
	}
	for _, e := range effects {
		if _, lacked := s.Effects.Lacks[e.key()]; !lacked {
			continue
		}
		typ, _ := s.typeOf(e.kind)
		if _, supported := supportOf(e.path, typ.Kinds[e.kind]); !supported {
			continue
		}
		want := put(s.baseOf(e.kind), spec.WantType(e.kind), e.path, e.values(s)[0])
		if typ.Check == nil || len(typ.Check(e.kind, want)) == 0 {
			s.t.Errorf("%s: the world lacks it, and the provider accepts it", e.key())
		}
	}
}

// typeOf returns the type that manages a kind: the stage's own, or the one inside its VMs.
func (s *stage) typeOf(kind spec.Kind) (providers.Type, bool) {
	if _, known := s.Type.Kinds[kind]; known {
		return s.Type, true
	}
	t, known := s.Inside[kind]
	return t, known
}

// inPolicy reports whether the block of an attribute holds policy.
func inPolicy(b spec.Block, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	for _, nested := range b.Blocks {
		if deeper && nested.Name == name {
			return nested.Policy || inPolicy(nested, rest)
		}
	}
	return false
}

// supportOf returns the attribute of a type at a path, or at the nearest path above it.
func supportOf(path string, attrs map[string]providers.Attribute) (providers.Attribute, bool) {
	for path != "" {
		if a, ok := attrs[path]; ok {
			return a, true
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return providers.Attribute{}, false
}

// sample is an object that is to have a value of an attribute.
type sample struct {
	*actor
	effect
	object providers.Object
	value  cty.Value
}

// missing returns the reason why the object does not have the value; "": it has it.
func (l sample) missing() string {
	if l.shows != nil {
		return l.shows(l)
	}
	return l.shown(l.value)
}

// shown compares a value with the object's attributes, those for its next start and those that
// it runs with, and with the report of the system itself.
func (l sample) shown(value cty.Value) string {
	seen := false
	for _, attrs := range []cty.Value{l.object.Attrs, l.object.Now()} {
		v := at(attrs, l.path)
		if v == cty.NilVal {
			continue
		}
		seen = true
		if !equal(v, value) {
			return fmt.Sprintf("it is %#v, and was to be %#v", v, value)
		}
	}
	text, known := l.report(l.path)
	if known {
		seen = true
		if says := l.says; says == nil && text != word(value) || says != nil && !says(text, value) {
			return fmt.Sprintf("the system reports %.200q, and it was to be %#v", text, value)
		}
	}
	if !seen && l.acts == nil {
		return "neither its attributes nor the system show it"
	}
	return ""
}

// report returns the system's own text about an attribute.
func (a *actor) report(path string) (text string, known bool) {
	if a.Effects.Reports == nil || a.address.Kind != spec.VM {
		return "", false
	}
	return a.Effects.Reports(a.object(), a.want, path)
}

// at returns the part of a value at a dotted path. Of a list it takes the first element.
func at(v cty.Value, path string) cty.Value {
	for name := range strings.SplitSeq(path, ".") {
		if v != cty.NilVal && v.IsKnown() && !v.IsNull() && v.Type().IsListType() {
			if v.LengthInt() == 0 {
				return cty.NilVal
			}
			v = ctyread.List(v)[0]
		}
		v = ctyread.Attr(v, name)
	}
	return v
}

// word writes a value as a system does.
func word(v cty.Value) string {
	switch {
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type() == cty.String:
		return v.AsString()
	}
	var lines []string
	for _, e := range ctyread.List(v) {
		lines = append(lines, word(e))
	}
	return strings.Join(lines, "\n")
}

// contains reports whether a text has a value, as it is or as a part of a MIME message.
func contains(text string, value cty.Value) bool {
	return strings.Contains(text, word(value)) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(word(value))))
}
