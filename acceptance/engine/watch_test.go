//go:build linux

package engine_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// watching is a vmctl engine watch that runs.
type watching struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func (p *project) watch() *watching {
	p.t.Helper()
	w := &watching{t: p.t, cmd: p.command("engine", "watch", "here")}
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	w.lines = bufio.NewScanner(out)
	if err := w.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return w
}

// until returns the lines up to the first one that is as it says.
func (w *watching) until(last string) string {
	w.t.Helper()
	var all []string
	for w.lines.Scan() {
		var l struct {
			Change, Kind, Name, State, Address string
			Drift                              []string
		}
		if err := json.Unmarshal(w.lines.Bytes(), &l); err != nil {
			w.t.Fatalf("%q is no line: %v", w.lines.Text(), err)
		}
		text := strings.Join(strings.Fields(strings.Join(append([]string{l.Change, l.Kind, l.Name, l.State, l.Address}, l.Drift...), " ")), " ")
		if all = append(all, text); text == last {
			return strings.Join(all, "\n")
		}
	}
	w.t.Fatalf("there is no line %q:\n%s", last, strings.Join(all, "\n"))
	return ""
}

// is fails unless the lines up to the last one of some are these.
func (w *watching) is(want ...string) {
	w.t.Helper()
	if got := w.until(want[len(want)-1]); got != strings.Join(want, "\n") {
		w.t.Errorf("the lines are\n%s\nnot\n%s", got, strings.Join(want, "\n"))
	}
}

// Each change in a real engine is a line, also what changed while the engine was gone.
//
// row E56, of containers, images and volumes of an engine on this host
func TestWatch(t *testing.T) {
	d := newDaemon(t)
	p := newProject(t, d)
	p.applies()
	w := p.watch()
	says(t, w.until("listed"), "present container demo.web running container.web", "present volume demo.data volume.data", "present image docker.io/demo/box:1 image.box")

	d.must("POST", "/volumes/create", `{"Name":"other"}`)
	w.is("added volume other")
	d.must("DELETE", "/volumes/other", "")
	w.is("removed volume other")
	d.must("POST", "/images/demo/box:1/tag?repo=demo/other&tag=2", "")
	w.is("added image docker.io/demo/other:2")
	d.must("DELETE", "/images/demo/other:2", "")
	w.is("removed image docker.io/demo/other:2")
	d.must("POST", "/containers/create?name=theirs", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"HostConfig":{"NetworkMode":"none"}}`)
	w.is("added container theirs created")
	d.must("POST", "/containers/theirs/rename?name=renamed", "")
	w.is("changed container renamed created")
	d.must("DELETE", "/containers/renamed", "")
	w.is("removed container renamed created")
	d.must("POST", "/containers/demo.web/update", `{"Memory":50331648,"MemorySwap":100663296}`)
	w.is("changed container demo.web running container.web memory")
	d.must("POST", "/containers/create?name=dies", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"HostConfig":{"NetworkMode":"none"}}`)
	w.is("added container dies created")

	// The engine ends without a word, and changes before the watch is back.
	d.kill()
	w.is("lost")
	d.start()
	text := w.until("listed")
	says(t, text, "changed container demo.web exited container.web state memory")
	if strings.Contains(text, "dies") || strings.Contains(text, "volume") || strings.Contains(text, "image") {
		t.Errorf("what did not change has a line:\n%s", text)
	}
	d.must("DELETE", "/containers/demo.web", "")
	w.is("removed container demo.web exited container.web missing")

	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for w.lines.Scan() {
		t.Errorf("one more line: %s", w.lines.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ended it with %v", err)
	}
}
