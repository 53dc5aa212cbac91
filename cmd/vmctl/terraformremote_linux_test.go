package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The module keeps its one state on a server: a backend of HTTP has no workspaces.
const (
	httpBackend = `terraform {
  backend "http" {
    address        = "%[1]s/state"
    lock_address   = "%[1]s/lock"
    unlock_address = "%[1]s/lock"
    lock_method    = "LOCK"
    unlock_method  = "UNLOCK"
  }
}
`
	httpModule = `variable "size" { type = string }
resource "terraform_data" "vm" { input = var.size }
output "vm_ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
`
)

// stateServer keeps one state, with a lock. Source: developer.hashicorp.com/terraform/language/backend/http
type stateServer struct {
	t     *testing.T
	url   string
	mu    sync.Mutex
	state []byte
	lock  []byte // nil: nobody holds it
	asked []string
}

func newStateServer(t *testing.T) *stateServer {
	s := &stateServer{t: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	var holder struct{ ID string }
	if s.lock != nil {
		if err := json.Unmarshal(s.lock, &holder); err != nil {
			s.t.Error(err)
		}
	}
	switch r.Method {
	case http.MethodGet:
		if s.state == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(s.state) //nolint:errcheck // Terraform tells what it misses
	case http.MethodPost:
		if s.lock == nil || r.URL.Query().Get("ID") != holder.ID {
			w.WriteHeader(http.StatusConflict)
			return
		}
		s.state = body
	case "LOCK":
		if s.lock != nil {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(s.lock) //nolint:errcheck // Terraform tells what it misses
			return
		}
		s.lock = body
	case "UNLOCK":
		s.lock = nil
	default:
		s.t.Errorf("the backend asks for %s %s", r.Method, r.URL)
	}
}

// requests counts what was asked.
func (s *stateServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// A module whose backend gives all its VMs one state is refused before anything begins: its server, with the state that its user has
// made without vmctl, is asked nothing, and no VM gets that state. Without the block each VM has a state of its own, and with it again
// they stay as they are until it is taken out.
func TestTerraformRemote(t *testing.T) {
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		server := newStateServer(t)
		s := newSite(t, strings.ReplaceAll(killedSpec, "./program", program.path))
		if err := os.Mkdir(filepath.Join(s.dir, "infra"), 0o700); err != nil {
			t.Fatal(err)
		}
		backend := func(text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(s.dir, "infra", "backend.tf"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range map[string]string{"main.tf": httpModule, "outputs.json": `{"vm_ip": "192.0.2.7"}`} {
			if err := os.WriteFile(filepath.Join(s.dir, "infra", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		own := func(args ...string) string {
			t.Helper()
			cmd := exec.Command(program.path, append([]string{"-chdir=" + filepath.Join(s.dir, "infra")}, args...)...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "CHECKPOINT_DISABLE=1", "TF_DATA_DIR=" + filepath.Join(s.dir, "own"), "TF_VAR_size=own"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		backend(fmt.Sprintf(httpBackend, server.url))
		if program.isReal {
			own("init", "-input=false")
			own("apply", "-input=false", "-auto-approve")
			if server.lock != nil || !bytes.Contains(server.state, []byte(`"own"`)) {
				t.Fatalf("the user's state is\n%s\nlocked by %s", server.state, server.lock)
			}
		}
		const elses = `{"ID":"0a1b","Operation":"OperationTypeApply","Who":"someone@here","Version":"1.11.4","Created":"2026-01-02T03:04:05Z"}`
		server.lock = []byte(elses)
		before, state := server.requests(), string(server.state)
		refused := func(args []string, code int, says ...string) {
			t.Helper()
			out := s.exits(code, args...)
			for _, text := range says {
				if !strings.Contains(out, text) {
					t.Errorf("%v does not say %q:\n%s", args, text, out)
				}
			}
			if strings.Contains(out, "state push") {
				t.Errorf("%v would give the one state to a VM:\n%s", args, out)
			}
		}
		why := []string{
			"the backend http of the module", "keeps one state, and each VM needs a workspace with its own", "use a backend that has workspaces, such as s3",
			"or take the backend block out: vmctl then keeps the states in the data directory",
		}
		refused([]string{"plan"}, 0, why...)
		refused([]string{"plan", "--out=saved.plan"}, 6, why...)
		refused([]string{"apply", "--auto-approve"}, 6, why...)
		if left, err := os.ReadDir(filepath.Join(s.home, "d", "terraform-cloud")); !os.IsNotExist(err) {
			t.Errorf("left: %v, %v", left, err)
		}

		backend("")
		s.exits(0, "apply", "--auto-approve")
		states, err := filepath.Glob(filepath.Join(s.home, "d", "terraform-cloud", "states", "*", "terraform.tfstate"))
		if err != nil || len(states) != 2 {
			t.Errorf("states %v, %v, want one for each VM", states, err)
		}
		backend(fmt.Sprintf(httpBackend, server.url))
		for _, args := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"destroy", "--auto-approve"}} {
			refused(args, 6, "the module has the backend http now, with one state for all VMs: take that edit back")
		}
		backend("")
		if program.isReal { // the stand-in writes into the folder of the module
			s.exits(0, "plan", "--detailed-exitcode")
		}
		s.exits(0, "destroy", "--auto-approve")
		if n := server.requests() - before; n > 0 || string(server.lock) != elses || string(server.state) != state {
			t.Errorf("the server was asked %d times, want 0, has the lock %s, and the state\n%s\nwant\n%s", n, server.lock, server.state, state)
		}
		if program.isReal {
			backend(fmt.Sprintf(httpBackend, server.url))
			server.lock = nil
			if out := own("plan", "-input=false"); !strings.Contains(out, "No changes") {
				t.Errorf("the user's own VM is planned as\n%s", out)
			}
		}
	})
}
