package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers"
)

// row A51: the run state and what is above it are told apart, and looking changes
// nothing
// row L46, of VMs
func TestStatus(t *testing.T) {
	h := newHouse(t, withID+small+`
vm "off" {
  running = false
  boot {
    kernel = "vmlinuz"
  }
}

vm "paused" {
  boot {
    kernel = "vmlinuz"
  }
}

vm "lost" {
  boot {
    kernel = "vmlinuz"
  }
}

vm "veiled" {
  boot {
    kernel = "vmlinuz"
  }
}
`)
	h.run("apply", "--auto-approve").exits(0)
	h.replace(`output "port"`, "vm \"new\" {\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n\noutput \"port\"")
	h.memory.machine("demo.paused").state = providers.StatePaused
	h.memory.unknown["demo.veiled"] = "the daemon does not answer"
	for id, o := range h.memory.machines {
		if o.name == "demo.lost" {
			delete(h.memory.machines, id)
		}
	}
	before, err := os.Stat(filepath.Join(h.data(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.memory.acted = nil
	golden(t, "status", strings.ReplaceAll(h.run("status").exits(0).stdout, h.home, "HOME"))
	golden(t, "status-json", strings.ReplaceAll(h.run("status", "--json").exits(0).stdout, h.home, "HOME"))
	h.acted()
	after, err := os.Stat(filepath.Join(h.data(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("looking changed the state: %v, then %v", before.ModTime(), after.ModTime())
	}
}
