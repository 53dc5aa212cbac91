package spec_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// TestGood loads every archive of testdata/good and compares a dump of the
// Config with the file `want` of the archive.
//
// row A41: names with `default` in them and keys with slashes are fine
// row L60: paths with spaces and quotes
func TestGood(t *testing.T) {
	archives, err := filepath.Glob("testdata/good/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("found %d archives: %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			golden, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			a, err := txtar.ParseFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(unpack(t, a))
			c, diags := spec.Load(".", inputs(a))
			if len(diags) > 0 {
				t.Fatalf("unexpected diagnostics:\n%s", render(t, c, diags))
			}
			compare(t, golden, a, dump(t, c))
		})
	}
}

// dump writes a Config as text.
func dump(t testing.TB, c *spec.Config) string {
	t.Helper()
	var b strings.Builder
	s := c.Settings
	fmt.Fprintf(&b, "project %q id %q lock_timeout %s\n", s.Project, s.ID, s.LockTimeout)
	for _, p := range c.Providers {
		fmt.Fprintf(&b, "\n%s built in: %t\n", p.Ref, p.BuiltIn)
		dumpValue(&b, "  ", p.Attrs)
	}
	for _, r := range c.Resources {
		fmt.Fprintf(&b, "\n%s at line %d\n  provider %s\n  uses %v\n  want\n", r.Address, r.Range.Start.Line, r.Provider, r.Uses)
		dumpValue(&b, "    ", r.Want)
		b.WriteString("  policy\n")
		dumpValue(&b, "    ", r.Policy)
		if r.Inside != (spec.Address{}) {
			fmt.Fprintf(&b, "  inside %s\n", r.Inside)
		}
		for _, f := range r.Missing {
			fmt.Fprintf(&b, "  missing %s: %s: %s\n", f.Path, f.Summary, f.Detail)
		}
		for _, d := range r.Defaults {
			fmt.Fprintf(&b, "  %s = %s (%s)\n", d.Path, spec.FormatValue(r.Address.Kind, d.Path, d.Value), d.Origin)
		}
	}
	for _, i := range c.Imports {
		fmt.Fprintf(&b, "\nimport %s as %s at line %d\n", i.ID, i.To, i.Range.Start.Line)
	}
	outputs, diags := c.Outputs(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, o := range outputs {
		fmt.Fprintf(&b, "\noutput %s sensitive: %t\n", o.Name, o.Sensitive)
		dumpValue(&b, "  ", o.Value)
	}
	return b.String()
}

// dumpValue writes one line for each leaf of a value.
func dumpValue(b *strings.Builder, indent string, v cty.Value) {
	switch {
	case v.IsMarked():
		fmt.Fprintf(b, "%s%s\n", indent, strings.TrimPrefix(v.GoString(), "cty."))
	case v.IsKnown() && !v.IsNull() && (v.Type().IsObjectType() || v.Type().IsMapType()) && v.LengthInt() > 0:
		parts := v.AsValueMap()
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if part := parts[name]; !part.IsMarked() && part.IsKnown() && !part.IsNull() && part.CanIterateElements() && part.LengthInt() > 0 {
				fmt.Fprintf(b, "%s%s\n", indent, name)
				dumpValue(b, indent+"  ", part)
			} else {
				fmt.Fprintf(b, "%s%s = ", indent, name)
				dumpValue(b, "", part)
			}
		}
	case v.IsKnown() && !v.IsNull() && v.CanIterateElements() && v.LengthInt() > 0:
		for i, part := range v.AsValueSlice() {
			fmt.Fprintf(b, "%s[%d]\n", indent, i)
			dumpValue(b, indent+"  ", part)
		}
	case v.IsKnown() && !v.IsNull() && v.Type() == cty.Number:
		fmt.Fprintf(b, "%s%s\n", indent, v.AsBigFloat().Text('f', -1))
	default:
		fmt.Fprintf(b, "%s%s\n", indent, strings.TrimPrefix(v.GoString(), "cty."))
	}
}
