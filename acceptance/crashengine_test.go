//go:build linux

package acceptance_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"

	"vmctl/internal/process"
)

// simServed is an engine in a VM that is served on this host.
const simServed = simVM + `engine "here" {
  vm    = vm.dev
  host  = "unix://@HOME/d/sim-here/homes/7919b97e1372/e"
  serve = true
}
`

// engine makes a VM, and runs what answers in it as a container engine that has nothing.
func (s *crashSite) engine() {
	s.t.Helper()
	path := filepath.Join(s.home, "e")
	socket, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // the test's user connects to it
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.44")
		fmt.Fprint(w, `{"ID":"one","ServerVersion":"1","DockerRootDir":"/"}`) //nolint:errcheck // vmctl may be killed
	}))
	_ = server.Listener.Close() //nolint:errcheck // another one takes its place
	server.Listener = socket
	server.Start()
	s.t.Cleanup(server.CloseClientConnections)
	s.write(simVM)
	s.must("apply", "--auto-approve")
	inside, err := filepath.Glob(filepath.Join(s.data, "sim-here", "homes", "*"))
	if err != nil || len(inside) != 1 {
		s.t.Fatalf("the insides of the VM: %v, %v", inside, err)
	}
	if err := os.Symlink(path, filepath.Join(inside[0], "e")); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = server.Config.Close() }) //nolint:errcheck // its folder may be gone
}

// unserved ends the process that serves the engine at once.
func unserved(s *crashSite) {
	s.t.Helper()
	found, err := process.Host{}.Find(s.t.Context(), process.HasArgument("serve-engine"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range processesWith(s.home) {
		for _, one := range found {
			if one.PID != id {
				continue
			}
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				s.t.Fatal(err)
			}
			if err := (process.Host{}).Wait(s.t.Context(), one); err != nil {
				s.t.Fatal(err)
			}
			return
		}
	}
	s.t.Fatal("nothing serves the engine")
}
