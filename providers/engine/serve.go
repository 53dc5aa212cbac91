package engine

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/internal/procenv"
	"vmctl/internal/process"
	"vmctl/internal/scratch"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Serving is the line that the process which serves an engine says once it does. Any other line is the reason why it does not.
const Serving = "serving"

// The time limits of the process that serves an engine.
const (
	serveWait  = time.Minute      // until it has reached the VM
	serveGrace = 5 * time.Second  // for it to end by itself
	serveForce = 10 * time.Second // for it to end by force
	serveLimit = 2 * time.Minute  // of a step about it, beside the wait for the engine
)

// longestSocket is the length of the longest path of a socket that every system takes.
const longestSocket = 103

// serving describes the process that serves an engine of a VM on this host. It is kept from before the process is started until it
// has ended; a process that ends by itself, since its VM is lost, removes it.
type serving struct {
	Socket  string           `json:"socket"`            // of the engine, in the VM
	Process process.Identity `json:"process,omitempty"` // of pid 0: it was not started
}

func (p *Engines) inVM() bool { return p.settings.Via.Address != spec.ThisHost }

// wantsServing reports whether a block wants its engine to be served on this host.
func (p *Engines) wantsServing(want, policy cty.Value) bool {
	return p.inVM() && want != cty.NilVal && !isContainerd(want) && (ctyread.True(policy, "serve") || contextName(want) != "")
}

// shortOf returns a short text that only these texts have.
func shortOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// servedAt returns the path of the socket of this host at which an engine of a VM is served. Where that of the data directory is too
// long, it is in a folder of this user beside other temporary files.
func (p *Engines) servedAt(id providers.ID) string {
	path := filepath.Join(p.servingFolder(), shortOf(string(id))+".sock")
	if len(path) > longestSocket {
		path = filepath.Join("/tmp", "vmctl-"+strconv.Itoa(os.Getuid()), shortOf(p.settings.Dir, string(id))+".sock")
	}
	return path
}

// servingFolder returns the folder of what is kept about the processes that serve engines. Others share the folder around it.
func (p *Engines) servingFolder() string { return filepath.Join(p.settings.Dir, "served") }

func (p *Engines) servingPath(id providers.ID) string {
	return filepath.Join(p.servingFolder(), shortOf(string(id))+".json")
}

// clientHost returns the value of DOCKER_HOST that leads to an engine from this host, if it is served.
func (p *Engines) clientHost(id providers.ID, socket string) string {
	if !p.inVM() {
		return socket
	}
	return "unix://" + p.servedAt(id)
}

// readServing returns what is kept about the process that serves an engine; nil: nothing.
func (p *Engines) readServing(id providers.ID) (*serving, error) {
	text, err := atomicfile.Read(p.servingPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s := &serving{}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read which process serves the engine: %s: %w", p.servingPath(id), err)
	}
	return s, nil
}

func (p *Engines) writeServing(id providers.ID, s serving) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := p.servingPath(id) // only the run that holds the lock writes there
	return errors.Join(atomicfile.Clean(path), atomicfile.Write(path, append(text, '\n'), 0o600))
}

// unserved returns why an engine is not served at its socket of this host; "": it is.
func (p *Engines) unserved(ctx context.Context, id providers.ID, socket string) string {
	s, err := p.readServing(id)
	switch {
	case err != nil:
		return err.Error()
	case s == nil || s.Process.PID == 0:
		return "no process serves it on this host"
	case s.Socket != socket:
		return "the process that serves it leads to " + s.Socket
	}
	if verdict, reason := (process.Host{}).Verify(s.Process); verdict != process.Match {
		return "the process that serves it on this host is " + string(verdict) + ": " + reason
	}
	if err := p.probe(ctx, p.servedAt(id)); err != nil {
		return fmt.Sprintf("the process that serves it on this host (pid %d) does not work: %v", s.Process.PID, err)
	}
	return ""
}

// addServing adds to an engine in a VM where it is served on this host, and what an apply is to do about that.
func (p *Engines) addServing(ctx context.Context, o *providers.Object, k providers.Known, socket string) {
	if !p.inVM() {
		return
	}
	why := p.unserved(ctx, k.ID, socket)
	if why == "" {
		attrs := o.Attrs.AsValueMap()
		attrs["endpoint"] = cty.StringVal(p.clientHost(k.ID, socket))
		o.Attrs = cty.ObjectVal(attrs)
	}
	kept, _ := p.readServing(k.ID) //nolint:errcheck // why tells
	switch wants := p.wantsServing(k.Want, k.Policy); {
	case wants && why != "":
		o.Due = append(o.Due, providers.Due{Op: opServe, Reason: why, Access: true})
		if kept != nil && kept.Process.PID != 0 {
			o.Findings = append(o.Findings, providers.Finding{
				Kind: providers.FindBroken, Address: k.Address, Object: k.Name, Evidence: []string{why},
				Action: "served again by the next apply", Next: providers.Vmctl("apply"),
			})
		}
	case !wants && k.Want != cty.NilVal && kept != nil:
		o.Due = append(o.Due, providers.Due{Op: opUnserve, Reason: "its block does not have it served on this host any more"})
	}
}

// isServed reports whether something is kept about a process that serves an engine.
func (p *Engines) isServed(id providers.ID) bool {
	_, err := os.Lstat(p.servingPath(id))
	return err == nil
}

// serve starts the process that serves the engine on this host, in place of an earlier one.
func (j *connecting) serve(ctx context.Context) (*guard.Outcome, error) {
	if j.p.unserved(ctx, j.Object, j.socket) == "" {
		return guard.Did(providers.AlreadyTrue, "it is served at "+j.p.clientHost(j.Object, j.socket)), nil
	}
	if err := j.p.endServing(ctx, j.Object); err != nil {
		return nil, j.unservable(err)
	}
	if err := j.p.startServing(ctx, j.Object, j.socket); err != nil {
		return nil, j.unservable(err)
	}
	return guard.Did(providers.Done, "at "+j.p.clientHost(j.Object, j.socket)), nil
}

func (j *connecting) unservable(err error) error {
	f := failure(err, "%s %s", j.Op, j.Address)
	f.Code = "engine_serve"
	return f
}

func (p *Engines) startServing(ctx context.Context, id providers.ID, socket string) error {
	if p.host.Serve == nil {
		return errors.New("this vmctl has no command that serves an engine")
	}
	path := p.servedAt(id)
	for _, folder := range []string{p.servingFolder(), filepath.Dir(path)} {
		if err := scratch.Private(folder); err != nil {
			return err
		}
	}
	if err := p.writeServing(id, serving{Socket: socket}); err != nil {
		return err
	}
	said, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close() //nolint:errcheck // it is only read
	args := append(p.host.Serve(p.settings), strings.TrimPrefix(socket, "unix://"), path, p.servingPath(id))
	child, err := process.Host{}.Start(process.Command{
		Path: args[0], Args: args[1:], Env: procenv.WithoutVariables(p.host.Environ), Dir: string(os.PathSeparator), Stdout: tell,
	})
	if err = errors.Join(err, tell.Close()); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, serveWait)
	defer cancel()
	defer context.AfterFunc(limit, func() { _ = said.SetReadDeadline(time.Unix(1, 0)) })() //nolint:errcheck // it ends the wait below
	line, err := bufio.NewReader(said).ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case line == Serving:
	case line != "":
		return errors.Join(errors.New(line), p.endServing(ctx, id))
	default:
		return errors.Join(fmt.Errorf("the process (pid %d) has not said that it serves: %w", child.PID(), err), p.endServing(ctx, id))
	}
	who, err := child.Capture(limit)
	if err != nil {
		return err
	}
	return p.writeServing(id, serving{Socket: socket, Process: who})
}

// endServing ends every process that serves an engine, and removes what is kept about it and its socket.
func (p *Engines) endServing(ctx context.Context, id providers.ID) error {
	path := p.servedAt(id)
	all, err := process.Host{}.Find(ctx, process.HasArgument(path))
	if err != nil && !errors.Is(err, fs.ErrPermission) { // those of others are none of ours
		return err
	}
	if len(all) > 0 {
		if err := process.Each(all, process.Host{}.Request); err != nil {
			return err
		}
		grace, cancel := context.WithTimeout(ctx, serveGrace)
		defer cancel()
		if (process.Host{}).Wait(grace, all...) != nil {
			if err := forceAll(ctx, all); err != nil {
				return err
			}
		}
	}
	err = os.Remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(atomicfile.Clean(p.servingPath(id)), atomicfile.Remove(p.servingPath(id))); err != nil {
		return err
	}
	for _, empty := range []string{p.servingFolder(), p.settings.Dir} {
		if os.Remove(empty) != nil { // others are in it
			break
		}
	}
	return nil
}

func forceAll(ctx context.Context, all []process.Identity) error {
	force := func(id process.Identity) error {
		_, err := process.Host{}.Force(id)
		return err
	}
	if err := process.Each(all, force); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serveForce)
	defer cancel()
	return process.Host{}.Wait(ctx, all...)
}

// unserve ends the process that serves the engine on this host.
func (j *connecting) unserve(ctx context.Context) (*guard.Outcome, error) {
	if err := j.p.endServing(ctx, j.Object); err != nil {
		return nil, j.unservable(err)
	}
	return guard.Did(providers.Done, "it is not served on this host"), nil
}

// probe asks the engine at a socket of this host for a sign of life.
func (p *Engines) probe(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := p.dialHere(ctx, path)
	if err != nil {
		return err
	}
	closed := context.AfterFunc(ctx, func() { _ = conn.Close() }) //nolint:errcheck // it ends the read
	defer func() { closed(); _ = conn.Close() }()                 //nolint:errcheck // it may be closed
	_, err = conn.Write([]byte("GET /_ping HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n"))
	if err == nil {
		_, err = bufio.NewReader(conn).ReadByte()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return errNoAnswer
	}
}

// serveStep adds a step about the process that serves an engine on this host.
func (s *steps) serveStep(op string, phase providers.Phase, id providers.ID) {
	limit := serveLimit
	if op == opServe {
		limit += readyTimeout(s.change.Policy)
	}
	s.add(op, phase, id).Timeout = limit
}

// dueSteps adds the steps of what is due.
func (s *steps) dueSteps() bool {
	for _, due := range s.change.Due {
		s.serveStep(due.Op, providers.PhaseChange, s.now)
	}
	return len(s.change.Due) > 0
}

// dialHere connects to a socket of this host.
func (p *Engines) dialHere(ctx context.Context, path string) (net.Conn, error) {
	if p.inVM() {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return nil, err
	}
	return g.Dial(ctx, "unix", path)
}
