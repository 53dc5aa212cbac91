package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"vmctl/internal/clock"
	"vmctl/state"
	"vmctl/state/storetest"
)

// flaw is a mistake that a server may make. The tests must notice each.
type flaw string

const (
	noFencing    flaw = "it accepts writes of who lost the lease"
	noOrder      flaw = "it repeats a write that comes twice"
	halfPuts     flaw = "a reader sees half a document"
	twoHolders   flaw = "it gives the lease to two processes"
	forgets      flaw = "it acknowledges an append before it has it"
	keepsRenamed flaw = "it keeps a document under both names"
	hidesHolder  flaw = "it does not say who has the lease"
)

// The server counts the leases that it gave, and the writes of the last lease. Both numbers are the
// ETag of the state. The server accepts a write only if its If-Match names the present ETag.
func TestHTTP(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return newServer(t, "") })
}

// Each mistake of a server fails one of the tests.
func TestMistakesAreNoticed(t *testing.T) {
	for _, f := range []flaw{noFencing, noOrder, halfPuts, twoHolders, forgets, keepsRenamed, hidesHolder} {
		t.Run(string(f), func(t *testing.T) {
			noticed := false
			for _, test := range []func(storetest.TB, storetest.Harness){storetest.Documents, storetest.Lease, storetest.LostLease, storetest.Repair} {
				noticed = noticed || fails(t.Context(), func(tb storetest.TB) { test(tb, newServer(t, f)) })
			}
			if !noticed {
				t.Error("no test failed")
			}
		})
	}
}

// fails reports whether a test fails.
func fails(ctx context.Context, test func(storetest.TB)) (failed bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errFailed { //nolint:errorlint // Fatalf panics with this very value
				panic(r)
			}
			failed = true
		}
	}()
	test(failing{ctx})
	return false
}

var errFailed = errors.New("failed")

type failing struct{ ctx context.Context } //nolint:containedctx // it is a test

func (failing) Helper()                    {}
func (failing) Fatalf(string, ...any)      { panic(errFailed) }
func (f failing) Context() context.Context { return f.ctx }

// server keeps the documents of one state in memory.
type server struct {
	flaw flaw

	mu        sync.Mutex
	documents map[string][]byte
	holder    *state.Holder // nil: the lease is free
	request   string        // with which the lease was asked for
	token     int           // counts the leases that were given
	writes    int           // counts the writes of the last lease
}

// newServer starts a server. Its network loses one request of eight and one reply of eight, and
// delivers one of eight a second time, later.
func newServer(t *testing.T, f flaw) storetest.Harness {
	s := &server{flaw: f, documents: map[string][]byte{}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	net := &network{luck: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same trouble in each run
	return storetest.Harness{
		Connect: func() state.Backend {
			return remote{url: web.URL, client: &http.Client{Transport: net}}
		},
		End: func(l state.Lease) {
			if lease := l.(*remoteLease); lease.token == s.tokenNow() { //nolint:forcetypeassert // remote made it
				s.free()
			}
		},
		Take: s.free,
	}
}

func (s *server) tokenNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

func (s *server) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder = nil
}

func etag(token, writes int) string { return fmt.Sprintf("%q", fmt.Sprintf("%d.%d", token, writes)) }

// ServeHTTP answers GET /lease, POST /lease, GET /documents, and for a document GET, PUT, POST (append), MOVE
// and DELETE.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.URL.Path == "/lease" && r.Method == http.MethodPost:
		s.lock(w, r, body)
	case r.URL.Path == "/lease" && r.Method == http.MethodGet:
		if s.flaw == hidesHolder {
			s.answer(w, nil)
			return
		}
		s.answer(w, s.holder)
	case r.URL.Path == "/documents":
		var names []string
		for name := range s.documents {
			names = append(names, name)
		}
		s.answer(w, names)
	case r.Method == http.MethodGet:
		s.get(w, r.URL.Path)
	default:
		s.write(w, r, body)
	}
}

func (s *server) answer(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) //nolint:errcheck // the client went away
}

func (s *server) get(w http.ResponseWriter, path string) {
	data, ok := s.documents[path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if s.flaw == halfPuts && len(data) > 1 {
		data = data[:len(data)/2]
	}
	_, _ = w.Write(data) //nolint:errcheck // the client went away
}

func (s *server) lock(w http.ResponseWriter, r *http.Request, body []byte) {
	again := r.Header.Get("Request") == s.request
	if s.holder != nil && !again && s.flaw != twoHolders {
		w.WriteHeader(http.StatusLocked)
		s.answer(w, s.holder)
		return
	}
	if !again {
		s.holder, s.request, s.token, s.writes = &state.Holder{}, r.Header.Get("Request"), s.token+1, 0
		if err := json.Unmarshal(body, s.holder); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	s.answer(w, s.token)
}

// write does one write, if it follows the last one of the present lease.
func (s *server) write(w http.ResponseWriter, r *http.Request, body []byte) {
	now := etag(s.token, s.writes)
	follows := r.Header.Get("If-Match") == now && s.holder != nil
	if !follows && s.flaw != noFencing && (s.flaw != noOrder || s.holder == nil) {
		w.Header().Set("ETag", now)
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	if !s.do(r, body) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.writes++
}

// do changes a document, and reports whether that was possible.
func (s *server) do(r *http.Request, body []byte) bool {
	path := r.URL.Path
	switch r.Method {
	case http.MethodPut:
		s.documents[path] = body
	case http.MethodPost:
		if size := r.Header.Get("Size"); size != strconv.Itoa(len(s.documents[path])) || size == "0" && s.documents[path] != nil {
			if s.flaw != noOrder {
				return false
			}
		}
		if s.flaw != forgets {
			s.documents[path] = append(slices.Clip(s.documents[path]), body...)
		}
	case "MOVE":
		data, ok := s.documents[path]
		if !ok {
			return false
		}
		s.documents[r.Header.Get("Destination")] = data
		if s.flaw != keepsRenamed {
			delete(s.documents, path)
		}
	case http.MethodDelete:
		if path == "/lease" {
			s.holder = nil
		}
		delete(s.documents, path)
	}
	return true
}

// network carries requests to the server, not always once.
type network struct {
	mu   sync.Mutex
	luck *rand.Rand
	late []func() // deliver a request a second time
}

var errNetwork = errors.New("the network is down")

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	luck, late := n.luck.IntN(8), n.late
	n.late = nil
	n.mu.Unlock()
	if luck == 0 {
		return nil, errNetwork
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	for _, deliver := range late {
		deliver()
	}
	if err != nil {
		return nil, err
	}
	switch luck {
	case 1:
		return nil, errors.Join(errNetwork, answer.Body.Close())
	case 2:
		n.mu.Lock()
		defer n.mu.Unlock()
		n.late = append(n.late, func() {
			again := r.Clone(context.Background())
			if r.GetBody != nil {
				again.Body, _ = r.GetBody() //nolint:errcheck // a buffer
			}
			if answer, err := http.DefaultTransport.RoundTrip(again); err == nil {
				_ = answer.Body.Close() //nolint:errcheck // nobody reads it
			}
		})
	}
	return answer, nil
}

// remote is a state.Backend on that server.
type remote struct {
	url    string
	client *http.Client
}

func (b remote) Where() string           { return b.url }
func (b remote) Path(name string) string { return b.url + "/documents/" + url.PathEscape(name) }

// send sends a request until it is answered.
func (b remote) send(ctx context.Context, method, url string, body []byte, header map[string]string) (int, []byte, string, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return 0, nil, "", err
		}
		for name, value := range header {
			r.Header.Set(name, value)
		}
		answer, err := b.client.Do(r)
		if errors.Is(err, errNetwork) {
			continue
		}
		if err != nil {
			return 0, nil, "", err
		}
		data, err := io.ReadAll(answer.Body)
		return answer.StatusCode, data, answer.Header.Get("ETag"), errors.Join(err, answer.Body.Close())
	}
}

// read decodes the answer to a GET.
func (b remote) read(ctx context.Context, path string, v any) error {
	_, data, _, err := b.send(ctx, http.MethodGet, b.url+path, nil, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func (b remote) List(ctx context.Context) (names []string, err error) {
	err = b.read(ctx, "/documents", &names)
	for i := range names {
		names[i] = names[i][len("/documents/"):]
	}
	return names, err
}

func (b remote) Get(ctx context.Context, name string) ([]byte, error) {
	status, data, _, err := b.send(ctx, http.MethodGet, b.Path(name), nil, nil)
	if err == nil && status == http.StatusNotFound {
		err = fmt.Errorf("%s: %w", b.Path(name), fs.ErrNotExist)
	}
	return data, err
}

func (b remote) Holder(ctx context.Context) (h *state.Holder, err error) {
	err = b.read(ctx, "/lease", &h)
	return h, err
}

func (b remote) Lock(ctx context.Context, o state.Owner) (state.Lease, error) {
	deadline, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	me, err := json.Marshal(state.Holder{PID: 1, Host: "here", Command: o.Command, Since: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	request := strconv.FormatUint(rand.Uint64(), 16) //nolint:gosec // it need not be secret
	for {
		status, data, _, err := b.send(ctx, http.MethodPost, b.url+"/lease", me, map[string]string{"Request": request})
		if err != nil {
			return nil, err
		}
		if status == http.StatusOK {
			l := &remoteLease{remote: b}
			return l, json.Unmarshal(data, &l.token)
		}
		if !clock.Pause(deadline, time.Millisecond) {
			locked := &state.LockedError{Where: b.url}
			return nil, errors.Join(json.Unmarshal(data, &locked.Holder), locked)
		}
	}
}

// remoteLease is a lease of that server: its token, and the number of its writes so far.
type remoteLease struct {
	remote

	token, writes int
}

// write sends one write. The server refuses it if the state is not the one after the lease's last
// write. If it is the one after this write already, the reply to an earlier try was lost.
func (l *remoteLease) write(method, url string, body []byte, header map[string]string) error {
	if header == nil {
		header = map[string]string{}
	}
	header["If-Match"] = etag(l.token, l.writes)
	status, _, now, err := l.send(context.Background(), method, url, body, header)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", state.ErrUncertain, err)
	case status == http.StatusConflict:
		return fmt.Errorf("%s %s: the server refuses it", method, url)
	case status == http.StatusPreconditionFailed && now != etag(l.token, l.writes+1):
		lost := &state.LostLockError{Cause: l.url + " has given the lease to another process"}
		if h, err := l.Holder(context.Background()); err == nil && h != nil {
			lost.Holder = *h
		}
		return lost
	}
	l.writes++
	return nil
}

func (l *remoteLease) Put(name string, data []byte) error {
	return l.write(http.MethodPut, l.Path(name), data, nil)
}

func (l *remoteLease) Append(name string, size int64, text []byte) error {
	return l.write(http.MethodPost, l.Path(name), text, map[string]string{"Size": strconv.FormatInt(size, 10)})
}

func (l *remoteLease) Rename(from, to string) error {
	return l.write("MOVE", l.Path(from), nil, map[string]string{"Destination": "/documents/" + to})
}

func (l *remoteLease) Remove(name string) error {
	return l.write(http.MethodDelete, l.Path(name), nil, nil)
}

func (l *remoteLease) Release() error { return l.write(http.MethodDelete, l.url+"/lease", nil, nil) }
