package fetch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vmctl/internal/fetch"
	"vmctl/internal/lockfile"
)

// server is a web server with one file, that breaks off as it is told to.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	file  string
	tag   string
	cuts  []int // how many bytes each of the next answers brings before it ends
	asked []string
	fails int // how many of the next requests are answered with an error
}

func serve(t *testing.T, file string) *server {
	t.Helper()
	s := &server{file: file, tag: `"1"`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSpace(fmt.Sprintf("%s %s", r.Header.Get("Range"), r.Header.Get("If-Range"))))
	if s.fails > 0 {
		s.fails--
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if len(s.cuts) > 0 {
		w = &cutter{ResponseWriter: w, left: s.cuts[0]}
		s.cuts = s.cuts[1:]
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(s.file))
}

// requests returns the Range and If-Range of each request since the last call.
func (s *server) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.asked, ", ")
	s.asked = nil
	return all
}

// become puts another file in place.
func (s *server) become(file, tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file, s.tag = file, tag
}

// cutter ends the connection after so many bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	if _, err := c.ResponseWriter.Write(b[:c.left]); err != nil {
		return 0, err
	}
	flush(c.ResponseWriter)
	panic(http.ErrAbortHandler)
}

// flush sends what was written so far. A client that has left needs nothing.
func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// content returns a text of so many KiB in which no line repeats.
func content(kib int) string {
	var b strings.Builder
	for i := range kib * 64 {
		fmt.Fprintf(&b, "%015d\n", i)
	}
	return b.String()
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// cache returns a new cache whose attempts follow one another at once.
func cache(t *testing.T) *fetch.Cache {
	t.Helper()
	return &fetch.Cache{
		Dir: filepath.Join(t.TempDir(), "download"), Owner: lockfile.Owner{PID: os.Getpid(), Command: "test"},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// get downloads a file, and checks its content.
func get(t *testing.T, c *fetch.Cache, r fetch.Request, want string) fetch.File {
	t.Helper()
	f, err := c.Get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	is(t, f, want)
	return f
}

func is(t *testing.T, f fetch.File, want string) {
	t.Helper()
	got, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want || f.Size != int64(len(want)) || f.SHA256 != digest(want) {
		t.Errorf("got %d bytes as %+v, which are not the %d wanted", len(got), f, len(want))
	}
}

// failure returns the code and the text, with the advice, of a download that must fail.
func failure(t *testing.T, c *fetch.Cache, r fetch.Request) (code, text string) {
	t.Helper()
	f, err := c.Get(t.Context(), r)
	var e *fetch.Error
	if !errors.As(err, &e) {
		t.Fatalf("Get = %+v, %v; want an Error", f, err)
	}
	return e.Code, strings.ReplaceAll(strings.Join(append(append([]string{e.Error()}, e.Seen...), e.Next...), "; "), r.URL, "URL")
}

// files lists the files in a cache, without the locks.
func files(t *testing.T, c *fetch.Cache) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), "lock") {
			all = append(all, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}
