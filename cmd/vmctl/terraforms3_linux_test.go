package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/real"
)

// bucket serves one bucket of S3, as far as Terraform's backend asks for it.
type bucket struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	objects map[string][]byte
	writes  int                   // of objects, and removals
	deny    func(key string) bool // says which objects cannot be written; nil: all can
	keys    map[string]bool       // the access keys of all requests
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{t: t, objects: map[string][]byte{}, keys: map[string]bool{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

type listedBucket struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	Name        string
	Prefix      string
	KeyCount    int
	MaxKeys     int
	IsTruncated bool
	Contents    []listedObject
}

type listedObject struct {
	Key  string
	Size int
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	access, _, _ := strings.Cut(credential, "/")
	b.keys[access] = true
	w.Header().Set("Content-Type", "application/xml")
	fail := func(code int, name string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", name, name)
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	text, there := b.objects[key]
	switch {
	case r.Method == http.MethodGet && key == "":
		l := listedBucket{Name: "states", Prefix: r.URL.Query().Get("prefix"), MaxKeys: 1000}
		for _, k := range slices.Sorted(maps.Keys(b.objects)) {
			if strings.HasPrefix(k, l.Prefix) {
				l.Contents = append(l.Contents, listedObject{k, len(b.objects[k])})
			}
		}
		l.KeyCount = len(l.Contents)
		if err := xml.NewEncoder(w).Encode(l); err != nil {
			b.t.Error(err)
		}
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && !there:
		fail(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		w.Header().Set("ETag", etag(text))
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(text) //nolint:errcheck // Terraform tells what it misses
		}
	case r.Method == http.MethodPut && b.deny != nil && b.deny(key):
		fail(http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		fail(http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		b.objects[key] = body
		b.writes++
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		b.writes++
		w.WriteHeader(http.StatusNoContent)
	default:
		b.t.Errorf("the backend asks for %s %s", r.Method, r.URL)
	}
}

func etag(text []byte) string {
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%q", hex.EncodeToString(sum[:16]))
}

// names lists the objects.
func (b *bucket) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.objects))
}

// one returns the name and the text of the one object whose name has a part.
func (b *bucket) one(part string) (name, text string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for key := range b.objects {
		if strings.Contains(key, part) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		b.t.Fatalf("objects with %s: %v of %v", part, found, slices.Sorted(maps.Keys(b.objects)))
	}
	return found[0], string(b.objects[found[0]])
}

// change changes the bucket as somebody else does.
func (b *bucket) change(change func(objects map[string][]byte)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.objects)
}

// quiet runs f, and demands that it writes nothing into the bucket.
func (b *bucket) quiet(f func()) {
	b.t.Helper()
	b.mu.Lock()
	before := b.writes
	b.mu.Unlock()
	f()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writes != before {
		b.t.Errorf("%d writes to the backend, want none", b.writes-before)
	}
}

// The module refers to another one beside its folder.
const (
	s3Module = `variable "size" { type = string }
module "vm" {
  source = "../shared"
  size   = var.size
}
output "vm_ip" { value = module.vm.ip }
`
	s3Shared = `variable "size" { type = string }
resource "terraform_data" "vm" { input = var.size }
output "ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
`
	s3Backend = `terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "vm.tfstate"
    region                      = "us-east-1"
    use_path_style              = true
    use_lockfile                = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    endpoints                   = { s3 = "%s" }
  }
}
`
)

// s3Site is a site whose module keeps its states in a bucket.
type s3Site struct {
	*site
	*bucket

	terraform terraformProgram
	environ   []string
}

func newS3Site(t *testing.T, program terraformProgram) *s3Site {
	t.Helper()
	s := &s3Site{site: newSite(t, strings.ReplaceAll(killedSpec, "./program", program.path)), bucket: newBucket(t), terraform: program}
	s.environ = []string{"AWS_ACCESS_KEY_ID=of-the-environment", "AWS_SECRET_ACCESS_KEY=of-the-environment"}
	for name, text := range map[string]string{"infra/main.tf": s3Module, "shared/main.tf": s3Shared, "infra/backend.tf": fmt.Sprintf(s3Backend, s.url)} {
		s.write(name, text)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "temp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *s3Site) write(name, text string) {
	s.site.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.site.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.site.t.Fatal(err)
	}
}

// command returns a command that runs vmctl with the credentials.
func (s *s3Site) command(args ...string) *exec.Cmd {
	cmd := s.vmctl(args...)
	cmd.Env = slices.Concat(cmd.Env, s.environ, []string{"XDG_RUNTIME_DIR=" + filepath.Join(s.dir, "temp")})
	return cmd
}

// run runs vmctl to its end, demands an exit code and texts in its output, and returns that.
func (s *s3Site) run(code int, args []string, says ...string) string {
	s.site.t.Helper()
	cmd := s.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.site.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	for _, text := range says {
		if !strings.Contains(string(out), text) {
			s.site.t.Errorf("vmctl %v does not say %q:\n%s", args, text, out)
		}
	}
	return string(out)
}

// withReal runs a test with each real program that is there.
func withReal(t *testing.T, test func(t *testing.T, program terraformProgram)) {
	t.Helper()
	real.Long(t)
	for name, tool := range realPrograms() {
		t.Run(name, func(t *testing.T) {
			program := find(t, name)
			program.tool = tool
			t.Parallel()
			test(t, program)
		})
	}
}

// The VMs of a module with a backend elsewhere have a workspace of it each. A plan makes none, not even of a VM that is not made
// yet; nothing that looks writes; the last destroy leaves nothing.
func TestTerraformS3(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.quiet(func() { s.run(2, plan, "terraform: create module.vm.terraform_data.vm") })
		s.run(0, apply, "create module.vm.terraform_data.vm")
		if names := s.names(); len(names) != 2 {
			t.Errorf("objects %v, want one for each VM", names)
		}
		if _, text := s.one("--a--"); !strings.Contains(text, `"one"`) {
			t.Errorf("the state of a is\n%s", text)
		}
		if left, err := filepath.Glob(filepath.Join(s.home, "d", "terraform-cloud", "states", "*", "terraform.tfstate")); err != nil || len(left) > 0 {
			t.Errorf("states on this machine: %v, %v", left, err)
		}
		s.quiet(func() {
			s.run(0, plan, "No changes")
			s.run(0, []string{"status"}, "running")
			s.run(0, []string{"plan", "--destroy"}, "terraform: destroy module.vm.terraform_data.vm")
		})

		s.write("main.vmctl.hcl", strings.ReplaceAll(strings.Replace(killedSpec, `"one"`, `"two"`, 1), "./program", program.path))
		s.quiet(func() { s.run(2, plan, "terraform: update module.vm.terraform_data.vm") })
		s.run(0, apply, "update module.vm.terraform_data.vm")
		if _, text := s.one("--a--"); !strings.Contains(text, `"two"`) {
			t.Errorf("the state of a is\n%s", text)
		}

		// What is gone from the backend is made anew.
		gone, _ := s.one("--a--")
		s.change(func(objects map[string][]byte) { delete(objects, gone) })
		s.quiet(func() { s.run(2, plan, "terraform: create module.vm.terraform_data.vm") })
		s.run(0, apply)
		s.run(0, plan)

		s.run(0, []string{"destroy", "--auto-approve"})
		if names := s.names(); len(names) > 0 {
			t.Errorf("left in the backend: %v", names)
		}
		if left, err := os.ReadDir(filepath.Join(s.dir, "temp")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}
