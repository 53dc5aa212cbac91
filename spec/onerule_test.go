package spec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vmctl/spec"
)

// The shape of an attribute is the only place that says which values it may have: no other
// package lists the same words, and no two places have the same pattern. A second rule would be
// reached by nothing, or say something else some day.
// row E16
func TestARuleIsInOnePlace(t *testing.T) {
	lists := choices(t)
	patterns := map[string]string{} // a regular expression -> where it stands
	files := 0
	walkGo(t, "..", func(path string, file *ast.File) {
		files++
		ranged := map[ast.Expr]bool{} // an order to go through is no rule
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.RangeStmt:
				ranged[n.X] = true
			case *ast.CompositeLit:
				if ranged[n] {
					break
				}
				words := stringsOf(n.Elts)
				slices.Sort(words)
				if name, ok := lists[strings.Join(words, " ")]; ok && filepath.Dir(path) != filepath.Join("..", "spec") {
					t.Errorf("%s lists what %s may be: its shape in spec does", path, name)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "MustCompile" && !isNamed(f, "pattern", "New") {
					break
				}
				for _, pattern := range stringsOf(n.Args) {
					if other, ok := patterns[pattern]; ok {
						t.Errorf("%s and %s have the same pattern %s: keep one", other, path, pattern)
					}
					patterns[pattern] = path
				}
			}
			return true
		})
	})
	if files < 100 || len(patterns) < 10 || len(lists) < 5 {
		t.Fatalf("looked at %d files, %d patterns, %d lists: the search finds nothing", files, len(patterns), len(lists))
	}
}

// choices returns the words that attributes may be, sorted and joined, by attribute.
func choices(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var collect func(spec.Block, string)
	collect = func(b spec.Block, path string) {
		for _, a := range b.Attrs {
			if len(a.OneOf) > 1 {
				words := slices.Sorted(slices.Values(a.OneOf))
				found[strings.Join(words, " ")] = path + "." + a.Name
			}
		}
		for _, nested := range b.Blocks {
			collect(nested, path+"."+nested.Name)
		}
	}
	for _, kind := range []spec.Kind{spec.VM, spec.Disk} {
		shape, ok := spec.Shape(kind)
		if !ok {
			t.Fatalf("a %s has no shape", kind)
		}
		collect(shape, string(kind))
	}
	for _, typ := range []string{"libvirt", "lima", "sim"} {
		shape, ok := spec.ProviderShape(typ)
		if !ok {
			t.Fatalf("provider %s has no shape", typ)
		}
		collect(shape, typ)
	}
	return found
}

// walkGo parses every file of this module that is no test.
func walkGo(t *testing.T, root string, visit func(string, *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			if path != root && (name == "testdata" || name == "tools" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		visit(path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stringsOf returns the literal strings of a list, none if an element is no such.
func stringsOf(exprs []ast.Expr) []string {
	var all []string
	for _, e := range exprs {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return nil
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return nil
		}
		all = append(all, text)
	}
	return all
}

// isNamed reports whether a selector is PACKAGE.NAME.
func isNamed(f *ast.SelectorExpr, pkg, name string) bool {
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == pkg && f.Sel.Name == name
}
