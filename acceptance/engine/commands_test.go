//go:build linux

package engine_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// ran is the end of a vmctl that ran with its outputs apart.
type ran struct {
	code           int
	stdout, stderr string
}

// runWith runs vmctl with an input.
func (p *project) runWith(stdin io.Reader, args ...string) ran {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// says fails unless a text has each of some others.
func says(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, one := range all {
		if !strings.Contains(text, one) {
			t.Errorf("%q is missing in\n%s", one, text)
		}
	}
}

// The commands that act on a container, on a real engine.
//
// row E39, of commands
func TestContainerCommands(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	first := p.container()

	says(t, p.run(0, "container", "pause", "web"), "container.web: paused", "the next apply starts it again")
	says(t, p.run(0, "container", "pause", "web"), "container.web is paused already")
	says(t, p.run(255, "container", "exec", "web", "--", "true"), "container.web is not running: it is paused", "vmctl container unpause container.web")
	p.run(0, "container", "unpause", "web")
	says(t, p.run(0, "container", "unpause", "web"), "container.web is running already")

	says(t, p.run(0, "container", "stop", "web"), "container.web: stopped", "(graceful)", "the next apply starts it again")
	if now := p.container(); now.ID != first.ID || now.State.Status != "exited" {
		t.Fatalf("it was stopped, and is %+v", now)
	}
	if got := d.must("GET", "/containers/demo.web/json", ""); !strings.Contains(got, `"ExitCode":0`) {
		t.Errorf("it was not asked to end: %s", got)
	}
	p.run(0, "drift")
	says(t, p.run(0, "container", "stop", "web"), "container.web is stopped already")
	says(t, p.run(1, "container", "pause", "web"), "container.web is not running: it is exited", "vmctl container start container.web")
	says(t, p.run(1, "container", "unpause", "web"), "container.web is not running: it is exited")
	says(t, p.run(255, "container", "exec", "web", "--", "true"), "container.web is not running: it is exited", "vmctl container start container.web")
	p.run(0, "container", "start", "container.web")
	p.run(0, "plan", "--detailed-exitcode")

	begun := started(d)
	p.run(0, "container", "restart", "web")
	if now := p.container(); now.ID != first.ID || now.State.Status != "running" || started(d) == begun {
		t.Errorf("it was restarted, and is %+v", now)
	}
	p.run(0, "plan", "--detailed-exitcode")

	// Edits wait for apply.
	p.edit("32MiB", "48MiB")
	p.run(0, "container", "restart", "web")
	if now := p.container(); now.HostConfig.Memory != 32<<20 {
		t.Errorf("a restart has made an edit: %+v", now)
	}
	p.run(2, "plan", "--detailed-exitcode")
}

// started returns when container.web was started.
func started(d *daemon) string {
	d.t.Helper()
	return read[struct{ State struct{ StartedAt string } }](d, "/containers/demo.web/json").State.StartedAt
}

// A command in a container has its input, its outputs apart, and its status.
func TestContainerExec(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	// The end of the input ends cat; what the shell writes after that still arrives.
	got := p.runWith(strings.NewReader(strings.Repeat("from outside\n", 20000)), "container", "exec", "web", "--",
		"sh", "-c", `cat; echo "$1" >&2; echo after; exit 7`, "sh", "it's")
	if got.code != 7 || got.stderr != "it's\n" || got.stdout != strings.Repeat("from outside\n", 20000)+"after\n" {
		t.Errorf("status %d, %d bytes of output that end with %q, error %q", got.code, len(got.stdout), got.stdout[max(0, len(got.stdout)-40):], got.stderr)
	}
	got = p.runWith(nil, "container", "exec", "--json", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
	says(t, got.stdout, `"status": 3`, `"stdout": "out\n"`, `"stderr": "err\n"`)
	if got = p.runWith(nil, "container", "exec", "web", "--", "no-such-program"); got.code != 127 {
		t.Errorf("a program that does not exist: %+v", got)
	}
}

// What a container writes is shown in two streams, by its last lines, and as it comes. What it writes to a terminal has no streams
// and is shown as it is.
//
// row E53
func TestContainerLogs(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.edit(`echo begun >>/data/log;`, `for n in 1 2 3 4 5 6 7 8 9 10; do echo $n; done; while ! test -e /data/end; do sleep 1; done; echo 11 >&2; exit 0;`)
	p.run(0, "apply", "--auto-approve")
	follow := p.command("container", "logs", "--follow", "web")
	var errs bytes.Buffer
	follow.Stderr = &errs
	out, err := follow.StdoutPipe()
	if err = errors.Join(err, follow.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; n <= 10; n++ { // then the engine has them all
		if !lines.Scan() || lines.Text() != strconv.Itoa(n) {
			t.Errorf("followed: %q, want %d", lines.Text(), n)
		}
	}
	if got := p.runWith(nil, "container", "logs", "--tail=3", "web"); got.code != 0 || got.stdout != "8\n9\n10\n" || got.stderr != "" {
		t.Errorf("the last lines of a container that runs: %+v", got)
	}
	p.run(0, "container", "exec", "web", "--", "touch", "/data/end")
	if lines.Scan() {
		t.Errorf("followed: %q is one line more", lines.Text())
	}
	if err := follow.Wait(); err != nil || errs.String() != "11\n" {
		t.Errorf("followed: %v, %q", err, errs.String())
	}
	if got := p.runWith(nil, "container", "logs", "--tail=1", "web"); got.stdout != "" || got.stderr != "11\n" {
		t.Errorf("the last line: %+v", got)
	}
	says(t, p.runWith(nil, "container", "logs", "--json", "web").stdout, `"address": "container.web"`, "11")

	// No block asks for a terminal: this container was made by hand.
	p.run(0, "destroy", "--auto-approve", "--target=container.web")
	d.must("POST", "/containers/create?name=demo.web", `{"Image":"demo/box:1","Tty":true,"HostConfig":{"NetworkMode":"none"},
		"Cmd":["sh","-c","for n in 1 2 3 4 5 6 7 8 9 10; do echo $n >&2; done; printf '\\001\\000\\000\\000\\000\\000\\000\\002no\\n'; sleep 1000"]}`)
	p.run(0, "import", "--auto-approve", "container.web", "demo.web")
	const frame = "\x01\x00\x00\x00\x00\x00\x00\x02no\r\n" // as the engine would begin a part of a stream
	follow = p.command("container", "logs", "--follow", "web")
	if out, err = follow.StdoutPipe(); err == nil {
		err = follow.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n10\r\n" + frame
	text := make([]byte, len(want))
	if _, err := io.ReadFull(out, text); err != nil || string(text) != want {
		t.Errorf("followed on a terminal: %q, %v, want %q", text, err, want)
	}
	if got := p.runWith(nil, "container", "logs", "--tail=3", "web"); got.code != 0 || got.stdout != "9\r\n10\r\n"+frame || got.stderr != "" {
		t.Errorf("the last lines on a terminal: %+v", got)
	}
	d.must("DELETE", "/containers/demo.web?force=1", "")
	if err := follow.Wait(); err != nil {
		t.Errorf("followed on a terminal until the container ended: %v", err)
	}
}

// One object that no block declares is removed when it is named, and it alone: never a declared one, nor one in use.
//
// row E57, of cleanup
func TestCleanup(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	d.must("POST", "/volumes/create", `{"Name":"used"}`)
	d.must("POST", "/volumes/create", `{"Name":"old"}`)
	d.must("POST", "/networks/create", `{"Name":"back","Driver":"bridge"}`)
	d.must("POST", "/images/demo/box:1/tag?repo=demo/other&tag=2", "")
	d.must("POST", "/containers/create?name=theirs", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"HostConfig":{"Binds":["used:/used"],"NetworkMode":"back"}}`)
	d.must("POST", "/containers/create?name=runs", `{"Image":"demo/box:1","Cmd":["sleep","1000"]}`)
	d.must("POST", "/containers/runs/start", "")

	for object, why := range map[string]string{
		"container/demo.web": "it is container.web", "volume/demo.data": "it is volume.data", "image/demo/box:1": "it is image.box",
		"container/runs": "it is running", "volume/used": "container theirs uses it", "network/bridge": "every engine has it",
	} {
		says(t, p.run(6, "cleanup", "--auto-approve", "engine.here/"+object), "engine.here/"+object+" stays: "+why)
	}
	says(t, p.run(6, "cleanup", "--auto-approve", "engine.here/network/back"), "container theirs is on it")
	says(t, p.run(1, "cleanup", "--auto-approve", "engine.here/container/nothing"), "does not exist", "demo.web, runs, theirs")
	says(t, p.run(3, "cleanup", "here/container/theirs"), "vmctl cleanup --auto-approve here/container/theirs")
	if got := strings.Join(p.names(), " "); got != "/demo.web /runs /theirs" {
		t.Fatalf("there are %s", got)
	}

	for _, object := range []string{"container/theirs", "volume/used", "volume/old", "network/back", "image/demo/other:2"} {
		says(t, p.run(0, "cleanup", "--auto-approve", "engine.here/"+object), "Removed ")
		p.run(1, "cleanup", "--auto-approve", "engine.here/"+object)
	}
	if got := strings.Join(p.names(), " "); got != "/demo.web /runs" {
		t.Errorf("there are %s", got)
	}
	p.run(0, "plan", "--detailed-exitcode")

	// An engine of which nothing is declared.
	alone := projectOf(t, d, main[:strings.Index(main, "image \"box\"")])
	d.must("POST", "/volumes/create", `{"Name":"old"}`)
	alone.run(0, "apply", "--auto-approve")
	says(t, alone.run(6, "cleanup", "--auto-approve", "engine.here/volume/demo.data"), "container demo.web uses it")
	alone.run(0, "cleanup", "--auto-approve", "engine.here/volume/old")
}
