package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// remoteModule keeps its one state on a server: a backend of HTTP has no workspaces.
const remoteModule = `terraform {
  backend "http" {
    address        = "%[1]s/state"
    lock_address   = "%[1]s/lock"
    unlock_address = "%[1]s/lock"
  }
}
variable "size" { type = string }
resource "terraform_data" "vm" { input = var.size }
`

// A module whose backend gives all its VMs one state is refused before anything begins: its server is asked nothing.
func TestTerraformRemote(t *testing.T) {
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(http.StatusNotFound)
		}))
		defer server.Close()
		s := newSite(t, strings.ReplaceAll(killedSpec, "./program", program.path))
		if err := os.Mkdir(filepath.Join(s.dir, "infra"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "infra", "main.tf"), fmt.Appendf(nil, remoteModule, server.URL), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, run := range []struct {
			code int
			args []string
		}{{0, []string{"plan"}}, {6, []string{"plan", "--out=saved.plan"}}, {6, []string{"apply", "--auto-approve"}}} {
			if out := s.exits(run.code, run.args...); !strings.Contains(out, "the backend http of the module") || !strings.Contains(out, "keeps one state, and each VM needs a workspace with its own") ||
				!strings.Contains(out, "use a backend that has workspaces, such as s3") {
				t.Errorf("%v says\n%s", run.args, out)
			}
		}
		if n := asked.Load(); n > 0 {
			t.Errorf("the server of the backend was asked %d times, want 0", n)
		}
		if left, err := os.ReadDir(filepath.Join(s.home, "d", "terraform-cloud")); !os.IsNotExist(err) {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}
