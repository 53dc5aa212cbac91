package relay_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"vmctl/internal/relay"
)

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l, path
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) //nolint:errcheck // it may be closed
	return c
}

// A client that has said all it has to say still gets the whole answer, and an end of the relay ends what is connected.
func TestServe(t *testing.T) {
	far, there := listen(t)
	near, here := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() {
		relay.Serve(ctx, near, func(context.Context) (net.Conn, error) { return net.Dial("unix", there) })
	})
	client := dial(t, here)
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	server, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "question" || err != nil {
		t.Errorf("the other end read %q, %v", got, err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Errorf("the answer after the end of the question: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Errorf("the client read %q, %v", got, err)
	}

	open := dial(t, here)
	if server, err = far.Accept(); err != nil {
		t.Fatal(err)
	}
	stop()
	all.Wait()
	for _, c := range []net.Conn{open, server} {
		if got, err := io.ReadAll(c); len(got) > 0 {
			t.Errorf("after the end of the relay, %q was read, %v", got, err)
		}
	}
	if _, err := net.Dial("unix", here); err == nil {
		t.Error("after the end of the relay, its socket takes connections")
	}
}

// A connection whose other end cannot be made is closed, and the next one is served.
func TestNobodyThere(t *testing.T) {
	far, there := listen(t)
	near, here := listen(t)
	var refuses atomic.Bool
	refuses.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		relay.Serve(ctx, near, func(context.Context) (net.Conn, error) {
			if refuses.Load() {
				return nil, errors.New("nobody is there")
			}
			return net.Dial("unix", there)
		})
	})
	defer all.Wait()
	defer stop()
	if got, err := io.ReadAll(dial(t, here)); len(got) > 0 || err != nil {
		t.Errorf("it read %q, %v", got, err)
	}
	refuses.Store(false)
	_ = dial(t, here)
	c, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() //nolint:errcheck // nothing was sent
}
