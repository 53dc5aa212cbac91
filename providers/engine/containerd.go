package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// The types of engines.
const (
	typeMoby       = "moby"
	typeContainerd = "containerd"
)

// containerdHost is the socket of containerd where a block names none, and its attribute host has the default.
const containerdHost = "unix:///run/containerd/containerd.sock"

// isContainerd reports whether a want or a record is of an engine without Docker's API.
func isContainerd(v cty.Value) bool { return ctyread.Text(v, "type") == typeContainerd }

// socketIn returns the socket of an engine by its want or its record; "": it names none.
func socketIn(v cty.Value) string {
	socket := ctyread.Text(v, "host")
	if isContainerd(v) && socket == defaultHost {
		return containerdHost
	}
	return socket
}

// containerd returns the answer that stands for an engine of that type, which is not asked.
func containerd() about { return about{ID: typeContainerd} }

func (a about) isContainerd() bool { return a == containerd() }

// silence returns why nobody can connect to the socket of a containerd; "": somebody listens.
func (p *Engines) silence(ctx context.Context, socket string) string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := p.dial(ctx, socket)
	if err != nil {
		return fmt.Sprintf("nobody can connect to %s: %v", socket, err)
	}
	_ = c.Close() //nolint:errcheck // nothing was sent
	return ""
}

// unasked returns an engine that is recorded as containerd, or is to be one and gives no answer, as the record has it. Its
// socket alone is looked at.
func (p *Engines) unasked(ctx context.Context, k providers.Known) providers.Object {
	socket := socketIn(k.Prior)
	o := providers.Object{
		Kind: spec.Engine, ID: k.ID, Name: k.Name, State: providers.StateRunning, Owner: p.mark(k.Address, k.ID),
		Attrs: cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(string(k.ID)), "host": ctyread.Attr(k.Prior, "host"), "type": cty.StringVal(typeMoby),
			"endpoint": cty.NullVal(cty.String), "version": cty.NullVal(cty.String),
		}),
		Unreadable: map[string]string{}, Fingerprint: p.fingerprint(k.ID, socket, containerd()),
	}
	if !isContainerd(k.Prior) {
		return o
	}
	attrs := o.Attrs.AsValueMap()
	attrs["type"] = cty.StringVal(typeContainerd)
	o.Attrs = cty.ObjectVal(attrs)
	if why := p.silence(ctx, socket); why != "" && isContainerd(k.Want) {
		o.Findings = []providers.Finding{{
			Kind: providers.FindBroken, Address: k.Address, Object: k.Name, Evidence: []string{why}, Action: "left alone: vmctl starts no engine",
			Next: providers.Say("see whether containerd runs, and whether its socket is the one in `host`"),
		}}
	}
	return o
}

// switchSteps adds the step of a change that gives an engine another type, or a containerd another socket.
func (s *steps) switchSteps() bool {
	edited := func(path string) bool {
		return slices.ContainsFunc(s.change.Edits, func(e providers.Edit) bool { return e.Path == path || strings.HasPrefix(e.Path, path+".") })
	}
	if moves := edited("host") && isContainerd(s.change.Want); !edited("type") && !moves {
		return false
	}
	s.add(opSwitch, providers.PhaseReady, s.now).Timeout = readyTimeout(s.change.Policy)
	return true
}

// change connects to the engine of another type. While it is a containerd, no docker context leads to it.
func (j *connecting) change(ctx context.Context) (*guard.Outcome, error) {
	did, err := j.connect(ctx)
	if err != nil {
		return nil, err
	}
	var said []string
	if j.about.isContainerd() {
		said, err = j.removeContext(contextName(j.Prior))
	} else if contextName(j.Want)+contextName(j.Prior) != "" {
		var set *guard.Outcome
		if set, err = j.setContext(ctx); err == nil {
			said = set.Evidence
		}
	}
	if err != nil {
		return nil, err
	}
	did.Evidence = append(did.Evidence, said...)
	return did, nil
}
