package tools_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trivial is the most tokens that the body of a function may have that stands in two
// providers.
const trivial = 25

// function is a function of a provider.
type function struct {
	provider, name, at string
	shape              string // its body, without comments, and with every name replaced
	tokens             int
}

// What every system needs stands once, in what the providers share. A function of one
// provider that another one has too, under whatever names, is reported.
func TestNoFunctionStandsInTwoProviders(t *testing.T) {
	var all []function
	for _, provider := range providerFolders(t) {
		files, err := filepath.Glob(filepath.Join("../providers", provider, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, functions(t, provider, file, source)...)
		}
	}
	if len(all) < 500 {
		t.Fatalf("it found %d functions", len(all))
	}
	for _, complaint := range twice(all) {
		t.Error(complaint)
	}
}

// A copy that was planted is reported, though its names differ; what is short is not.
func TestAPlantedCopyIsReported(t *testing.T) {
	const one = `package one

func sum(all []int) (n int, err error) {
	for _, x := range all {
		if x < 0 {
			return 0, errors.New("negative")
		}
		n += x
	}
	return n, nil
}

func short(x int) int { return x + 1 }
`
	const other = `package two

func total(values []int) (m int, bad error) {
	for _, v := range values {
		if v < 0 {
			return 0, errors.New("negative")
		}
		m += v
	}
	return m, nil
}

func little(y int) int { return y + 1 }
`
	found := twice(append(functions(t, "one", "one.go", []byte(one)), functions(t, "two", "two.go", []byte(other))...))
	if len(found) != 1 || !strings.Contains(found[0], "one.go:3: sum stands in two.go:3, too") {
		t.Errorf("found %q", found)
	}
}

// providerFolders lists the packages that are providers, and not shared by them.
func providerFolders(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../providers")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains([]string{"guard", "machine", "providertest", "stop"}, e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all
}

// twice returns a complaint about each function that two providers have.
func twice(all []function) []string {
	var found []string
	for i, f := range all {
		for _, other := range all[i+1:] {
			if f.provider != other.provider && f.shape == other.shape && f.tokens > trivial {
				found = append(found, fmt.Sprintf("%s: %s stands in %s, too, as %s: let providers/machine or providers/guard have it", f.at, f.name, other.at, other.name))
			}
		}
	}
	return found
}

// functions reads the functions of a file.
func functions(t *testing.T, provider, file string, source []byte) []function {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []function
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		from, to := set.Position(fn.Body.Pos()).Offset, set.Position(fn.Body.End()).Offset
		shape, n := shapeOf(source[from:to])
		all = append(all, function{
			provider: provider, name: fn.Name.Name, at: fmt.Sprintf("%s:%d", file, set.Position(fn.Pos()).Line), shape: shape, tokens: n,
		})
	}
	return all
}

// shapeOf returns the tokens of a piece of code and their number. Names are told apart by
// the order in which they come, and literals count.
func shapeOf(source []byte) (shape string, tokens int) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(source)), source, nil, 0)
	numbers := map[string]int{}
	var b strings.Builder
	for {
		_, tok, text := s.Scan()
		if tok == token.EOF {
			return b.String(), tokens
		}
		if tok == token.IDENT {
			if _, known := numbers[text]; !known {
				numbers[text] = len(numbers)
			}
			text = fmt.Sprint(numbers[text])
		}
		if tok == token.SEMICOLON { // written or not
			text = ""
		}
		fmt.Fprintf(&b, "%s %s ", tok, text)
		tokens++
	}
}
