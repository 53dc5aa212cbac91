package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// The times at which a hook runs.
const (
	onceCreated   = "created"
	beforeDestroy = "before_destroy"
)

// hook is a command that the block of a workspace lets run in it.
type hook struct {
	name, when string
	command    []string
	required   bool
	timeout    time.Duration
	order      uint64
}

// ran tells how the last run of a hook ended, as the workspace's own folder keeps it.
type ran struct {
	Digest string // of the command
	Failed string `json:",omitempty"` // why it did not succeed; "": it did
}

// hooksOf returns the hooks of a policy that run at one time, in their order.
func hooksOf(policy cty.Value, when string) []hook {
	all := ctyread.KnownAttr(policy, "hook")
	if all == cty.NilVal || !all.Type().IsObjectType() {
		return nil
	}
	var hooks []hook
	for name := range all.Type().AttributeTypes() {
		block := all.GetAttr(name)
		h := hook{
			name: name, when: ctyread.Text(block, "when"), required: ctyread.True(block, "required"),
			timeout: ctyread.Seconds(block, "timeout", 10*time.Minute), order: ctyread.Uint(block, "order"),
		}
		for _, arg := range ctyread.List(ctyread.Attr(block, "command")) {
			h.command = append(h.command, arg.AsString())
		}
		if h.when == when {
			hooks = append(hooks, h)
		}
	}
	slices.SortFunc(hooks, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.order, b.order), strings.Compare(a.name, b.name))
	})
	return hooks
}

// digest returns a text that is another one whenever the command is.
func (h hook) digest() string { return guard.Short(fmt.Sprintf("%q", h.command)) }

// opHook returns the operation that runs the hook of that name.
func opHook(name string) string { return "hook " + name }

// hooksDue returns the hooks of a workspace that have not succeeded with their present command, and a finding for each
// one that failed.
func hooksDue(w *seen, policy cty.Value) (due []providers.Due, failed []providers.Finding) {
	for _, h := range hooksOf(policy, onceCreated) {
		last, has := w.Hooks[h.name]
		switch {
		case !has:
			due = append(due, providers.Due{Op: opHook(h.name), Reason: fmt.Sprintf("hook %s has not run yet", h.name)})
		case last.Digest != h.digest():
			due = append(due, providers.Due{Op: opHook(h.name), Reason: fmt.Sprintf("the command of hook %s changed", h.name)})
		case last.Failed != "":
			due = append(due, providers.Due{Op: opHook(h.name), Reason: fmt.Sprintf("the last run of hook %s did not succeed", h.name)})
			failed = append(failed, providers.Finding{
				Kind: providers.FindHookFailed, Evidence: []string{fmt.Sprintf("hook %s: %s", h.name, last.Failed)}, Action: "run again",
				Next: h.next(w.ID, w.Owner),
			})
		}
	}
	return due, failed
}

// next returns what can be done about a hook that failed.
func (h hook) next(id providers.ID, owner *providers.Mark) []providers.Advice {
	var all []providers.Advice
	if owner != nil {
		all = append(all, providers.SayVmctl("its output: ", "workspace", "exec", owner.Address.String(), "--", "sh", "-c",
			fmt.Sprintf("cat ~/%s/%s/%s", home, id, logOf(h.name)))...)
	}
	return append(all, providers.SayVmctl("mend what it needs, or its command in the block, then: ", "apply")...)
}

// logOf returns the name of the file with the output of a hook's last run, in the workspace's own folder.
func logOf(name string) string { return "hook-" + name + ".log" }

// hookStep adds the step that runs a hook.
func (s *steps) hookStep(h hook, phase providers.Phase, id providers.ID) {
	step := s.Add(opHook(h.name), phase, id)
	step.Words = providers.Words{Doing: "running hook " + h.name, Done: "ran hook " + h.name}
	step.Timeout = h.timeout + time.Minute // to find the workspace, and to keep the output
	if !h.required {
		step.Class = providers.Diagnostic
	}
}

// keptOutput limits the output of a hook that is kept, in bytes.
const keptOutput = 64 << 10

// tail keeps the end of both outputs of a command, which come from one goroutine each.
type tail struct {
	bytes.Buffer

	mutex sync.Mutex
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n, err := t.Buffer.Write(p)
	if more := t.Len() - keptOutput; more > 0 {
		t.Next(more)
	}
	return n, err
}

// hookVerb returns the part of a step that runs a hook.
func (t *task) hookVerb(name string) guard.Verb {
	h, found := t.hook(name)
	hasRun := func() bool {
		return found && h.when == onceCreated && t.seen != nil && t.seen.Hooks[name] == ran{Digest: h.digest()}
	}
	return guard.Verb{Done: guard.If(hasRun, "it has run"), Act: func(ctx context.Context) (*guard.Outcome, error) {
		if !found {
			return nil, fmt.Errorf("the block has no hook %s any more", name)
		}
		return t.runHook(ctx, h)
	}}
}

func (t *task) hook(name string) (hook, bool) {
	all := append(hooksOf(t.Policy, onceCreated), hooksOf(t.Policy, beforeDestroy)...)
	i := slices.IndexFunc(all, func(h hook) bool { return h.name == name })
	if i < 0 {
		return hook{}, false
	}
	return all[i], true
}

// runHook runs a hook in the workspace, and notes there how that ended, with its output. A run that was interrupted is noted,
// too: it is repeated.
func (t *task) runHook(ctx context.Context, h hook) (*guard.Outcome, error) {
	var output tail
	failure := t.runCommand(ctx, h, &output)
	note := ran{Digest: h.digest()}
	said := output.String()
	if t.Mask != nil {
		said = t.Mask(said)
	}
	if failure != nil {
		note.Failed = failure.Error()
	}
	keeping, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	if err := t.noteHook(keeping, h.name, note, said); err != nil {
		return nil, errors.Join(failure, fmt.Errorf("note that hook %s ran: %w", h.name, err))
	}
	if failure == nil {
		return guard.Did(providers.Done), nil
	}
	p := t.p.Failure(failure, "hook %s of %s", h.name, t.Address)
	p.Code, p.Seen, p.Next = "hook_failed", lastLines(said), h.next(t.seen.ID, t.seen.Owner)
	if late := (*lateError)(nil); errors.As(failure, &late) {
		p.Outcome = providers.Timeout
	}
	return nil, p
}

// lateError reports that a hook did not end in its time.
type lateError struct{ limit time.Duration }

// Error names the time.
func (e *lateError) Error() string {
	return "it did not end within " + spec.FormatDuration(int64(e.limit/time.Second))
}

// environment returns the env block that counts for a hook: that of the workspace's block, or if that is gone what the record has of it,
// which are no sensitive values.
func (t *task) environment() cty.Value {
	values := t.Want
	if values == cty.NilVal {
		values = t.Prior
	}
	if values == cty.NilVal {
		return cty.NilVal
	}
	return ctyread.Attr(spec.Revealed(values), "env")
}

// runCommand runs the command of a hook in the folder of the workspace, with the environment that other commands there have.
func (t *task) runCommand(ctx context.Context, h hook, output *tail) error {
	ctx, stop := t.UntilHalt(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, &lateError{h.timeout})
	defer cancel()
	block := t.environment()
	env, err := t.p.Variables(ctx, block)
	if err != nil {
		return err
	}
	env = append(env, Passed(block, t.p.host.Environ)...)
	enter := t.p.settings.Via.Enter
	if ctyread.True(block, "strip_proxy") {
		enter = t.p.enterWithoutProxies
	}
	g, err := enter(ctx)
	if err != nil {
		return err
	}
	o, err := g.Run(ctx, providers.Command{Args: h.command, Dir: t.seen.Path, Env: env, Stdout: output, Stderr: output})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case o.Status != 0:
		return fmt.Errorf("status %d", o.Status)
	}
	return nil
}

// noteHook writes down how a hook ended, beside the notes about the others.
func (t *task) noteHook(ctx context.Context, name string, note ran, output string) error {
	all := map[string]ran{name: note}
	for other, r := range t.seen.Hooks {
		if other != name {
			all[other] = r
		}
	}
	line, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, err = t.p.inside(ctx, noteHooks, append(append(line, '\n'), output...), string(t.seen.ID), logOf(name))
	return err
}

// lastLines returns the last lines of an output, for an error.
func lastLines(output string) []string {
	const most = 10
	output = strings.TrimSpace(output)
	if output == "" {
		return nil
	}
	lines := strings.Split(output, "\n")
	return lines[max(0, len(lines)-most):]
}
