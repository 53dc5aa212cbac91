package tools_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// joiners are the functions that may make a path of an ID, with the reason why the ID is one
// element of the path.
var joiners = map[string]string{
	"providers/libvirt/keys.go keyFolder":    "an object's ID is one element of a path",
	"providers/lima/do.go keyFolder":         "an object's ID is one element of a path",
	"providers/job/store.go Path":            "Create and Read check the ID of a job, before anything of it is touched",
	"providers/terraform/reach.go keyFolder": "vmctl chose the ID of a VM that Terraform makes",
	"cmd/internal/cli/datadir.go folderIn":   "spec checks a project's ID when it reads the files",
}

// A path is made of an ID in one place for each kind of ID. Code elsewhere that does is
// reported.
//
// row X19
func TestIDsJoinPathsInOnePlace(t *testing.T) {
	var found []string
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			found = append(found, joinsOfIDs(t, file, nil)...)
		}
	}
	seen := map[string]bool{}
	for _, place := range found {
		file, rest, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(place), "../"), ":")
		_, function, _ := strings.Cut(rest, " ")
		if seen[file+" "+function] = true; joiners[file+" "+function] == "" {
			t.Errorf("%s makes a path of an ID: only %q do", place, keysOf(joiners))
		}
	}
	for _, joiner := range keysOf(joiners) {
		if !seen[joiner] {
			t.Errorf("%s makes no path of an ID any more", joiner)
		}
	}
}

// A join that was planted is reported, in whatever form the ID is.
//
// row X19
func TestAPlantedJoinIsReported(t *testing.T) {
	const source = `package planted

func a(id string) string { return filepath.Join("keys", id) }
func b(o Object) string { return filepath.Join("keys", string(o.ID)+".pub") }
func c(w Work) string { return path.Join(w.Dir, string(w.Object)) }
func d(p Project) string { return filepath.Join("x", p.Name+"-"+p.Lineage()) }
func e(o Object) string { return filepath.Join("x", fmt.Sprintf("%s.json", o.ID)) }
func f(o Object) string { return "keys/" + string(o.ID) }
func g(o Object) string { return filepath.Join("keys", digest(o.ID), o.Name) }
func h(o Object) string { return "the disk " + string(o.ID) }
`
	want := []string{"planted.go:3 a", "planted.go:4 b", "planted.go:5 c", "planted.go:6 d", "planted.go:7 e", "planted.go:8 f"}
	if got := joinsOfIDs(t, "planted.go", []byte(source)); !slices.Equal(got, want) {
		t.Errorf("reported is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func keysOf(m map[string]string) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// joinsOfIDs lists where a file makes a path of an ID: file, line and function. source nil: the
// file is read.
func joinsOfIDs(t *testing.T, file string, source []byte) []string {
	t.Helper()
	var src any
	if source != nil {
		src = source
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var parts []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if name := calledName(n); name == "filepath.Join" || name == "path.Join" {
					parts = n.Args
				}
			case *ast.BinaryExpr:
				if endsWithSlash(n.X) {
					parts = []ast.Expr{n.Y}
				}
			}
			if slices.ContainsFunc(parts, holdsID) {
				found = append(found, fmt.Sprintf("%s:%d %s", file, set.Position(n.Pos()).Line, f.Name.Name))
			}
			return true
		})
	}
	return found
}

// holdsID tells whether an expression has an ID in it as it is. What a function makes of an ID is
// that function's own.
func holdsID(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "id" || e.Name == "uuid"
	case *ast.SelectorExpr:
		return e.Sel.Name == "ID" || e.Sel.Name == "UUID" || e.Sel.Name == "Object"
	case *ast.BinaryExpr:
		return holdsID(e.X) || holdsID(e.Y)
	case *ast.ParenExpr:
		return holdsID(e.X)
	case *ast.CallExpr:
		switch name := calledName(e); {
		case strings.HasSuffix(name, ".Lineage"):
			return true
		case name == "string" || name == "fmt.Sprintf" || name == "fmt.Sprint":
			return slices.ContainsFunc(e.Args, holdsID)
		}
	}
	return false
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return "." + f.Sel.Name
	}
	return ""
}

// endsWithSlash tells whether a text that something is appended to ends with a slash.
func endsWithSlash(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strings.HasSuffix(strings.Trim(e.Value, "\"`"), "/")
	case *ast.BinaryExpr:
		return endsWithSlash(e.Y)
	}
	return false
}
