package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/fetch"
)

func TestGet(t *testing.T) {
	file := content(64)
	s := serve(t, file)
	c := cache(t)
	var done []int64
	r := fetch.Request{URL: s.URL, Watch: func(p fetch.Progress) {
		if p.Note == "" {
			done = append(done, p.Done)
		}
	}}
	f := get(t, c, r, file)
	if len(done) == 0 || len(done) > 21 || done[len(done)-1] != int64(len(file)) {
		t.Errorf("progress = %v", done)
	}
	if want := "origin.json sha256-" + digest(file); files(t, c) != want {
		t.Errorf("the cache holds %s, want %s", files(t, c), want)
	}

	// The server is asked, and has the same.
	if again := get(t, c, r, file); again != f {
		t.Errorf("the second time it is %+v, want %+v", again, f)
	}
	// It has another by now.
	s.become("new", `"2"`)
	get(t, c, r, "new")
	if want := "origin.json sha256-" + digest("new"); files(t, c) != want {
		t.Errorf("the cache holds %s, want %s", files(t, c), want)
	}
	if want := ", , "; s.requests() != want {
		t.Errorf("requests differ from %q", want)
	}
}

func TestGetByDigestAsksOnce(t *testing.T) {
	file := content(1)
	s := serve(t, file)
	c := cache(t)
	r := fetch.Request{URL: s.URL, SHA256: strings.ToUpper(digest(file))}
	get(t, c, r, file)
	s.Close()
	get(t, c, r, file)
}

func TestServerThatIsGoneLeavesTheCopy(t *testing.T) {
	file := content(1)
	s := serve(t, file)
	c := cache(t)
	var notes []string
	r := fetch.Request{URL: s.URL, Watch: func(p fetch.Progress) { notes = append(notes, strings.TrimSpace(p.Note)) }}
	f := get(t, c, r, file)
	notes = nil
	s.Close()
	get(t, c, r, file)
	want := []string{"download " + s.URL + ": nothing listens there: using the copy of it in the cache, " + f.Path}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// What a server says for certain is not passed over for a copy.
func TestFileThatIsGone(t *testing.T) {
	s := serve(t, "x")
	c := cache(t)
	get(t, c, fetch.Request{URL: s.URL}, "x")
	s.Config.Handler = http.NotFoundHandler()
	code, text := failure(t, c, fetch.Request{URL: s.URL})
	if want := "download URL: the server answers 404 Not Found; see that the address is right: the server has nothing there"; code != "not_found" || text != want {
		t.Errorf("%s: %s", code, text)
	}
}

func TestResume(t *testing.T) {
	file := content(64)
	const size = 64 << 10
	for _, tt := range []struct {
		name     string
		cuts     []int
		change   func(*server) // between two runs
		sha256   string
		requests string // of both runs
		want     string
	}{
		{
			"within a run",
			[]int{1000, 5000, 0},
			nil, "",
			`, bytes=1000- "1", bytes=6000- "1", bytes=6000- "1"`, file,
		},
		{
			"in the next run",
			[]int{size / 2, 0, 0, 0},
			func(*server) {}, "",
			`, bytes=32768- "1", bytes=32768- "1", bytes=32768- "1", bytes=32768- "1"`, file,
		},
		{
			"not of another file",
			[]int{size / 2, 0, 0, 0},
			func(s *server) { s.become(content(65), `"2"`) }, "",
			`, bytes=32768- "1", bytes=32768- "1", bytes=32768- "1", bytes=32768- "1"`, content(65),
		},
		{
			"not of a file that has no name",
			[]int{size / 2, 0, 0, 0},
			func(*server) {}, "untagged",
			`, , , , `, file,
		},
		{
			"of a file that is known by its digest",
			[]int{size / 2, 0, 0, 0},
			func(*server) {}, digest(file),
			`, bytes=32768-, bytes=32768-, bytes=32768-, bytes=32768-`, file,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, file)
			if tt.sha256 != "" {
				s.tag = ""
			}
			s.cuts = tt.cuts
			c, r := cache(t), fetch.Request{URL: s.URL}
			if tt.sha256 != "untagged" {
				r.SHA256 = tt.sha256
			}
			if tt.change != nil {
				code, text := failure(t, c, r)
				if code != "cut_off" {
					t.Errorf("%s: %s", code, text)
				}
				tt.change(s)
			}
			get(t, c, r, tt.want)
			if got := s.requests(); got != tt.requests {
				t.Errorf("requests\n got %s\nwant %s", got, tt.requests)
			}
			if left := files(t, c); strings.Contains(left, "part") {
				t.Errorf("the cache holds %s", left)
			}
		})
	}
}

// A digest that only a resumed download misses is no reason to give up: the
// file was changed by a server that does not say so.
func TestResumeOfAFileThatWasChangedSilently(t *testing.T) {
	was, file := content(64), strings.ReplaceAll(content(64), "1", "2")
	s := serve(t, was)
	s.tag = ""
	s.cuts = []int{1000, 0, 0, 0}
	c, r := cache(t), fetch.Request{URL: s.URL, SHA256: digest(file)}
	if code, text := failure(t, c, r); code != "cut_off" {
		t.Fatalf("%s: %s", code, text)
	}
	s.become(file, "")
	get(t, c, r, file)
	if got, want := s.requests(), ", bytes=1000-, bytes=1000-, bytes=1000-, bytes=1000-, "; got != want {
		t.Errorf("requests\n got %s\nwant %s", got, want)
	}
}

// answer serves what a test writes, whatever was asked.
func answer(t *testing.T, handler http.HandlerFunc) fetch.Request {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return fetch.Request{URL: s.URL}
}

// begin leaves the first 1000 of 2000 bytes in a cache.
func begin(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	w.Header().Set("ETag", `"1"`)
	w.Header().Set("Content-Length", "2000")
	if _, err := w.Write([]byte(strings.Repeat("a", 1000))); err != nil {
		t.Error(err)
	}
	flush(w)
	panic(http.ErrAbortHandler)
}

// Whatever a server answers to somebody who asks for the rest, two files are
// never joined: the second attempt brings one thing, the third begins anew.
func TestServerThatGoesOnWrongly(t *testing.T) {
	rest := strings.Repeat("b", 1000)
	for _, tt := range []struct {
		name, span, etag string
		status           int
	}{
		{"at another place", "bytes 500-1999/2000", `"1"`, http.StatusPartialContent},
		{"with another file", "bytes 1000-1999/2000", `"2"`, http.StatusPartialContent},
		{"with a file of another size", "bytes 1000-2999/3000", `"1"`, http.StatusPartialContent},
		{"with a piece of it", "bytes 1000-1499/2000", `"1"`, http.StatusPartialContent},
		{"without a word", "", `"1"`, http.StatusPartialContent},
		{"with nothing", "bytes */900", `"1"`, http.StatusRequestedRangeNotSatisfiable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			r := answer(t, func(w http.ResponseWriter, r *http.Request) {
				n++
				switch n {
				case 1:
					begin(t, w)
				case 2:
					w.Header().Set("Content-Range", tt.span)
					w.Header().Set("ETag", tt.etag)
					w.WriteHeader(tt.status)
					fmt.Fprint(w, rest)
				default:
					if got := r.Header.Get("Range"); got != "" {
						t.Errorf("the third request asks for %s", got)
					}
					fmt.Fprint(w, "whole")
				}
			})
			get(t, cache(t), r, "whole")
		})
	}
}

// A server that says in its answer how long the file is, and ends it early without
// saying so, has not sent it.
func TestRestThatIsTooShort(t *testing.T) {
	n := 0
	r := answer(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		if n == 1 {
			begin(t, w)
		}
		w.Header().Set("ETag", `"1"`)
		from := 1000
		if n == 3 {
			from = 1500
		}
		if want := fmt.Sprintf("bytes=%d-", from); r.Header.Get("Range") != want {
			t.Errorf("request %d asks for %s, want %s", n, r.Header.Get("Range"), want)
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-1999/2000", from))
		w.WriteHeader(http.StatusPartialContent)
		flush(w) // from here on the length is not known
		fmt.Fprint(w, strings.Repeat("b", 500))
	})
	get(t, cache(t), r, strings.Repeat("a", 1000)+strings.Repeat("b", 1000))
}

func TestFailures(t *testing.T) {
	file := content(1)
	for _, tt := range []struct {
		name       string
		handler    http.HandlerFunc
		sha256     string
		code, want string
	}{
		{
			"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "",
			"refused", "download URL: the server answers 403 Forbidden; see that anybody may read it: vmctl logs in nowhere",
		},
		{
			"broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "",
			"server_error", "download URL: the server answers 502 Bad Gateway; it may be over in a while: try again",
		},
		{
			"strange", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, "",
			"bad_answer", "download URL: the server answers 418 I'm a teapot",
		},
		{
			"less than it says", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, file)
			}, "",
			"cut_off", "download URL: the server ended it after 1024 of 5000 bytes; try again: it goes on after the 1024 bytes that are there",
		},
		{
			"no end", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, file)
				flush(w)
				panic(http.ErrAbortHandler)
			}, "",
			"cut_off", "download URL: the server ended it after 1024 bytes; try again: it goes on after the 1024 bytes that are there",
		},
		{
			"packed", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") }, "",
			"bad_answer", "download URL: the server packs it (gzip), though it was asked not to",
		},
		{
			"nothing new for somebody who has nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "",
			"bad_answer", "download URL: the server answers 304 Not Modified to somebody who has nothing",
		},
		{
			"from one to the next", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "",
			"no_server", "download URL: no answer: it leads from one address to the next, ten times over",
		},
		{
			"another file", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }, digest("y"),
			"wrong_sha256", "download URL: checksum mismatch: its sha256 is " + digest("x") + ", not " + digest("y") +
				"; wanted sha256 " + digest("y") + "; found sha256 " + digest("x") +
				"; see with whoever offers it what the digest is: the file was changed, or somebody else answers; if the file is right, write sha256 = \"" + digest("x") + `"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := answer(t, tt.handler)
			r.SHA256 = tt.sha256
			c := cache(t)
			code, text := failure(t, c, r)
			if code != tt.code || text != tt.want {
				t.Errorf("\n got %s: %s\nwant %s: %s", code, text, tt.code, tt.want)
			}
			if tt.sha256 != "" && files(t, c) != "" {
				t.Errorf("a file that is not wanted is kept: %s", files(t, c))
			}
		})
	}
}

func TestErrorNamesWhereARedirectLeads(t *testing.T) {
	r := answer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		http.NotFound(w, r)
	})
	_, text := failure(t, cache(t), r)
	if want := "download URL: the server answers 404 Not Found (from URL/there, where it leads); see that the address is right: the server has nothing there"; text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"ftp://x/y":              "bad_url: download URL: not an http or https address",
		"http://":                "bad_url: download http:: not an http or https address",
		"http://me:secret@":      "bad_url: download http://me:xxxxx@: not an http or https address",
		"http://127.0.0.1:1/a b": "no_server: download http://127.0.0.1:1/a%20b: nothing listens there; see that the address is right and the server runs",
	} {
		code, text := failure(t, cache(t), fetch.Request{URL: address})
		if got := code + ": " + text; got != want {
			t.Errorf("%s\n got %s\nwant %s", address, got, want)
		}
	}
}

// A certificate that nobody here has vouched for is said, and not asked for four times.
func TestUnknownAuthority(t *testing.T) {
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(s.Close)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	code, text := failure(t, cache(t), fetch.Request{URL: s.URL})
	text = strings.ReplaceAll(text, s.URL, "URL")
	want := "download URL: its certificate is signed by an authority that this machine does not know: tls: failed to verify certificate: " +
		"x509: certificate signed by unknown authority; if it is your organization's, make it known: SSL_CERT_FILE=ca.pem, or the system's list of authorities"
	if code != "bad_certificate" || text != want || asked > 0 {
		t.Errorf("%s after %d requests\n got %s\nwant %s", code, asked, text, want)
	}
}

// A server that stops talking, before its answer or in the middle of it, does
// not keep anybody waiting for ever.
func TestStall(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		begin      func(http.ResponseWriter)
	}{
		{"before it answers", "download URL: the server said nothing for 50ms", func(http.ResponseWriter) {}},
		{"in the middle", "download URL: nothing arrived for 50ms, after 4 of 10 bytes; try again: it goes on after the 4 bytes that are there", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
			flush(w)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			over := make(chan struct{})
			r := answer(t, func(w http.ResponseWriter, _ *http.Request) {
				tt.begin(w)
				<-over
			})
			t.Cleanup(func() { close(over) })
			c := cache(t)
			c.Stall = 50 * time.Millisecond
			code, text := failure(t, c, r)
			if code != "stalled" || text != tt.want {
				t.Errorf("\n got %s: %s\nwant stalled: %s", code, text, tt.want)
			}
		})
	}
}

// A server that comes back is not given up.
func TestServerThatIsBusyForAWhile(t *testing.T) {
	s := serve(t, "x")
	s.fails = 3
	get(t, cache(t), fetch.Request{URL: s.URL}, "x")
}

func TestGetEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	over := make(chan struct{})
	r := answer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "half")
		flush(w)
		close(asked)
		<-over
	})
	t.Cleanup(func() { close(over) })
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("the user left")
	go func() {
		<-asked
		cancel(because)
	}()
	if _, err := cache(t).Get(ctx, r); !errors.Is(err, because) {
		t.Errorf("error = %v, want that %v", err, because)
	}
}

// Of many who want the same file one downloads it.
func TestConcurrentGets(t *testing.T) {
	file := content(64)
	s := serve(t, file)
	c := cache(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			f, err := c.Get(t.Context(), fetch.Request{URL: s.URL, SHA256: digest(file)})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(f.Path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.requests(); got != "" {
		t.Errorf("requests = %q, want one", got)
	}
}
