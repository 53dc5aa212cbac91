//go:build linux

package engine_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// proxy is a socket in front of an engine, at which a test strikes in the middle of a request.
type proxy struct {
	d       *daemon
	path    string
	mu      sync.Mutex
	request string // that the test waits for; "": none
	when    moment
	strike  func()
	changes int // the number of requests that change something
}

// moment is the time of a strike.
type moment int

const (
	answered moment = iota // the engine has answered: the strike is in place of the answer
	early                  // in place of the request, which the engine never gets
	begun                  // the engine has got the beginning of the request, and the rest never comes
	first                  // before the engine gets the request, which then goes on
)

func newProxy(t *testing.T, d *daemon) *proxy {
	x := &proxy{d: d, path: filepath.Join(d.dir, "x"+filepath.Base(t.TempDir())+".s")}
	l, err := net.Listen("unix", x.path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() //nolint:errcheck // the test is over
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { x.serve(c) })
		}
	})
	return x
}

// arm waits for a request whose head has a text.
func (x *proxy) arm(request string, when moment, strike func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.request, x.when, x.strike = request, when, strike
}

// changed returns the number of requests since the last call that change something.
func (x *proxy) changed() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.changes
	x.changes = 0
	return n
}

// hit returns the strike of the request that the test waits for, once; nil: a text is another request.
func (x *proxy) hit(text []byte) (strike func(), when moment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, method := range []string{"POST ", "DELETE ", "PUT "} {
		if bytes.HasPrefix(text, []byte(method)) {
			x.changes++
		}
	}
	if x.request == "" || !bytes.Contains(text, []byte(x.request)) {
		return nil, answered
	}
	x.request = ""
	return x.strike, x.when
}

// serve carries one connection to the engine and back, until either side ends it.
func (x *proxy) serve(c net.Conn) {
	e, err := net.Dial("unix", x.d.socket())
	if err != nil { // the engine is gone
		_ = c.Close() //nolint:errcheck // the client sees it
		return
	}
	shut := func() { _, _ = c.Close(), e.Close() } //nolint:errcheck // both sides see it
	var mu sync.Mutex
	var keep func() // strikes in place of the next answer
	var back sync.WaitGroup
	back.Go(func() {
		defer shut()
		pass(c, e, func([]byte) bool {
			mu.Lock()
			defer mu.Unlock()
			if keep != nil {
				keep()
			}
			return keep == nil
		})
	})
	pass(e, c, func(text []byte) bool {
		strike, when := x.hit(text)
		switch {
		case strike == nil:
		case when == early:
			strike()
			return false
		case when == first:
			strike()
		case when == begun:
			_, _ = e.Write(text) //nolint:errcheck // its client sees it
			strike()
			return false
		default:
			mu.Lock()
			defer mu.Unlock()
			keep = strike
		}
		return true
	})
	shut()
	back.Wait()
}

// pass copies each part of a stream, until either side ends it or goesOn says no.
func pass(to io.Writer, from io.Reader, goesOn func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !goesOn(buf[:n]) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
