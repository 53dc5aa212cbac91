// Package relay connects each connection to a socket with a connection of its own to somewhere else.
package relay

import (
	"context"
	"io"
	"net"
	"sync"
)

// Dial makes the other end of a connection.
type Dial func(context.Context) (net.Conn, error)

// Serve relays every connection to a socket until ctx ends or the socket is closed. It closes the socket, and returns once all
// connections have ended. A connection whose other end cannot be made is closed.
func Serve(ctx context.Context, socket net.Listener, dial Dial) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() //nolint:errcheck // it may be closed
	for {
		here, err := socket.Accept()
		if err != nil {
			_ = socket.Close() //nolint:errcheck // it may be closed
			return
		}
		all.Go(func() { one(ctx, here, dial) })
	}
}

// one relays one connection. Each direction ends on its own: a client that has said all it has to say still gets the answer.
func one(ctx context.Context, here net.Conn, dial Dial) {
	defer here.Close() //nolint:errcheck // it may be closed
	there, err := dial(ctx)
	if err != nil {
		return
	}
	defer there.Close() //nolint:errcheck // see above
	defer context.AfterFunc(ctx, func() {
		_ = here.Close()  //nolint:errcheck // see above
		_ = there.Close() //nolint:errcheck // see above
	})()
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{there, here}, {here, there}} {
		ways.Go(func() {
			_, err := io.Copy(way[0], way[1])
			half, can := way[0].(interface{ CloseWrite() error })
			if err != nil || !can || half.CloseWrite() != nil {
				_ = way[0].Close() //nolint:errcheck // see above
			}
		})
	}
	ways.Wait()
}
