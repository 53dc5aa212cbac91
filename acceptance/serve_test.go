//go:build linux

package acceptance_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// fileServer is a web server of one script, with the files of its folder. It can be told
// to end every answer early.
type fileServer struct {
	*httptest.Server
	mu    sync.Mutex
	dir   string
	cut   int  // bytes after which an answer ends; 0: whole answers
	hold  bool // nothing comes after them, and the answer does not end
	asked []string
}

// fileServers are the servers of serve, by script.
var fileServers sync.Map

// serve starts the script's web server, and sets URL to its address. With the argument tls it
// has a certificate of its own authority, which is in ca.pem.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s := &fileServer{dir: ts.MkAbs(".")}
	if len(args) == 0 {
		s.Server = httptest.NewServer(s)
	} else {
		s.Server = httptest.NewTLSServer(s)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o644)) //nolint:gosec // the test's user reads it
	}
	ts.Defer(s.Close)
	fileServers.Store(ts, s)
	ts.Setenv("URL", s.URL)
}

func serverOf(ts *testscript.TestScript) *fileServer {
	s, ok := fileServers.Load(ts)
	if !ok {
		ts.Fatalf("no server: serve starts one")
	}
	return s.(*fileServer)
}

// cut ends answers after so many bytes.
func cut(ts *testscript.TestScript, _ bool, args []string) { setCut(ts, args, false) }

// hold sends no more than so many bytes of an answer, and does not end it.
func hold(ts *testscript.TestScript, _ bool, args []string) { setCut(ts, args, true) }

func setCut(ts *testscript.TestScript, args []string, hold bool) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := serverOf(ts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.hold = n, hold
}

// asked prints what was asked for since the last time: path and range.
func asked(ts *testscript.TestScript, _ bool, _ []string) {
	s := serverOf(ts)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(ts.Stdout(), strings.Join(s.asked, "\n"))
	s.asked = nil
}

// next notes what is asked for, and says how the answer ends.
func (s *fileServer) next(asked string) (left int, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked)
	return s.cut, s.hold
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	left, held := s.next(strings.TrimSpace(r.URL.Path + " " + r.Header.Get("Range")))
	content, err := os.ReadFile(s.dir + r.URL.Path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if left > 0 {
		cut := &cutWriter{ResponseWriter: w, left: left}
		if held {
			cut.until = r.Context().Done()
		}
		w = cut
	}
	w.Header().Set("ETag", `"`+strconv.Itoa(len(content))+`"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(content)))
}

// cutWriter ends the connection after so many bytes, or once until is closed.
type cutWriter struct {
	http.ResponseWriter
	left  int
	until <-chan struct{} // nil: at once
}

func (s *cutWriter) Write(b []byte) (int, error) {
	if len(b) <= s.left {
		s.left -= len(b)
		return s.ResponseWriter.Write(b)
	}
	if _, err := s.ResponseWriter.Write(b[:s.left]); err != nil {
		return 0, err
	}
	s.left = 0
	if err := http.NewResponseController(s.ResponseWriter).Flush(); err != nil {
		return 0, err
	}
	if s.until != nil {
		<-s.until
	}
	panic(http.ErrAbortHandler)
}
