package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// recalled returns the values of a record, and fills in its sensitive values, of which the record has only digests. It
// tries the wanted and the shown value: the one with the recorded digest is filled in. If neither has it, the value is
// unknown, and equals nothing. If another key made the digest, the shown value is filled in, else the wanted one. It also
// returns the paths where the wanted one was filled in unproven.
func (d *differ) recalled(c *Change, r state.Record, want cty.Value) (values cty.Value, unsure []string) {
	values = r.Values
	if len(r.Digests) == 0 {
		return values, nil
	}
	shown := cty.NilVal
	if seen := d.observations.At(c.Address, d.name(c.Address)); seen.Object != nil {
		shown = seen.Object.Attrs
	}
	left := ignored(c.Policy, want)
	for _, path := range slices.Sorted(maps.Keys(r.Digests)) {
		if strings.HasPrefix(path, state.SettingPrefix) {
			continue
		}
		attr, _ := spec.AttrAt(r.Kind, path)
		value := cty.UnknownVal(orAny(attr.Type))
		for _, candidate := range []cty.Value{spec.Revealed(at(want, path)), at(shown, path)} {
			if isPlain(candidate) && d.options.DigestKey.Digest(r.ID, path, candidate) == r.Digests[path] {
				value = candidate
			}
		}
		if made := d.options.DigestKey.Made(r.Digests[path]); !made || d.isPower() || covered(left, path) {
			value = assumed(value, at(shown, path), spec.Revealed(at(want, path)))
			if !made && !isPlain(at(shown, path)) {
				unsure = append(unsure, path)
			}
		}
		values = placed(values, path, spec.Sensitive(value))
	}
	return values, unsure
}

// isPlain reports whether a value is there and wholly known.
func isPlain(v cty.Value) bool { return ctyread.Known(v) && v.IsWhollyKnown() }

// orAny returns t, or the type of any value.
func orAny(t cty.Type) cty.Type {
	if t == cty.NilType {
		return cty.DynamicPseudoType
	}
	return t
}

// assumed returns value if it is known, else the first known candidate.
func assumed(value cty.Value, candidates ...cty.Value) cty.Value {
	for _, candidate := range candidates {
		if !value.IsKnown() && isPlain(candidate) {
			value = candidate
		}
	}
	return value
}

// covered reports whether a path, or one above it, is listed.
func covered(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
}

// placed returns an object with a value at a dotted path.
func placed(v cty.Value, path string, value cty.Value) cty.Value {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return with(v, name, value)
	}
	return with(v, name, placed(ctyread.Attr(v, name), rest, value))
}

// unsureWarning says that it is not known whether sensitive values have changed.
func unsureWarning(paths []string) string {
	return fmt.Sprintf("%s: the key of its recorded digest is not in this data directory: whether the sensitive value changed is not known, and it is taken for unchanged",
		strings.Join(paths, ", "))
}

// concealed returns the attributes that a system shows, with those marked that may be sensitive: nobody says
// whether they are.
func concealed(kind spec.Kind, shown cty.Value) cty.Value {
	for _, path := range spec.SensitivePaths(kind) {
		if v := at(shown, path); ctyread.Known(v) {
			shown = placed(shown, path, spec.Sensitive(v))
		}
	}
	return shown
}

// Shown returns an object with marks on the attributes that are sensitive in its block or its record, and without
// either on all that may be.
func Shown(o providers.Object, wanted *spec.Resource, r *state.Record) providers.Object {
	paths := map[string]bool{}
	if wanted != nil {
		for _, v := range spec.SensitiveValues(wanted.Want) {
			paths[v.Path] = true
		}
	}
	if r != nil {
		for path := range r.Digests {
			paths[path] = true
		}
	}
	if wanted == nil && r == nil {
		for _, path := range spec.SensitivePaths(o.Kind) {
			paths[path] = true
		}
	}
	for _, attrs := range []*cty.Value{&o.Attrs, &o.Live} {
		for path := range paths {
			if v := at(*attrs, path); v != cty.NilVal {
				*attrs = placed(*attrs, path, spec.Sensitive(v))
			}
		}
	}
	return o
}

// marked returns a value with the mark of another one, if that has one.
func marked(v, like cty.Value) cty.Value {
	if like != cty.NilVal && like.IsMarked() && v != cty.NilVal && !v.IsMarked() {
		return spec.Sensitive(v)
	}
	return v
}

// markedLike returns a value with marks wherever another one has them, at any depth.
func markedLike(v, like cty.Value) cty.Value {
	if v.IsMarked() || like.IsMarked() || !isObject(v) || !isObject(like) {
		return marked(v, like)
	}
	for _, name := range attributeNames(v) {
		if other := ctyread.Attr(like, name); other != cty.NilVal {
			v = with(v, name, markedLike(v.GetAttr(name), other))
		}
	}
	return v
}

// isSomething reports whether a value is more than nothing: that there is none is no secret.
func isSomething(v cty.Value) bool {
	v = spec.Revealed(v)
	if v == cty.NilVal || v.IsNull() {
		return false
	}
	return !v.IsKnown() || !v.CanIterateElements() || v.LengthInt() > 0
}

// withheldEdit returns an edit with marks on both values if one of them is sensitive.
func withheldEdit(e providers.Edit) providers.Edit {
	before, after := e.Before, e.After
	if isSomething(before) {
		e.Before = marked(before, after)
	}
	if isSomething(after) {
		e.After = marked(after, before)
	}
	if e.After != cty.NilVal && e.After.IsMarked() && !e.Before.IsNull() && !e.After.IsNull() {
		reason := e.Verdict.Reason
		e.Verdict.Reason = "sensitive value changed"
		if reason != "" {
			e.Verdict.Reason += ": " + reason
		}
	}
	return e
}

// sensitivityChanged reports whether a record has digests of other attributes and settings than those that are
// sensitive in the spec: then it still holds a value that became sensitive, or lacks one that is not any more.
func (c *Change) sensitivityChanged() bool {
	var wanted []string
	if !c.Want.Plain || len(c.Record.Digests) > 0 { // else neither the spec nor an ignored edit has a sensitive value
		for _, v := range spec.SensitiveValues(c.Change.Want) {
			if !v.Value.IsNull() {
				wanted = append(wanted, v.Path)
			}
		}
	}
	for _, v := range spec.SensitiveValues(c.Settings) {
		wanted = append(wanted, state.SettingPrefix+v.Path)
	}
	slices.Sort(wanted)
	return !slices.Equal(wanted, slices.Sorted(maps.Keys(c.Record.Digests)))
}

// recallSettings fills in the sensitive settings of which records have only digests: the value in the provider's block, or
// the value of a variable, that has such a digest. A system that still lacks one cannot be opened.
func (w *World) recallSettings(c *spec.Config, records map[spec.Address]state.Record, blocks map[spec.ProviderRef]cty.Value, key state.DigestKey) {
	var addresses []spec.Address
	for a, r := range records {
		if len(r.Digests) > 0 {
			addresses = append(addresses, a)
		}
	}
	slices.SortFunc(addresses, spec.Address.Compare)
	for _, a := range addresses {
		r, system := records[a], w.systems[w.placed[a]]
		for setting, digest := range missingSettings(system, r) {
			for _, candidate := range append([]cty.Value{at(blocks[r.Provider], setting)}, c.VariableValues()...) {
				if v := spec.Revealed(candidate); isPlain(v) && key.Digest(r.ID, state.SettingPrefix+setting, v) == digest {
					system.Settings = placed(system.Settings, setting, spec.Sensitive(v))
				}
			}
		}
	}
	for _, a := range addresses {
		system := w.systems[w.placed[a]]
		if lacks := slices.Sorted(maps.Keys(missingSettings(system, records[a]))); len(lacks) > 0 {
			system.lacks = system.withoutSetting(c, lacks)
		}
	}
}

// missingSettings returns the digests of the settings of a record that its system lacks.
func missingSettings(s *System, r state.Record) map[string]string {
	missing := map[string]string{}
	for path, digest := range r.Digests {
		setting, is := strings.CutPrefix(path, state.SettingPrefix)
		if is && at(s.Settings, setting) == cty.NilVal {
			missing[setting] = digest
		}
	}
	return missing
}

// withoutSetting returns the problem of a system whose sensitive settings are missing.
func (s *System) withoutSetting(c *spec.Config, lacks []string) *providers.Problem {
	var variables []string
	for _, setting := range lacks {
		for _, name := range c.UnsetVariables(s.Ref, setting) {
			if name = spec.EnvironPrefix + name; !slices.Contains(variables, name) {
				variables = append(variables, name)
			}
		}
	}
	names, given := strings.Join(lacks, ", "), strings.Join(variables, ", ")
	back := fmt.Sprintf("put the block of %s back, with a sensitive variable for %s, and give that its value", s.Ref, names)
	switch {
	case given == "":
		return providers.Refuse(
			fmt.Sprintf("%s is sensitive, so no record holds it, and the block of %s is gone or leads elsewhere", names, s.Ref), providers.Say(back))
	case c.HasProvider(s.Ref):
		return providers.Refuse(
			fmt.Sprintf("%s of %s is sensitive, so no record holds it, and its variable has no value", names, s.Ref),
			providers.Say(fmt.Sprintf("set %s in the environment, or the variable in a --var-file", given)))
	default:
		return providers.Refuse(
			fmt.Sprintf("%s is sensitive, so no record holds it, and the block of %s is gone", names, s.Ref),
			providers.Say(fmt.Sprintf("if a variable had the value of %s, set it in the environment or in a --var-file: %s", names, given), "else "+back))
	}
}
