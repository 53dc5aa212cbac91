package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// row J44: a corrupt state is an error, and stays as it is
func TestCorruptState(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "stop", "dev").exits(0)
	file := filepath.Join(h.data(), "state.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.corrupt(string(whole[:len(whole)/2]))
	for _, command := range []string{"plan", "apply", "destroy", "status", "output"} {
		h.run(command).exits(5).warns("state.json is corrupt", "state.json.backup").silent("Plan")
	}
	h.run("doctor").exits(1).says("state.json is corrupt")
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(whole[:len(whole)/2]) {
		t.Errorf("the corrupt state was touched: %v", err)
	}
	h.corrupt(`{"format": 99}`)
	h.run("plan").exits(5)
}

// row A57: a name is looked up exactly
func TestNamesAreExact(t *testing.T) {
	h := newHouse(t, withID+"vm \"axb\" {\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	h.run("show", "a.b").exits(3).warns(`"a.b" is not a resource`)
	h.run("show", "axb").exits(0).says("vm.axb")
}

func TestBadProviderSettings(t *testing.T) {
	h := newHouse(t, withID+"provider \"libvirt\" \"default\" {\n  uri = \"bad:\"\n}\n"+small)
	h.run("plan").exits(3).warns("open provider.libvirt.default", `uri = "bad:" is no connection`)
}
