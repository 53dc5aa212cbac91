package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"vmctl/providers"
)

func guestDial(t *testing.T, s GuestScene) {
	networks := []string{"tcp", "unix"}
	if s.TCPOnly {
		networks = networks[:1]
	}
	for _, network := range networks {
		address := s.Listen(t, network)
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				if err := echoes(t.Context(), s.Guest, network, address, fmt.Sprintf("%d%s", i, strings.Repeat("x", 100_000))); err != nil {
					t.Errorf("%s %s: %v", network, address, err)
				}
			})
		}
		wait.Wait()
	}
	for network, address := range map[string]string{"tcp": "127.0.0.1:1", "unix": "no.sock", "udp": "127.0.0.1:1"} {
		if c, err := s.Guest.Dial(t.Context(), network, address); err == nil || !strings.HasPrefix(err.Error(), "connect to "+address+": ") {
			t.Errorf("%s %s: %v, %v", network, address, c, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := s.Guest.Dial(ctx, "tcp", "127.0.0.1:1"); err == nil {
		t.Errorf("with an ended context: %v", c)
	}
}

// echoes sends a text to an echo server inside, and reads it back.
func echoes(ctx context.Context, g providers.Guest, network, address, text string) (err error) {
	dialing, cancel := context.WithCancel(ctx)
	conn, err := g.Dial(dialing, network, address)
	cancel() // which limits dialing only
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("a %T has no CloseWrite", conn)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, text)
		sent <- errors.Join(err, half.CloseWrite())
	}()
	back, err := io.ReadAll(conn)
	if err = errors.Join(err, <-sent); err != nil || string(back) != text {
		return fmt.Errorf("of %d bytes came back %d: %w", len(text), len(back), err)
	}
	return nil
}

func guestClose(t *testing.T, s GuestScene) {
	r := s.begin(t.Context(), t)
	conn, err := s.Guest.Dial(t.Context(), "tcp", s.Listen(t, "tcp"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Guest.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := r.wait(); got != "unknown" || !errors.Is(err, net.ErrClosed) {
		t.Errorf("the command that ran: %s, %v", got, err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	o, err := s.Guest.Run(t.Context(), sh("true"))
	if got := ended(o, err); got != "did not begin" || !errors.Is(err, net.ErrClosed) {
		t.Errorf("a command after it: %s, %v", got, err)
	}
	if _, err := s.Guest.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection after it: %v", err)
	}
}

func guestLost(t *testing.T, s GuestScene) {
	if s.Lose == nil {
		t.Skip("this guest cannot be lost")
	}
	r := s.begin(t.Context(), t)
	s.Lose(t)
	if got, err := r.wait(); got != "unknown" {
		t.Errorf("the command that ran: %s, %v", got, err)
	}
	if !s.Returns {
		o, err := s.Guest.Run(t.Context(), sh("true"))
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("a command after it: %s, %v", got, err)
		}
		return
	}
	// The next command is served again, and the last one was not repeated.
	if got := s.output(t.Context(), t, sh("cat begun")); got != "begun\n" {
		t.Errorf("it began more than once: %q", got)
	}
}

// Echo starts a server that sends back what it gets, on this host until the test ends, and returns
// its address. For a unix socket, address is its path; for "tcp" it is not used.
func Echo(t *testing.T, network, address string) string {
	t.Helper()
	if network == "tcp" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c) //nolint:errcheck // the client sees what is missing
				_ = c.Close()        //nolint:errcheck // see above
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return l.Addr().String()
}
