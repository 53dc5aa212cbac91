package spec

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Inputs holds the inputs of Load beside the files.
type Inputs struct {
	Vars     []string // "name=value", from --var; they win
	VarFiles []string // from --var-file; later ones win over earlier
	Environ  []string // "VMCTL_VAR_name=value" and whatever else the environment holds
	// Supports reports whether a type of provider, HostType for what is inside of another resource or on
	// this host itself, supports an attribute, or a block, of a kind of
	// resource: "memory", "boot.kernel", "port_forward.guest". It is asked about the attributes
	// that a spec writes, policies aside, and with the path "" about the kind as such. nil:
	// everything is supported.
	Supports func(providerType string, kind Kind, path string) bool
	// Check returns the objections of a type of provider to a sound resource that it could never
	// make. want may hold unknowns. nil: there are no objections.
	Check func(providerType string, kind Kind, want cty.Value) []Flaw
	// Expand returns a sound resource with what it names elsewhere in its place, such as the text of a
	// template; relative paths begin in dir. It is called before Check. Where it returns an error, that is
	// Resource.Unread, and no mistake. want may hold unknowns. nil: everything stays as it is.
	Expand func(providerType string, kind Kind, want cty.Value, dir string) (cty.Value, *UnreadError)
	// System identifies the system that a provider block leads to. Two resources in one system
	// have different names, and a machine and its disks are in one system. nil: blocks of one
	// type with the same attributes lead to one system.
	System        func(ref ProviderRef, attrs cty.Value) string
	ProviderTypes []string // that this build has; nil: all that have a shape
	BuiltIn       string   // the type of the built-in provider, of resources that name none; "": libvirt
	Version       string   // of vmctl, for required_version; no version: any will do
	// AllowMissingFiles says that the caller only stops or destroys existing objects: a file that
	// does not exist is no mistake, and its content is unknown.
	AllowMissingFiles bool
	// Partial says that the caller acts on existing objects: a mistake is reported, and removes
	// its block and the blocks that refer to it. The rest may be used, and the settings have an
	// id if the project and the id could be read.
	Partial bool
	// Source stands in for the spec files and for all variables that are not
	// sensitive. nil: they are read.
	Source *Source
}

// Flaw is an objection to the attributes of a resource.
type Flaw struct {
	Path    string // dotted; the flaw stands at its first name in the block, else at the whole block
	Summary string // "Nothing to boot"
	Detail  string // a sentence that says what to do
}

// UnreadError reports an attribute that names a text elsewhere, which is not in its place.
type UnreadError struct {
	Flaw
	// Skipped says that nobody tried to read the text: an object that was applied keeps the one that it has.
	Skipped bool
	Range   hcl.Range // of the attribute
}

// Error returns the reason.
func (e *UnreadError) Error() string { return e.Detail }

// Diagnostic returns the error as a mistake at its line.
func (e *UnreadError) Diagnostic() *hcl.Diagnostic {
	return mistake(e.Range, e.Summary, "%s", e.Detail)
}

// Load reads the spec files of a folder. It reports every mistake of the files
// at once; a mistake that only follows from another is left out. The Config is
// never nil, but where there are errors nothing of it may be used besides Files,
// except with Inputs.Partial.
func Load(dir string, in Inputs) (*Config, hcl.Diagnostics) {
	l := &loader{dir: dir, in: in, sources: map[string]*hcl.File{}}
	c := l.load()
	return c, sortUnique(l.diags)
}

// loader is one Load.
type loader struct {
	dir     string
	in      Inputs
	sources map[string]*hcl.File
	diags   hcl.Diagnostics
}

func (l *loader) load() *Config {
	c := &Config{evaluator: &evaluator{in: l.in, sources: l.sources, nodes: map[nodeName]*node{}}}
	abs, err := filepath.Abs(l.dir)
	if err != nil {
		l.fail("Unreadable folder", "The folder `%s` could not be found: %s.", l.dir, err)
		return c
	}
	c.Dir = abs
	declared := l.declare()
	if l.diags.HasErrors() && declared == nil {
		return c
	}
	e := c.evaluator
	e.declared, e.files = declared, newFolder(abs)
	e.files.allowMissing = l.in.AllowMissingFiles
	e.functions = functions(e.files)
	declared.functions = e.functions
	c.Settings = l.settings(declared)
	l.evaluateVariables(e)
	l.buildGraph(e)
	l.evaluateAll(e)
	c.Providers = l.providers(e)
	for _, n := range e.order {
		instances := e.base.result(n).instances
		c.Resources = slices.Grow(c.Resources, len(instances))
		for i := range instances {
			c.Resources = append(c.Resources, instances[i].resource)
		}
	}
	slices.SortFunc(c.Resources, func(a, b Resource) int { return a.Address.Compare(b.Address) })
	l.checkProviders(e)
	l.checkDuplicateNames(c)
	l.checkResourceRefs(c)
	l.checkNetworks(c)
	l.stateBlocks(c, declared)
	if l.in.Partial {
		l.dropInvalid(c)
	}
	return c
}

// declare reads and parses all files. It returns nil if one cannot be parsed: mistakes that
// follow from half a file are not worth reading.
func (l *loader) declare() *declarations {
	paths, err := l.paths()
	if err != nil {
		l.fail("Unreadable folder", "%s. Name the folder of the spec with `-C DIR`.", upperFirst(err.Error()))
		return nil
	}
	if len(paths) == 0 {
		l.fail("No spec here", "The folder `%s` has no file whose name ends in `%s`. Create one, for example `main%s`, or name another folder with `-C DIR`.", l.dir, Suffix, Suffix)
		return nil
	}
	d := newDeclarations()
	d.paths, d.builtIn = paths, builtIn(l.in.BuiltIn)
	var mistakes hcl.Diagnostics
	for _, path := range paths {
		file, diags := l.parse(path)
		l.diags = append(l.diags, diags...)
		if diags.HasErrors() && l.in.Partial {
			if m := d.addUnparsed(file, diags); m != nil {
				mistakes = append(mistakes, m)
			}
		}
		if file == nil {
			continue
		}
		l.sources[path] = file
		if body, ok := file.Body.(*hclsyntax.Body); ok && !diags.HasErrors() {
			mistakes = append(mistakes, d.add(body)...)
		}
	}
	if l.diags.HasErrors() && !l.in.Partial {
		return nil
	}
	l.diags = append(l.diags, mistakes...)
	return d
}

// fail reports a mistake that stands in no file.
func (l *loader) fail(summary, format string, args ...any) {
	l.diags = append(l.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...),
	})
}

// Files returns the sources of the spec by filename, for printing diagnostics.
func (c *Config) Files() map[string]*hcl.File {
	if c.evaluator == nil {
		return nil
	}
	return c.evaluator.sources
}

// Resource returns the resource with that address.
func (c *Config) Resource(addr Address) (Resource, bool) {
	i, ok := slices.BinarySearchFunc(c.Resources, addr, func(r Resource, a Address) int { return r.Address.Compare(a) })
	if !ok {
		return Resource{}, false
	}
	return c.Resources[i], true
}

// evaluateAll evaluates every node in order.
func (l *loader) evaluateAll(e *evaluator) {
	base := e.newEvaluation(nil)
	e.base = base
	for _, n := range e.order {
		base.evaluate(n, "")
	}
	for _, n := range e.outputs {
		base.evaluate(n, "")
		l.checkOutput(base, n)
	}
	l.diags = append(l.diags, base.diags...)
	l.checkConditions(e)
}

// checkDuplicateNames reports resources of one kind that would have the same name in one
// system: a provider's, or the inside of one object.
func (l *loader) checkDuplicateNames(c *Config) {
	type claim struct {
		system, name string
		kind         Kind
		inside       Address
	}
	taken := map[claim]Address{}
	for _, r := range c.Resources {
		if !r.Want.Type().HasAttribute("name") {
			continue
		}
		chosen := r.Want.GetAttr("name")
		if !chosen.IsKnown() || chosen.IsNull() {
			continue
		}
		key := claim{c.evaluator.system(r.Provider), chosen.AsString(), r.Address.Kind, r.Inside}
		other, ok := taken[key]
		if !ok {
			taken[key] = r.Address
			continue
		}
		l.diags = append(l.diags, mistake(r.Range, "Duplicate name",
			"`%s` and `%s` would both be named %q. Give each its own `name`, with `each.key` in it where there is `for_each`, or leave it out.",
			other, r.Address, chosen.AsString()))
	}
}
