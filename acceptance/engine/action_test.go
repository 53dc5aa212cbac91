//go:build linux

package engine_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// action is the last action of a container as status shows it.
type action struct {
	Action, Result, Message string
	Began                   string
	Ended                   *string
}

// action returns the last action of container.web in one line.
func (p *project) action() string {
	p.t.Helper()
	var doc struct {
		Resources []struct {
			Address string
			Last    *action `json:"last_action"`
		}
	}
	if err := json.Unmarshal([]byte(p.runWith(nil, "status", "--json").stdout), &doc); err != nil {
		p.t.Fatal(err)
	}
	for _, r := range doc.Resources {
		switch last := r.Last; {
		case last == nil:
		case r.Address != "container.web":
			p.t.Errorf("%s has the last action %+v", r.Address, last)
		case last.Began == "" || (last.Ended == nil) != (last.Result == "running" || last.Result == "unknown"):
			p.t.Errorf("the times of the last action are those of %+v", last)
		default:
			return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", last.Action, last.Result, last.Message), ": ")
		}
	}
	return ""
}

// acts fails unless the last action of container.web is as expected.
func (p *project) acts(want string) {
	p.t.Helper()
	if got := p.action(); got != want {
		p.t.Errorf("the last action is %q, want %q", got, want)
	}
}

// The outcome of each command on a container is recorded: also of one that finds nothing to do, and of one that is refused.
//
// row E40, of outcomes
func TestLastAction(t *testing.T) {
	d := sharedDaemon(t)
	p := projectOf(t, d, quick)
	p.applies()
	p.acts("")
	p.run(0, "container", "pause", "web")
	p.acts("pause succeeded")
	p.run(0, "container", "pause", "web")
	p.run(0, "container", "unpause", "web")
	p.acts("unpause succeeded")
	p.run(0, "container", "stop", "web")
	p.acts("stop succeeded")
	p.run(1, "container", "pause", "web")
	p.acts("pause failed: container pause: container.web is not running: it is exited")
	says(t, p.run(0, "show", "container.web"), "last action", "pause failed at ", ": container.web is not running: it is exited")
	p.run(0, "container", "start", "web")
	p.acts("start succeeded")
	p.run(0, "container", "restart", "web")
	p.acts("restart succeeded")
	says(t, p.run(0, "show", "container.web"), "restart succeeded at ")

	// Edits keep it, a replacement is another container.
	p.edit("32MiB", "48MiB")
	p.applies()
	p.acts("restart succeeded")
	p.edit(`"one"`, `"two"`)
	p.applies()
	p.acts("")
	p.run(0, "destroy", "--auto-approve")
}

// A request that the engine refuses is recorded with its message.
//
// row E40, of what an engine refuses
func TestLastActionRefused(t *testing.T) {
	d := sharedDaemon(t)
	const port = "  port {\n    container = 80\n    host      = PORT\n  }\n"
	p := projectOf(t, d, strings.Replace(quick, "  mount {", port+"\n  mount {", 1))
	p.edit("PORT", fmt.Sprint(d.port(3)))
	p.applies()
	p.run(0, "container", "stop", "web")
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", d.port(3)))
	if err != nil {
		t.Fatal(err)
	}
	p.run(1, "container", "start", "web")
	if got := p.action(); !strings.HasPrefix(got, "start failed: start container.web: Error response from daemon: ") || !strings.Contains(got, "address already in use") {
		t.Errorf("the last action is %q, without the engine's message", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.run(0, "container", "start", "web")
	p.acts("start succeeded")
	p.run(0, "destroy", "--auto-approve")
}

// What an engine refuses is recorded with its message. What was killed on its way is done again without a question, except a
// restart, which may have been carried out.
//
// row E40
func TestRefusedAndKilledAction(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.applies()

	// It is stopped before the engine gets the request to pause it; then vmctl itself sees that it is.
	x.arm("/pause", first, func() { d.must("POST", "/containers/demo.web/stop", "") })
	p.run(1, "container", "pause", "web")
	p.acts("pause failed: pause container.web: Error response from daemon: Container " + p.container().ID + " is not running")
	p.run(1, "container", "pause", "web")
	p.acts("pause failed: container pause: container.web is not running: it is exited")
	p.run(0, "container", "start", "web")
	p.acts("start succeeded")

	kill := func(request string, args ...string) {
		t.Helper()
		p.struck(func(strike func()) { x.arm(request, answered, strike) }, args...)
	}
	for _, test := range []struct{ request, command, want string }{
		{"/kill?", "stop", "exited"}, {"/start", "start", "running"}, {"/pause", "pause", "paused"}, {"/unpause", "unpause", "running"},
	} {
		kill(test.request, "container", test.command, "web")
		p.acts(test.command + " unknown")
		p.run(0, "container", test.command, "web")
		p.acts(test.command + " succeeded")
		if now := p.container().State.Status; now != test.want {
			t.Errorf("after a second %s it is %s, want %s", test.command, now, test.want)
		}
	}

	kill("/start", "container", "restart", "web")
	p.acts("restart unknown")
	begun := started(d)
	x.changed()
	out := p.run(3, "container", "restart", "web")
	says(t, out, "a restart of container.web began at ", "it may have been carried out", "vmctl container restart --auto-approve web does not ask")
	if n := x.changed(); n > 0 || started(d) != begun {
		t.Errorf("it was restarted again without a question: %d requests", n)
	}
	p.acts("restart unknown")
	says(t, p.run(0, "show", "container.web"), "last action", ": its end was not recorded")
	p.run(0, "container", "restart", "--auto-approve", "web")
	p.acts("restart succeeded")
	if started(d) == begun {
		t.Error("it was not restarted with consent")
	}
	p.run(0, "container", "restart", "web")
	p.acts("restart succeeded")
	p.run(0, "destroy", "--auto-approve")
}

// An action that is asked for while another one is carried out waits for it, and is the last one then.
//
// row E41
func TestNewerActionSurvives(t *testing.T) {
	d := sharedDaemon(t)
	slow := strings.Replace(main, "trap 'exit 0' TERM;", "trap 'touch /data/asked; while ! test -e /data/end; do sleep 0.1; done; exit 0' TERM;", 1)
	p := projectOf(t, d, strings.Replace(slow, "  mount {", "  stop {\n    grace = \"2m\"\n  }\n\n  mount {", 1))
	p.applies()
	first, _ := p.begin("container", "stop", "web")
	p.run(0, "container", "exec", "web", "--", "sh", "-c", "while ! test -e /data/asked; do sleep 0.1; done")
	p.acts("stop running")
	second, newer := p.begin("container", "start", "web")
	for line := ""; !strings.HasPrefix(line, "Waiting for at most "); {
		var err error
		if line, err = newer.ReadString('\n'); err != nil {
			t.Fatalf("the second command does not wait: %v", err)
		}
	}
	p.acts("stop running")
	p.run(0, "container", "exec", "web", "--", "touch", "/data/end")
	for _, ends := range []func() error{first, second} {
		if err := ends(); err != nil {
			t.Errorf("a command ended with %v", err)
		}
	}
	p.acts("start succeeded")
	if now := p.container().State.Status; now != "running" {
		t.Errorf("the container is %s", now)
	}
	p.run(0, "destroy", "--auto-approve")
}

// begin starts a command. It returns its errors, and a function that awaits its end.
func (p *project) begin(args ...string) (end func() error, stderr *bufio.Reader) {
	p.t.Helper()
	cmd := p.command(args...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	stderr = bufio.NewReader(pipe)
	return func() error {
		rest, err := io.ReadAll(stderr)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			return fmt.Errorf("vmctl %v: %w: %s", args, err, rest)
		}
		return nil
	}, stderr
}

// A container that cannot be replaced holds up nobody else, with --keep-going: what is to go, goes, one step has failed, and the
// container runs on.
//
// row E42
func TestOneFailureOfSeveral(t *testing.T) {
	const others = `
volume "x_old" {
  engine = engine.here
}

container "x_old" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]

  mount {
    volume = volume.x_old
    target = "/old"
  }
}
`
	const deaf = "  stop {\n    grace = \"1s\"\n    force = false\n  }\n\n"
	for _, test := range []struct {
		name     string
		code     int
		old, new string // the edit
		isDeaf   bool   // the container does not end when it is asked to
		failed   string
	}{
		{"deaf", 4, `"one"`, `"two"`, true, "container.web stop"},
		{"broken", 1, `"sh", "-c",`, `"no-such-program",`, false, "container.web start"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := sharedDaemon(t)
			block := quick
			if test.isDeaf {
				block = strings.NewReplacer("  mount {", deaf+"  mount {", "trap 'exit 0' TERM; echo begun >>/data/log; sleep 1000 & wait", "trap '' TERM; sleep 1000").Replace(block)
			}
			p := projectOf(t, d, block+others)
			p.applies()
			before := p.container()
			p.main = block
			p.edit(test.old, test.new)
			got := p.runWith(nil, "apply", "--auto-approve", "--keep-going", "--parallelism=1", "--json")
			if got.code != test.code {
				t.Fatalf("exit code %d, want %d:\n%s%s", got.code, test.code, got.stdout, got.stderr)
			}
			if failed, down := summaryOf(t, got.stdout); failed != test.failed || down != "" {
				t.Errorf("failed are %q, want %q alone; down are %q:\n%s", failed, test.failed, down, got.stdout)
			}
			if names := strings.Join(p.names(), " "); names != "/demo.web" {
				t.Errorf("the containers are %s, want /demo.web", names)
			}
			if left := d.must("GET", "/volumes", ""); strings.Contains(left, "old") {
				t.Errorf("the volume is left: %s", left)
			}
			if now := p.container(); now.ID != before.ID || now.State.Status != "running" {
				t.Errorf("the container that could not be replaced is %+v, and was %+v", now, before)
			}
		})
	}
}

// summaryOf returns the steps that failed, and the addresses that are down, from the events of an apply.
func summaryOf(t *testing.T, events string) (failed, down string) {
	t.Helper()
	var summary struct {
		Failed []struct {
			Step struct{ Address, Op string }
		}
		Down []string
	}
	for line := range strings.Lines(events) {
		if strings.Contains(line, `"type":"summary"`) {
			if err := json.Unmarshal([]byte(line), &summary); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all []string
	for _, f := range summary.Failed {
		all = append(all, f.Step.Address+" "+f.Step.Op)
	}
	return strings.Join(all, ", "), strings.Join(summary.Down, ", ")
}
