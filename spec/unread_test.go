package spec_test

import (
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// A text that cannot be read is no mistake of the spec: it stands at its line, and nothing is missed in it.
func TestUnreadTexts(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte("provider \"lima\" \"here\" {}\nvm \"dev\" {\n  provider = provider.lima.here\n  template = \"template:docker\"\n}\n"))
	config, diags := spec.Load(dir, spec.Inputs{
		Expand: func(_ string, _ spec.Kind, want cty.Value, _ string) (cty.Value, *spec.UnreadError) {
			return want, &spec.UnreadError{Flaw: spec.Flaw{Path: "template", Summary: "Unreadable template", Detail: "No such template."}}
		},
		Check: func(string, spec.Kind, cty.Value) []spec.Flaw {
			return []spec.Flaw{{Path: "template", Summary: "Unsupported template", Detail: "It has no images."}}
		},
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r := config.Resources[0]
	if r.Unread == nil {
		t.Fatal("the text counts as read")
	}
	if d := r.Unread.Diagnostic(); d.Summary != "Unreadable template" || d.Detail != "No such template." || d.Subject.Start.Line != 4 {
		t.Errorf("diagnostic: %v at line %d", d, d.Subject.Start.Line)
	}
	applied := cty.ObjectVal(map[string]cty.Value{"template": cty.StringVal("env: {}\n")})
	if got := r.WithRead(applied).Want.GetAttr("template").AsString(); got != "env: {}\n" {
		t.Errorf("with the applied text: %q", got)
	}
	if got := r.WithRead(cty.EmptyObjectVal).Want; !got.RawEquals(r.Want) {
		t.Errorf("without an applied text: %#v", got)
	}
	if r.Unread = nil; !r.WithRead(applied).Want.RawEquals(r.Want) {
		t.Error("a text that was read is replaced")
	}
}
