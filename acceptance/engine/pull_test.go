//go:build linux

package engine_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// pulled is the spec of a container of an image from a registry.
const pulled = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

engine "here" {
  host = "unix://SOCKET"
}

image "box" {
  engine = engine.here
  ref    = "REGISTRY/demo/box:1"
  pull   = "missing"
}

container "web" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
}
`

// shop is a registry on this host, and a project whose image is in it.
type shop struct {
	*project

	server *httptest.Server
	host   string
}

func newShop(t *testing.T, d *daemon, main string) *shop {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	return &shop{project: projectOf(t, d, strings.ReplaceAll(main, "REGISTRY", host)), server: server, host: host}
}

// name returns the name of the image of the project.
func (s *shop) name() string { return s.host + "/demo/box:1" }

// offer lets the name of the image lead to one with a text, in the registry and not in the engine. It returns the digest.
func (s *shop) offer(text string) string {
	s.t.Helper()
	next := s.host + "/demo/box:next"
	s.archive(text, next)
	s.loadByHand()
	out := s.d.must("POST", "/images/"+s.host+"/demo/box/push?tag=next", "{}")
	if strings.Contains(out, `"error"`) {
		s.t.Fatalf("push: %s", out)
	}
	s.d.must("DELETE", "/images/"+next, "")
	manifest := s.request(http.MethodGet, "next", "")
	s.request(http.MethodPut, "1", manifest)
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(manifest)))
}

// request sends a request about the manifest of a tag to the registry.
func (s *shop) request(method, tag, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+"/v2/demo/box/manifests/"+tag, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
	answer, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: %s, %v: %s", method, r.URL, answer.Status, err, text)
	}
	return string(text)
}

// text returns what the file of that name in the image of the container says.
func (s *shop) text() string {
	s.t.Helper()
	out := s.run(0, "container", "exec", "web", "--", "cat", "/text")
	return strings.TrimSpace(out)
}

// An image is pulled where it is missing. With pull = "always", a plan shows that the name leads to another content in the
// registry, and an apply takes that content, and no other, and replaces the container. Without, it is no difference.
func TestPull(t *testing.T) {
	s := newShop(t, sharedDaemon(t), pulled)
	first := s.offer("one")
	s.applies()
	if got := s.text(); got != "one" {
		t.Errorf("the container is of %q", got)
	}
	old := s.d.idOf(s.name())

	second := s.offer("two")
	s.run(0, "plan", "--detailed-exitcode") // nobody asks the registry
	s.edit(`"missing"`, `"always"`)
	out := s.run(2, "plan", "--detailed-exitcode")
	for _, want := range []string{first, second, "its name leads to another content in the registry", "image.box is replaced", "2 to replace"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan does not say %q:\n%s", want, out)
		}
	}
	if out := s.run(2, "plan", "--detailed-exitcode", "--json"); !strings.Contains(out, second) {
		t.Errorf("the plan as JSON has no %s:\n%s", second, out)
	}
	s.run(2, "plan", "--detailed-exitcode", "--out=saved")
	s.offer("three") // after the plan was made
	s.run(6, "apply", "saved")
	if s.d.idOf(s.name()) != old || s.text() != "one" {
		t.Errorf("a plan that is out of date made the image %s of %s", s.d.idOf(s.name()), old)
	}
	s.applies()
	if now := s.d.ids(); s.text() != "three" || len(now) != 1 || now[0] == old {
		t.Errorf("the images are %v, and one was %s; the container is of %q", now, old, s.text())
	}
	s.run(0, "plan", "--detailed-exitcode")

	s.server.Close()
	out = s.run(0, "plan", "--detailed-exitcode")
	if !strings.Contains(out, "unasked") || !strings.Contains(out, "could not be asked what the name leads to now") || !strings.Contains(out, "No changes") {
		t.Errorf("without the registry, the plan says\n%s", out)
	}
	s.run(0, "apply", "--auto-approve")
	s.edit(`"always"`, `"missing"`)
	s.applies()
	s.run(0, "destroy", "--auto-approve")
}

// With pull = "never" an image that is missing is not pulled: the plan says so, and how to go on.
func TestPullNever(t *testing.T) {
	s := newShop(t, sharedDaemon(t), strings.Replace(pulled, `"missing"`, `"never"`, 1))
	s.offer("one")
	out := s.run(6, "apply", "--auto-approve")
	for _, want := range []string{"the engine has no image " + s.name() + `, and pull = "never"`, "docker pull " + s.name(), "vmctl import image.box " + s.name()} {
		if !strings.Contains(out, want) {
			t.Errorf("apply does not say %q:\n%s", want, out)
		}
	}
	if got := s.d.ids(); len(got) > 0 {
		t.Errorf("there are %v", got)
	}
	s.d.must("POST", "/images/create?fromImage="+s.host+"/demo/box&tag=1", "")
	s.run(0, "import", "--auto-approve", "image.box", s.name())
	s.applies()
	if got := s.text(); got != "one" {
		t.Errorf("the container is of %q", got)
	}
}
