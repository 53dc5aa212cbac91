package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/cli"
	"vmctl/providers"
)

// module is the folder of the module.
const module = "../../.."

// Each code of an error, and each kind of finding, has a row in docs/errors.md, and each row is one of them.
//
// row A61
func TestDocsNameEachError(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(module, "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes, findings := codesOf(t)
	errorRows, findingRows, _ := strings.Cut(string(text), "\n## Findings\n")
	for what, has := range map[string][2][]string{
		"errors": {codes, rows(errorRows)}, "findings": {findings, rows(findingRows)},
	} {
		if diff := cmp.Diff(has[0], has[1]); diff != "" || len(has[0]) < 20 {
			t.Errorf("docs/errors.md, %s (-in the code +in the page):\n%s", what, diff)
		}
	}
}

// Every command that docs/errors.md names exists.
func TestDocsOfErrorsNameCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(module, "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`vmctl ([a-z]+(?: [a-z]+)?)").FindAllStringSubmatch(string(text), -1)
	for _, m := range named {
		first, _, _ := strings.Cut(m[1], " ")
		if first != "help" && !slices.ContainsFunc(cli.Commands(), func(c cli.Command) bool { return c.Path == m[1] || c.Path == first }) {
			t.Errorf("docs/errors.md names vmctl %s, which does not exist", m[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("docs/errors.md names the commands %v alone", named)
	}
}

// rows returns the first words of the rows of tables, sorted.
func rows(text string) (all []string) {
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// codesOf returns the codes of errors and the kinds of findings that the code of vmctl has, sorted.
func codesOf(t *testing.T) (codes, findings []string) {
	t.Helper()
	found, kinds := map[string]bool{}, map[string]bool{}
	for _, top := range []string{"busy", "cmd", "executor", "internal", "planner", "providers", "spec", "state"} {
		err := filepath.WalkDir(filepath.Join(module, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "providertest":
				return fs.SkipDir
			case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				ast.Inspect(file, func(n ast.Node) bool { readCodes(n, found, kinds); return true })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !kinds[string(providers.FindDrift)] {
		t.Errorf("the kinds of findings are not read: %v", kinds)
	}
	for prefix, all := range map[string][]string{"job_": {"job_failed", "job_cancelled", "job_stale"}, "not_": {"not_saved", "not_restored"}} {
		if !found[prefix] {
			t.Errorf("no code is made of %s any more", prefix)
		}
		delete(found, prefix)
		for _, code := range all {
			found[code] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(kinds))
}

// readCodes adds the codes and the kinds that a node has: arguments of newProblem and rejected, values of a field Code, and
// constants.
func readCodes(n ast.Node, codes, kinds map[string]bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		name, _ := n.Fun.(*ast.Ident)
		for i, of := range []string{"rejected", "newProblem"} {
			if name != nil && name.Name == of && len(n.Args) > i {
				addWord(codes, n.Args[i])
			}
		}
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && key.Name == "Code" {
			addWord(codes, n.Value)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, is := to.(*ast.SelectorExpr); is && field.Sel.Name == "Code" && len(n.Rhs) == len(n.Lhs) {
				addWord(codes, n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		if kind, is := n.Type.(*ast.Ident); is && kind.Name == "FindingKind" {
			addWord(kinds, n.Values[0])
		}
	}
}

// addWord adds the text of a literal, or of the one that an expression begins with: a code may be made of a prefix and a name.
func addWord(to map[string]bool, e ast.Expr) {
	for {
		sum, is := e.(*ast.BinaryExpr)
		if !is {
			break
		}
		e = sum.X
	}
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return
	}
	if word, err := strconv.Unquote(literal.Value); err == nil {
		to[word] = true
	}
}
