package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"vmctl/internal/process"
	"vmctl/providers"
)

// OnHost returns the guest whose inside is this host, as a user with that home (absolute) and that
// environment (NAME=value, all of it) sees it.
func OnHost(home string, env []string) *Local { return &Local{home: home, env: env} }

// InFolder returns a guest whose inside is a folder of this host, which is the home of its user:
// its commands run there, and Dial reaches only the sockets under it and the loopback. env is the
// environment of the commands, without HOME.
func InFolder(folder string, env []string) *Local {
	return &Local{home: folder, env: append(env[:len(env):len(env)], "HOME="+folder), confined: true}
}

// Local is a guest that runs commands as processes of this host, each in a process group of its
// own.
type Local struct {
	visitors visitors
	home     string
	env      []string
	confined bool
}

var (
	_ providers.Guest      = (*Local)(nil)
	_ providers.LocalGuest = (*Local)(nil)
)

// Close implements providers.Guest.
func (g *Local) Close() error {
	g.End(errClosed)
	return nil
}

// End ends the guest like Close, for another reason: its VM has ended.
func (g *Local) End(why error) { g.visitors.end(why) }

// Run implements providers.Guest.
func (g *Local) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if err := c.Valid(); err != nil {
		return providers.Output{}, err
	}
	ctx, leave, err := g.visitors.enter(ctx)
	if err != nil {
		return providers.Output{}, notBegun(c, err)
	}
	defer leave()
	if ctx.Err() != nil {
		return providers.Output{}, notBegun(c, context.Cause(ctx))
	}
	command := process.Command{Args: c.Args[1:]}
	command.Dir, command.Env = g.Locally(c)
	command.Path, err = process.LookPath(c.Args[0], command.Dir, command.Env)
	if err != nil {
		if dir := checkDir(command.Dir); dir != nil {
			return providers.Output{}, notBegun(c, dir)
		}
		return unrunnable(c, err)
	}
	return run(ctx, c, command)
}

// Locally implements providers.LocalGuest.
func (g *Local) Locally(c providers.Command) (dir string, env []string) {
	return g.within(c.Dir), append(g.env[:len(g.env):len(g.env)], c.Env...)
}

// within returns the absolute path of what the user inside calls path.
func (g *Local) within(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(g.home, path)
}

func checkDir(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", path)
	}
	return err
}

// The statuses of commands whose program cannot be run, as in a shell.
const (
	statusNoAccess = 126
	statusMissing  = 127
)

// unrunnable returns the output of a command whose program cannot be run.
func unrunnable(c providers.Command, why error) (providers.Output, error) {
	o := providers.Output{Status: statusNoAccess, Stderr: why.Error() + "\n"}
	if errors.Is(why, fs.ErrNotExist) {
		o.Status = statusMissing
	}
	if c.Stderr == nil {
		return o, nil
	}
	if _, err := io.WriteString(c.Stderr, o.Stderr); err != nil {
		return providers.Output{}, fmt.Errorf("run %q: its output cannot be written: %w", c.Args[0], err)
	}
	return o, nil
}

// run runs a process, and copies its streams.
func run(ctx context.Context, c providers.Command, command process.Command) (providers.Output, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	st := newStreams(c, fail)
	child, p, err := start(c, command)
	if err != nil {
		return providers.Output{}, notBegun(c, err)
	}
	if p.stdin != nil {
		go st.copyIn(p.stdin) // a Read of the input may never return
	}
	var outputs sync.WaitGroup
	outputs.Go(func() { st.copyOut(st.stderr, p.stderr) })
	if p.stdout != nil {
		outputs.Go(func() { st.copyOut(st.stdout, p.stdout) })
	}
	ended := make(chan struct{})
	go func() { outputs.Wait(); close(ended) }()
	select {
	case <-ended:
		err = child.Wait(ctx)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	status, known := process.Status(err)
	if known && ctx.Err() == nil {
		p.close()
		return st.output(status), nil
	}
	err = errors.Join(context.Cause(ctx), child.Force())
	p.close() // a process that left the group may hold an output
	<-ended
	_ = child.Wait(context.WithoutCancel(ctx)) //nolint:errcheck // it was forced: how it ended says nothing
	return providers.Output{}, st.lost(err)
}

// pipes holds this process's ends of the pipes of a command; nil: there is none.
type pipes struct{ stdin, stdout, stderr *os.File }

// start starts a process with a pipe for each of its streams that is used.
func start(c providers.Command, command process.Command) (child *process.Child, p pipes, err error) {
	var theirs pipes
	defer func() {
		theirs.close() // the child has its own
		if err != nil {
			p.close()
		}
	}()
	if c.Stdin != nil {
		if theirs.stdin, p.stdin, err = os.Pipe(); err != nil {
			return nil, p, err
		}
	}
	if c.Stdout != nil {
		if p.stdout, theirs.stdout, err = os.Pipe(); err != nil {
			return nil, p, err
		}
	}
	if p.stderr, theirs.stderr, err = os.Pipe(); err != nil {
		return nil, p, err
	}
	command.Stdin, command.Stdout, command.Stderr = theirs.stdin, theirs.stdout, theirs.stderr
	child, err = process.Host{}.Start(command)
	return child, p, err
}

func (p pipes) close() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close() //nolint:errcheck // it may be closed
		}
	}
}

// Dial implements providers.Guest.
func (g *Local) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := g.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

func (g *Local) dial(ctx context.Context, network, address string) (net.Conn, error) {
	lasting, leave, err := g.visitors.enter(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	conn, err := g.connect(ctx, network, address)
	if err != nil {
		leave()
		return nil, err
	}
	l := &localConn{Conn: conn, leave: sync.OnceFunc(leave)}
	context.AfterFunc(lasting, func() { _ = l.Close() }) //nolint:errcheck // the guest has ended
	return l, nil
}

func (g *Local) connect(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	switch network {
	case "unix":
		address = g.within(address)
		if g.confined && !isUnder(g.home, address) {
			return nil, fmt.Errorf("it is not under the guest's folder %s", g.home)
		}
	case "tcp":
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if ip := net.ParseIP(host); g.confined && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, errors.New("the guest has no network but its loopback")
		}
	default:
		return nil, net.UnknownNetworkError(network)
	}
	return d.DialContext(ctx, network, address)
}

// isUnder reports whether path, without its symbolic links, is in the folder.
func isUnder(folder, path string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false
	}
	under, err := filepath.Rel(folder, dir)
	return err == nil && filepath.IsLocal(under)
}

// localConn is a connection that ends with its guest.
type localConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *localConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite ends what is sent to the server.
func (c *localConn) CloseWrite() error { return closeWrite(c.Conn) }
