package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/compose"
	"vmctl/internal/compose/composetest"
	"vmctl/spec"
)

// composed reads the text of a compose file, which needs no other file, and writes its blocks.
func composed(text string) (spec.Composed, error) {
	p, err := compose.Read(text, compose.Inputs{Folder: "shop", Environ: map[string]string{"SET": "x"}, ReadFile: func(string) (string, error) { return "A=1\n", nil }})
	if err != nil {
		return spec.Composed{}, err
	}
	return spec.GenerateCompose(p, spec.ComposeTarget{Engine: spec.Address{Kind: spec.Engine, Name: "here"}, NewEngine: true})
}

// loadComposed loads blocks as the only file of a folder.
func loadComposed(dir string, text []byte) (*spec.Config, error) {
	if err := os.WriteFile(filepath.Join(dir, "shop"+spec.Suffix), text, 0o600); err != nil {
		return nil, err
	}
	config, diags := spec.Load(dir, spec.Inputs{})
	if diags.HasErrors() {
		return nil, diags
	}
	return config, nil
}

// Names that no label can spell get labels of their own; two names never get one.
func TestComposeLabels(t *testing.T) {
	made, err := composed("services: {a.b: {image: r:5000/my.box, depends_on: [1c]}, 1c: {image: my_box}, d: {image: my.box}, e: {image: library/my.box}}")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range made.Addresses {
		got = append(got, a.String())
	}
	want := "engine.here image.my_box image.my_box_2 image.my_box_3 network.default container._31c container.a_2eb container.d container.e"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if _, err := composed("services: {a.b: {image: box}, a_2eb: {image: box}}"); err == nil || err.Error() != `"a.b" and "a_2eb" would both be container.a_2eb: rename one of them` {
		t.Errorf("two names of one label: %v", err)
	}
}

// Blocks mean what the compose file says, whatever the texts hold. A part that is not allowed is left out alone, and a
// second mount of one volume.
func TestComposeKeepsTexts(t *testing.T) {
	made, err := composed(`
services:
  web:
    image: box
    command: ["$${x}", "%{ if y }", "a\nb", "\"\\"]
    environment: {for: "$${x}", "null": "1"}
    labels: {for: "1", "a b": "2", "$x": "3"}
    volumes: ["data:/a", "data:/b"]
    working_dir: relative
    healthcheck: {test: [CMD, x], interval: 500ms, retries: 7}
volumes: {data: }
`)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loadComposed(t.TempDir(), made.Text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, made.Text)
	}
	web, _ := config.Resource(spec.Address{Kind: spec.Container, Name: "web"})
	var got []string
	for _, name := range []string{"command", "env", "labels", "mount", "workdir", "healthcheck"} {
		v, _ := web.Want.GetAttr(name).UnmarkDeep()
		got = append(got, name+" "+spec.FormatValue(spec.Container, name, v))
	}
	for _, l := range made.LeftOut {
		got = append(got, l.Address.String()+": "+l.Setting)
	}
	want := []string{
		`command ["${x}", "%{ if y }", "a\nb", "\"\\"]`, `env {for "${x}", null 1}`, `labels {$x 3, a b 2, for 1}`,
		`mount [{read_only false, target /a, volume volume.data}]`, "workdir none",
		"healthcheck {command [x], interval 30s, retries 7, start_period 0s, timeout 30s}",
		"container.web: workdir", "container.web: volumes", "container.web: healthcheck.interval",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the blocks mean (-want +got):\n%s\n%s", diff, made.Text)
	}
}

// Blocks of any compose file parse, are formatted, and load; whatever a block cannot say is a comment in them.
func TestComposedBlocksLoad(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := composetest.Document().Draw(t, "text")
		made, err := composed(text)
		if err != nil {
			return
		}
		again, diags := spec.Format(made.Text, "shop"+spec.Suffix)
		if diags.HasErrors() {
			t.Fatalf("%v:\n%s\nof\n%s", diags, made.Text, text)
		}
		if diff := cmp.Diff(string(again), string(made.Text)); diff != "" {
			t.Fatalf("formatted (-want +got):\n%s", diff)
		}
		config, err := loadComposed(dir, made.Text)
		if err != nil {
			if strings.Contains(err.Error(), "Duplicate name") || strings.Contains(err.Error(), "Cycle") {
				return // two things of one name, or depends_on in a circle: no compose file may have them
			}
			t.Fatalf("%v:\n%s\nof\n%s", err, made.Text, text)
		}
		if len(config.Resources) != len(made.Addresses) {
			t.Fatalf("%d resources of %v:\n%s", len(config.Resources), made.Addresses, made.Text)
		}
		if comments := strings.Count("\n"+string(made.Text), "# Left out, "); comments < len(made.LeftOut) {
			t.Fatalf("%d comments about %v:\n%s", comments, made.LeftOut, made.Text)
		}
	})
}
