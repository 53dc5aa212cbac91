package job_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each status, error code and outcome has a row in docs/jobs.md, and each row is one of them.
//
// row J66
func TestDocsNameEachWord(t *testing.T) {
	text, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	words := constants(t)
	for kind, heading := range map[string]string{"Status": "### Statuses", "ErrorCode": "### Error codes of records", "CancelOutcome": "### Outcomes of a cancel"} {
		_, part, _ := strings.Cut(string(text), heading+"\n")
		part, _, _ = strings.Cut(part, "\n### ")
		var rows []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(part, -1) {
			rows = append(rows, m[1])
		}
		slices.Sort(rows)
		if diff := cmp.Diff(words[kind], rows); diff != "" || len(rows) == 0 {
			t.Errorf("docs/jobs.md, %s (-in the code +in the page):\n%s", heading, diff)
		}
	}
}

// constants returns the values of the constants of this package by their types, sorted.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, named := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if named && literal && value.Kind == token.STRING {
				word, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Error(err)
				}
				all[kind.Name] = append(all[kind.Name], word)
			}
			return true
		})
	}
	for _, words := range all {
		slices.Sort(words)
	}
	return all
}
