package sim_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// imaged makes the lab's VM begin as a file of the spec's folder.
func (l *lab) imaged(content, digest string) {
	l.t.Helper()
	l.write(filepath.Join(l.data, "base.img"), content)
	m := l.want.AsValueMap()
	sum := cty.NullVal(cty.String)
	if digest != "" {
		sum = cty.StringVal(digest)
	}
	m["image"] = cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal("base.img"), "sha256": sum})
	m["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(1 << 20)})
	l.want = cty.ObjectVal(m)
}

func (l *lab) images() []string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.dir, "images", "*"))
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

const madeFromImage = "upload done, define done, start done, wait_ready done"

func TestImage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.imaged("a system", fmt.Sprintf("%x", sha256.Sum256([]byte("a system"))))
	l.does(providers.Create, madeFromImage)
	if all := l.images(); len(all) != 1 || l.read(all[0]) != "a system" {
		t.Errorf("the images are %v", all)
	}
	if !strings.Contains(l.read(l.disk()), fmt.Sprintf("%x", sha256.Sum256([]byte("a system")))) {
		t.Error("its root disk does not say what it began as")
	}
	l.does(providers.Destroy, destroyed)
	l.remove(filepath.Join(l.data, "base.img"))
	l.isEmpty()
}

// An image that has another digest than the spec, or is missing, leaves nothing.
func TestWrongImage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.imaged("another system", fmt.Sprintf("%x", sha256.Sum256([]byte("a system"))))
	l.does(providers.Create, `upload failed (wrong_digest): upload vm.dev: base.img is not what sha256 = "`+
		fmt.Sprintf("%x", sha256.Sum256([]byte("a system")))+`" says`)
	path := filepath.Join(l.data, "base.img")
	l.remove(path)
	l.does(providers.Create, "upload failed (host): upload vm.dev: copy base.img: open "+path+": no such file or directory")
	l.isEmpty()
}

// A half copied image is copied anew, or removed when its VM is no longer wanted.
func TestImageCutShort(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*lab){
		"made after all": func(l *lab) {
			l.does(providers.Create, madeFromImage)
			l.does(providers.Destroy, destroyed)
		},
		"forgotten": func(l *lab) { l.does(providers.Forget, "clear done") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.imaged("a system", "")
			l.settings = l.house.settings(false, fault("upload", "partial", times(1)))
			l.does(providers.Create, "upload failed (fault): upload vm.dev: injected fault: partial")
			if all := l.images(); len(all) != 1 || !strings.HasSuffix(all[0], ".part") {
				t.Errorf("the images are %v", all)
			}
			goOn(l)
			l.remove(filepath.Join(l.data, "base.img"))
			l.isEmpty()
		})
	}
}

// The image of a replacement is there before the old VM is taken down.
func TestReplacementFromImage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.imaged("a system", "")
	l.does(providers.Create, madeFromImage)
	l.imaged("a newer system", "")
	const next = providers.ID("33333333-2222-8333-8444-555555555555")
	c := providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.ReplaceIt, Name: "lab.dev", ID: next, Object: l.vm(), Want: l.want, Policy: l.policy,
		Generation: 2,
	}
	l.settings = l.house.settings(false, fault("upload", "fail", times(1)))
	l.is("upload failed (fault): upload vm.dev: injected fault: fail", l.carryOut(c))
	l.sees("lab.dev running")
	// The executor expects that no object is left when these steps make the new one.
	l.is("upload done, stop graceful, delete done, define done, start done, wait_ready done", l.carryOut(c))
	if all := l.images(); len(all) != 1 || l.read(all[0]) != "a newer system" {
		t.Errorf("the images are %v", all)
	}
}
