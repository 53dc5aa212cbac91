//go:build unix

package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// enter returns the inside of the lab's VM, which runs, and its folder.
func (l *lab) enter() (providers.Guest, string) {
	l.t.Helper()
	host, ok := providers.Ability[providers.Host](l.open())
	if !ok {
		l.t.Fatal("nobody can enter its VMs")
	}
	g, err := host.Enter(l.t.Context(), *l.vm(), cty.NilVal)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := g.Close(); err != nil {
			l.t.Error(err)
		}
	})
	folders, err := filepath.Glob(filepath.Join(l.dir, "homes", "*"))
	if err != nil || len(folders) != 1 {
		l.t.Fatalf("folders %q, %v", folders, err)
	}
	return g, folders[0]
}

// scene starts the VM, and enters it.
func (l *lab) scene() providertest.GuestScene {
	l.does(providers.Create, "define done, start done, wait_ready done")
	g, folder := l.enter()
	return providertest.GuestScene{
		Guest: g,
		Listen: func(t *testing.T, network string) string {
			t.Helper()
			if network == "tcp" {
				return providertest.Echo(t, network, "")
			}
			providertest.Echo(t, network, filepath.Join(folder, "echo.sock"))
			return "echo.sock"
		},
		Lose: func(*testing.T) { l.kill() },
	}
}

// kill ends the processes of the VM, as a power cut does.
func (l *lab) kill() {
	for _, id := range l.processes(l.t.Context()) {
		l.end(l.t.Context(), id)
	}
}

func TestGuest(t *testing.T) {
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene { return newLab(t).scene() })
}

func TestGuestOfAHostAgent(t *testing.T) {
	l := newLab(t)
	l.hostAgent = true
	l.settings = l.house.settings(false)
	s := l.scene()
	if o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"true"}}); err != nil || o.Status != 0 {
		t.Errorf("status %d, %v", o.Status, err)
	}
}

func TestGuestOfAWeightlessVM(t *testing.T) {
	l := newLab(t)
	l.settings = l.house.settings(true)
	g := l.scene().Guest
	run := func(want string) {
		t.Helper()
		var got strings.Builder
		_, err := g.Run(t.Context(), providers.Command{Args: []string{"sh", "-c", "echo x >>file; cat file"}, Stdout: &got})
		if err != nil {
			got.WriteString(err.Error())
		}
		if got.String() != want {
			t.Errorf("got %q, want %q", &got, want)
		}
	}
	run("x\n")
	l.does(providers.Stop, "stop graceful")
	run(`run "sh": it did not begin: the VM has ended`)
	if _, err := g.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil || err.Error() != "connect to 127.0.0.1:1: the VM has ended" {
		t.Error(err)
	}
	l.does(providers.Start, "start done, wait_ready done")
	g, _ = l.enter() // what was written outlasts a restart
	run("x\nx\n")
}

// The inside of a VM goes with it, and is no way to a VM that is off or another one.
func TestGuestGoesWithItsVM(t *testing.T) {
	l := newLab(t)
	s := l.scene()
	if _, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"touch", "file"}}); err != nil {
		t.Fatal(err)
	}
	on := *l.vm()
	host, _ := providers.Ability[providers.Host](l.open())
	refused := func(o providers.Object, want string) {
		t.Helper()
		if _, err := host.Enter(t.Context(), o, cty.NilVal); err == nil || err.Error() != want {
			t.Errorf("entered: %v, want %s", err, want)
		}
	}
	other := on
	other.ID = "other"
	refused(other, "VM lab.dev is another one now")
	l.does(providers.Stop, "stop graceful")
	refused(on, "VM lab.dev does not run")
	l.does(providers.Destroy, "delete done")
	if _, err := host.Enter(t.Context(), on, cty.NilVal); err == nil {
		t.Error("a VM that is gone was entered")
	}
	if _, err := os.Stat(l.dir); err == nil {
		t.Error("the folder of the host is left")
	}
}

// Nothing but the VM's own folder and the loopback can be reached.
func TestGuestReachesItsFolderAlone(t *testing.T) {
	l := newLab(t)
	s := l.scene()
	outside := filepath.Join(l.data, "x.sock")
	providertest.Echo(t, "unix", outside)
	_, folder := l.enter()
	if err := os.Symlink(l.data, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{outside, "../../../x.sock", "link/x.sock"} {
		if _, err := s.Guest.Dial(t.Context(), "unix", address); err == nil || !strings.Contains(err.Error(), "it is not under the guest's folder") {
			t.Errorf("unix %s: %v", address, err)
		}
	}
	for _, address := range []string{"192.0.2.1:80", "example.org:80"} {
		if _, err := s.Guest.Dial(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), "the guest has no network but its loopback") {
			t.Errorf("tcp %s: %v", address, err)
		}
	}
}
