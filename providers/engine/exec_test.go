package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

const execID = "3333333333333333333333333333333333333333333333333333333333333333"

// frame returns a piece of an output as an engine sends it: 1 is standard output, 2 standard error.
func frame(stream byte, text string) []byte {
	head := []byte{stream, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
	return append(head, text...)
}

// attached is the connection of a command, from its container's end.
type attached struct {
	in  *bufio.Reader
	out net.Conn
}

// runs makes the engine run every command by a function.
func (f *fake) runs(run func(attached)) {
	f.has("demo.web", "running", labels("demo.web"))
	f.set("POST /containers/"+cid+"/exec", answer{status: http.StatusCreated, body: `{"Id":"` + execID + `"}`})
	f.handle("POST /exec/"+execID+"/start", func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := w.(http.Hijacker).Hijack()
		if err != nil {
			f.t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }() //nolint:errcheck // the client may have left
		if _, err := io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"); err != nil {
			f.t.Error(err)
		}
		run(attached{both.Reader, conn})
	})
}

// write writes to the outputs of the command.
func (a attached) write(all ...[]byte) {
	for _, b := range all {
		_, _ = a.out.Write(b) //nolint:errcheck // the client may have left
	}
}

// enter returns the inside of the container of a fake.
func (f *fake) enter() providers.Guest {
	f.t.Helper()
	p := f.open()
	host, ok := providers.Ability[providers.Host](p)
	if !ok {
		f.t.Fatal("it is no host")
	}
	g, err := host.Enter(f.t.Context(), only(f.t, p), cty.NilVal)
	if err != nil {
		f.t.Fatal(err)
	}
	return g
}

// The end of the input ends one direction only: what the command writes after that still arrives.
func TestExecPassesInputAndOutputs(t *testing.T) {
	f := newFake(t)
	f.runs(func(a attached) {
		all, err := io.ReadAll(a.in)
		if err != nil {
			t.Error(err)
		}
		a.write(frame(1, string(all)), frame(2, "err"), frame(1, "after"))
	})
	f.set("GET /exec/"+execID+"/json", answer{body: `{"Running":false,"ExitCode":7}`})
	var stdout, stderr bytes.Buffer
	o, err := f.enter().Run(t.Context(), providers.Command{
		Args: []string{"cat", "-"}, Dir: "/d", Env: []string{"A=b"}, Stdin: strings.NewReader("in "), Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil || o.Status != 7 || o.Stderr != "err" || stdout.String() != "in after" || stderr.String() != "err" {
		t.Errorf("%+v, %v, output %q, error %q", o, err, &stdout, &stderr)
	}
	if got := strings.Join(f.asked, "\n"); !strings.Contains(got, `"AttachStdin":true`) || !strings.Contains(got, `"WorkingDir":"/d"`) ||
		!strings.Contains(got, `"Env":["A=b"]`) || !strings.Contains(got, `"Cmd":["cat","-"]`) {
		t.Errorf("the engine was asked\n%s", got)
	}
}

// The status of a command waits for its end, and one that does not exist has that of a shell.
func TestExecStatus(t *testing.T) {
	f := newFake(t)
	f.runs(func(a attached) {
		a.write(frame(1, `OCI runtime exec failed: "x": executable file not found in $PATH`))
	})
	asked := 0
	f.handle("GET /exec/"+execID+"/json", func(w http.ResponseWriter, _ *http.Request) {
		body := `{"Running":true,"ExitCode":null}`
		if asked++; asked > 1 {
			body = `{"Running":false,"ExitCode":126}`
		}
		_, _ = io.WriteString(w, body) //nolint:errcheck // the client may have left
	})
	o, err := f.enter().Run(t.Context(), providers.Command{Args: []string{"x"}})
	if err != nil || o.Status != 127 || asked != 2 {
		t.Errorf("%+v, %v, asked %d times", o, err, asked)
	}
}

// Whatever goes wrong once a command may run leaves its fate open; before that, it did not run.
func TestExecFailures(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		set  func(f *fake)
		in   io.Reader
		fate bool
		want string
	}{
		{"not running", func(f *fake) {
			f.set("POST /containers/"+cid+"/exec", answer{status: http.StatusConflict, body: `{"message":"container is paused"}`})
		}, nil, false, "container is paused"},
		{"an ID that is none", func(f *fake) {
			f.set("POST /containers/"+cid+"/exec", answer{status: http.StatusCreated, body: `{"Id":"../x"}`})
		}, nil, false, `the engine's ID of the command is "../x"`},
		{"not started", func(f *fake) { f.handle("POST /exec/"+execID+"/start", http.NotFound) }, nil, true, "it is unknown what it did"},
		{"cut", func(f *fake) { f.runs(func(a attached) { a.write(frame(1, "half")[:10]) }) }, nil, true, "it is unknown what it did"},
		{"no status", func(f *fake) { f.set("GET /exec/"+execID+"/json", answer{body: `{}`}) }, nil, true, "does not say whether it has ended"},
		{"the engine is gone", func(f *fake) {
			f.set("GET /exec/"+execID+"/json", answer{status: http.StatusNotFound, body: `{"message":"No such exec"}`})
		}, nil, true, "No such exec"},
		{"the input fails", func(f *fake) { f.runs(func(a attached) { _, _ = io.Copy(io.Discard, a.in) }) }, //nolint:errcheck // it is cut
			io.MultiReader(strings.NewReader("half"), failing{broken}), true, "read the input: broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.runs(func(attached) {})
			f.set("GET /exec/"+execID+"/json", answer{body: `{"Running":false,"ExitCode":0}`})
			test.set(f)
			_, err := f.enter().Run(t.Context(), providers.Command{Args: []string{"x"}, Stdin: test.in})
			var fate *providers.FateError
			if err == nil || errors.As(err, &fate) != test.fate || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q, fate open: %v", err, test.want, test.fate)
			}
		})
	}
}

type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The end of the context closes the command's input and outputs.
func TestExecThatIsInterrupted(t *testing.T) {
	f := newFake(t)
	began, left := make(chan struct{}), make(chan struct{})
	f.runs(func(a attached) {
		close(began)
		_, _ = io.Copy(io.Discard, a.in) //nolint:errcheck // it is cut
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := f.enter().Run(ctx, providers.Command{Args: []string{"x"}})
	var fate *providers.FateError
	if !errors.As(err, &fate) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-left
}

// screen is a terminal whose size changes once.
type screen struct{ again chan struct{} }

func (screen) Size() (columns, rows int, err error) { return 80, 24, nil }

func (s screen) FollowSize(_ context.Context, resized func(columns, rows int) error) {
	if resized(132, 50) == nil {
		close(s.again)
	}
}

// A command on a terminal has the size of the user's, and its output is as it comes.
func TestExecOnATerminal(t *testing.T) {
	f := newFake(t)
	s := screen{make(chan struct{})}
	size := ""
	f.handle("POST /exec/"+execID+"/resize", func(_ http.ResponseWriter, r *http.Request) { size = r.URL.RawQuery })
	f.runs(func(a attached) {
		<-s.again
		a.write([]byte("raw\r\n"))
	})
	f.set("GET /exec/"+execID+"/json", answer{body: `{"Running":false,"ExitCode":0}`})
	var out bytes.Buffer
	o, err := f.enter().(providers.TerminalGuest).RunOn(t.Context(), s, providers.Command{Args: []string{"sh"}, Stdout: &out})
	if err != nil || o.Status != 0 || out.String() != "raw\r\n" || size != "h=50&w=132" {
		t.Errorf("%+v, %v, output %q, size %q", o, err, &out, size)
	}
	if got := strings.Join(f.asked, "\n"); !strings.Contains(got, `"Tty":true,"ConsoleSize":[24,80]`) {
		t.Errorf("the engine was asked\n%s", got)
	}
}

// Only a container has an inside, and no server in it is reached past its published ports.
func TestInsideOfAContainer(t *testing.T) {
	f := newFake(t)
	f.has("demo.web", "running", labels("demo.web"))
	g := f.enter()
	if _, err := g.Dial(t.Context(), "tcp", "127.0.0.1:80"); err == nil {
		t.Error("it leads to a server")
	}
	if _, err := g.Run(t.Context(), providers.Command{}); err == nil {
		t.Error("it runs nothing")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	host, _ := providers.Ability[providers.Host](f.open())
	if _, err := host.Enter(t.Context(), providers.Object{Kind: "volume", Name: "data", Attrs: cty.EmptyObjectVal}, cty.NilVal); err == nil {
		t.Error("a volume has an inside")
	}
}

// The log of a container comes in two streams, or as its terminal shows it.
//
// row E53, of terminals
func TestLogOfAContainer(t *testing.T) {
	for _, test := range []struct {
		name     string
		terminal bool
		answer   answer
		query    providers.LogQuery
		out, err string // of the outputs
		asks     string
		fails    string // "": it does not
	}{
		{"all", false, answer{body: string(frame(1, "one\n")) + string(frame(2, "two\n"))}, providers.LogQuery{Tail: -1}, "one\n", "two\n", "stderr=1&stdout=1", ""},
		{"followed from the last lines", false, answer{body: string(frame(1, "one\n"))}, providers.LogQuery{Tail: 3, Follow: true}, "one\n", "", "follow=1&stderr=1&stdout=1&tail=3", ""},
		{"of a terminal", true, answer{body: "raw\r\n"}, providers.LogQuery{Tail: -1}, "raw\r\n", "", "stderr=1&stdout=1", ""},
		{"none is kept", false, answer{status: http.StatusNotImplemented, body: `{"message":"no reading"}`}, providers.LogQuery{}, "", "", "tail=0", "no reading"},
		{"an error in place of output", false, answer{body: string(frame(3, "driver failed"))}, providers.LogQuery{}, "", "", "tail=0", "driver failed"},
		{"cut within a frame's head", false, answer{body: string(frame(1, "one\n")[:3])}, providers.LogQuery{}, "", "", "tail=0", "to its end"},
		{"cut", false, answer{body: string(frame(1, "one\n")), cut: true}, providers.LogQuery{Tail: -1, Follow: true}, "one\n", "", "follow=1", "to its end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			shown := detail("demo.web", "running", labels("demo.web"))
			shown["Config"] = map[string]any{"Labels": labels("demo.web"), "Tty": test.terminal}
			f.set("GET /containers/json", answer{body: asJSON(t, []any{item(cid, "demo.web", "running", labels("demo.web"))})})
			f.set("GET /containers/"+cid+"/json", answer{body: asJSON(t, shown)})
			asked := ""
			f.handle("GET /containers/"+cid+"/logs", func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.RawQuery
				if test.answer.cut {
					w.Header().Set("Content-Length", "1000")
				}
				if test.answer.status != 0 {
					w.WriteHeader(test.answer.status)
				}
				_, _ = io.WriteString(w, test.answer.body) //nolint:errcheck // the client may have left
			})
			p := f.open()
			var out, errs bytes.Buffer
			test.query.Stdout, test.query.Stderr = &out, &errs
			streamer, _ := providers.Ability[providers.LogStreamer](p)
			err := streamer.StreamLog(t.Context(), only(t, p), test.query)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
			if out.String() != test.out || errs.String() != test.err || !strings.Contains(asked, test.asks) {
				t.Errorf("output %q, error %q, asked %q", &out, &errs, asked)
			}
		})
	}
}
