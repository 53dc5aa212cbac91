//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/wsl"
	"vmctl/internal/wsl/wsltest"
	"vmctl/providers"
	"vmctl/providers/providertest"
)

// worldKey names the variable with the folder of the wsltest.World whose wsl.exe the stand-in plays.
const worldKey = "LIMATEST_WORLD"

// worldOf returns the stand-in for WSL of the home of a stand-in.
func worldOf(home string) wsltest.World {
	return wsltest.World{Dir: filepath.Join(filepath.Dir(home), "wsl")}
}

// wslLab is a lab with a stand-in for WSL, and an instance of it.
type wslLab struct {
	*lab
	world wsltest.World
	told  int // how many acts were returned
}

// newWSLLab makes an instance of WSL that runs, beside a distribution of somebody else.
func newWSLLab(t *testing.T, edits ...func(map[string]cty.Value)) *wslLab {
	t.Helper()
	h := newHouse(t)
	program, err := standIn()
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(h.home)
	if err := errors.Join(os.Mkdir(w.Dir, 0o700), os.Mkdir(filepath.Join(h.data, "ubuntu"), 0o700)); err != nil {
		t.Fatal(err)
	}
	h.wsl = wsl.Host{
		Program: program, Env: []string{worldKey + "=" + w.Dir}, Registrations: w.Registrations,
		Limit: func([]string) time.Duration {
			if next := w.Next(); next == wsltest.Hang || next == wsltest.HangAfter {
				return 50 * time.Millisecond // too short for some to begin: it makes no difference
			}
			return time.Minute
		},
	}
	if err := w.Import(wsltest.Distribution{Name: "Ubuntu", Folder: filepath.Join(h.data, "ubuntu")}); err != nil || !w.Start("Ubuntu") {
		t.Fatal("no other distribution", err)
	}
	p, err := h.limaType().Open(t.Context(), h.settings())
	if err != nil {
		t.Fatal(err)
	}
	edits = append([]func(map[string]cty.Value){set("template", cty.StringVal("vmType: wsl2\n"))}, edits...)
	l := &wslLab{lab: &lab{house: h, p: p, vm: want(edits...), policy: providertest.Waits(time.Minute)}, world: w}
	l.do(dev, providers.Create)
	return l
}

// move changes the registration of the instance.
func (l *wslLab) move(change func(d *wsltest.Distribution)) {
	all := l.world.Read()
	for i := range all {
		if all[i].Name == "lima-lab.dev" {
			change(&all[i])
		}
	}
	l.world.Set(all...)
}

// own returns the registration of the instance; nil: there is none.
func (l *wslLab) own() *wsltest.Distribution {
	for _, d := range l.world.Read() {
		if d.Name == "lima-lab.dev" {
			return &d
		}
	}
	return nil
}

// acts returns what was done to distributions since the last call.
func (l *wslLab) acts() string {
	all := l.world.Acts()
	since := all[l.told:]
	l.told = len(all)
	return strings.Join(since, "; ")
}

// drop removes a file or a folder, which may be gone.
func drop(path string) {
	if err := os.RemoveAll(path); err != nil {
		panic(err)
	}
}
