//go:build linux

package engine_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// built is the spec of a container of an image that is built.
const built = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

variable "token" {
  type      = string
  sensitive = true
}

engine "here" {
  host = "unix://SOCKET"
}

image "box" {
  engine = engine.here
  ref    = "demo/box:1"

  build {
    context = "app"
    args    = { MODE = "one", TOKEN = var.token }
    target  = "whole"
  }
}

container "web" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
}
`

const dockerfile = `FROM scratch AS base
COPY bin /bin
FROM base AS whole
COPY . /app
ARG MODE
ARG TOKEN
RUN echo "mode $MODE" >/text; echo "the token is $TOKEN"
FROM base AS other
RUN exit 9
`

// secret is a secret among the arguments of a build.
const secret = "s3cret/in an arg"

// workshop is a project whose image is built.
type workshop struct{ *project }

func newWorkshop(t *testing.T, d *daemon) workshop {
	t.Helper()
	t.Setenv("VMCTL_VAR_token", secret)
	w := workshop{projectOf(t, d, built)}
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	w.put("bin/busybox", string(busybox), 0o755)
	for _, name := range []string{"sh", "cat", "sleep", "echo"} {
		w.link("busybox", "bin/"+name)
	}
	w.put("Dockerfile", dockerfile, 0o644)
	w.put(".dockerignore", "*.log\n", 0o644)
	w.put("text", "first", 0o644)
	w.link("/etc/passwd", "out")
	return w
}

func (w workshop) put(name, text string, mode fs.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.dir, "app", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w workshop) link(target, name string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.dir, "app", name)); err != nil {
		w.t.Fatal(err)
	}
}

// cat returns what a file in the container says.
func (p *project) cat(path string) string {
	p.t.Helper()
	return strings.TrimSpace(p.run(0, "container", "exec", "web", "--", "cat", path))
}

// hides fails if a text, or a file that vmctl wrote, has the secret.
func (w workshop) hides(out string) {
	w.t.Helper()
	if strings.Contains(out, secret) {
		w.t.Errorf("the output has the secret:\n%s", out)
	}
	err := filepath.WalkDir(w.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			w.t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// An image is built of a folder, and again once anything is different that the build gets. A build that fails leaves the image and
// the container as they were.
func TestBuild(t *testing.T) {
	w := newWorkshop(t, sharedDaemon(t))
	out := w.run(0, "apply", "--auto-approve", "--verbose")
	if !strings.Contains(out, "Step 3/") || !strings.Contains(out, "the token is ") {
		t.Errorf("apply does not tell the output of the build:\n%s", out)
	}
	w.hides(out)
	w.run(0, "plan", "--detailed-exitcode")
	if got := w.cat("/text") + ", " + w.cat("/app/text"); got != "mode one, first" {
		t.Errorf("the container has %q", got)
	}
	if out := w.run(1, "container", "exec", "web", "--", "cat", "/app/out"); strings.Contains(out, "root:") {
		t.Errorf("a link out of the folder was followed:\n%s", out)
	}
	first := w.d.idOf("demo/box:1")

	w.put("noise.log", "ignored", 0o644)
	w.run(0, "plan", "--detailed-exitcode")

	for _, change := range []struct {
		what string
		do   func()
		edit string
		path string
		want string
	}{
		{"a file", func() { w.put("text", "second", 0o644) }, "build.context_sha256", "/app/text", "second"},
		{"an argument", func() { w.edit(`"one"`, `"two"`) }, "build.args", "/text", "mode two"},
		{"the Dockerfile", func() { w.put("Dockerfile", strings.Replace(dockerfile, "mode $MODE", "way $MODE", 1), 0o644) }, "build.context_sha256", "/text", "way two"},
	} {
		change.do()
		out := w.run(2, "plan", "--detailed-exitcode")
		if !strings.Contains(out, change.edit) || !strings.Contains(out, "2 to replace") {
			t.Errorf("%s was changed, and the plan says\n%s", change.what, out)
		}
		w.hides(out)
		w.applies()
		now := w.d.idOf("demo/box:1")
		if got := w.cat(change.path); got != change.want || now == first || w.container().Image != now {
			t.Errorf("%s was changed, and %s has %q; the image is %s, and was %s; the container is of %s", change.what, change.path, got, now, first, w.container().Image)
		}
		first = now
	}
	before := w.container()
	w.edit(`"whole"`, `"other"`)
	out = w.run(1, "apply", "--auto-approve")
	for _, want := range []string{"returned a non-zero code: 9", "it wrote: Step ", "all of its output is in "} {
		if !strings.Contains(out, want) {
			t.Errorf("a build that fails does not say %q:\n%s", want, out)
		}
	}
	if w.d.idOf("demo/box:1") != first {
		t.Errorf("after a build that failed, the image is %s, and was %s", w.d.idOf("demo/box:1"), first)
	}
	if now := w.container(); now.ID != before.ID || now.State.Status != "running" {
		t.Errorf("after a build that failed, the container is %+v, and was %+v", now, before)
	}
	w.edit(`"whole"`, `"whole"`)
	w.applies()
	w.run(0, "destroy", "--auto-approve")
	if got := w.d.ids(); len(got) > 0 {
		t.Errorf("destroy left %v", got)
	}
}

// An argument that is given as an empty text is empty; one that is null or not mentioned has the default of the Dockerfile.
//
// row E52, of the arguments of a build
func TestBuildArguments(t *testing.T) {
	w := newWorkshop(t, sharedDaemon(t))
	w.edit(`{ MODE = "one", TOKEN = var.token }`, `{ GIVEN = "given", EMPTY = "", NULL = null }`, `target  = "whole"`, `target  = null`)
	const args = "FROM scratch\nCOPY bin /bin\nARG GIVEN=default\nARG EMPTY=default\nARG NULL=default\nARG LEFT=default\nRUN echo \"$GIVEN|$EMPTY|$NULL|$LEFT\" >/text\n"
	w.put("Dockerfile", args, 0o644)
	w.applies()
	if got := w.cat("/text"); got != "given||default|default" {
		t.Errorf("the arguments were %q", got)
	}
}
