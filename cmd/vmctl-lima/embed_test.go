package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/lima-vm/lima/v2/pkg/limatype"
)

// builtInTemplates returns the folder with Lima's templates as they are installed beside vmctl-lima.
func builtInTemplates(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "templates")
	tool(t, "../../scripts/lima-templates.sh", dir)
	return dir
}

// A template of Lima's own is had by its name without a limactl, with all that it is based on, and so is one of the
// user's: its relative paths begin in the folder of the spec.
func TestEmbed(t *testing.T) {
	templates := builtInTemplates(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"common.yaml": "base: template:_images/debian-12\nmounts: [{location: /src}]\nenv: {A: common, B: common}\n",
		"setup.sh":    "#!/bin/sh\necho hello\n",
		"loop.yaml":   "base: loop.yaml\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, c := range []struct{ name, template, want, failure string }{
		{name: "docker", template: "template:docker", want: "mounts ~, dockerd-rootless-setuptool.sh, bases 0"},
		{name: "second name", template: "template:debian", want: "mounts ~"},
		{name: "as Lima 1 wrote it", template: "template://docker", want: "mounts ~, dockerd-rootless-setuptool.sh"},
		{name: "bases", template: "base: [common.yaml, 'template:_default/mounts']\nenv: {A: own}\n", want: "mounts /src ~, env own common"},
		{name: "file of a script", template: "provision: [{mode: user, file: setup.sh}]\n", want: "provision 1, echo hello"},
		{name: "nothing of that name", template: "template:dokcer", failure: "template `dokcer.yaml` not found"},
		{name: "base that is missing", template: "base: nowhere.yaml", failure: "nowhere.yaml: no such file"},
		{name: "loop", template: "base: loop.yaml", failure: "base template loop detected"},
		{name: "base outside of the folder", template: "base: ../other.yaml", failure: "must not contain '..'"},
		{name: "page that is missing", template: "base: " + server.URL + "/x.yaml", failure: "the server answers 404 Not Found"},
		{name: "server that is down", template: "http://127.0.0.1:1/x.yaml", failure: "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			got, failed := h.try(c.template, "embed", "--templates="+templates, dir)
			contains(t, failed, c.failure)
			if text, _ := got["template"].(string); c.failure == "" {
				if described := describe(t, text); !inOrder(described, c.want) {
					t.Errorf("template %s, want %s", described, c.want)
				}
			}
		})
	}
}

// describe names the parts of a template that tests look at.
func describe(t *testing.T, text string) string {
	t.Helper()
	var config limatype.LimaYAML
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	said := fmt.Sprintf("images %d, mounts", len(config.Images))
	for _, m := range config.Mounts {
		said += " " + m.Location
	}
	said += fmt.Sprintf(", provision %d", len(config.Provision))
	for _, p := range config.Provision {
		if p.Script != nil {
			said += " " + *p.Script
		}
	}
	return said + ", env " + config.Env["A"] + " " + config.Env["B"] + fmt.Sprintf(", bases %d", len(config.Base))
}

// inOrder reports whether a text has the parts of another one, which commas divide, in their order.
func inOrder(text, parts string) bool {
	for part := range strings.SplitSeq(parts, ", ") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// Each template has what it is based on beside it: those of a module lack the links that give some of them a second name.
func TestBuiltInTemplatesAreWhole(t *testing.T) {
	dir := builtInTemplates(t)
	bases := regexp.MustCompile(`(?m)^(?:base:|-) template:(\S+)$`)
	all, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(all) < 60 {
		t.Fatalf("%d templates: %v", len(all), err)
	}
	found := 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range bases.FindAllSubmatch(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(dir, string(m[1])+".yaml")); err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
		}
	}
	if found < len(all) { // a template of Lima has an image and the mounts of others
		t.Errorf("%d bases found in %d templates", found, len(all))
	}
}

// The copy of Lima's templates takes the place of an earlier one when it is whole, and only if the links are of the
// version of Lima that vmctl-lima has.
func TestLimaTemplatesReplacesWhatIsWhole(t *testing.T) {
	script, err := os.ReadFile("../../scripts/lima-templates.sh")
	if err != nil {
		t.Fatal(err)
	}
	whole := builtInTemplates(t)
	for name, c := range map[string]struct {
		version string
		source  func(templates string) // changes the templates of the module
		failure string
	}{
		"whole":           {version: "v2.2.0"},
		"another version": {version: "v2.3.0", failure: "it has the links of the templates of Lima v2.2.0, and cmd/vmctl-lima/go.mod has Lima v2.3.0"},
		"file that is missing": {version: "v2.2.0", failure: "rocky-10.yaml", source: func(templates string) {
			if err := os.Remove(filepath.Join(templates, "rocky-10.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			module, out := filepath.Join(root, "module"), filepath.Join(root, "share", "templates")
			if err := os.CopyFS(filepath.Join(module, "templates"), os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if c.source != nil {
				c.source(filepath.Join(module, "templates"))
			}
			for path, text := range map[string]string{
				"scripts/lima-templates.sh": string(script), "bin/go": "#!/bin/sh\n[ \"$1\" != list ] || echo '" + module + "'\n",
				"cmd/vmctl-lima/go.mod": "require (\n\tgithub.com/lima-vm/lima/v2 " + c.version + "\n)\n", "share/templates/earlier.yaml": "{}\n",
			} {
				path = filepath.Join(root, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil { //nolint:gosec // programs
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "lima-templates.sh"), out)
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
			said, err := cmd.CombinedOutput()
			if (err != nil) != (c.failure != "") || !strings.Contains(string(said), c.failure) {
				t.Errorf("it ended with %v and said %q, want %q", err, said, c.failure)
			}
			want := "earlier.yaml"
			if c.failure == "" {
				want = "rocky.yaml"
			}
			if _, err := os.Stat(filepath.Join(out, want)); err != nil {
				t.Error(err)
			}
			if left, err := filepath.Glob(filepath.Join(root, "share", ".*")); len(left) > 0 || err != nil {
				t.Errorf("left %v, %v", left, err)
			}
			if _, err := os.Stat(filepath.Join(out, "earlier.yaml")); c.failure == "" && err == nil {
				t.Error("what was there before is still in it")
			}
		})
	}
}
