package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"vmctl/providers"
)

// errNoRelay is the reason why a socket in a guest cannot be reached whose SSH server forwards none.
var errNoRelay = errors.New("the guest's SSH server forwards no such sockets, and nothing in the guest can: install python3, perl or netcat-openbsd there")

// relayStatus is the exit status of relayScript in a guest without a relay.
const relayStatus = 127

// relay connects to a socket inside by a command that relays it.
func (g *sshGuest) relay(ctx context.Context, network, address string) (net.Conn, error) {
	args := []string{"sh", "-c", relayScript, "relay", network, address}
	if network == "tcp" {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		args = append(args[:5], host, port)
	}
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &relayConn{end: end, ended: make(chan struct{}), local: relayAddr{network, "here"}, remote: relayAddr{network, address}}
	var stdin *io.PipeReader
	var stdout *io.PipeWriter
	stdin, c.in = io.Pipe()
	c.out, stdout = io.Pipe()
	go func() {
		defer close(c.ended)
		out, err := g.Run(running, providers.Command{Args: args, Stdin: stdin, Stdout: stdout})
		if cause := context.Cause(running); cause != nil {
			err = cause
		} else if err == nil {
			err = relayEnd(out)
		}
		_ = stdin.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		_ = stdout.CloseWithError(err) // nil: the socket has ended
	}()
	begun := make(chan error, 1)
	go func() {
		var line [1]byte
		_, err := io.ReadFull(c.out, line[:])
		begun <- err
	}()
	select {
	case <-ctx.Done():
		end(context.Cause(ctx))
		<-begun //nolint:errcheck // the reason is known
		return nil, context.Cause(ctx)
	case err := <-begun:
		if err != nil {
			end(err)
			return nil, err
		}
		return c, nil
	}
}

// relayEnd returns the reason why a relay ended; nil: its socket did.
func relayEnd(out providers.Output) error {
	switch said := strings.TrimSpace(out.Stderr); {
	case out.Status == 0:
		return nil
	case out.Status == relayStatus && said == "":
		return errNoRelay
	case said == "":
		return fmt.Errorf("its relay in the guest ended with status %d", out.Status)
	default:
		return errors.New(said)
	}
}

// relayConn is a connection by way of a relay in a guest.
type relayConn struct {
	in            *io.PipeWriter
	out           *io.PipeReader
	end           context.CancelCauseFunc
	ended         chan struct{} // closed when the relay has ended
	once          sync.Once
	local, remote relayAddr
}

// Read implements net.Conn.
func (c *relayConn) Read(b []byte) (int, error) { return c.out.Read(b) }

// Write implements net.Conn.
func (c *relayConn) Write(b []byte) (int, error) { return c.in.Write(b) }

// CloseWrite ends what is sent to the socket.
func (c *relayConn) CloseWrite() error { return c.in.Close() }

// Close ends what is sent to the socket, and lets the relay deliver that for a short time. It does not wait for it.
func (c *relayConn) Close() error {
	c.once.Do(func() {
		_ = c.in.Close() //nolint:errcheck // a PipeWriter returns none
		late := time.AfterFunc(farewell, func() { c.end(net.ErrClosed) })
		go func() {
			_, _ = io.Copy(io.Discard, c.out) //nolint:errcheck // nobody reads it
			<-c.ended
			late.Stop()
			c.end(net.ErrClosed)
		}()
	})
	return nil
}

// LocalAddr implements net.Conn.
func (c *relayConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *relayConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn. As of connections that the server forwards, none is supported.
func (c *relayConn) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// SetReadDeadline implements net.Conn.
func (c *relayConn) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline implements net.Conn.
func (c *relayConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// relayAddr is an end of a connection by way of a relay.
type relayAddr struct{ network, address string }

// Network implements net.Addr.
func (a relayAddr) Network() string { return a.network }

// String implements net.Addr.
func (a relayAddr) String() string { return a.address }
