package cli_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/real"
	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/spec"
)

// engineTypes returns the types of engines and of what is inside of them.
func engineTypes() map[spec.Kind]providers.Type {
	all := map[spec.Kind]providers.Type{}
	for _, t := range engine.Types(engine.Host{}) {
		for kind := range t.Kinds {
			all[kind] = t
		}
	}
	return all
}

// docker is an engine with one image and at most one container, on a socket.
type docker struct {
	t        *testing.T
	socket   string
	end      func() // the engine ends
	mu       sync.Mutex
	pulled   bool
	labels   map[string]string // of the container
	state    string            // of the container; "": there is none
	others   []any             // containers of others, as a list shows them
	shownToo map[string]any    // another container, as an inspection shows it
	silent   bool              // it does not say which engine it is
	broken   bool              // its list of containers cannot be read
	acted    []string          // what it was asked to do with its container, in order
}

const (
	dockerID = "1111111111111111111111111111111111111111111111111111111111111111"
	execID   = "3333333333333333333333333333333333333333333333333333333333333333"
)

func newDocker(t *testing.T, dir string) *docker {
	t.Helper()
	d := &docker{t: t, socket: filepath.Join(dir, "s")}
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
	if err := s.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	d.end = s.Close
	return d
}

// serve answers a request.
func (d *docker) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1.") {
		path = path[strings.Index(path[1:], "/")+1:]
	}
	w.Header().Set("Api-Version", "1.41")
	d.mu.Lock()
	defer d.mu.Unlock()
	its, isIts := strings.CutPrefix(path, "/containers/"+dockerID+"/")
	switch {
	case r.Method == http.MethodDelete:
		d.acted, d.others = append(d.acted, "remove "+path), nil
		w.WriteHeader(http.StatusNoContent)
	case isIts && r.Method == http.MethodPost && its != "exec":
		d.act(w, its, r.URL.Query().Get("signal"))
	case path == "/exec/"+execID+"/start":
		d.exec(w, r)
	case path == "/containers/create":
		var c struct{ Labels map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			d.t.Error(err)
		}
		d.labels, d.state = c.Labels, "created"
		d.answer(w, http.StatusCreated, map[string]any{"Id": dockerID, "Warnings": nil})
	default:
		d.answer(w, 0, d.shown(path, its))
	}
}

// shown returns the answer to a request that changes nothing.
func (d *docker) shown(path, its string) any {
	uses := map[string]any{"Labels": d.labels, "Image": "demo/box:1"}
	switch {
	case path == "/_ping":
		return "OK"
	case path == "/info" && d.silent:
		return map[string]any{}
	case path == "/info":
		return map[string]any{"ID": "E", "ServerVersion": "1", "DockerRootDir": "/d"}
	case path == "/volumes":
		return map[string]any{"Volumes": []any{map[string]any{"Name": "used", "Driver": "local"}}}
	case path == "/images/create":
		d.pulled = true
		return map[string]any{"status": "done"}
	case path == "/images/json" && d.pulled:
		return []any{map[string]any{"Id": "sha256:one", "RepoTags": []string{"demo/box:1"}}}
	case path == "/containers/json" && d.broken:
		return "null"
	case path == "/containers/json" && d.state != "":
		return append(d.others, map[string]any{"Id": dockerID, "Names": []string{"/demo.web"}, "State": d.state, "Labels": d.labels, "ImageID": "sha256:one"})
	case its == "json":
		return map[string]any{
			"Id": dockerID, "Name": "/demo.web", "Image": "sha256:one", "State": map[string]any{"Status": d.state}, "Config": uses,
			"HostConfig": map[string]any{"RestartPolicy": map[string]any{"Name": "no"}}, "NetworkSettings": map[string]any{},
		}
	case path == "/containers/"+strings.Repeat("2", 64)+"/json":
		return d.shownToo
	case its == "exec":
		return map[string]any{"Id": execID}
	case path == "/exec/"+execID+"/json":
		return map[string]any{"Running": false, "ExitCode": 7}
	case its == "logs":
		return frame(1, "one\n") + frame(2, "two\n")
	default:
		return []any{}
	}
}

func (d *docker) answer(w http.ResponseWriter, status int, v any) {
	text, isText := v.(string)
	if !isText {
		b, err := json.Marshal(v)
		if err != nil {
			d.t.Error(err)
		}
		text = string(b)
		w.Header().Set("Content-Type", "application/json")
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, text) //nolint:errcheck // the client may have left
}

// act does with the container what it is asked to do.
func (d *docker) act(w http.ResponseWriter, act, signal string) {
	d.acted = append(d.acted, strings.TrimSpace(act+" "+signal))
	d.state = map[string]string{"start": "running", "unpause": "running", "pause": "paused", "kill": "exited"}[act]
	w.WriteHeader(http.StatusNoContent)
}

// exec runs a command that writes its input and one word more.
func (d *docker) exec(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) //nolint:errcheck // its settings
	conn, both, err := w.(http.Hijacker).Hijack()
	if err != nil {
		d.t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()                                                                 //nolint:errcheck // the client may have left
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n") //nolint:errcheck // see above
	in, err := io.ReadAll(both.Reader)
	if err != nil {
		d.t.Error(err)
	}
	_, _ = io.WriteString(conn, frame(1, string(in))+frame(2, "err")+frame(1, "after")) //nolint:errcheck // see above
}

func frame(stream byte, text string) string {
	head := []byte{stream, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
	return string(head) + text
}

// did demands what was done with the container since the last call.
func (d *docker) did(want ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.acted, ", "); got != strings.Join(want, ", ") {
		d.t.Errorf("the container got %s, want %s", got, strings.Join(want, ", "))
	}
	d.acted = nil
}

// boxed returns a house with a container that is applied, and its engine: on this host, or in vm.dev.
func boxed(t *testing.T, inVM bool) (*house, *docker) {
	t.Helper()
	h, where := newHouse(t, withID), ""
	if inVM {
		h, where = lodged(t, sshtest.Server{}), "  vm = vm.dev\n"
	}
	d := newDocker(t, h.home)
	h.engines = true
	h.write("engine.vmctl.hcl", fmt.Sprintf("engine \"here\" {\n%s  host = \"unix://%s\"\n}\n", where, d.socket)+`
image "box" {
  engine = engine.here
  ref    = "demo/box:1"
}

container "web" {
  engine = engine.here
  image  = image.box
}
`)
	h.run("apply", "--auto-approve").exits(0)
	d.did("start")
	return h, d
}

// The commands that start, stop and pause a container act on it alone, wherever its engine is.
//
// row E39, of commands
func TestContainerPower(t *testing.T) {
	real.Long(t)
	for where, inVM := range map[string]bool{"on this host": false, "in a VM": true} {
		t.Run(where, func(t *testing.T) {
			h, d := boxed(t, inVM)
			h.run("container", "pause", "web").exits(0).warns(`the files say state = "running" for container.web: the next apply starts it again`)
			d.did("pause")
			h.run("container", "pause", "web").exits(0).says("container.web is paused already")
			h.run("container", "unpause", "container.web").exits(0)
			d.did("unpause")
			h.run("container", "unpause", "web").exits(0).says("container.web is running already")
			h.run("container", "stop", "web").exits(0).says("gone after", "(graceful)")
			d.did("kill SIGTERM")
			h.run("container", "stop", "web").exits(0).says("container.web is stopped already")
			h.run("container", "pause", "web").exits(1).warns("container.web is not running: it is exited", "vmctl container start container.web")
			h.run("container", "unpause", "web").exits(1).warns("container.web is not running: it is exited")
			d.did()
			h.run("container", "start", "web").exits(0)
			h.run("container", "restart", "web").exits(0)
			d.did("start", "kill SIGTERM", "start")
			h.run("plan", "--detailed-exitcode").exits(0)
			d.state = ""
			h.run("container", "stop", "web").exits(0).says("it does not exist: there is nothing to stop")
			h.run("container", "restart", "web").exits(0).says("it does not exist: there is nothing to restart")
			h.run("container", "unpause", "web").exits(1).warns("container.web does not exist", "vmctl apply")
		})
	}
}

// What a block ignores, no apply makes anew.
func TestContainerStateThatIsIgnored(t *testing.T) {
	h, d := boxed(t, false)
	h.write("engine.vmctl.hcl", strings.Replace(h.read("engine.vmctl.hcl"), "image.box\n", "image.box\n  lifecycle {\n    ignore_changes = [state]\n  }\n", 1))
	h.run("apply", "--auto-approve").exits(0)
	h.run("container", "stop", "web").exits(0).silent("the next apply")
	d.did("kill SIGTERM")
	h.run("plan", "--detailed-exitcode").exits(0)
}

// A command in a container has its input, its outputs and its status, wherever the engine is: the end of the input
// closes one direction only.
func TestContainerExec(t *testing.T) {
	for where, inVM := range map[string]bool{"on this host": false, "in a VM": true} {
		t.Run(where, func(t *testing.T) {
			h, d := boxed(t, inVM)
			h.stdin = strings.NewReader("from outside ")
			if e := h.run("container", "exec", "web", "--", "cat", "--json").exits(7); e.stdout != "from outside after" || e.stderr != "err" {
				t.Errorf("output %q, error %q", e.stdout, e.stderr)
			}
			h.stdin = strings.NewReader("in ")
			h.run("container", "exec", "--json", "web", "cat").exits(7).says(`"status": 7`, `"stdout": "in after"`, `"stderr": "err"`)
			h.run("container", "exec", "web", "--").exits(3)
			d.state = "exited"
			h.run("container", "exec", "web", "cat").exits(255).warns("container.web is not running: it is exited", "vmctl container start container.web")
			d.state = "paused"
			h.run("container", "exec", "web", "cat").exits(255).warns("vmctl container unpause container.web")
			d.state = ""
			h.run("container", "exec", "web", "cat").exits(255).warns("run cat in container.web: it does not exist", "vmctl apply")
		})
	}
}

// A program of this host that talks to an engine is not said to run in it.
func TestEngineExecWithoutEngine(t *testing.T) {
	h := newHouse(t, withID)
	h.engines = true
	h.write("engine.vmctl.hcl", "engine \"here\" {\n  host = \"unix:///none\"\n}\n")
	h.run("engine", "exec", "here", "--", "docker", "ps").exits(255).warns("connect docker to engine.here: it does not exist", "vmctl apply").silent("run docker in")
	h, d := boxed(t, false)
	d.end()
	h.run("engine", "exec", "here", "--", "docker", "ps").exits(255).warns("connect docker to engine.here: it could not be read").silent("run docker in")
}

func TestContainerLogs(t *testing.T) {
	h, d := boxed(t, false)
	if e := h.run("container", "logs", "--tail=9", "web").exits(0); e.stdout != "one\n" || e.stderr != "two\n" {
		t.Errorf("output %q, error %q", e.stdout, e.stderr)
	}
	h.run("container", "logs", "--json", "web").exits(0).says(`"address": "container.web"`, `"text": "one\ntwo\n"`)
	h.run("container", "logs", "--json", "--follow", "web").exits(0).says(`"type":"log","address":"container.web","text":"one\n"`, `"stream":"stderr","text":"two\n"`)
	h.run("container", "logs", "--tail=-2", "web").exits(3)
	d.state = ""
	h.run("container", "logs", "web").exits(1).warns("read the log of container.web: it does not exist")
}
