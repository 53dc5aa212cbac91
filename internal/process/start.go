package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Command describes the program that Start starts.
type Command struct {
	Path string   // of the program, absolute: nothing is looked up
	Args []string // after the program's name; they name the data directory, so that Find finds an orphan
	Env  []string // all of it: nil is an empty environment
	Dir  string   // empty: this process's own
	// nil: nothing to read, and nowhere to write. The child has its own copies.
	Stdin, Stdout, Stderr *os.File
}

// Child is a process that this one has started. It is used by one goroutine.
type Child struct {
	host      Host
	cmd       *exec.Cmd
	id        Identity // without its program, which may not stand yet
	collected bool
	ended     error // how; nil for status 0
}

// Start starts a program in a session and a process group of its own: the end of this process or
// of its terminal does not end it, and Force ends it together with the processes that it starts.
// No context ends it either. On a system that cannot recognise processes, Start fails and starts
// nothing.
//
// Call Capture next, and record the Identity before anything that depends on the child. Wait
// collects the child; a child that ends without being collected counts as gone, and disappears
// with this process.
func (h Host) Start(c Command) (*Child, error) {
	if !filepath.IsAbs(c.Path) {
		return nil, fmt.Errorf("start %q: give the absolute path of the program", c.Path)
	}
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	cmd := &exec.Cmd{
		Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: append([]string{}, c.Env...), Dir: c.Dir,
		SysProcAttr: detached(),
	}
	// A nil *os.File is no nil interface.
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	child := &Child{host: h, cmd: cmd, id: here.identity(cmd.Process.Pid, processFacts{})}
	// Until it is collected a child keeps its pid and can be read.
	s, err := h.sys().Look(child.id.PID)
	if err != nil {
		err = fmt.Errorf("start %s: pid %d cannot be read: %w", c.Path, child.id.PID, err)
		return nil, errors.Join(err, child.discard())
	}
	child.id.StartTime, child.id.PGID = s.Start, s.PGID
	return child, nil
}

// PID returns the pid of the child.
func (c *Child) PID() int { return c.id.PID }

// Capture calls Host.Capture for the child.
func (c *Child) Capture(ctx context.Context) (Identity, error) {
	id, err := c.host.Capture(ctx, c.id.PID)
	if err == nil && id.StartTime != c.id.StartTime {
		return Identity{}, fmt.Errorf("identify pid %d: %w, and its pid belongs to another", c.id.PID, ErrGone)
	}
	return id, err
}

// Wait waits for the child to end and collects it. It returns nil for exit status 0, an
// *exec.ExitError for any other end, and the error of ctx if that ends first. A second call
// returns the same result once the child has ended.
func (c *Child) Wait(ctx context.Context) error {
	for gone := c.collected; !gone; {
		var err error
		if gone, _, err = c.host.watch(ctx, c.id); err == nil && !gone {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("wait for pid %d (%s) to end: %w", c.id.PID, base(c.cmd.Path), err)
		}
	}
	if !c.collected {
		c.collected, c.ended = true, c.cmd.Wait()
	}
	if c.ended != nil {
		return fmt.Errorf("pid %d (%s): %w", c.id.PID, base(c.cmd.Path), c.ended)
	}
	return nil
}

// Force ends the child at once, with all processes of its group, also if it could not be captured:
// no other process can have its pid until Wait collects it. Force does nothing to a child that has
// ended or was collected.
func (c *Child) Force() (err error) {
	if c.collected {
		return nil
	}
	held, err := c.host.sys().Open(c.id.PID)
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("force pid %d to end: %w", c.id.PID, err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := held.Force(); err != nil && !errors.Is(err, errNone) {
		return fmt.Errorf("force pid %d to end: %w", c.id.PID, explain(err))
	}
	return nil
}

// discard ends and collects a child that Start does not return.
func (c *Child) discard() error {
	if err := c.Force(); err != nil {
		return err
	}
	c.collected = true
	_, err := c.cmd.Process.Wait()
	return err
}
