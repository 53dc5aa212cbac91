//go:build linux

package engine_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two blocks have an image each of one archive, and a container each is made of them: one apply replaces all of it, whichever image is
// loaded first. Where only one of the blocks is in scope, the next plan finds the other one as it is.
func TestOneArchiveOfTwoUsedImages(t *testing.T) {
	d := sharedDaemon(t)
	const other = `
image "other" {
  engine  = engine.here
  ref     = "demo/other:2"
  archive = "box.tar"
}

container "second" {
  engine  = engine.here
  image   = image.other
  command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
}
`
	names := []string{"demo/box:1", "demo/other:2"}
	p := projectOf(t, d, main+other)
	p.archive("one", names...)
	p.applies()
	for text, args := range map[string][]string{"two": {"--parallelism=1"}, "three": {"--parallelism=10"}} {
		p.archive(text, names...)
		p.run(0, append([]string{"apply", "--auto-approve"}, args...)...)
		p.run(0, "plan", "--detailed-exitcode")
		p.isWhole()
	}

	p.archive("four", names...)
	p.run(0, "apply", "--auto-approve", "--target=image.box", "--target=container.web")
	p.applies()
	p.isWhole()

	p.run(0, "apply", "--auto-approve", "--replace=image.box")
	p.run(0, "plan", "--detailed-exitcode")
	p.isWhole()

	p.archive("five", names...) // only the engine can read it
	p.compress()
	p.run(0, "apply", "--auto-approve", "--parallelism=1")
	p.run(0, "plan", "--detailed-exitcode")
	p.isWhole()

	p.archive("six", names...) // the first name goes while the second one is loaded
	before, _, _ := strings.Cut(main, "\nimage ")
	p.main = before + other
	p.edit()
	p.run(0, "apply", "--auto-approve")
	p.run(0, "plan", "--detailed-exitcode")
	if got := p.d.ids(); len(got) != 1 || p.d.idOf("demo/other:2") != got[0] {
		t.Errorf("with one of the blocks gone there are %v, and demo/other:2 is %s", got, p.d.idOf("demo/other:2"))
	}
}

// compress compresses the archive of the project.
func (p *project) compress() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "box.tar"))
	if err != nil {
		p.t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		p.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.write("box.tar", b.Bytes())
}

// isWhole fails unless there is one image, of which both containers are made, and which both records name.
func (p *project) isWhole() {
	p.t.Helper()
	image := p.d.idOf("demo/box:1")
	second := read[container](p.d, "/containers/demo.second/json")
	if got := p.d.ids(); !slices.Equal(got, []string{image}) || p.d.idOf("demo/other:2") != image || p.container().Image != image || second.Image != image {
		p.t.Errorf("there are %v; demo/box:1 is %s and demo/other:2 %s; the containers are of %s and %s", got, image, p.d.idOf("demo/other:2"), p.container().Image, second.Image)
	}
	if n := strings.Count(p.state(), image); n < 2 {
		p.t.Errorf("%d records name the image %s, want 2:\n%s", n, image, p.state())
	}
}
