package guest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
)

// Keepalive says how a lost connection is noticed.
type Keepalive struct {
	// Every is the time between an answer of the server and the next question; 0: 5 seconds.
	Every time.Duration
	// Patience is the time that the server has for an answer; 0: 15 seconds.
	Patience time.Duration
}

func (k Keepalive) or(every, patience time.Duration) Keepalive {
	if k.Every <= 0 {
		k.Every = every
	}
	if k.Patience <= 0 {
		k.Patience = patience
	}
	return k
}

// most is the most sessions of one connection: as many as OpenSSH allows (MaxSessions). Dropbear 2022.83 allows
// more, and with two dozen now and then ends the connection with all of them (a failed assertion about a closed channel).
const most = 10

// pool keeps the connections of one guest: one, as long as the server serves all sessions on it.
// A server that limits the sessions of a connection gets a further connection for those beyond,
// until they end. Waiting for a session to end instead could take
// for ever, as sessions may serve for hours.
type pool struct {
	target sshx.Target
	alive  Keepalive

	mu      sync.Mutex
	lines   []*line // connected, as far as is known
	dialing *attempt
	limit   int // of the sessions of a connection, below most; 0: none is known
	closed  bool

	running sync.WaitGroup // goroutines of connections and sessions
	leaving sync.WaitGroup // goroutines that end commands
}

// line is one connection.
type line struct {
	client   *ssh.Client
	ended    chan struct{} // closed when it has ended
	sessions int           // begun, or about to be
	open     int           // of the sessions, those that the server has accepted
	conns    int           // connections through it
	served   bool
	silent   bool // it was closed because the server gave no answer
}

// attempt is the opening of a connection, for which several callers may wait.
type attempt struct {
	done   chan struct{}
	err    error
	cancel context.CancelFunc
}

// errLost is the reason of a command whose connection was lost.
var errLost = errors.New("the connection was lost")

// session opens a session on a connection that has room for it, and opens a connection if none
// has. If the connection is lost meanwhile, it tries another one, once: nothing has begun.
func (p *pool) session(ctx context.Context) (s *ssh.Session, l *line, err error) {
	for lost := 0; ; {
		l, err := p.reserve(ctx, func(l *line) bool {
			if l.sessions >= most || p.limit > 0 && l.sessions >= p.limit {
				return false
			}
			l.sessions++
			return true
		})
		if err != nil {
			return nil, nil, err
		}
		s, err := within(ctx, l, l.client.NewSession, func(s *ssh.Session) { _ = s.Close() }) //nolint:errcheck // nobody uses it
		var refused *ssh.OpenChannelError
		switch {
		case err == nil:
			p.accepted(l)
			return s, l, nil
		case ctx.Err() != nil:
			p.release(l, func() { l.sessions-- })
			return nil, nil, context.Cause(ctx)
		case errors.As(err, &refused):
			if p.refused(l) {
				return nil, nil, fmt.Errorf("the server opens no session: %w", err)
			}
		default:
			p.release(l, func() { l.sessions-- })
			p.drop(l)
			if lost++; lost > 1 {
				return nil, nil, errLost
			}
		}
	}
}

func (p *pool) accepted(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.open++
	l.served = true
	if p.limit > 0 {
		p.limit = max(p.limit, l.open)
	}
}

// refused learns from a session that the server refused: the connection is full. It reports
// whether the server serves nobody.
func (p *pool) refused(l *line) (final bool) {
	p.mu.Lock()
	final = l.sessions == 1 && !l.served
	if l.sessions > 1 {
		p.limit = max(l.open, 1)
	} else { // else the server has not forgotten a session that has ended
		p.lines = without(p.lines, l)
	}
	p.mu.Unlock()
	p.release(l, func() { l.sessions-- })
	return final
}

// reserve returns a connection that take accepts. take is called with the pool locked.
func (p *pool) reserve(ctx context.Context, take func(*line) bool) (*line, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errClosed
		}
		for _, l := range p.lines {
			if take(l) {
				p.mu.Unlock()
				return l, nil
			}
		}
		if p.dialing == nil {
			p.dial(ctx)
		}
		a := p.dialing
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		}
	}
}

// dial begins to open a connection, for all who wait for one: it does not end with ctx. The target
// limits its time.
func (p *pool) dial(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &attempt{done: make(chan struct{}), cancel: cancel}
	p.dialing = a
	p.running.Go(func() {
		client, err := p.target.Connect(ctx)
		p.dialed(a, client, err)
	})
}

// dialed ends an attempt, and adds its connection to the pool.
func (p *pool) dialed(a *attempt, client *ssh.Client, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(a.done)
	a.cancel()
	p.dialing = nil
	if err == nil && p.closed {
		err = errors.Join(errClosed, client.Close())
	}
	if a.err = err; err != nil {
		return
	}
	l := &line{client: client, ended: make(chan struct{})}
	p.lines = append(p.lines, l)
	p.running.Go(func() { p.watch(l) })
}

// watch asks the server for a sign of life again and again, until the connection ends.
func (p *pool) watch(l *line) {
	p.running.Go(func() {
		_ = l.client.Wait() //nolint:errcheck // however it ended
		close(l.ended)
	})
	for {
		wait := time.NewTimer(p.alive.Every)
		select {
		case <-l.ended:
			wait.Stop()
			p.drop(l)
			return
		case <-wait.C:
		}
		p.ask(l)
	}
}

// ask asks the server for a sign of life, and closes the connection if none comes.
func (p *pool) ask(l *line) (alive bool) {
	late := time.AfterFunc(p.alive.Patience, func() {
		p.mu.Lock()
		l.silent = true
		p.mu.Unlock()
		p.drop(l)
	})
	defer late.Stop()
	_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
	return err == nil
}

// loss returns the reason why a command's end was not seen, though its connection ended.
func (p *pool) loss(l *line) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.silent {
		return fmt.Errorf("%w: the guest gave no sign of life for %s", errLost, p.alive.Patience)
	}
	return errLost
}

// drop closes a connection.
func (p *pool) drop(l *line) {
	p.mu.Lock()
	p.lines = without(p.lines, l)
	p.mu.Unlock()
	_ = l.client.Close() //nolint:errcheck // it is lost, or not needed
}

// release ends a use of a connection, and closes the connection if nobody needs it: one is kept.
func (p *pool) release(l *line, end func()) {
	p.mu.Lock()
	end()
	kept := len(p.lines) > 0 && p.lines[0] == l
	idle := l.sessions == 0 && l.conns == 0
	p.mu.Unlock()
	if idle && !kept {
		p.drop(l)
	}
}

// farewell is the time that commands have to be ended when their guest is closed.
const farewell = time.Second

// close closes all connections.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.dialing != nil {
		p.dialing.cancel()
	}
	p.mu.Unlock()
	left := make(chan struct{})
	go func() { p.leaving.Wait(); close(left) }()
	late := time.NewTimer(farewell)
	defer late.Stop()
	select {
	case <-left:
	case <-late.C:
	}
	p.mu.Lock()
	lines := p.lines
	p.mu.Unlock()
	for _, l := range lines {
		p.drop(l)
	}
	p.running.Wait()
	<-left
}

func without(all []*line, l *line) []*line {
	var rest []*line
	for _, other := range all {
		if other != l {
			rest = append(rest, other)
		}
	}
	return rest
}

// within returns the result of f, which asks the server for something. If ctx or the connection ends
// first, it returns the reason, and discard gets a result that comes later. The library may wait for
// ever for a session that it opens just when the connection ends.
func within[T any](ctx context.Context, l *line, f func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	var mu sync.Mutex
	left := false
	go func() {
		v, err := f()
		mu.Lock()
		defer mu.Unlock()
		if left && err == nil {
			discard(v)
		}
		done <- result{v, err}
	}()
	why := errLost
	select {
	case r := <-done:
		return r.value, r.err
	case <-l.ended:
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case r := <-done:
		return r.value, r.err
	default:
	}
	left = true
	var none T
	return none, why
}
