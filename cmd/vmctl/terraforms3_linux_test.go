package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	asked   map[string]bool       // all pairs of bucket and access key
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{t: t, objects: map[string][]byte{}, asked: map[string]bool{}}
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
	w.Header().Set("Content-Type", "application/xml")
	fail := func(code int, name string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", name, name)
	}
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b.asked[name+" "+access] = true
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

// s3Own is the state of the default workspace, which the user has made without vmctl.
const s3Own = `{"version": 4, "terraform_version": "1.5.0", "serial": 1, "lineage": "own", "outputs": {}, "resources": [{
  "module": "module.vm", "mode": "managed", "type": "terraform_data", "name": "vm", "provider": "provider[\"terraform.io/builtin/terraform\"]",
  "instances": [{"schema_version": 0, "attributes": {
    "id": "own", "input": {"value": "one", "type": "string"}, "output": {"value": "one", "type": "string"}, "triggers_replace": null}}]}]}`

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
// yet; nothing that looks writes; the last destroy leaves nothing but the workspace that the user has made.
func TestTerraformS3(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.change(func(objects map[string][]byte) { objects["vm.tfstate"] = []byte(s3Own) })
		s.quiet(func() { s.run(2, plan, "terraform: create module.vm.terraform_data.vm") })
		s.run(0, apply, "create module.vm.terraform_data.vm")
		if names := s.names(); len(names) != 3 {
			t.Errorf("objects %v, want one for each VM, and the user's own", names)
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

		// What is gone from the backend may still exist: it is not made anew until the user has let go of it.
		gone, text := s.one("--a--")
		s.change(func(objects map[string][]byte) { delete(objects, gone) })
		var out string
		s.quiet(func() { out = s.run(6, plan, "unknown vm.a: ", "the backend s3 has no workspace of it any more") })
		s.run(6, apply)
		s.types(out, "put its state of the last apply back: ")
		s.quiet(func() { s.run(0, plan, "No changes") })

		// Its resources are taken out of its state: a later one, which the copy replaces.
		state := map[string]any{}
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			t.Fatal(err)
		}
		state["serial"], state["resources"] = 99, []any{}
		later, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		s.change(func(objects map[string][]byte) { objects[gone] = later })
		s.quiet(func() { out = s.run(6, plan, "unknown vm.a: ", "the outputs are still there") })
		s.types(out, "put its state of the last apply back: ")
		s.run(0, plan, "No changes")

		// Once it is let go of, an apply makes a new one.
		gone, _ = s.one("--a--")
		s.change(func(objects map[string][]byte) { delete(objects, gone) })
		s.run(0, []string{"state", "rm", "--force", "vm.a"})
		s.run(0, apply, "create module.vm.terraform_data.vm")
		s.run(0, plan)
		for _, left := range []string{"states", "copies"} {
			if found, err := filepath.Glob(filepath.Join(s.home, "d", "terraform-cloud", left, "*--a--*")); err != nil || len(found) != 1 {
				t.Errorf("%s of vm.a: %v, %v, want those of the new one", left, found, err)
			}
		}

		s.run(0, []string{"destroy", "--auto-approve"})
		if _, text := s.one("vm.tfstate"); text != s3Own {
			t.Errorf("the user's own state is\n%s", text)
		}
		if left, err := os.ReadDir(filepath.Join(s.dir, "temp")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// types runs what a user types: the commands that follow a text in an output.
func (s *s3Site) types(out, after string) {
	s.site.t.Helper()
	_, command, ok := strings.Cut(out, after)
	command, _, _ = strings.Cut(command, "\n")
	if !ok {
		s.site.t.Fatalf("no %q in\n%s", after, out)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "CHECKPOINT_DISABLE=1"}, s.environ)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.site.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// edit edits the spec.
func (s *s3Site) edit(old, replacement string) {
	s.site.t.Helper()
	path := filepath.Join(s.dir, "main.vmctl.hcl")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		s.site.t.Fatalf("%v: no %q in the spec", err, old)
	}
	s.write("main.vmctl.hcl", strings.ReplaceAll(string(text), old, replacement))
}

// A lock that somebody left in the backend is named with its holder, and broken by nobody but the user.
func TestTerraformS3Lock(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		apply := []string{"apply", "--auto-approve"}
		s.run(0, apply)
		name, _ := s.one("--a--")
		const lock = `{"ID":"0a1b2c3d-0000-1111-2222-333344445555","Operation":"OperationTypeApply","Info":"","Who":"someone@here",` +
			`"Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":"x"}`
		s.change(func(objects map[string][]byte) { objects[name+".tflock"] = []byte(lock) })
		s.edit(`"one"`, `"two"`)
		out := s.run(1, apply, program.tool+"'s lock of its state is held by someone@here, since 2026-01-02 03:04:05", "for Apply")
		if _, text := s.one(name + ".tflock"); text != lock {
			t.Errorf("the lock is %s", text)
		}
		s.types(strings.ReplaceAll(out, "force-unlock ", "force-unlock -force "), "or, if that was killed: ")
		s.run(0, apply)
		s.run(0, []string{"destroy", "--auto-approve"})
	})
}

// A state that Terraform could not write to the backend blocks its VM until it is there: nothing that was made is made twice, or
// lost.
func TestTerraformS3Errored(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.deny = func(key string) bool { return s.bucket.objects[key] != nil && strings.Contains(key, "--a--") }
		s.run(1, apply, "AccessDenied")
		made, err := os.ReadFile(filepath.Join(s.dir, "infra", "errored.tfstate"))
		if err != nil || !strings.Contains(string(made), `"one"`) {
			t.Fatalf("%v: errored.tfstate is\n%s", err, made)
		}
		s.change(func(map[string][]byte) { s.deny = nil })
		out := ""
		s.quiet(func() {
			out = s.run(0, []string{"plan"}, "could not be written, and "+program.tool+" left it in")
			s.run(6, apply, "could not be written")
		})
		s.types(out, "put it in its place: ")
		s.quiet(func() { s.run(2, plan, "terraform: nothing to change") })
		s.run(0, apply)
		s.run(0, plan, "No changes")
		if _, text := s.one("--a--"); !strings.Contains(text, idOf(string(made))) {
			t.Errorf("%s is not in the state:\n%s", idOf(string(made)), text)
		}
		s.run(0, []string{"destroy", "--auto-approve"})
		if names := s.names(); len(names) > 0 {
			t.Errorf("left in the backend: %v", names)
		}
	})
}

// idOf returns the ID of the first resource in a state.
func idOf(state string) string {
	_, rest, _ := strings.Cut(state, `"id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// A module whose states are moved to another place makes no VM once more: its VMs are unknown until their states are there.
func TestTerraformS3Moved(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		backend := fmt.Sprintf(s3Backend, s.url)
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.write("infra/backend.tf", "")
		s.run(0, apply)
		s.run(0, plan)

		s.write("infra/backend.tf", backend)
		out := s.run(6, []string{"plan"}, "the module has the backend s3 now")
		s.run(6, apply)
		if names := s.names(); len(names) > 0 {
			t.Errorf("objects %v, want none", names)
		}
		s.initialise()
		for range 2 { // one for each VM
			s.types(out, "once the module is initialised, run ")
			_, out, _ = strings.Cut(out, "once the module is initialised, run ")
		}
		s.quiet(func() { s.run(2, plan, "files of its module changed since it was applied last", "nothing to change") })
		for _, size := range []string{"one", "b"} {
			s.edit(fmt.Sprintf("size = %q", size), `size = "two"`)
		}
		s.run(0, apply, "update module.vm.terraform_data.vm")

		// Another key is another place, and the data directory is one again.
		s.quiet(func() {
			s.write("infra/backend.tf", strings.Replace(backend, `"vm.tfstate"`, `"other.tfstate"`, 1))
			s.run(6, []string{"plan"}, "was kept by the backend s3 as the module configured it then")
			s.run(6, apply)
			s.write("infra/backend.tf", "")
			s.run(6, []string{"plan"}, "was kept by the backend s3, and the module keeps states in the data directory now")
			s.run(6, apply)
			s.write("infra/backend.tf", backend)
			s.run(0, plan, "No changes")
		})
		s.run(0, []string{"destroy", "--auto-approve"})
		if names := s.names(); len(names) > 0 {
			t.Errorf("left in the backend: %v", names)
		}
	})
}

// initialise initialises the module as its user does, and not in the folder of vmctl.
func (s *s3Site) initialise() {
	s.site.t.Helper()
	cmd := exec.Command(s.terraform.path, "-chdir="+filepath.Join(s.dir, "infra"), "init", "-input=false", "-reconfigure")
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "CHECKPOINT_DISABLE=1"}, s.environ)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.site.t.Fatalf("init: %v\n%s", err, out)
	}
}

// A VM that vmctl lets go of keeps its state, in a workspace of the backend that is not vmctl's.
func TestTerraformS3Release(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.run(0, apply)
		name, before := s.one("--a--")
		head, blocks, _ := strings.Cut(strings.ReplaceAll(killedSpec, "./program", program.path), "vm \"a\"")
		_, b, _ := strings.Cut(blocks, "vm \"b\"")
		s.write("main.vmctl.hcl", head+"vm \"b\""+b+"removed {\n  from    = vm.a\n  destroy = false\n}\n")
		s.run(0, apply, "its state is in the workspace released--")
		released, after := s.one("--a--")
		if want := strings.Replace(name, "vmctl--", "released--", 1); released != want || idOf(after) != idOf(before) {
			t.Errorf("the state of a was in %s:\n%s\nand is in %s:\n%s", name, before, released, after)
		}
		s.quiet(func() { s.run(0, plan, "No changes") })
		s.run(0, []string{"destroy", "--auto-approve"})
		if names := s.names(); len(names) != 1 || names[0] != released {
			t.Errorf("objects %v, want %s", names, released)
		}
	})
}

// The resources that the VMs share stay in a backend elsewhere as they do in the data directory, and go by the commands that the
// last destroy tells.
func TestTerraformS3Shared(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		s.edit("  binary", "  shared = [\"terraform_data.net\"]\n  binary")
		s.write("infra/net.tf", "resource \"terraform_data\" \"net\" {}\n")
		apply, plan := []string{"apply", "--auto-approve"}, []string{"plan", "--detailed-exitcode"}
		s.run(0, append(apply, "--target=vm.a"), "create the shared terraform_data.net")
		_, first := s.one("--a--")
		s.quiet(func() {
			if out := s.run(2, plan, "terraform: create module.vm.terraform_data.vm"); strings.Contains(out, "shared terraform_data.net") || strings.Contains(out, "create terraform_data.net") {
				t.Errorf("the plan is\n%s", out)
			}
		})
		s.run(0, apply)
		s.quiet(func() { s.run(0, plan, "No changes") })
		if _, second := s.one("--b--"); idOf(textAfter(second, `"net"`)) != idOf(textAfter(first, `"net"`)) {
			t.Errorf("the states have different ones:\n%s\n%s", first, second)
		}
		s.run(0, []string{"destroy", "--auto-approve", "--target=vm.a"})
		s.run(0, plan[:1])
		out := s.run(0, []string{"destroy", "--auto-approve"}, "its shared resources stay: terraform_data.net")
		if names := s.names(); len(names) > 0 {
			t.Errorf("left in the backend: %v", names)
		}
		for _, step := range []string{"prepare to remove them: ", "give them a workspace: ", "remove them: "} {
			_, out, _ = strings.Cut(out, step)
			s.types(step+strings.Replace(out, " destroy", " destroy -auto-approve -var=size=x", 1), step)
		}
		if _, left := s.one("released--shared"); strings.Contains(left, "terraform_data") {
			t.Errorf("left is\n%s", left)
		}
	})
}

// textAfter returns the end of a text, after a part of it.
func textAfter(text, part string) string {
	_, after, _ := strings.Cut(text, part)
	return after
}

// The settings of the backend in the provider block reach Terraform and the backend, and nobody else: no argument or environment of
// a process, no output, and no file that is left but the user's own.
func TestTerraformS3BackendConfig(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newS3Site(t, program)
		s.environ = []string{"VMCTL_VAR_access=CANARYACCESS", "VMCTL_VAR_secret=CANARY SECRET="}
		s.write("watched", watchedProgram)
		if err := os.Chmod(filepath.Join(s.dir, "watched"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		s.environ = append(s.environ, "PROGRAM="+program.path, "WATCHED="+s.dir+"/seen")
		backend := strings.Replace(fmt.Sprintf(s3Backend, s.url), `    bucket                      = "states"`+"\n", "", 1)
		s.write("infra/backend.tf", strings.Replace(backend, `    key                         = "vm.tfstate"`+"\n", "", 1))
		s.write("states.tfbackend", "bucket = \"wrong\"\nkey    = \"vm.tfstate\"\n")
		s.edit(program.path, "./watched")
		s.edit("  binary", `  backend_config_file = "states.tfbackend"
  backend_config      = { bucket = "states", access_key = var.access, secret_key = var.secret }
  binary`)
		s.edit("provider \"terraform\"", `variable "access" {
  type      = string
  sensitive = true
}
variable "secret" {
  type      = string
  sensitive = true
}
provider "terraform"`)
		out, before := "", 0
		for _, call := range []struct {
			args  []string
			inits int // however many VMs there are
		}{
			{[]string{"plan"}, 2}, // that of what is not made yet keeps nothing of the backend, and stays
			{[]string{"apply", "--auto-approve"}, 1},
			{[]string{"plan", "--detailed-exitcode"}, 1},
			{[]string{"plan", "--json"}, 1},
			{[]string{"status"}, 1},
		} {
			out += s.run(0, call.args)
			seen, err := os.ReadFile(filepath.Join(s.dir, "seen"))
			if err != nil {
				t.Fatal(err)
			}
			now := strings.Count(string(seen), "\ninit\n")
			if got := now - before; got != call.inits {
				t.Errorf("%v initialises the module %d times, want %d", call.args, got, call.inits)
			}
			before = now
		}
		if names := s.names(); len(names) != 2 || !strings.Contains(names[0], "/vm.tfstate") {
			t.Errorf("objects %v, want one for each VM", names)
		}
		if got := slices.Sorted(maps.Keys(s.asked)); len(got) != 1 || got[0] != "states CANARYACCESS" {
			t.Errorf("buckets and access keys of the requests: %v", got)
		}
		s.leaks("the output", out)
		s.leaksNowhere()

		// What a wrong setting fails with is no secret either.
		s.edit("secret_key = var.secret", "secret_key = var.secret, no_such_setting = var.secret")
		s.leaks("the failure", s.run(6, []string{"plan"}, "no_such_setting"))
		s.edit(", no_such_setting = var.secret", "")

		// Another bucket is another place.
		s.edit(`bucket = "states"`, `bucket = "others"`)
		var hidden map[string][]byte
		s.change(func(objects map[string][]byte) {
			hidden = maps.Clone(objects)
			clear(objects)
		})
		s.quiet(func() { s.run(6, []string{"plan"}, "was kept by the backend s3 as the module configured it then") })
		s.edit(`bucket = "others"`, `bucket = "states"`)
		s.change(func(objects map[string][]byte) { maps.Copy(objects, hidden) })
		s.run(0, []string{"destroy", "--auto-approve"})
		s.leaksNowhere()
	})
}

// watchedProgram notes its arguments and its environment.
const watchedProgram = `#!/bin/sh
tr '\0' '\n' </proc/$$/environ >>"$WATCHED"
tr '\0' '\n' </proc/$$/cmdline >>"$WATCHED"
exec "$PROGRAM" "$@"
`
