package spec

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/internal/buildcontext"
	"vmctl/internal/procenv"
	"vmctl/internal/yamltext"
)

// canonical turns a value from a spec into the attribute's canonical form, or returns the
// mistake: the rest of a sentence that begins with the attribute. v is neither null nor marked.
// Unknown parts stay unknown.
func canonical(a Attr, v cty.Value) (cty.Value, string) {
	if a.Unit != Plain {
		return canonicalUnit(a, v)
	}
	if a.Form == Members {
		v = membersOf(v)
	}
	converted, err := convert.Convert(v, a.Type)
	if err != nil {
		return cty.NilVal, wrongType(a, v, err)
	}
	v = converted
	if !v.IsWhollyKnown() {
		return v, ""
	}
	switch {
	case a.Type == cty.Number:
		return canonicalNumber(a, v)
	case a.Type == cty.String:
		return canonicalText(a, v)
	case a.Type.Equals(cty.Map(cty.String)) && a.Form == AnyText:
		return withoutNulls(v), ""
	case a.Type.Equals(cty.List(cty.String)) && a.Form == AnyText:
		if slices.ContainsFunc(v.AsValueSlice(), cty.Value.IsNull) {
			return cty.NilVal, "has an element that is null. Leave it out."
		}
	case a.Form == IPv4Addresses, a.Form == Subnets:
		return canonicalAddresses(a, v)
	case a.Form == Members:
		return canonicalMembers(v)
	case a.Form == MountOptions:
		return canonicalMountOptions(v)
	case a.Form == VariableNames:
		for _, name := range v.AsValueSlice() {
			if name.IsNull() {
				return cty.NilVal, "has an element that is null. Leave it out."
			}
			if prefix := strings.TrimSuffix(name.AsString(), procenv.Wildcard); !variablePattern.MatchString(prefix) {
				return cty.NilVal, noVariableText(name.AsString()) + " A `*` at its end is all that begin so."
			}
		}
	case a.Form == Variables:
		v = withoutNulls(v)
		for _, name := range sortedKeys(v) {
			if !variablePattern.MatchString(name) {
				return cty.NilVal, noVariableText(name)
			}
		}
	case a.Form == Ceilings:
		for _, key := range sortedKeys(v) {
			if value := v.Index(cty.StringVal(key)); value.IsNull() || !slices.Contains(a.OneOf, value.AsString()) {
				return cty.NilVal, fmt.Sprintf("has a value for `%s` that is not one of %s.", key, quoted(a.OneOf))
			}
		}
	}
	return v, ""
}

// IsObjectName reports whether a text has the form ObjectName.
func IsObjectName(text string) bool { return objectNamePattern.MatchString(text) }

func noVariableText(name string) string {
	return fmt.Sprintf("names %q, which is no environment variable: its name has letters, digits and `_`, and begins with no digit.", shorten(name))
}

// canonicalUnit reads a size or a duration.
func canonicalUnit(a Attr, v cty.Value) (cty.Value, string) {
	if v.Type() == cty.Number {
		return cty.NilVal, bareNumberText(a, v)
	}
	if v.Type() != cty.String && v.Type() != cty.DynamicPseudoType {
		return cty.NilVal, fmt.Sprintf("must be a string like %s, not %s.", example(a), describeType(v.Type()))
	}
	if !v.IsKnown() {
		return cty.UnknownVal(cty.Number), ""
	}
	parse := ParseSize
	if a.Unit == Duration {
		parse = ParseDuration
	}
	n, err := parse(v.AsString())
	if err != nil {
		return cty.NilVal, "cannot be used: " + err.Error() + "."
	}
	if n < a.Min {
		return cty.NilVal, fmt.Sprintf("is %q; the minimum is %q.", v.AsString(), formatUnit(a, a.Min))
	}
	return cty.NumberIntVal(n), ""
}

func bareNumberText(a Attr, v cty.Value) string {
	if !v.IsKnown() {
		return fmt.Sprintf("must be a string like %s, not a number.", example(a))
	}
	f := v.AsBigFloat()
	if huge(f) {
		return fmt.Sprintf("is %s, which is out of range.", FormatNumber(f))
	}
	number := f.Text('g', 20)
	guess := suggestSize(number)
	if a.Unit == Duration {
		guess = suggestDuration(number)
	}
	return fmt.Sprintf("is the number %s, without a unit; write for example %q.", number, guess)
}

func example(a Attr) string {
	if a.Unit == Duration {
		return `"30s"`
	}
	return `"8GiB"`
}

func formatUnit(a Attr, n int64) string {
	if a.Unit == Duration {
		return FormatDuration(n)
	}
	return FormatSize(n)
}

func canonicalNumber(a Attr, v cty.Value) (cty.Value, string) {
	f := v.AsBigFloat()
	if huge(f) {
		return cty.NilVal, fmt.Sprintf("is %s, which is out of range.", FormatNumber(f))
	}
	if a.Digits > 0 {
		return canonicalFraction(a, f)
	}
	text := f.Text('g', 20)
	n, accuracy := f.Int64()
	switch {
	case !f.IsInt() || accuracy != big.Exact && !f.IsInf() && f.IsInt() && n != 1<<63-1 && n != -1<<63:
		return cty.NilVal, fmt.Sprintf("is %s, which is not a whole number.", text)
	case a.Max != 0 && (f.IsInf() || f.Cmp(big.NewFloat(float64(a.Max))) > 0 || n < a.Min):
		return cty.NilVal, fmt.Sprintf("is %s; it must be from %d to %d.", text, a.Min, a.Max)
	case accuracy != big.Exact || n < a.Min:
		return cty.NilVal, fmt.Sprintf("is %s; the minimum is %d.", text, a.Min)
	}
	return cty.NumberIntVal(n), ""
}

// canonicalFraction rounds nothing: a number with more digits than the attribute has is a mistake.
func canonicalFraction(a Attr, f *big.Float) (cty.Value, string) {
	text := f.Text('f', a.Digits)
	exact := strings.TrimRight(f.Text('f', 2*a.Digits), "0")
	switch {
	case f.IsInf() || f.Sign() <= 0:
		return cty.NilVal, fmt.Sprintf("is %s; it must be above 0.", f.Text('g', 20))
	case exact != strings.TrimRight(text, "0"):
		return cty.NilVal, fmt.Sprintf("is %s; it may have %d digits after the decimal point.", f.Text('g', 20), a.Digits)
	}
	return cty.MustParseNumberVal(text), ""
}

func canonicalText(a Attr, v cty.Value) (cty.Value, string) {
	text := v.AsString()
	if a.OneOf != nil && !slices.Contains(a.OneOf, text) {
		return cty.NilVal, fmt.Sprintf("is %q; it must be %s.%s", shorten(text), quoted(a.OneOf), DidYouMean(text, a.OneOf))
	}
	if a.File {
		if text == "" || strings.ContainsRune(text, 0) {
			return cty.NilVal, fmt.Sprintf("is %q, which is not a file path.", shorten(text))
		}
		return v, ""
	}
	switch a.Form {
	case AnyText, Ceilings, IPv4Addresses, Members, MountOptions, Paths, Subnets, VariableNames, Variables:
	case OneLine:
		if strings.ContainsFunc(text, isControl) {
			return cty.NilVal, "has a line break or another control character. Write it on one line; `trimspace(…)` removes a last one."
		}
	case ObjectName:
		if !IsObjectName(text) {
			return cty.NilVal, fmt.Sprintf("is %q. A name has 1 to 63 letters, digits, `.`, `_` and `-`, and begins with a letter or digit.", shorten(text))
		}
	case UserName:
		if !userPattern.MatchString(text) {
			return cty.NilVal, fmt.Sprintf("is %q. A login name has 1 to 32 letters, digits, `.`, `_` and `-`, and begins with a letter, digit or `_`.", shorten(text))
		}
	case IPAddress:
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return cty.NilVal, fmt.Sprintf("is %q, which is not an IP address: write for example \"127.0.0.1\".", shorten(text))
		}
		return cty.StringVal(ip.String()), ""
	case HostPort:
		if text == "auto" {
			return v, ""
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return cty.NilVal, fmt.Sprintf("is %q. Write a port from 1 to 65535, or \"auto\" for a free one.", shorten(text))
		}
		return cty.StringVal(strconv.FormatUint(port, 10)), ""
	case IPv4Address, AutoAddress:
		if a.Form == AutoAddress && text == AutoIP {
			return v, ""
		}
		if m := ipv4Problem(text); m != "" {
			return cty.NilVal, m
		}
	case Subnet:
		if m := subnetProblem(text); m != "" {
			return cty.NilVal, m
		}
	case SHA256:
		sum := strings.ToLower(text)
		if bare, prefixed := strings.CutPrefix(sum, "sha256:"); prefixed && sha256Pattern.MatchString(bare) {
			return cty.NilVal, "begins with \"sha256:\". Write the 64 digits alone."
		}
		if !sha256Pattern.MatchString(sum) {
			return cty.NilVal, fmt.Sprintf("is %q, which is not a SHA-256. Write the 64 hexadecimal digits that `sha256sum FILE` prints.", shorten(text))
		}
		return cty.StringVal(sum), ""
	case FileOrURL:
		if m := sourceProblem(text); m != "" {
			return cty.NilVal, m
		}
	case GuestPath:
		if !strings.HasPrefix(text, "/") || strings.ContainsFunc(text, isControl) {
			return cty.NilVal, fmt.Sprintf("is %q; a path in the guest begins with `/` and is on one line.", shorten(text))
		}
	case HostFolder:
		folder, m := canonicalFolder(text)
		if m != "" {
			return cty.NilVal, m
		}
		return cty.StringVal(folder), ""
	case BuildContext:
		if text == "" || strings.ContainsFunc(text, isControl) {
			return cty.NilVal, fmt.Sprintf("is %q, which is not the path of a folder.", shorten(text))
		}
		return cty.StringVal(filepath.Clean(text)), ""
	case InnerPath:
		if !buildcontext.IsInside(text) || strings.ContainsFunc(text, isControl) {
			return cty.NilVal, fmt.Sprintf("is %q, which is not the path of a file in that folder, like \"docker/Dockerfile\".", shorten(text))
		}
	case YAML:
		if templatePlace.MatchString(text) {
			return v, ""
		}
		document, err := yamltext.Canonical(text)
		if err != nil {
			return cty.NilVal, "cannot be used: " + err.Error() + "."
		}
		return cty.StringVal(document), ""
	case JSONObject:
		object, m := canonicalObject(text)
		if m != "" {
			return cty.NilVal, m
		}
		return cty.StringVal(object), ""
	case WhenBusy:
		wait, err := ParseWhenBusy(text)
		if err != nil {
			return cty.NilVal, "cannot be used: " + err.Error() + "."
		}
		return cty.StringVal(canonicalWhenBusy(wait)), ""
	default:
		panic("spec: unknown form " + string(a.Form))
	}
	return v, ""
}

// canonicalObject returns the canonical form of an object as JSON text. The message names nothing of the text: it may be secret.
func canonicalObject(text string) (string, string) {
	const want = "must be a JSON object; jsonencode({ … }) writes one"
	kind, err := ctyjson.ImpliedType([]byte(text))
	if err != nil || !kind.IsObjectType() {
		return "", want + "."
	}
	object, err := ctyjson.Unmarshal([]byte(text), kind)
	if err != nil || object.IsNull() {
		return "", want + "."
	}
	for name := range kind.AttributeTypes() {
		if !hclsyntax.ValidIdentifier(name) {
			return "", want + ", with names of variables."
		}
	}
	canonical, err := ctyjson.Marshal(object, kind)
	if err != nil {
		return "", want + "."
	}
	return string(canonical), ""
}

// withoutNulls leaves out the elements of a map that are null: they are as if
// they were not written.
func withoutNulls(v cty.Value) cty.Value {
	kept := v.AsValueMap()
	maps.DeleteFunc(kept, func(_ string, element cty.Value) bool { return element.IsNull() })
	if len(kept) == 0 {
		return cty.MapValEmpty(v.Type().ElementType())
	}
	return cty.MapVal(kept)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }

// expectedForm describes the values that an attribute takes, for people.
func expectedForm(a Attr) string {
	switch {
	case a.Type == cty.Bool:
		return "true or false"
	case a.Type == cty.Number:
		return "a number"
	case a.Type == cty.String:
		return "a string"
	case a.Form == Ceilings:
		return "a map like { memory = \"restart\" }"
	case a.Form == Members:
		return "a list like [\"libvirt_network.lan\"], or a map like { \"libvirt_network.lan\" = \"ID\" }"
	case a.Form == Variables:
		return "a map like { NAME = \"value\" } of environment variables"
	case a.Type.IsListType():
		return "a list like [\"value\"]"
	default:
		return "a map like { name = \"value\" }"
	}
}

// describeType returns the name of a type with its article.
func describeType(ty cty.Type) string {
	name := ty.FriendlyNameForConstraint()
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// conversionText returns the text of a conversion error, with the place in the value.
func conversionText(err error) string {
	pe, ok := errors.AsType[cty.PathError](err)
	if !ok || len(pe.Path) == 0 {
		return err.Error()
	}
	var b strings.Builder
	for _, step := range pe.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			b.WriteString("[" + indexText(step.Key) + "]")
		}
	}
	return b.String() + ": " + err.Error()
}

func indexText(key cty.Value) string {
	switch {
	case !key.IsKnown() || key.IsNull() || key.IsMarked():
		return "…"
	case key.Type() == cty.String:
		return strconv.Quote(key.AsString())
	case key.Type() == cty.Number:
		return FormatNumber(key.AsBigFloat())
	default:
		return "…"
	}
}

func wrongType(a Attr, v cty.Value, err error) string {
	if v.IsKnown() && v.Type() == cty.String {
		return fmt.Sprintf("must be %s, not %q.", expectedForm(a), shorten(v.AsString()))
	}
	if a.Type.IsPrimitiveType() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return fmt.Sprintf("must be %s, not %s.", expectedForm(a), describeType(v.Type()))
	}
	return fmt.Sprintf("has the wrong type: %s.", conversionText(err))
}

// summaryOf names the mistake of a value that canonical refuses.
func summaryOf(a Attr) string {
	switch a.Unit {
	case Bytes:
		return "Invalid size"
	case Duration:
		return "Invalid duration"
	case Plain:
		return "Invalid value"
	default:
		panic("spec: unknown unit " + string(a.Unit))
	}
}

// quoted lists texts for people: "auto", "kvm" or "tcg".
func quoted(texts []string) string {
	var b strings.Builder
	for i, text := range texts {
		switch {
		case i > 0 && i == len(texts)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(text))
	}
	return b.String()
}

// sortedKeys lists the keys of a known map or object.
func sortedKeys(v cty.Value) []string {
	return slices.Sorted(maps.Keys(v.AsValueMap()))
}
