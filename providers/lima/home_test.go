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

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/providers/providertest"
)

// linked moves the folder of a house to a path, and puts a link into its place.
func (h *house) linked(to string) {
	h.t.Helper()
	if err := errors.Join(os.Mkdir(to, 0o700), os.Symlink(to, h.home)); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.home = to }) // the paths of its processes
}

// A disk that a running instance has grows also in a home whose path has a link in it: QEMU has the file
// under its resolved path.
func TestGrowInLinkedHome(t *testing.T) {
	h := newHouse(t)
	h.linked(filepath.Join(h.data, "r"))
	l := h.lab()
	all := providertest.Disk().AsValueMap()
	all["size"] = cty.NumberIntVal(16 << 20)
	w := providers.Work{Prior: providertest.Disk(), Want: cty.ObjectVal(all), Generation: 1, Expect: l.object(cacheID).Fingerprint}
	w.Op, w.Address, w.Object, w.Name, w.Phase, w.Timeout = machine.OpGrow, cache, cacheID, "lab.cache", providers.PhaseChange, time.Minute
	if _, err := l.p.Do(t.Context(), w, func(providers.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if got := l.object(cacheID).Attrs.GetAttr("size"); !got.RawEquals(all["size"]) {
		t.Errorf("its size is %#v", got)
	}
	if o := l.object(devID); o.State != providers.StateRunning {
		t.Errorf("the instance is %s", o.State)
	}
}

// The sockets of an instance are at the resolved path of the home, which may be too long for them.
func TestLongResolvedHome(t *testing.T) {
	h := newHouse(t)
	h.linked(filepath.Join(h.data, strings.Repeat("r", 90)))
	for _, home := range []string{h.home, filepath.Join(h.home, "new")} {
		s := h.settings()
		s.Dir = home
		p, err := h.limaType().Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Steps(providers.Change{Address: dev, Kind: dev.Kind, Action: providers.Create, Name: "lab.dev", ID: devID, Want: want()})
		if err == nil || !strings.Contains(err.Error(), "choose a shorter name") {
			t.Errorf("%s: an instance in it: %v", home, err)
		}
	}
}

// However the path of a home is written, it leads to the same instances.
func TestHomeIsNormalised(t *testing.T) {
	h := newHouse(t)
	lima, user := h.limaType(), h.data
	system := func(home string, resolved bool) string {
		attrs := cty.ObjectVal(map[string]cty.Value{"home": cty.StringVal(home)})
		if resolved {
			attrs = lima.Resolve(attrs)
		}
		return lima.System("here", attrs).GetAttr("home").AsString()
	}
	for home, want := range map[string]string{
		"/h/xl/": "/h/xl", "/h/../h/xl": "/h/xl", "/h//xl": "/h/xl", "/h/xl": "/h/xl", "./xl/": "xl", "~/xl/": filepath.Join(user, "xl"),
	} {
		if got := system(home, true); got != want {
			t.Errorf("%s: %s, want %s", home, got, want)
		}
	}
	if got := system("/h/xl/", false); got != "/h/xl" {
		t.Errorf("recorded as /h/xl/, it is %s", got)
	}
	l := h.lab()
	s := h.settings()
	s.Attrs = cty.ObjectVal(map[string]cty.Value{"home": cty.StringVal(h.home + "/")})
	p, err := lima.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l.p = p
	if o := l.object(devID); o == nil || o.State != providers.StateRunning {
		t.Errorf("by another path of its home it is %+v", o)
	}
}
