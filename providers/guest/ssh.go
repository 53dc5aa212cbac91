package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/providers"
)

// OverSSH returns the guest behind an SSH server. It connects when it is first used.
func OverSSH(t sshx.Target, k Keepalive) providers.Guest {
	return &sshGuest{pool: pool{target: t, alive: k.or(5*time.Second, 15*time.Second)}}
}

// Enter implements providers.Host for a provider whose VMs accept SSH logins.
func Enter(r providers.Reacher, o providers.Object, values cty.Value) (providers.Guest, error) {
	l, err := r.Reach(o, values)
	if err != nil {
		return nil, err
	}
	return OverSSH(Target(l), Keepalive{}), nil
}

// Target returns the server that a login leads to.
func Target(l providers.Login) sshx.Target {
	return sshx.Target{
		Address: l.Address, Port: l.Port, User: l.User, IdentityFile: l.IdentityFile,
		Alias: l.Alias, KnownHosts: l.KnownHosts, HostKey: l.HostKey, HostKeyFrom: l.HostKeyFrom, AcceptNew: l.AcceptNew,
	}
}

// sshGuest is the inside of a VM with an SSH server.
type sshGuest struct {
	visitors visitors
	pool     pool

	mu       sync.Mutex
	home     string          // of the user; "": not known yet
	relaying map[string]bool // the networks whose sockets the server does not forward
}

var _ providers.Guest = (*sshGuest)(nil)

// Close implements providers.Guest.
func (g *sshGuest) Close() error {
	g.visitors.end(errClosed)
	g.pool.close()
	return nil
}

// Run implements providers.Guest.
func (g *sshGuest) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if err := c.Valid(); err != nil {
		return providers.Output{}, err
	}
	ctx, leave, err := g.visitors.enter(ctx)
	if err != nil {
		return providers.Output{}, notBegun(c, err)
	}
	defer leave()
	s, err := g.pool.start(ctx)
	if err != nil {
		return providers.Output{}, notBegun(c, err)
	}
	return s.run(ctx, c)
}

// notBegun returns the error of a command that did not begin.
func notBegun(c providers.Command, why error) error {
	return fmt.Errorf("run %q: it did not begin: %w", c.Args[0], why)
}

// session is one session on a connection, in which a shell waits for a script.
type session struct {
	*ssh.Session
	pool           *pool
	line           *line
	stdin          io.WriteCloser
	stdout, stderr io.Reader
}

// The errors of a session in which nothing runs.
var (
	errRefused = errors.New("the server refuses to run a command")
	errGone    = errors.New("the server ends each session before it runs a command")
)

// closedLimit is the number of sessions in a row that a server may close before they begin.
// Dropbear 2022.83 does that to the newest one whenever the command of another one ends.
const closedLimit = 50

// start begins a session. Until it gets a script, nothing is run in it: if its connection is lost,
// another one is tried, once.
func (p *pool) start(ctx context.Context) (*session, error) {
	for lost, closed := 0, 0; ; {
		raw, l, err := p.session(ctx)
		if err != nil {
			return nil, err
		}
		s, err := within(ctx, l, func() (*session, error) { return p.begin(raw, l) }, (*session).abandon)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errGone):
			closed++
		case errors.Is(err, errLost):
			lost++
		default:
			return nil, err
		}
		if lost > 1 || closed > closedLimit {
			return nil, err
		}
	}
}

func (p *pool) begin(raw *ssh.Session, l *line) (*session, error) {
	s := &session{Session: raw, pool: p, line: l}
	err := s.load()
	if err == nil {
		return s, nil
	}
	switch alive := p.ask(l); {
	case !alive:
		err = p.loss(l)
	case errors.Is(err, io.EOF):
		err = errGone
	default:
		err = errRefused
	}
	s.abandon()
	return nil, err
}

// load makes the session's shell wait for a script.
func (s *session) load() (err error) {
	if s.stdin, err = s.StdinPipe(); err != nil {
		return err
	}
	if s.stdout, err = s.StdoutPipe(); err != nil {
		return err
	}
	if s.stderr, err = s.StderrPipe(); err != nil {
		return err
	}
	return s.Start(loader)
}

// abandon closes a session in which nothing runs.
func (s *session) abandon() {
	_ = s.Close() //nolint:errcheck // it may be closed
	s.release()
}

func (s *session) release() {
	s.pool.release(s.line, func() { s.line.sessions--; s.line.open-- })
}

// run runs the command of a session that has begun.
func (s *session) run(ctx context.Context, c providers.Command) (providers.Output, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	st := newStreams(c, fail)
	mark := newMark()
	out := &unmarked{mark: mark, next: st.stdout}
	var outputs sync.WaitGroup
	outputs.Go(func() { st.copyOut(out, s.stdout) })
	outputs.Go(func() { st.copyOut(st.stderr, s.stderr) })
	go func() { // a Read of the input may never return
		_, err := io.WriteString(s.stdin, script(c, mark))
		if err == nil {
			st.copyIn(s.stdin)
		}
	}()
	type end struct {
		status int
		err    error
	}
	ended := make(chan end, 1)
	s.pool.running.Go(func() {
		defer s.release()
		outputs.Wait()
		status, err := sshx.ExitStatus(s.Wait())
		// The end of a connection looks like the end of the outputs.
		if !s.pool.ask(s.line) {
			err = s.pool.loss(s.line)
		}
		ended <- end{status, err}
	})
	select {
	case e := <-ended:
		if e.err == nil {
			e.err = context.Cause(ctx) // an output that could not be written
		}
		switch {
		case e.err != nil:
			return providers.Output{}, st.lost(e.err)
		case !out.seen:
			return providers.Output{}, notBegun(c, explain(e.status, st.output(0).Stderr, string(out.noise)))
		}
		return st.output(e.status), nil
	case <-ctx.Done():
		s.force()
		return providers.Output{}, st.lost(context.Cause(ctx))
	}
}

// force makes the server end the command, as far as it can. It does not wait.
func (s *session) force() {
	s.pool.leaving.Go(func() {
		_ = s.Signal(ssh.SIGKILL) //nolint:errcheck // the connection may be lost
		_ = s.Close()             //nolint:errcheck // see above
	})
}

// explain says why a shell did not come to the command.
func explain(status int, said ...string) error {
	const most = 200
	for _, text := range said {
		if text = strings.TrimSpace(text); text != "" {
			lines := strings.Split(text, "\n")
			last := lines[len(lines)-1]
			return fmt.Errorf("the login shell ended with status %d and said: %s", status, last[:min(len(last), most)])
		}
	}
	return fmt.Errorf("the login shell ended with status %d", status)
}

// Dial implements providers.Guest.
func (g *sshGuest) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, leave, err := g.visitors.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	defer leave()
	conn, err := g.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

func (g *sshGuest) dial(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp":
	case "unix":
		if !path.IsAbs(address) {
			home, err := g.homeOf(ctx)
			if err != nil {
				return nil, err
			}
			address = path.Join(home, address)
		}
	default:
		return nil, net.UnknownNetworkError(network)
	}
	for lost := 0; ; lost++ {
		if g.relays(network) {
			return g.relay(ctx, network, address)
		}
		l, err := g.pool.reserve(ctx, func(l *line) bool { l.conns++; return true })
		if err != nil {
			return nil, err
		}
		release := sync.OnceFunc(func() { g.pool.release(l, func() { l.conns-- }) })
		conn, err := within(ctx, l, func() (net.Conn, error) { return l.client.Dial(network, address) }, func(c net.Conn) { _ = c.Close() }) //nolint:errcheck // nobody uses it
		if err == nil {
			return &lineConn{Conn: conn, release: release}, nil
		}
		release()
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &refused) && (network == "unix" || refused.Reason != ssh.ConnectionFailed):
			return g.relayInstead(ctx, network, address, refused)
		case refused != nil, g.pool.ask(l):
			return nil, err
		case lost > 0:
			return nil, g.pool.loss(l)
		}
		g.pool.drop(l)
	}
}

// relayInstead connects by a relay to a socket that the server does not connect to. Servers differ in what they say when they
// forward none: Dropbear knows no channels of unix sockets, OpenSSH prohibits tcp, and of a unix socket it says that the
// connection failed, as if there were none.
func (g *sshGuest) relayInstead(ctx context.Context, network, address string, refused *ssh.OpenChannelError) (net.Conn, error) {
	conn, err := g.relay(ctx, network, address)
	switch {
	case err == nil:
		g.learn(network)
		return conn, nil
	case errors.Is(err, errNoRelay) && refused.Reason == ssh.ConnectionFailed:
		return nil, refused
	default:
		return nil, err
	}
}

// relays reports whether the server is known to forward no sockets of a network. learn notes that.
func (g *sshGuest) relays(network string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.relaying[network]
}

func (g *sshGuest) learn(network string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.relaying == nil {
		g.relaying = map[string]bool{}
	}
	g.relaying[network] = true
}

// homeOf returns the home of the user inside.
func (g *sshGuest) homeOf(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.home != "" {
		return g.home, nil
	}
	var out strings.Builder
	o, err := g.Run(ctx, providers.Command{Args: []string{"pwd"}, Stdout: &out})
	if err != nil {
		return "", err
	}
	if home := strings.TrimSuffix(out.String(), "\n"); o.Status == 0 && path.IsAbs(home) {
		g.home = home
		return home, nil
	}
	return "", fmt.Errorf("the home of the user inside is not known: %q", out.String())
}

// lineConn is a connection through an SSH connection.
type lineConn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *lineConn) Close() error {
	defer c.release()
	if err := c.Conn.Close(); err != nil && !errors.Is(err, io.EOF) { // EOF: the server has closed it
		return err
	}
	return nil
}

// CloseWrite ends what is sent to the server.
func (c *lineConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends what is sent over a connection.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
