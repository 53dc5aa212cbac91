package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// Do implements providers.Provider.
func (p *Engines) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin implements guard.Driver.
func (p *Engines) Begin(_ context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	return &connecting{Work: w, p: p, log: log}, func() error { return nil }, nil
}

// Failure implements guard.Driver.
func (p *Engines) Failure(err error, format string, args ...any) *providers.Problem {
	return failure(err, format, args...)
}

func failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "engine", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err),
	}
}

// connecting is one step on an engine.
type connecting struct {
	providers.Work

	p      *Engines
	log    providers.Log
	socket string // "": not connected
	about  about
}

// Guard implements guard.Task.
func (j *connecting) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.p.settings.Project, Thing: "engine", Look: func(now guard.Seen) string {
		return "docker --host " + j.socket + " info"
	}}
}

// Look implements guard.Task.
func (j *connecting) Look(ctx context.Context) (*guard.Seen, error) {
	switch {
	case j.Op == opConnect && j.about.ID == "", j.Op == opDisconnect && j.socket == "gone":
		return nil, nil
	case j.Op == opSwitch && j.about.ID == "": // its record is the ownership, and what answers now may be off meanwhile
		return &guard.Seen{ID: j.Object, Name: j.Name, Mark: j.p.mark(j.Address, j.Object), Fingerprint: j.Expect}, nil
	case j.Op == opDisconnect && j.Expect == j.p.fingerprint(j.Object, socketIn(j.Prior), containerd()): // the plan did not ask it either
		j.socket, j.about = socketIn(j.Prior), containerd()
	case j.Op == opServe: // it may be on its way up, with its VM
		j.socket = j.p.socketOf(j.Object)
		a, err := j.answer(ctx, j.socket)
		if err != nil {
			return nil, err
		}
		j.about = a
	case j.Op == opDisconnect, j.Op == opContext, j.Op == opUnserve:
		j.socket = j.p.socketOf(j.Object)
		a, err := j.p.ask(ctx, j.socket)
		if err != nil {
			return nil, err
		}
		j.about = a
	}
	return &guard.Seen{ID: j.Object, Name: j.Name, Mark: j.p.mark(j.Address, j.Object), Fingerprint: j.p.fingerprint(j.Object, j.socket, j.about)}, nil
}

// Values implements guard.Task.
func (j *connecting) Values(ctx context.Context) (map[string]cty.Value, error) {
	all := j.p.values(j.Object, j.socket, j.about)
	if j.p.inVM() && j.p.isServed(j.Object) && j.p.unserved(ctx, j.Object, j.socket) == "" {
		all["endpoint"] = cty.StringVal(j.p.clientHost(j.Object, j.socket))
	}
	if j.about.isContainerd() {
		all["type"], all["host"] = cty.StringVal(typeContainerd), ctyread.Attr(j.Want, "host")
		all["endpoint"], all["version"] = cty.NullVal(cty.String), cty.NullVal(cty.String)
	}
	return all, nil
}

// Verb implements guard.Task.
func (j *connecting) Verb() (guard.Verb, error) {
	switch j.Op {
	case opConnect:
		return guard.Verb{Need: guard.Making, Act: j.connect}, nil
	case opDisconnect:
		return guard.Verb{Need: guard.Removing, Act: func(ctx context.Context) (*guard.Outcome, error) {
			var said []string
			if kept, _ := j.Args.(keeping); contextName(j.Prior) != kept.context {
				var err error
				if said, err = j.removeContext(contextName(j.Prior)); err != nil {
					return nil, err
				}
			}
			if j.p.inVM() && j.p.isServed(j.Object) {
				if _, err := j.unserve(ctx); err != nil {
					return nil, err
				}
			}
			j.socket = "gone"
			return guard.Did(providers.Done, append(said, "the engine itself stays as it is")...), nil
		}}, nil
	case opSwitch:
		return guard.Verb{Act: j.change}, nil
	case opServe:
		return guard.Verb{Act: j.serve}, nil
	case opUnserve:
		return guard.Verb{Act: j.unserve}, nil
	case opContext:
		return guard.Verb{Act: j.setContext}, nil
	default:
		panic("unknown operation " + j.Op)
	}
}

// answer waits until the engine at a socket answers about itself. One that starts accepts connections and does not answer.
func (j *connecting) answer(ctx context.Context, socket string) (about, error) {
	var last error
	for {
		a, err := j.p.ask(ctx, socket)
		if err == nil {
			return a, nil
		}
		if last == nil {
			j.log(providers.Progress{Text: "no answer yet: " + err.Error()})
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if clock.Sleep(ctx, time.Second) != nil {
			return about{}, last
		}
	}
}

// connect waits until the engine answers. A containerd is asked for nothing: whether somebody listens at its socket is said, and not waited for.
func (j *connecting) connect(ctx context.Context) (*guard.Outcome, error) {
	socket := socketIn(j.Want)
	if isContainerd(j.Want) {
		j.socket, j.about = socket, containerd()
		j.p.sockets.Store(j.Object, socket)
		said := "containerd listens at " + socket
		if why := j.p.silence(ctx, socket); why != "" {
			said = why
		}
		return guard.Did(providers.Done, said, "what is inside of it is not applicable"), nil
	}
	a, err := j.answer(ctx, socket)
	if err == nil {
		j.socket, j.about = socket, a
		j.p.sockets.Store(j.Object, socket)
		return guard.Did(providers.Done, "engine "+a.ServerVersion+" at "+socket), nil
	}
	f := failure(err, "connect to %s", j.Address)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Outcome = providers.Timeout
	}
	f.Code, f.Next = "engine_unreachable", providers.Say(
		"vmctl installs no engine: install one where it is to run, for a VM by a provision script like",
		"  sudo apt-get update && sudo apt-get install -y docker.io && sudo usermod -aG docker \"$(id -un)\"",
		"and name its socket in `host`, if it is not unix:///var/run/docker.sock")
	return nil, f
}
