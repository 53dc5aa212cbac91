package tools_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testVariable matches the names of variables that tests and make read. Those of vmctl itself are in the README.
var testVariable = regexp.MustCompile(`\bVMCTL_(?:TEST_|CRASH_|LIMA_TEST_)[A-Z_]+\b|\bVMCTL_(?:BENCH|SKIP_REAL|QUICKSTART_DIR|CACHE)\b`)

// Every variable that a test or make reads is described, and every described one is read.
//
// row L64
func TestTestVariablesAreDescribed(t *testing.T) {
	described := testVariable.FindAllString(readFile(t, "../docs/testing.md"), -1)
	var read []string
	for _, file := range sources(t) {
		read = append(read, testVariable.FindAllString(readFile(t, file), -1)...)
	}
	for _, name := range sorted(read) {
		if !slices.Contains(described, name) {
			t.Errorf("docs/testing.md does not describe %s", name)
		}
	}
	for _, name := range sorted(described) {
		if !slices.Contains(read, name) {
			t.Errorf("docs/testing.md describes %s, which nothing reads", name)
		}
	}
}

// sources lists the files of code, scripts and make.
func sources(t *testing.T) []string {
	t.Helper()
	files := []string{"../Makefile"}
	for _, pattern := range []string{"../scripts/*.sh", "../guest/*.sh"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	files = append(files, goFiles(t)...)
	if len(files) < 500 {
		t.Fatalf("it found %d files", len(files))
	}
	return files
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// signalName matches the names that signals have on some systems alone.
var signalName = regexp.MustCompile(`\bSIG(?:INT|TERM|KILL|HUP|STOP|CONT)\b`)

// perSystem matches the files of one kind of system, and of what speaks to a system that has signals by name.
var perSystem = regexp.MustCompile(`(?:_unix|_linux|_darwin|_windows)\.go$`)

// Comments of code for all systems say what is asked of a process, not with which signal.
//
// row L58
func TestCommentsNameNoSignals(t *testing.T) {
	for _, file := range goFiles(t) {
		if perSystem.MatchString(file) || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") {
			continue
		}
		for _, at := range signalComments(t, file, nil) {
			t.Errorf("%s names a signal: say what is asked for, as in \"asks it to end\"", at)
		}
	}
}

// A comment with a signal that was planted is reported, code is not.
//
// row L58
func TestAPlantedSignalIsReported(t *testing.T) {
	const source = "package planted\n\n// end sends SIGTERM.\nfunc end() { send(\"SIGTERM\") }\n"
	if found := signalComments(t, "planted.go", source); !slices.Equal(found, []string{"planted.go:3"}) {
		t.Errorf("found %q", found)
	}
}

func signalComments(t *testing.T, name string, source any) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, group := range file.Comments {
		for _, c := range group.List {
			if signalName.MatchString(c.Text) {
				at := files.Position(c.Pos())
				found = append(found, at.Filename+":"+strconv.Itoa(at.Line))
			}
		}
	}
	return found
}

// No command runs while a test's package is initialized: only functions run commands.
//
// row E17
func TestNoCommandRunsAtPackageScope(t *testing.T) {
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, at := range packageScopeCalls(t, file, nil) {
			t.Errorf("%s runs a command at package scope: do it in the test, or in TestMain", at)
		}
	}
}

// A command that was planted at package scope is reported; one in a function is not.
//
// row E17
func TestAPlantedCommandIsReported(t *testing.T) {
	const source = `package planted

var version, _ = exec.Command("qemu-img", "--version").Output()
var later = func() { _ = exec.Command("true").Run() }

func init() { exec.CommandContext(ctx, "true") }
func run() { exec.Command("true") }
`
	if found := packageScopeCalls(t, "planted.go", source); !slices.Equal(found, []string{"planted.go:3", "planted.go:6"}) {
		t.Errorf("found %q", found)
	}
}

// packageScopeCalls lists the calls of os/exec that run before any test does.
func packageScopeCalls(t *testing.T, name string, source any) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range file.Decls {
		function, isFunction := d.(*ast.FuncDecl)
		if isFunction && (function.Name.Name != "init" || function.Recv != nil) {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit: // it runs when it is called
				return false
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && of.Name == "exec" && strings.HasPrefix(n.Sel.Name, "Command") {
					at := files.Position(n.Pos())
					found = append(found, at.Filename+":"+strconv.Itoa(at.Line))
				}
			}
			return true
		})
	}
	return found
}

// The licence and the notice stand in the project's root, and the README names the documents that there are.
//
// row J69
func TestLicenceAndDocumentsAreThere(t *testing.T) {
	if !strings.Contains(readFile(t, "../LICENSE"), "Apache License") || !strings.Contains(readFile(t, "../NOTICE"), "Apache License") {
		t.Error("LICENSE and NOTICE speak of different licences")
	}
	documents, err := filepath.Glob("../docs/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) < 3 {
		t.Fatalf("it found %d documents", len(documents))
	}
	named := readFile(t, "../README.md") + readFile(t, "../CONTRIBUTING.md")
	for _, document := range documents {
		if name := strings.TrimPrefix(document, "../"); !strings.Contains(named, name) {
			t.Errorf("neither README.md nor CONTRIBUTING.md names %s", name)
		}
	}
}

// platformOf matches the platform in a file's name to which go gives no meaning, as it does to _linux and _windows.
var platformOf = regexp.MustCompile(`_(unix|other)(?:_test)?\.go$`)

// A file that names a platform is built there: go reads "_unix" as a part of the name alone, and so the file has to say it.
// Scripts run on Debian and Ubuntu, and name no other platform.
//
// row L59
func TestNamesOfPlatformsAreTrue(t *testing.T) {
	found := 0
	for _, file := range goFiles(t) {
		name := platformOf.FindStringSubmatch(file)
		if name == nil {
			continue
		}
		found++
		constraint, _, _ := strings.Cut(readFile(t, file), "\n")
		if !buildsOn(name[1], constraint) {
			t.Errorf("%s begins with %q: it is built elsewhere, too", file, constraint)
		}
	}
	if found < 20 {
		t.Errorf("it found %d files", found)
	}
	scripts, err := filepath.Glob("../scripts/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range append(scripts, "../.ci/run") {
		if regexp.MustCompile(`(?i)windows|wsl|darwin|macos|fedora`).MatchString(filepath.Base(script)) {
			t.Errorf("%s names a platform where it does not run", script)
		}
	}
}

// buildsOn reports whether a build constraint holds on the platform of a file's name, and not elsewhere.
func buildsOn(platform, constraint string) bool {
	if platform == "other" {
		return strings.HasPrefix(constraint, "//go:build ") && strings.Contains(constraint, "!") // all but those that have a file of their own
	}
	return constraint == "//go:build unix" || strings.HasPrefix(constraint, "//go:build linux") || strings.HasPrefix(constraint, "//go:build darwin")
}

// A name without its constraint, or with another one, is reported.
//
// row L59
func TestAFalseNameOfAPlatformIsReported(t *testing.T) {
	for constraint, want := range map[string]bool{"//go:build unix": true, "package process": false, "//go:build windows": false, "//go:build !unix": false} {
		if got := buildsOn("unix", constraint); got != want {
			t.Errorf("_unix with %q: %t, want %t", constraint, got, want)
		}
	}
	for constraint, want := range map[string]bool{"//go:build !unix": true, "//go:build !linux && !darwin": true, "package process": false, "//go:build unix": false} {
		if got := buildsOn("other", constraint); got != want {
			t.Errorf("_other with %q: %t, want %t", constraint, got, want)
		}
	}
}

// There are no copies that could drift apart: no code is generated, and no two files of code or scripts are the same.
//
// row J62
func TestThereAreNoCopies(t *testing.T) {
	first := map[string]string{}
	for _, file := range sources(t) {
		content := readFile(t, file)
		if regexp.MustCompile(`(?m)^//go:generate|^// Code generated `).MatchString(content) {
			t.Errorf("%s is generated, or generates code: nothing would notice that it is old", file)
		}
		if first[content] != "" {
			t.Errorf("%s and %s are the same: have one of them", first[content], file)
		}
		first[content] = file
	}
}
