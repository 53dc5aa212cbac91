package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/stop"
	"vmctl/spec"
)

// isUpdated reports whether the container has the wanted limits and restart policy.
func (j *job) isUpdated() bool {
	want := resources(j.Want)
	return j.seen != nil && j.seen.memory == want.Memory && j.seen.nanoCPUs == want.NanoCPUs && j.seen.restart == ctyread.Text(j.Want, "restart")
}

// update gives the container its limits and its restart policy, and reads back what came of it: engines ignore
// what they do not like.
func (j *job) update(ctx context.Context) (*guard.Outcome, error) {
	r, policy := resources(j.Want), restartPolicy(j.Want)
	answer, err := j.p.c.ContainerUpdate(ctx, j.seen.id, client.ContainerUpdateOptions{Resources: &r, RestartPolicy: &policy})
	if err != nil {
		return nil, j.failed(err)
	}
	now, err := j.p.inspect(ctx, j.seen.id)
	if err != nil {
		return nil, err
	}
	if j.seen = &now; !j.isUpdated() {
		return nil, j.failed(errors.New("the engine took the change and did not make it: " + strings.Join(answer.Warnings, "; ")))
	}
	return guard.Did(providers.Done, answer.Warnings...), nil
}

// watched is the time for which a container that was started is watched: an engine reports a start that ends at once as done.
const watched = 500 * time.Millisecond

func (j *job) start(ctx context.Context) (*guard.Outcome, error) {
	if _, err := j.p.c.ContainerStart(ctx, j.seen.id, client.ContainerStartOptions{}); err != nil {
		return nil, j.failed(err)
	}
	if err := j.p.sleep(ctx, watched); err != nil {
		return nil, err
	}
	now, err := j.p.inspect(ctx, j.seen.id)
	if err != nil {
		return nil, err
	}
	if now.state == "exited" || now.state == stateDead {
		return nil, j.ended(ctx, now)
	}
	return guard.Did(providers.Done), nil
}

// ended returns the problem of a container that does not keep running.
func (j *job) ended(ctx context.Context, now seen) error {
	f := failure(fmt.Errorf("it ended at once with status %d", now.exit), "%s %s", j.Op, j.Address)
	f.Code, f.Seen = "container_ended", j.logs(ctx, now.id)
	if now.failure != "" {
		f.Seen = append(f.Seen, now.failure)
	}
	f.Next = providers.Say("if it is to run to its end and no longer, write state = \"created\", or ignore_changes = [state]")
	return f
}

// logs returns the last lines that a container wrote, with its secrets masked.
func (j *job) logs(ctx context.Context, id string) []string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := j.p.c.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "5"})
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }() //nolint:errcheck // it was only read
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, io.LimitReader(r, 64<<10)); err != nil && out.Len() == 0 {
		return nil
	}
	text := out.String()
	if j.Mask != nil {
		text = j.Mask(text)
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, "it wrote: "+strings.TrimSpace(line))
	}
	return lines
}

// healthy waits until the engine finds the container healthy. A failing check never stops a container: only the
// step's deadline ends the wait.
func (j *job) healthy(ctx context.Context) (*guard.Outcome, error) {
	said := ""
	for {
		now, err := j.p.inspect(ctx, j.seen.id)
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err != nil:
		case now.health == "healthy":
			return guard.Did(providers.Done, "the engine finds it healthy"), nil
		case now.wantable() == stateCreated:
			return nil, j.ended(ctx, now)
		case now.health != said:
			said = now.health
			j.log(providers.Progress{Text: "its health is " + said})
		}
		if j.p.sleep(ctx, 250*time.Millisecond) != nil {
			f := failure(fmt.Errorf("it is %s, not healthy", said), "%s %s", j.Op, j.Address)
			f.Outcome, f.Code = providers.Timeout, "unhealthy"
			return nil, f
		}
	}
}

func (j *job) pause(ctx context.Context) (*guard.Outcome, error) {
	if _, err := j.p.c.ContainerPause(ctx, j.seen.id, client.ContainerPauseOptions{}); err != nil {
		return nil, j.failed(err)
	}
	return guard.Did(providers.Done), nil
}

func (j *job) unpause(ctx context.Context) (*guard.Outcome, error) {
	if _, err := j.p.c.ContainerUnpause(ctx, j.seen.id, client.ContainerUnpauseOptions{}); err != nil {
		return nil, j.failed(err)
	}
	return guard.Did(providers.Done), nil
}

// stopPolicy returns how a container is stopped.
func stopPolicy(policy cty.Value) stop.Policy {
	s := ctyread.Attr(policy, "stop")
	return stop.Policy{
		Grace: ctyread.Seconds(s, "grace", 10*time.Second), ForceWait: ctyread.Seconds(s, "force_wait", 10*time.Second),
		Forbidden: ctyread.Known(ctyread.Attr(s, "force")) && !ctyread.True(s, "force"), Poll: 100 * time.Millisecond,
	}
}

func (j *job) stop(ctx context.Context) (*guard.Outcome, error) {
	r, err := j.end(ctx, j.seen)
	if err != nil {
		return nil, err
	}
	return guard.Did(r.How, r.Evidence...), nil
}

// end stops a container that runs or is paused.
func (j *job) end(ctx context.Context, s *seen) (stop.Result, error) {
	if s.wantable() == statePaused { // it hears nothing
		if _, err := j.p.c.ContainerUnpause(ctx, s.id, client.ContainerUnpauseOptions{}); err != nil {
			return stop.Result{}, j.failed(err)
		}
	}
	policy := stopPolicy(j.Policy)
	policy.StillSays = providers.Say(fmt.Sprintf("allow force in the stop block of %s, or give it more grace", j.Address))
	r, err := stop.Stop(ctx, &target{j: j, id: s.id, signal: s.stop}, policy, stop.Clock{Now: time.Now, Sleep: j.p.soonFirst()}, j.log)
	if err != nil {
		return r, fmt.Errorf("%s %s: %w", j.Op, j.Address, err)
	}
	return r, nil
}

// soonFirst returns a function that sleeps, a hundredth of a second the first time and twice as long each further time, up to what it is
// asked for: most that ends does so at once.
func (p *Objects) soonFirst() func(ctx context.Context, d time.Duration) error {
	next := 10 * time.Millisecond
	return func(ctx context.Context, d time.Duration) error {
		now := min(next, d)
		next = min(2*next, time.Minute)
		return p.sleep(ctx, now)
	}
}

// target is a container that is to end. Its exit code does not tell how it ended: vmctl requests and forces by itself.
type target struct {
	j      *job
	id     string
	signal string // that asks it to end; "": the engine's default
	state  string // as it was seen last
}

// Look implements stop.Target.
func (t *target) Look(ctx context.Context) (stop.Observation, error) {
	now, err := t.j.p.inspect(ctx, t.id)
	t.state = now.state
	switch {
	case isAbsent(err):
		return stop.Observation{Verdict: stop.Gone, Evidence: "it does not exist any more"}, nil
	case err != nil:
		return stop.Observation{}, err
	case now.wantable() == stateCreated:
		return stop.Observation{Verdict: stop.Gone, Evidence: fmt.Sprintf("%s, status %d", now.state, now.exit)}, nil
	default:
		return stop.Observation{Verdict: stop.Runs, Evidence: now.state}, nil
	}
}

// Request implements stop.Target.
func (t *target) Request(ctx context.Context) error {
	if t.state == "restarting" { // no process hears it: the engine ends its attempts
		return t.halt(ctx)
	}
	signal := t.signal
	if signal == "" {
		signal = "SIGTERM"
	}
	return t.kill(ctx, signal)
}

// halt ends the engine's attempts to start the container again.
func (t *target) halt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	seconds := 1
	_, err := t.j.p.c.ContainerStop(ctx, t.id, client.ContainerStopOptions{Timeout: &seconds})
	return err
}

// Force implements stop.Target.
func (t *target) Force(ctx context.Context) error { return t.kill(ctx, "SIGKILL") }

func (t *target) kill(ctx context.Context, signal string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := t.j.p.c.ContainerKill(ctx, t.id, client.ContainerKillOptions{Signal: signal})
	if errdefs.IsConflict(err) || errdefs.IsNotFound(err) { // it does not run any more: the next look says so
		return nil
	}
	return err
}

// remove removes an object. It is not forced, unless the block of an image says so: an object that is in use stays.
func (j *job) remove(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	if s, is := j.Args.(succeeded); is {
		if err := j.noteOthers(ctx, s.labels); err != nil {
			return nil, err
		}
	}
	s := *j.seen
	s.forced = forces(j.kind, j.Policy)
	how, err := j.p.removeObject(ctx, s)
	if j.keepsName(err) {
		return &guard.Outcome{How: providers.Done, NotGone: true, Evidence: []string{"a container uses it: its name goes to the new image"}}, nil
	}
	if err != nil {
		return nil, j.failed(err)
	}
	if s.forced {
		return guard.Did(how, j.p.users(ctx, s.imageID)...), nil
	}
	if j.kind == spec.Container && j.p.contents.fate(j.seen.imageID).dangling {
		return guard.Did(how, j.p.dropDangling(ctx)...), nil
	}
	return guard.Did(how), nil
}
