package spec

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"vmctl/internal/ctyread"
)

// Source holds the inputs of a Config, as far as they may be stored: with it, and with the
// sensitive variables given again, Load makes the same Config later, even if the files have
// changed.
type Source struct {
	Files     map[string]string `json:"files"`     // the spec files, by name
	Variables string            `json:"variables"` // the values of the variables that are not sensitive, as a file of variables
	// Read holds the SHA-256 of every other file that the spec reads, by its path
	// (relative ones begin in the folder of the spec); "": it did not exist.
	Read map[string]string `json:"read"`
}

// Source returns the source of c. The source of a Config with errors is worth nothing.
func (c *Config) Source() Source {
	e := c.evaluator
	s := Source{Files: map[string]string{}, Read: e.files.readSoFar()}
	for _, path := range e.declared.paths {
		s.Files[filepath.Base(path)] = string(e.sources[path].Bytes)
	}
	file := hclwrite.NewEmptyFile()
	for _, label := range sortedNames(e.declared.variables) {
		if v, ok := e.variables[label]; ok && !v.ContainsMarked() {
			file.Body().SetAttributeValue(label, v)
		}
	}
	s.Variables = string(file.Bytes())
	return s
}

// ReadPaths returns the absolute paths of the spec files, of every other file that the spec reads, and of the folders and the
// programs of its modules, sorted. Some may not exist. Files of variables are not among them: the caller named them.
func (c *Config) ReadPaths() []string {
	if c.evaluator == nil {
		return nil
	}
	all := slices.Clone(c.evaluator.declared.paths)
	for path := range c.evaluator.files.readSoFar() {
		all = append(all, path)
	}
	for _, p := range c.Providers {
		if p.Ref.Type != "terraform" {
			continue
		}
		if module := ctyread.Text(Revealed(p.Attrs), "dir"); module != "" {
			all = append(all, module)
		}
		if binary := ctyread.Text(Revealed(p.Attrs), "binary"); strings.Contains(binary, "/") {
			all = append(all, binary)
		}
	}
	for i, path := range all {
		if !filepath.IsAbs(path) {
			all[i] = filepath.Join(c.Dir, path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Changed lists the files of Read that have changed, sorted.
func (s Source) Changed(now Source) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(s.Read)) {
		if sum, read := now.Read[path]; !read || sum != s.Read[path] {
			all = append(all, path)
		}
	}
	return all
}

// sourceName is the file name that diagnostics use for the variables of a Source.
const sourceName = "the saved variables"

// savedValues returns the variables of a Source. It has no sensitive ones: they are given again.
func (l *loader) savedValues(d *declarations) map[string]inputValue {
	values := map[string]inputValue{}
	if l.in.Source == nil {
		return values
	}
	file, diags := parseSource([]byte(l.in.Source.Variables), sourceName)
	l.diags = append(l.diags, diags...)
	body, ok := file.Body.(*hclsyntax.Body)
	if diags.HasErrors() || !ok {
		return values
	}
	for _, a := range attributesOf(body) {
		if d.variables[a.Name] != nil {
			values[a.Name] = inputValue{source: sourceName, expr: a.Expr, rng: a.Expr.Range()}
		}
	}
	return values
}

// checkSaved reports a value that the user gives and that is not the saved
// one. What the environment has may be meant for another run.
func (l *loader) checkSaved(v *variable, kept, now inputValue) {
	if now == (inputValue{}) || strings.HasPrefix(now.source, EnvironPrefix) {
		return
	}
	was, ok := l.read(v, kept)
	is, sound := l.read(v, now)
	if ok && sound && !was.RawEquals(is) {
		l.fail("Saved variable", "`var.%s` has another value in the saved plan than `%s` gives. Leave it out, or make a new plan.", v.name, now.source)
	}
}

// parse reads one spec file, from the Source if there is one.
func (l *loader) parse(path string) (*hcl.File, hcl.Diagnostics) {
	if l.in.Source == nil {
		return parseFile(path)
	}
	return parseSource([]byte(l.in.Source.Files[filepath.Base(path)]), path)
}

// paths lists the spec files, those of the Source if there is one.
func (l *loader) paths() ([]string, error) {
	if l.in.Source == nil {
		return SpecFiles(l.dir)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.in.Source.Files)) {
		all = append(all, filepath.Join(l.dir, filepath.Base(name)))
	}
	return all, nil
}
