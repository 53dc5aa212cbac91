package tools_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// byText matches a search for processes of this host by a part of a command line or a name, or for a pid in a text.
var byText = regexp.MustCompile(`\b(?:pkill|killall|pidof)\s+[-\w"'$]|\bpgrep\s+(?:-[a-wyz]+\s+)?[^-\s]|\bgrep\s[^|/]*\$?\bpid\b`)

// A test or a script of this project never takes another process for the one that it means. In a guest of its own it may.
//
// row L61
func TestProcessesAreFoundExactly(t *testing.T) {
	files := append(sources(t), scriptFiles(t)...)
	for _, file := range files {
		if file == "processes_test.go" {
			continue
		}
		for i, line := range strings.Split(readFile(t, file), "\n") {
			if byText.MatchString(line) && !strings.Contains(line, "vm exec ") {
				t.Errorf("%s:%d: looks for a process by text: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// row L61
func TestAPlantedSearchByTextIsReported(t *testing.T) {
	for line, want := range map[string]bool{
		"pkill -f qemu": true, "killall sshfs": true, `kill $(pidof "$1")`: true, "pgrep -f sshfs": true, "pgrep sshfs": true,
		`ps ax | grep -q $pid`: true, "pgrep -fx 'sshfs .*'": false, `kill "$pid"`: false, `exec.Command("kill", "-9")`: false,
	} {
		if byText.MatchString(line) != want {
			t.Errorf("%q: want %t", line, want)
		}
	}
}

func scriptFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"../cmd/vmctl/testdata/script", "../acceptance/testdata/script"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
		if err != nil || len(found) < 20 {
			t.Fatalf("%s has %d scripts: %v", folder, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}

// Nothing that a test sets outlives it: variables of packages and of the process are set through options and t.Setenv alone.
//
// row J61
func TestTestsSetNothingForOthers(t *testing.T) {
	folders := map[string][]string{}
	for _, file := range goFiles(t) {
		folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], file)
	}
	for _, files := range folders {
		sources := map[string]any{}
		for _, file := range files {
			sources[file] = nil
		}
		for _, at := range settings(t, sources) {
			t.Errorf("%s is set for other tests, too", at)
		}
	}
}

// row J61
func TestAPlantedSettingIsReported(t *testing.T) {
	code := "package p\nvar limit = 1\nfunc f() { limit := 2; limit = 3; _ = limit }\n"
	test := "package p\nfunc TestA(t *testing.T) { limit = 2; os.Setenv(\"A\", \"b\"); os.Chdir(\"c\"); t.Setenv(\"A\", \"b\") }\n"
	if all := settings(t, map[string]any{"a.go": code, "a_test.go": test}); len(all) != 3 {
		t.Errorf("reported: %q", all)
	}
}

// settings returns what the tests of a folder set: variables of the package under test, and of the process. The tests' own
// process in TestMain is left out.
func settings(t *testing.T, files map[string]any) []string {
	t.Helper()
	set := token.NewFileSet()
	variables := map[string]bool{}
	var tests []*ast.File
	for name, source := range files {
		f, err := parser.ParseFile(set, name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, f)
			continue
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					for _, id := range s.(*ast.ValueSpec).Names { //nolint:forcetypeassert // of a var declaration
						variables[id.Name] = true
					}
				}
			}
		}
	}
	var all []string
	for _, f := range tests {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name != "TestMain" {
				all = append(all, settingsOf(set, fn, variables)...)
			}
		}
	}
	return all
}

func settingsOf(set *token.FileSet, fn *ast.FuncDecl, variables map[string]bool) []string {
	var all []string
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				id, ok := left.(*ast.Ident)
				if ok && n.Tok != token.DEFINE && id.Name != "_" && id.Obj == nil && variables[id.Name] {
					all = append(all, set.Position(id.Pos()).String()+": "+id.Name)
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "os" && (n.Sel.Name == "Setenv" || n.Sel.Name == "Unsetenv" || n.Sel.Name == "Chdir") {
				all = append(all, set.Position(n.Pos()).String()+": os."+n.Sel.Name)
			}
		}
		return true
	})
	return all
}
