//go:build linux

package engine_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// project is a folder with a spec.
type project struct {
	t      testing.TB
	d      *daemon
	dir    string
	home   string
	main   string
	values []string // old and new, for each edit of the spec
}

// main is the spec of the tests. Its container ends when it is asked to.
const main = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

engine "here" {
  host = "unix://SOCKET"
}

image "box" {
  engine  = engine.here
  ref     = "demo/box:1"
  archive = "box.tar"
}

volume "data" {
  engine = engine.here
}

container "web" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; echo begun >>/data/log; while :; do sleep 1; done"]
  env     = { MODE = "one" }
  memory  = "32MiB"
  cpus    = 0.3

  mount {
    volume = volume.data
    target = "/data"
  }
}
`

func newProject(t testing.TB, d *daemon) *project { return projectOf(t, d, main) }

func projectOf(t testing.TB, d *daemon, main string) *project {
	p := &project{t: t, d: d, main: main, dir: t.TempDir(), home: t.TempDir()}
	p.archive("one")
	p.edit()
	return p
}

// edit writes the spec, with texts in place of others.
func (p *project) edit(values ...string) {
	p.t.Helper()
	p.values = append(values, p.values...) // the last edit of a text counts
	text := strings.NewReplacer(append([]string{"SOCKET", p.d.socket()}, p.values...)...).Replace(p.main)
	p.write("main.vmctl.hcl", []byte(text))
}

func (p *project) write(name string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// archive writes the archive of an image: a static busybox, and a file with a text. Its name is demo/box:1, if no others are given.
func (p *project) archive(text string, names ...string) {
	p.t.Helper()
	if len(names) == 0 {
		names = []string{"demo/box:1"}
	}
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		p.t.Fatalf("read busybox (scripts/deps.sh engine installs it): %v", err)
	}
	files := []file{{"bin/busybox", 0o755, busybox, ""}, {"text", 0o644, []byte(text), ""}}
	for _, name := range []string{"sh", "sleep", "httpd", "wget", "test", "mkdir", "touch", "cat"} {
		files = append(files, file{"bin/" + name, 0, nil, "busybox"})
	}
	layer := archived(p.t, files...)
	config := fmt.Sprintf(`{"architecture":"amd64","os":"linux","config":{"Cmd":["/bin/sh"],"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer))
	p.write("box.tar", archived(p.t, file{"config.json", 0o644, []byte(config), ""},
		file{"manifest.json", 0o644, fmt.Appendf(nil, `[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]`, strings.Join(names, `","`)), ""}, file{"layer.tar", 0o644, layer, ""}))
}

type file struct {
	name string
	mode int64
	body []byte
	link string
}

func archived(t testing.TB, all ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range all {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), Typeflag: tar.TypeReg}
		if f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// command returns a run of vmctl, which ends with its patience or the test.
func (p *project) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, vmctl, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.home)
	return cmd
}

// run runs vmctl and demands an exit code.
func (p *project) run(code int, args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("vmctl %v: exit code %d, want %d\n%s", args, got, code, out)
	}
	return string(out)
}

func (p *project) applies() {
	p.t.Helper()
	p.run(0, "apply", "--auto-approve")
	p.run(0, "plan", "--detailed-exitcode")
}

// container is container.web as the engine shows it.
type container struct {
	ID, Image  string
	Name       string
	State      struct{ Status string }
	HostConfig struct {
		Memory        int64
		NanoCPUs      int64 `json:"NanoCpus"`
		RestartPolicy struct{ Name string }
	}
	Config struct{ Env []string }
}

func (p *project) container() container {
	p.t.Helper()
	return read[container](p.d, "/containers/demo.web/json")
}

// read reads an answer of the engine.
func read[T any](d *daemon, path string) (v T) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.must("GET", path, "")), &v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// listed reads a list of the engine.
func listed[T any](d *daemon, path string) []T {
	d.t.Helper()
	return read[[]T](d, path)
}

// The life of a container and what it needs, on a real engine.
//
// row E34, of a container
// row E35, of a container that was removed by hand
// row E39, of a container that was stopped by hand
// row L46, of an engine on this host
func TestLife(t *testing.T) {
	d := newDaemon(t)
	p := newProject(t, d)
	p.applies()
	first := p.container()
	if first.State.Status != "running" || first.HostConfig.Memory != 32<<20 || first.HostConfig.NanoCPUs != 300_000_000 {
		t.Fatalf("the container is %+v", first)
	}

	p.edit("32MiB", "48MiB", "0.3", "0.299")
	p.applies()
	live := p.container()
	if live.ID != first.ID || live.HostConfig.Memory != 48<<20 || live.HostConfig.NanoCPUs != 299_000_000 {
		t.Errorf("other limits made it %+v", live)
	}

	volume := d.must("GET", "/volumes/demo.data", "")
	p.edit(`"one"`, `"two"`)
	p.applies()
	replaced := p.container()
	if replaced.ID == first.ID || !strings.Contains(strings.Join(replaced.Config.Env, " "), "MODE=two") {
		t.Errorf("another environment made it %+v", replaced)
	}
	if now := d.must("GET", "/volumes/demo.data", ""); now != volume {
		t.Errorf("the volume is %s, and was %s", now, volume)
	}

	d.must("POST", "/containers/demo.web/stop?t=30", "")
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "state is created, and vmctl applied running") {
		t.Errorf("it was stopped by hand, and the plan says\n%s", out)
	}
	p.applies()
	if now := p.container(); now.ID != replaced.ID || now.State.Status != "running" {
		t.Errorf("it was stopped by hand, and is %+v", now)
	}

	d.must("DELETE", "/containers/demo.web?force=1", "")
	p.applies()
	p.container()

	p.archive("two")
	p.applies()
	if now := p.container(); now.Image == first.Image || now.State.Status != "running" {
		t.Errorf("another archive made it %+v", now)
	}

	p.run(0, "destroy", "--auto-approve")
	for _, path := range []string{"/containers/json?all=1", "/images/json"} {
		if left := strings.TrimSpace(d.must("GET", path, "")); left != "[]" {
			t.Errorf("%s is left: %s", path, left)
		}
	}
	if left := d.must("GET", "/volumes", ""); strings.Contains(left, "demo.data") {
		t.Errorf("the volume is left: %s", left)
	}
}

// A container that others made has the name that ours is to get: nothing is done to it.
//
// row E36, of a container made by hand
func TestForeignContainer(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.run(0, "apply", "--auto-approve", "--target=image.box")
	d.must("POST", "/containers/create?name=demo.web", `{"Image":"demo/box:1","Cmd":["sleep","1000"]}`)
	before := p.container()
	if out := p.run(6, "apply", "--auto-approve"); !strings.Contains(out, "vmctl did not make it: import or rename") {
		t.Errorf("apply says\n%s", out)
	}
	if now := p.container(); now.ID != before.ID || now.State.Status != "created" {
		t.Errorf("it is %+v, and was %+v", now, before)
	}
}

// An engine that is gone makes everything in it unknown: nothing is made, and nothing forgotten.
//
// row E29, of a real engine
// row E30, of a real engine
func TestEngineGone(t *testing.T) {
	d := newDaemon(t)
	p := newProject(t, d)
	p.applies()
	before := p.container()
	d.stop()
	out := p.run(6, "apply", "--auto-approve")
	if strings.Contains(out, " create") || strings.Contains(out, " forget") || strings.Contains(out, " destroy") {
		t.Errorf("without the engine the plan has a change:\n%s", out)
	}
	d.start()
	p.applies()
	if now := p.container(); now.ID != before.ID || now.State.Status != "running" {
		t.Errorf("after the engine's restart it is %+v, and was %+v", now, before)
	}
}
