// Package tools_test proves that the linter enforces what .golangci.yml says: it plants code that a rule forbids, and
// code that no rule may forbid, into a module with the folders of this one, and looks for the linter's own report of
// each line. A rule without a planted line fails the test.
package tools_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// One package signals, one runs commands, one reads HCL: code elsewhere that does
// is reported, line by line.
//
// row L32
// row X19
func TestPlantedCodeIsReported(t *testing.T) {
	root := t.TempDir()
	writeModule(t, root)
	issues := lint(t, root)
	for _, is := range issues {
		// What does not compile is not linted, so that silence would prove nothing.
		if is.FromLinter == "typecheck" {
			t.Errorf("planted code does not compile: %s: %s", is.at(), is.Text)
		}
	}
	for i, p := range plants() {
		at := fmt.Sprintf("%s:%d", p.file(i), plantedLine)
		reported := false
		for _, is := range issues {
			switch {
			case is.at() != at:
			case p.rule != "" && is.from(p.rule):
				reported = true
			case !is.byRule() && (!p.annotated() || !is.ofDrops()):
			default:
				t.Errorf("%s: %s%s is reported but not forbidden: %s", at, p.imp, p.code, is.Text)
			}
		}
		if p.rule != "" && !reported {
			t.Errorf("%s: %s%s is not reported by rule %q", at, p.imp, p.code, p.rule)
		}
	}
}

func TestEveryRuleHasAPlant(t *testing.T) {
	rules := readRules(t)
	planted := func(rule, prefix string) bool {
		return slices.ContainsFunc(plants(), func(p plant) bool {
			return p.rule == rule && strings.HasPrefix(p.imp, prefix)
		})
	}
	for name, rule := range rules.Depguard.Rules {
		for _, deny := range rule.Deny {
			if !planted(name, strings.TrimSuffix(deny.Pkg, "$")) {
				t.Errorf("depguard rule %q denies %s: no plant tries it", name, deny.Pkg)
			}
		}
	}
	for _, forbid := range rules.Forbidigo.Forbid {
		if !planted(forbid.Msg, "") {
			t.Errorf("forbidigo pattern %q: no plant tries it", forbid.Pattern)
		}
	}
}

func TestEveryFolderHasARule(t *testing.T) {
	var ruled []string
	for name, rule := range readRules(t).Depguard.Rules {
		for _, glob := range rule.Files {
			dir, ok := strings.CutPrefix(glob, "${config-path}/")
			if !ok {
				continue // a variable of depguard, or an exception
			}
			for strings.Contains(dir, "*") {
				dir = path.Dir(dir)
			}
			// The rule of a folder that was renamed would be silent.
			if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
				t.Errorf("depguard rule %q is for %s: %v", name, glob, err)
			}
			ruled = append(ruled, dir+"/")
		}
	}
	for _, dir := range packageDirs(t) {
		under := func(prefix string) bool { return strings.HasPrefix(dir+"/", prefix) }
		// The one place that may know everything of ours.
		if !under("cmd/internal/cli/") && !slices.ContainsFunc(ruled, under) {
			t.Errorf("no depguard rule says what %s may import", dir)
		}
	}
}

// issue is a report of the linter about one line.
type issue struct {
	FromLinter, Text string
	Pos              struct {
		Filename string
		Line     int
	}
}

func (is issue) at() string {
	return fmt.Sprintf("%s:%d", filepath.ToSlash(is.Pos.Filename), is.Pos.Line)
}

// byRule tells whether the report comes from one of the linters that .golangci.yml gives rules.
func (is issue) byRule() bool { return is.FromLinter == "depguard" || is.FromLinter == "forbidigo" }

// ofDrops tells whether the report is about an error that is dropped, or about the reason for it.
func (is issue) ofDrops() bool { return is.FromLinter == "errcheck" || is.FromLinter == "nolintlint" }

// from tells whether the report names the rule, and not just any rule.
func (is issue) from(rule string) bool {
	switch is.FromLinter {
	case "depguard":
		return strings.Contains(is.Text, fmt.Sprintf("list '%s'", rule))
	case "forbidigo":
		return strings.Contains(is.Text, rule)
	}
	return is.FromLinter == rule
}

func lint(t *testing.T, root string) []issue {
	t.Helper()
	linter, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "golangci-lint").Output()
	if err != nil {
		t.Fatalf("build golangci-lint: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(linter)),
		"run", "--output.json.path=stdout", "--show-stats=false", "--path-mode=", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOLANGCI_LINT_CACHE="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// It exits 1 when it reports something.
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("golangci-lint: %v\n%s", err, stderr.String())
	}
	var out struct{ Issues []issue }
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("read golangci-lint's report: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	return out.Issues
}

// rules is the part of .golangci.yml that says what is forbidden.
type rules struct {
	Depguard struct {
		Rules map[string]struct {
			Files []string
			Deny  []struct{ Pkg string }
		}
	}
	Forbidigo struct {
		Forbid []struct{ Pattern, Msg string }
	}
}

func readRules(t *testing.T) rules {
	t.Helper()
	data, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct{ Settings rules }
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	found := config.Linters.Settings
	if len(found.Depguard.Rules) == 0 || len(found.Forbidigo.Forbid) == 0 {
		t.Fatal(".golangci.yml has no depguard rules or no forbidigo patterns")
	}
	return found
}

// packageDirs lists the folders of this module that have more than tests. Examples are not for others to import.
func packageDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			nested := err == nil && file != ".."
			if nested || name == "testdata" || (strings.HasPrefix(name, ".") && file != "..") {
				return fs.SkipDir
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if dir := filepath.ToSlash(filepath.Dir(file)); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			dirs = append(dirs, strings.TrimPrefix(dir, "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
