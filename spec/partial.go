package spec

import (
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"vmctl/internal/pattern"
)

// removedLine finds a removed block in a file that cannot be parsed.
var removedLine = pattern.New(`(?m)\bremoved\s*\{`)

// addUnparsed adds only the vmctl block of a file that does not parse: any other block may lack
// lines.
func (d *declarations) addUnparsed(file *hcl.File, diags hcl.Diagnostics) *hcl.Diagnostic {
	if file == nil || removedLine.Match(file.Bytes) || !utf8.Valid(file.Bytes) {
		d.removalsUnread = true
	}
	if file == nil {
		return nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	for _, b := range body.Blocks {
		if !slices.Contains(rootBlocks, b.Type) { // it may be a removed block with a slip in its name
			d.removalsUnread = true
		}
		if b.Type != "vmctl" || hasMistake(diags, b.Range()) {
			continue
		}
		if m := d.addSettings(b); m != nil {
			return m
		}
	}
	return nil
}

// dropInvalid removes from c every part with a mistake, and every part that refers to one.
func (l *loader) dropInvalid(c *Config) {
	e := c.evaluator
	if CheckProject(c.Settings.Project) != nil || CheckID(c.Settings.ID) != nil || e.declared.duplicateSettings ||
		slices.ContainsFunc(l.diags, func(d *hcl.Diagnostic) bool { return d.Summary == unsuitableVersion }) {
		c.Settings.ID = ""
	}
	c.Providers = slices.DeleteFunc(c.Providers, func(p Provider) bool {
		b, declared := e.declared.providers[p.Ref.Block()]
		return !p.Attrs.IsWhollyKnown() || declared && hasMistake(l.diags, b.Range())
	})
	c.Resources = slices.DeleteFunc(c.Resources, func(r Resource) bool {
		n := e.nodes[nodeName{string(r.Address.Kind), r.Address.Name}]
		hasProvider := slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.Ref == r.Provider })
		return !hasProvider || n.cyclic || e.base.result(n).invalid || e.declared.duplicates[r.Address.Block()] ||
			hasMistake(l.diags, n.resource.Range())
	})
	c.Imports = slices.DeleteFunc(c.Imports, func(i Import) bool {
		_, kept := c.Resource(i.To)
		return !kept
	})
	c.RemovalsUnread = e.declared.removalsUnread || slices.ContainsFunc(e.declared.stateBlocks, func(b *hclsyntax.Block) bool {
		return b.Type == removedShape.Name && hasMistake(l.diags, b.Range())
	})
}

// hasMistake reports whether a diagnostic is an error in a part of a file.
func hasMistake(diags hcl.Diagnostics, part hcl.Range) bool {
	return slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool {
		return d.Severity == hcl.DiagError && d.Subject != nil && d.Subject.Filename == part.Filename &&
			(d.Subject.Overlaps(part) || part.ContainsPos(d.Subject.Start))
	})
}

// WithRecorded returns c with resources, and their providers, that only records know. They need
// no evaluation.
func (c *Config) WithRecorded(resources []Resource, providers []Provider) *Config {
	more := *c
	more.recorded = map[Address]bool{}
	more.Providers = append(slices.Clone(c.Providers), providers...)
	slices.SortFunc(more.Providers, func(a, b Provider) int { return a.Ref.compare(b.Ref) })
	more.Resources = append(slices.Clone(c.Resources), resources...)
	for _, r := range resources {
		more.recorded[r.Address] = true
	}
	slices.SortFunc(more.Resources, func(a, b Resource) int { return a.Address.Compare(b.Address) })
	return &more
}

// WithBuiltIn returns c with the provider of resources that name none if c has no provider at all: resources that are gone may have
// had no other.
func (c *Config) WithBuiltIn() *Config {
	if len(c.Providers) > 0 || c.evaluator == nil {
		return c
	}
	ref := c.evaluator.declared.builtIn
	more := *c
	more.Providers = []Provider{{Ref: ref, Attrs: providerShapes[ref.Type].leftOut(wanted), BuiltIn: true}}
	return &more
}

// Recorded reports whether a resource is one that WithRecorded added.
func (c *Config) Recorded(addr Address) bool { return c.recorded[addr] }

// Only returns c with those of its resources that keep selects.
func (c *Config) Only(keep func(Address) bool) *Config {
	fewer := *c
	fewer.Resources = slices.DeleteFunc(slices.Clone(c.Resources), func(r Resource) bool { return !keep(r.Address) })
	return &fewer
}
