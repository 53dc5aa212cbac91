package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// whenBroken is the value of docker_context.make_current that makes a context the current one only where that is missing, or
// provably leads to no engine.
const whenBroken = "if_unhealthy"

// probeTimeout limits the question whether the current context leads to an engine. One that gives no answer in time may be busy.
const probeTimeout = 5 * time.Second

// contextName returns the name of the docker context in a want or in a record; "": none.
func contextName(v cty.Value) string { return ctyread.Text(ctyread.Attr(v, "docker_context"), "name") }

// keeping is the argument of a step that lets go of an engine whose successor has a docker context: one of that name stays.
type keeping struct{ context string }

// Words implements providers.Args.
func (k keeping) Words() [][2]string { return [][2]string{{"keeps docker context", k.context}} }

// shownContext returns the attribute docker_context of an engine: as it is recorded, or wanted without a record, if there is
// such a context of ours that leads to the engine, else null.
func (p *Engines) shownContext(k providers.Known, socket string) cty.Value {
	from := k.Prior
	if from == cty.NilVal {
		from = k.Want
	}
	all := ctyread.Attr(from, "docker_context")
	name := contextName(from)
	if name == "" || !all.IsWhollyKnown() || p.contexts.dir == "" {
		return cty.NilVal
	}
	f, err := p.contexts.read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it cannot be read: nobody knows
		return all
	}
	is := func(a spec.Address) bool { return a == k.Address }
	if err != nil || !f.isOf(p.settings.Project, is) || f.Endpoints.Docker.Host != p.clientHost(k.ID, socket) {
		return cty.NullVal(all.Type())
	}
	return all
}

// setContext makes the wanted docker context, in place of an earlier one of the engine.
func (j *connecting) setContext(ctx context.Context) (*guard.Outcome, error) {
	wanted, before := contextName(j.Want), contextName(j.Prior)
	var said []string
	if wanted != "" { // first: where its name is taken, the earlier one stays
		if err := j.writeContext(wanted); err != nil {
			return nil, err
		}
		said = append(said, "docker --context "+wanted+" leads to it")
	}
	if before != "" && before != wanted {
		removed, err := j.removeContext(before)
		if err != nil {
			return nil, err
		}
		said = append(said, removed...)
	}
	if wanted == "" {
		return guard.Did(providers.Done, said...), nil
	}
	if ctyread.Text(ctyread.Attr(j.Want, "docker_context"), "make_current") == whenBroken {
		made, err := j.makeCurrent(ctx, wanted)
		if err != nil {
			return nil, err
		}
		said = append(said, made)
	}
	return guard.Did(providers.Done, said...), nil
}

// writeContext writes a context that leads to the engine. It replaces none of others.
func (j *connecting) writeContext(name string) error {
	c := j.p.contexts
	if c.dir == "" {
		return j.contextProblem(errors.New("neither HOME nor DOCKER_CONFIG names a folder"), "set one of them")
	}
	now, err := c.read(name)
	switch {
	case err == nil && !now.isOf(j.p.settings.Project, j.Bears):
		f := j.contextProblem(fmt.Errorf("docker context %q exists, and %s did not make it", name, j.Address),
			"write another name in docker_context, or remove that one: docker context rm "+name)
		f.Code = "docker_context_taken"
		return f
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return j.contextProblem(err, "remove it if it is damaged")
	}
	f := contextFile{Name: name}
	mark := contextMark{ID: j.p.settings.Project.Lineage(), Project: j.p.settings.Project.Name, Address: j.Address.String()}
	f.Metadata.Description, f.Metadata.Vmctl = fmt.Sprintf("%s of %s, made by vmctl", j.Address, mark.Project), &mark
	f.Endpoints.Docker.Host = j.p.clientHost(j.Object, j.socket)
	if err := c.write(f); err != nil {
		return j.contextProblem(err)
	}
	return nil
}

func (j *connecting) contextProblem(err error, next ...string) *providers.Problem {
	f := failure(err, "%s %s", j.Op, j.Address)
	f.Code = "docker_context"
	if len(next) > 0 {
		f.Next = providers.Say(next...)
	}
	return f
}

// makeCurrent makes a context the current one, if that is missing or provably leads to no engine. What cannot be read counts
// as sound, and a configuration that changes meanwhile is left as it is: somebody has chosen. It returns what it found.
func (j *connecting) makeCurrent(ctx context.Context, name string) (string, error) {
	c := j.p.contexts
	before, err := c.config()
	if err != nil {
		return "the current docker context stays: " + err.Error(), nil
	}
	if before.current == name {
		return "it is the current docker context", nil
	}
	why, err := j.broken(ctx, before.current)
	if err != nil {
		return "", err
	}
	shown := before.current
	if shown == "" {
		shown = defaultContext
	}
	if why == "" {
		return "the current docker context stays: " + shown, nil
	}
	now, err := c.config()
	if err != nil || !bytes.Equal(now.text, before.text) {
		return "the current docker context stays: its configuration has just been changed", nil
	}
	if err := c.setCurrent(now, name); err != nil {
		return "", j.contextProblem(err)
	}
	return fmt.Sprintf("it is the current docker context now, in place of %s: %s", shown, why), nil
}

// broken returns the proof that a context leads to no engine; "": there is none. Only a socket of this host can be proven dead.
// Its error is the end of ctx.
func (j *connecting) broken(ctx context.Context, name string) (string, error) {
	host := defaultHost
	if name != "" && name != defaultContext {
		f, err := j.p.contexts.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			return "that does not exist", nil
		}
		if host = f.Endpoints.Docker.Host; err != nil {
			return "", nil
		}
	}
	path, isSocket := strings.CutPrefix(host, "unix://")
	if !isSocket || host == j.p.clientHost(j.Object, j.socket) {
		return "", nil
	}
	err := j.p.probe(ctx, path)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return host + " does not exist", nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens at " + host, nil
	case errors.Is(err, errNoAnswer):
		return host + " ends connections without an answer", nil
	}
	return "", nil
}

// errNoAnswer reports that a connection was made, and ended without an answer.
var errNoAnswer = errors.New("the connection ended without an answer")

// removeContext removes a context of the engine, and before that makes it no longer the current one. One of others stays. It
// returns what it did.
func (j *connecting) removeContext(name string) ([]string, error) {
	c := j.p.contexts
	if name == "" || c.dir == "" {
		return nil, nil
	}
	now, err := c.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return []string{"docker context " + name + " stays: " + err.Error()}, nil
	case !now.isOf(j.p.settings.Project, j.Bears):
		return []string{"docker context " + name + " stays: others made it"}, nil
	}
	said := []string{"docker context " + name + " is removed"}
	config, err := c.config()
	if err == nil && config.current == name {
		if err := c.setCurrent(config, ""); err != nil {
			return nil, j.contextProblem(err)
		}
		said = append(said, "it was the current one: docker uses its default again")
	}
	if err := c.remove(name); err != nil {
		return nil, j.contextProblem(err)
	}
	return said, nil
}
