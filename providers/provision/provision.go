// Package provision runs the scripts of a VM (provision NAME) in its guest, whatever provider the VM has: it
// stands around every provider whose VMs can be entered, and adds a step for each script that a change
// runs. A script runs apart from the connection that starts it: a run of vmctl that is killed does not
// end it, and the next one waits for it.
package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Wrap returns the type with scripts for its VMs.
func Wrap(t providers.Type) providers.Type {
	attrs, ok := t.Kinds[spec.VM]
	if !ok {
		return t
	}
	attrs, t.Kinds = maps.Clone(attrs), maps.Clone(t.Kinds)
	attrs[providers.ProvisionAttr] = providers.Attribute{Judge: machine.Live("scripts run in the guest, which stays up"), StaysUp: true}
	t.Kinds[spec.VM] = attrs
	open := t.Open
	if open == nil {
		return t
	}
	t.Open = func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
		p, err := open(ctx, s)
		if err != nil {
			return nil, err
		}
		host, _ := providers.Ability[providers.Host](p)
		return &wrapper{Provider: p, host: host, settings: s, typ: t.Name}, nil
	}
	return t
}

// wrapper is a provider whose VMs have scripts.
type wrapper struct {
	providers.Provider
	host     providers.Host // nil: its VMs cannot be entered
	settings providers.Settings
	typ      string
}

var (
	_ providers.Wrapper      = (*wrapper)(nil)
	_ providers.ScriptLogger = (*wrapper)(nil)
	_ providers.LogLister    = (*wrapper)(nil)
)

// Unwrap returns the provider.
func (w *wrapper) Unwrap() providers.Provider { return w.Provider }

// Steps adds a step for each script that is due, after those of the provider.
func (w *wrapper) Steps(c providers.Change) ([]providers.Step, error) {
	isDue := func(p providers.Provision) bool { return p.Due }
	if i := slices.IndexFunc(c.Provisions, isDue); i >= 0 && w.host == nil {
		return nil, providers.Refuse(fmt.Sprintf("provision %s cannot run: %s has no way into its VMs", c.Provisions[i].Name, w.typ), nil)
	}
	return Steps(c, w.Provider.Steps)
}

// Steps returns the steps of a change: those of its provider, which knows nothing of scripts, and one for
// each script that is due. It is pure.
func Steps(c providers.Change, of func(providers.Change) ([]providers.Step, error)) ([]providers.Step, error) {
	c.Edits = slices.DeleteFunc(slices.Clone(c.Edits), func(e providers.Edit) bool { return strings.HasPrefix(e.Path, providers.ProvisionAttr+".") })
	steps, err := of(c)
	if err != nil {
		return nil, err
	}
	for _, p := range c.Provisions {
		if !p.Due {
			continue
		}
		s := scriptOf(c.Want, p.Name)
		steps = machine.Append(steps, c, providers.Step{
			Op: providers.OpProvision(p.Name), Words: providers.Words{Doing: "running provision " + p.Name, Done: "provisioned " + p.Name},
			Phase: providers.PhaseReady, Object: c.ID, Name: machine.Name(c),
			Class: s.class, Timeout: machine.DecodePolicy(c.Policy).Ready + s.timeout, Provision: p.Name, AtStart: p.AtStart, Fresh: p.Fresh,
		})
	}
	return steps, nil
}

// Do runs a script, or lets the provider do its step.
func (w *wrapper) Do(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	if work.Provision != "" {
		return w.run(ctx, work, log)
	}
	r, err := w.Provider.Do(ctx, work, log)
	if err == nil && r.Gone && work.Address.Kind == spec.VM {
		if left := os.RemoveAll(w.logs(work.Address)); left != nil { // the VM is gone all the same
			r.Evidence = append(slices.Clip(r.Evidence), "the logs of its scripts could not be removed: "+left.Error())
		}
	}
	return r, err
}

// script is a script of a VM.
type script struct {
	text    string
	env     []string // NAME=value, sorted
	run     providers.ProvisionRun
	timeout time.Duration
	class   providers.Class
	fresh   bool // an earlier run does not count
}

// scriptOf reads the script of that name. What is not known yet is empty.
func scriptOf(want cty.Value, name string) script {
	block := spec.Labelled(want, providers.ProvisionAttr, name)
	s := script{
		text: ctyread.Text(block, "script"), run: providers.RunOf(ctyread.Text(block, "run")),
		timeout: ctyread.Seconds(block, "timeout", 10*time.Minute), class: providers.Contractual,
	}
	if c := ctyread.KnownAttr(block, "contractual"); c != cty.NilVal && c.False() {
		s.class = providers.Diagnostic
	}
	if env := ctyread.KnownAttr(block, "env"); env != cty.NilVal {
		for name, value := range env.AsValueMap() {
			if ctyread.Known(value) {
				s.env = append(s.env, name+"="+value.AsString())
			}
		}
	}
	slices.Sort(s.env)
	return s
}

// id returns the name of a run of the script in the guest: what ran to its end under this name is not run
// again. A script that runs once has one name; another run of a changed script, or after another start,
// has another. A guest whose disk is a copy of another guest's has its own.
func (s script) id(w providers.Work) string {
	switch s.run {
	case providers.RunOnce:
		return "once-" + short(string(w.Object))
	case providers.RunEachStart:
		return fmt.Sprintf("start-%d-%s", w.Starts, short(string(w.Object)+" "+w.Digest))
	case providers.RunOnChange:
		return "change-" + short(string(w.Object)+" "+w.Digest)
	}
	panic("unknown run " + string(s.run))
}

// short returns a digest that is short enough for the name of a folder.
func short(digest string) string {
	sum := sha256.Sum256([]byte(digest))
	return hex.EncodeToString(sum[:8])
}

// logs returns the folder of the logs of a VM's scripts.
func (w *wrapper) logs(a spec.Address) string {
	return filepath.Join(w.settings.Dir, providers.ProvisionAttr, short(a.String()))
}

func (w *wrapper) log(a spec.Address, name string) string {
	return filepath.Join(w.logs(a), name+".log")
}
