package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/lima-vm/lima/v2/pkg/limatmpl"
	"github.com/lima-vm/lima/v2/pkg/limatype"
)

// origin tells where a template or a script comes from.
type origin int

const (
	fromHost    origin = iota // a file of this host, or the spec
	fromLima                  // installed with vmctl
	fromNetwork               // of a web server, or of GitHub
)

// originOf tells a locator's origin. A scheme for which Lima would run a program of this host has none.
func originOf(locator string) (origin, error) {
	u, err := url.Parse(locator)
	if err != nil || len(u.Scheme) <= 1 { // Lima reads it as a path; one letter is a drive of Windows
		return fromHost, nil
	}
	switch u.Scheme {
	case "file":
		return fromHost, nil
	case "template":
		return fromLima, nil
	case "http", "https", "github":
		return fromNetwork, nil
	default:
		return fromHost, fmt.Errorf("%s has the unknown scheme %q: use template:, https:, http:, github: or file:, or a path", locator, u.Scheme+":")
	}
}

// references checks the bases and the files of templates before Lima embeds them.
type references struct{ seen map[string]bool }

// check returns an error if a template, or one that it is based on, names a file that it may not name: a template from
// the network names nothing of this host. The template stays as it is.
func (r *references) check(ctx context.Context, t *limatmpl.Template, from origin) error {
	t = &limatmpl.Template{Name: t.Name, Locator: t.Locator, Bytes: t.Bytes}
	if from == fromNetwork {
		if err := checkForm(t); err != nil {
			return fmt.Errorf("the template %s comes from the network: %w", t.Locator, err)
		}
	}
	if err := t.UseAbsLocators(ctx); err != nil {
		return err
	}
	if err := t.Unmarshal(); err != nil {
		return err
	}
	for _, base := range t.Config.Base {
		if err := r.follow(ctx, t.Locator, from, base.URL, r.check); err != nil {
			return err
		}
	}
	for _, file := range filesOf(t.Config) {
		if err := r.follow(ctx, t.Locator, from, file, checkScript); err != nil {
			return err
		}
	}
	return nil
}

// follow checks what a template names: its text, too, unless it is a script of this host or was seen.
func (r *references) follow(ctx context.Context, name string, from origin, locator string, check func(context.Context, *limatmpl.Template, origin) error) error {
	to, err := originOf(locator)
	if err != nil {
		return err
	}
	if from == fromNetwork && to == fromHost {
		return fmt.Errorf("the template %s comes from the network and names %s, a file of this host: "+
			"it may name template:, https:, http: and github: only, or what is relative to its own URL", name, locator)
	}
	if r.seen[locator] { // Lima reports a loop
		return nil
	}
	r.seen[locator] = true
	named, err := limatmpl.Read(ctx, "", locator)
	if err != nil {
		return err
	}
	return check(ctx, named, to)
}

// filesOf returns the locators of a template's scripts.
func filesOf(config *limatype.LimaYAML) []string {
	var all []string
	for _, p := range config.Probes {
		if p.File != nil {
			all = append(all, p.File.URL)
		}
	}
	for _, p := range config.Provision {
		if p.File != nil {
			all = append(all, p.File.URL)
		}
	}
	return all
}

// checkForm returns an error unless Lima's two readers of YAML, and its merge of texts, understand a template alike.
func checkForm(t *limatmpl.Template) error {
	file, err := parser.ParseBytes(t.Bytes, 0)
	if err != nil {
		return err
	}
	if len(file.Docs) > 1 {
		return errors.New("it has more than one YAML document: keep one")
	}
	for _, doc := range file.Docs {
		var found forms
		ast.Walk(&found, doc)
		if len(found) > 0 {
			return fmt.Errorf("it has the YAML %s, with which it could name files of this host: write it out", found[0])
		}
	}
	if err := t.Unmarshal(); err != nil {
		return err
	}
	for _, locator := range append(filesOf(t.Config), basesOf(t.Config)...) {
		if err := checkText(locator); err != nil {
			return err
		}
	}
	return nil
}

func basesOf(config *limatype.LimaYAML) []string {
	var all []string
	for _, base := range config.Base {
		all = append(all, base.URL)
	}
	return all
}

// checkScript returns an error for a script from the network that Lima would not copy as it is.
func checkScript(_ context.Context, t *limatmpl.Template, from origin) error {
	if from != fromNetwork {
		return nil
	}
	if err := checkText(string(t.Bytes)); err != nil {
		return fmt.Errorf("the script %s comes from the network: %w", t.Locator, err)
	}
	return nil
}

// checkText returns an error for a text in which Lima would evaluate an expression of yq. That could change what the
// template names.
func checkText(text string) error {
	if strings.Contains(text, `\\(`) {
		return errors.New(`it has \\(, after which Lima would evaluate an expression: write it in another way`)
	}
	return nil
}

// forms collects anchors, aliases, merges and tags of a YAML document.
type forms []string

// Visit implements ast.Visitor.
func (f *forms) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.AnchorNode:
		*f = append(*f, "anchor "+n.String())
	case *ast.AliasNode:
		*f = append(*f, "alias "+n.String())
	case *ast.MergeKeyNode:
		*f = append(*f, "merge key <<")
	case *ast.DirectiveNode:
		*f = append(*f, "directive "+n.String())
	case *ast.TagNode:
		if tag := n.Start.Value; !slices.Contains([]string{"!!binary", "!!str"}, tag) {
			*f = append(*f, "tag "+tag)
		}
	}
	return f
}
