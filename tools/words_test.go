package tools_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// riddles are forms of sentences that nobody understands at once, and what to write instead.
var riddles = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`^\S+ (is|are) (what|who|how|those|that|whose)\b`), "begin with the name and a verb, or name the thing: X returns …, X holds …, X is a …"},
	{regexp.MustCompile(`(?i)\b(what|who) (is|are) (what|who)\b`), "name both things"},
	{regexp.MustCompile(`(?i)\b(what|who) what\b`), "name both things"},
}

// phrases are words of messages that were riddles, and what users know them as.
var phrases = map[string]string{
	"are called so":                     "have this name",
	"catches up with what is there":     "update the recorded state",
	"is another file than":              "checksum mismatch",
	"it was not confirmed that":         "could not confirm that",
	"its ceiling is":                    "on_change allows at most",
	"neither the files nor the state":   "neither the spec nor the state",
	"no SSH server speaks":              "no SSH banner yet",
	"taken to be as the files say":      "assumed to match the files",
	"the end of ADDR":                   "destroying ADDR",
	"who is at work":                    "holders of locks",
	"would not fit what it is changed":  "does not match the new settings",
	"wait for each other":               "a dependency cycle",
	"does what there is one of for key": "instances",
}

// names are words that name nothing in the field, and the field's own.
var names = map[string]string{
	"sight": "observation", "glance": "observation", "shelf": "pool", "rack": "pool", "spot": "place", "heir": "successor",
	"doors": "addresses", "parting": "mutation", "loosen": "stop waiting", "patient": "waiting", "stray": "unmanaged",
}

// A sentence that is a riddle, in a comment or in a message, and a name that the field does
// not know, are reported with their place.
func TestWords(t *testing.T) {
	files := goFiles(t)
	if len(files) < 300 {
		t.Fatalf("it found %d files", len(files))
	}
	for _, file := range files {
		for _, complaint := range complaints(t, file, nil) {
			t.Error(complaint)
		}
	}
}

// What is planted is reported.
func TestPlantedWordsAreReported(t *testing.T) {
	const source = `package planted

// uses IS others hold.
func uses() {}

// held holds what IS.
type heir struct{}

// Good returns one instance per key.
func Good() string { return "disk: it was not confirmed that it is gone" }

// names are words.
func (h heir) loosen() {}

var next = providers.Say(fmt.Sprintf("free it: vmctl disk unlock %s", address))

var words = providers.Words{Doing: "removing its predecessor", Done: "removed the predecessor of"}
`
	want := []string{
		"planted.go:3: ", "planted.go:6: ", "planted.go:7: ", "planted.go:10: ", "planted.go:13: ", "planted.go:15: ", "planted.go:17: ",
	}
	planted := strings.ReplaceAll(source, " IS", " is what") // or this file would have them
	got := complaints(t, "planted.go", []byte(planted))
	if len(got) != len(want) {
		t.Fatalf("%d complaints, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, begin := range want {
		if !strings.HasPrefix(got[i], begin) {
			t.Errorf("complaint %q, want one that begins with %q", got[i], begin)
		}
	}
}

// goFiles lists the Go files of the project, but for those of tools and of test data.
func goFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "tools"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// complaints lists the riddles of a file, by line. source nil: the file is read.
func complaints(t *testing.T, file string, source []byte) []string {
	t.Helper()
	set := token.NewFileSet()
	var src any
	if source != nil {
		src = source
	}
	f, err := parser.ParseFile(set, file, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[int][]string{}
	add := func(at token.Pos, format string, args ...any) {
		line := set.Position(at).Line
		found[line] = append(found[line], fmt.Sprintf("%s:%d: ", file, line)+fmt.Sprintf(format, args...))
	}
	for _, group := range f.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		for _, r := range riddles {
			if hit := r.pattern.FindString(text); hit != "" {
				add(group.Pos(), "%q is a riddle: %s", hit, r.instead)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				break
			}
			for phrase, instead := range phrases {
				if strings.Contains(text, phrase) {
					add(n.Pos(), "%q is a riddle: write %q", phrase, instead)
				}
			}
		case *ast.CallExpr:
			checkAdvice(n, add)
		case *ast.KeyValueExpr:
			checkStepWords(n, add)
		case *ast.FuncDecl:
			checkName(n.Name, add)
		case *ast.TypeSpec:
			checkName(n.Name, add)
		}
		return true
	})
	var all []string
	for _, line := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[line]...)
	}
	return all
}

// checkAdvice complains of a vmctl command in the words of an advice: it would be shown without
// the user's own flags.
func checkAdvice(call *ast.CallExpr, add func(at token.Pos, format string, args ...any)) {
	if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Say" && f.Sel.Name != "SayVmctl" {
		return
	}
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && commandPattern.MatchString(text.Value) {
				add(text.Pos(), "%q: a vmctl command belongs into Vmctl or the arguments of SayVmctl", commandPattern.FindString(text.Value))
			}
			return true
		})
	}
}

var commandPattern = regexp.MustCompile(`\bvmctl (apply|destroy|disk|doctor|import|init|lock|plan|state|status|vm)\b`)

// checkStepWords complains of words of a step that wait for an object: they stand after the address, as in
// "container.web: making room for its successor (at most 1m)", and nothing follows them.
func checkStepWords(pair *ast.KeyValueExpr, add func(at token.Pos, format string, args ...any)) {
	key, named := pair.Key.(*ast.Ident)
	text, plain := pair.Value.(*ast.BasicLit)
	if named && plain && (key.Name == "Doing" || key.Name == "Done") && unfinished.MatchString(text.Value) {
		add(text.Pos(), "%s: the words of a step stand after its address, and nothing follows them", text.Value)
	}
}

var unfinished = regexp.MustCompile(`(\b(at|for|from|of|the|to|with)|:)"$`)

// checkName complains of the words of a name.
func checkName(id *ast.Ident, add func(at token.Pos, format string, args ...any)) {
	for _, word := range wordPattern.FindAllString(id.Name, -1) {
		if instead, bad := names[strings.TrimSuffix(strings.ToLower(word), "s")]; bad {
			add(id.Pos(), "%s: the field has no %q: %s", id.Name, strings.ToLower(word), instead)
		} else if instead, bad := names[strings.ToLower(word)]; bad {
			add(id.Pos(), "%s: the field has no %q: %s", id.Name, strings.ToLower(word), instead)
		}
	}
}

// wordPattern is one word of a name like diskSight.
var wordPattern = regexp.MustCompile(`[A-Z]?[a-z]+`)
