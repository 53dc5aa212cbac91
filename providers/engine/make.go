package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// made reports an object that an earlier attempt has made. The call that makes it makes all of it.
func (j *job) made(ctx context.Context) (*guard.Outcome, error) {
	if j.kind == spec.Image {
		return j.loaded()
	}
	if j.seen == nil {
		return nil, nil
	}
	if j.kind == spec.Container {
		if err := j.attach(ctx, j.seen.id); err != nil {
			return nil, err
		}
	}
	return guard.Did(providers.AlreadyTrue, "it was made already"), nil
}

// exists fails if the engine does not have what was made.
func (j *job) exists(context.Context) error {
	if j.seen != nil {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "not_made", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: the engine took the request and does not show the %s", j.Op, j.Address, things[j.kind]),
	}
}

func (j *job) make(ctx context.Context) (*guard.Outcome, error) {
	var warnings []string
	var err error
	name, labels := engineName(j.Name), map[string]string(nil)
	if j.kind != spec.Image {
		labels = markLabels(j.p.settings.Project, j.Work, name, texts(j.Want, "labels"))
	}
	if err := j.p.c.ready(ctx); err != nil {
		return nil, err
	}
	switch j.kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Image:
		if err = j.unnamed(); err == nil {
			err = j.fetch(ctx)
		}
		if err == nil {
			warnings = j.p.dropDangling(ctx)
		}
	case spec.Volume:
		_, err = j.p.c.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Driver: ctyread.Text(j.Want, "driver"), Labels: labels})
	case spec.Network:
		var r client.NetworkCreateResult
		r, err = j.p.c.NetworkCreate(ctx, name, client.NetworkCreateOptions{
			Driver: ctyread.Text(j.Want, "driver"), Internal: ctyread.True(j.Want, "internal"), Labels: labels,
		})
		warnings = r.Warning
	case spec.Container:
		warnings, err = j.create(ctx, name, labels)
	default:
		panic("unknown kind " + string(j.kind))
	}
	if err != nil {
		return j.afterFailure(ctx, err)
	}
	if _, replaces := j.Args.(replacing); len(j.before) > 0 && !replaces { // an earlier replacement has left them
		dropped, err := j.drop(ctx)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, dropped.Evidence...)
	}
	return guard.Did(providers.Done, warnings...), nil
}

// afterFailure finds out whether the engine made the object although the request failed: the connection may
// have been cut after it was sent.
func (j *job) afterFailure(ctx context.Context, cause error) (*guard.Outcome, error) {
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	found, err := j.find(again)
	if err == nil && found != nil && j.id == j.Object && j.kind != spec.Image && client.IsErrConnectionFailed(cause) {
		return guard.Did(providers.Done, "the engine's answer was lost, and it is there"), nil
	}
	return nil, j.failed(cause)
}

// failed returns the problem of a request that the engine refused.
func (j *job) failed(err error) error {
	var known *providers.Problem
	if errors.As(err, &known) {
		return err
	}
	f := failure(err, "%s %s", j.Op, j.Address)
	f.Code = "engine_refused"
	switch {
	case errdefs.IsConflict(err) && j.Op == opMake:
		f.Code = "name_taken"
	case client.IsErrConnectionFailed(err):
		f.Code = "engine_unreachable"
		f.Next = append(providers.Say("see whether the engine runs"), f.Next...)
	}
	return f
}

// fetch gets an image: from its archive, or from its registry.
func (j *job) fetch(ctx context.Context) error {
	ref := canonical(ctyread.Text(j.Want, "ref"))
	if j.Op != opLoad {
		return j.takeName(ctx, ref)
	}
	_, _, err := j.load(ctx, ref)
	return err
}

// readStream reads the messages of a load to their end, and returns the last one. The engine reports a failure only there.
func readStream(r io.Reader) (last string, err error) {
	d := json.NewDecoder(r)
	for {
		var m struct{ Stream, Error string }
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return last, nil
		case err != nil:
			return last, fmt.Errorf("the engine's answer was cut: %w", err)
		case m.Error != "":
			return last, errors.New(m.Error)
		case m.Stream != "":
			last = m.Stream
		}
	}
}
