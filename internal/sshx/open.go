package sshx

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"vmctl/internal/clock"
)

// open connects, and returns a connection over which the server has spoken.
//
// A port forwarder accepts a connection long before a server listens behind it. QEMU's repeats the
// connection to the guest after 6, 12, and 24 seconds: a server that begins to listen in between
// answers a new connection at once, and the old one late. So new ones are opened, one at a time and
// t.eager apart, beside the one that waits for a slow server, if that is set.
func (t Target) open(ctx context.Context) (net.Conn, error) {
	banner, _ := t.limits()
	ctx, cancel := context.WithCancelCause(ctx)
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 2)
	var open sync.WaitGroup
	defer func() {
		cancel(context.Canceled)
		open.Wait()
		close(results)
		for late := range results {
			if late.err == nil {
				closeQuietly(late.conn)
			}
		}
	}()
	open.Go(func() {
		conn, err := t.greeted(ctx, banner)
		results <- result{conn, err}
	})
	if t.eager != nil {
		open.Go(func() {
			for {
				began, every := time.Now(), t.eager()
				conn, err := t.greeted(ctx, every)
				if err == nil {
					results <- result{conn, nil}
					return
				}
				if !clock.Pause(ctx, every-time.Since(began)) {
					return
				}
			}
		})
	}
	first := <-results
	return first.conn, first.err
}

// errSilent reports that a connection was accepted, and no server has spoken over it.
var errSilent = errors.New("port open, no SSH banner yet")

// greeted connects, and waits for the server's first words.
func (t Target) greeted(ctx context.Context, limit time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(limit)
	conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", t.hostPort())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { closeQuietly(conn) })
	read := bufio.NewReader(conn)
	err = conn.SetReadDeadline(deadline)
	if err == nil {
		_, err = read.Peek(1)
	}
	if stop() && err == nil {
		return &greetedConn{Conn: conn, read: read}, nil
	}
	closeQuietly(conn)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errSilent
}

// greetedConn is a connection whose first bytes were read already.
type greetedConn struct {
	net.Conn
	read *bufio.Reader
}

// Read returns the server's words from the first one on.
func (c *greetedConn) Read(b []byte) (int, error) { return c.read.Read(b) }
