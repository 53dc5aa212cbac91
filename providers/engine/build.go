package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/buildcontext"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// isBuilt reports whether the engine builds an image.
func isBuilt(want cty.Value) bool { return ctyread.Known(ctyread.Attr(want, "build")) }

// lastLines is the number of the last lines of a build that its error has.
const lastLines = 10

// content is the content of an image that is there already, and has not its name yet.
type content struct {
	source string      // a name or the ID of it
	along  [][2]string // the names that came with it in an archive, each with the engine's ID of its image
}

// content gets the content of the image of the step from where it comes.
func (j *job) content(ctx context.Context, ref string) (content, error) {
	var c content
	var err error
	switch {
	case isBuilt(j.Want):
		c.source, err = j.build(ctx)
	case isArchived(j.Want):
		return j.loadAside(ctx, ref)
	default:
		c.source, err = j.pull(ctx, ref)
	}
	return c, err
}

// prepare gets the new content of an image, which gets its name by another step.
func (j *job) prepare(ctx context.Context) (*guard.Outcome, error) {
	if j.Want == cty.NilVal {
		return guard.Did(providers.NotNeeded, "not all that it needs is known yet"), nil
	}
	if err := j.p.c.ready(ctx); err != nil {
		return nil, err
	}
	c, err := j.content(ctx, canonical(ctyread.Text(j.Want, "ref")))
	if err != nil {
		return nil, j.failed(err)
	}
	j.p.prepared.Store(j.Address, c)
	return guard.Did(providers.Done, "its new content is "+c.source), nil
}

// prepared reports a new content of an image that came with another image of its archive.
func (j *job) prepared(context.Context) (*guard.Outcome, error) {
	if j.Want == cty.NilVal {
		return nil, nil
	}
	return j.loaded()
}

// takeName lets the name of the image of the step lead to its content, which was prepared or is got now. The other names of its archive
// follow, as the engine lets them when it loads one.
func (j *job) takeName(ctx context.Context, ref string) error {
	kept, _ := j.p.prepared.LoadAndDelete(j.Address)
	c, ok := kept.(content)
	if !ok {
		var err error
		if c, err = j.content(ctx, ref); err != nil || c.source == ref {
			return err
		}
	}
	if err := j.tag(ctx, c.source, ref); err != nil {
		return err
	}
	for _, other := range c.along {
		if err := j.tag(ctx, other[1], other[0]); err != nil {
			return err
		}
		j.p.loads.all.Store(other[0], load{other[1], j.archivePath()})
	}
	return nil
}

// tag lets a name lead to an image.
func (j *job) tag(ctx context.Context, source, ref string) error {
	_, err := j.p.c.ImageTag(ctx, client.ImageTagOptions{Source: source, Target: ref})
	return err
}

// build builds the image of the step, without a name, and returns its ID. It fails unless the image is of what the plan has seen.
func (j *job) build(ctx context.Context) (string, error) {
	want := ctyread.Attr(j.Want, "build")
	folder := buildcontext.Context{Dir: j.hostPath(ctyread.Text(want, "context")), Dockerfile: ctyread.Text(want, "dockerfile")}
	log, err := j.buildLog()
	if err != nil {
		return "", err
	}
	id, digest, err := j.sendBuild(ctx, folder, want, log)
	if err = errors.Join(err, log.close()); err != nil {
		return "", j.buildFailed(err, log)
	}
	if digest != ctyread.Text(want, "context_sha256") {
		j.p.dropUnnamed(ctx, id)
		return "", &providers.Problem{
			Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: %s was changed since the plan was made", j.Op, j.Address, folder.Dir),
		}
	}
	return id, nil
}

// dropUnnamed removes an image that a build has made in vain. One that has a name was there before: the engine has built nothing anew,
// and a removal by its ID would take the name.
func (p *Objects) dropUnnamed(ctx context.Context, id string) {
	all, err := p.images(ctx)
	if err != nil || slices.ContainsFunc(all, func(s seen) bool { return s.imageID == id && !s.isDangling() }) {
		return
	}
	_, _ = p.c.ImageRemove(ctx, id, client.ImageRemoveOptions{PruneChildren: true}) //nolint:errcheck // it only takes space
}

// sendBuild sends the folder to the engine, as it is read, and follows the build to its end. It returns the ID of the image, and the
// digest of what was sent.
func (j *job) sendBuild(ctx context.Context, folder buildcontext.Context, want cty.Value, log *buildLog) (id, digest string, err error) {
	body, sink := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		var err error
		digest, err = folder.Write(sink)
		sent <- errors.Join(err, sink.CloseWithError(err))
	}()
	end := func() error { // of the sender, however far it came
		_ = body.Close() //nolint:errcheck // it never fails
		return <-sent
	}
	args := map[string]*string{}
	for name, value := range texts(want, "args") {
		args[name] = &value
	}
	answer, err := j.p.c.ImageBuild(ctx, body, client.ImageBuildOptions{
		Dockerfile: folder.Dockerfile, BuildArgs: args, Target: ctyread.Text(want, "target"),
		Remove: true, ForceRemove: true, Version: build.BuilderV1,
	})
	if err != nil {
		if failed := end(); failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
			return "", "", fmt.Errorf("read %s: %w", folder.Dir, failed)
		}
		return "", "", withoutURL(err)
	}
	id, err = readBuild(answer.Body, log)
	_ = answer.Body.Close() //nolint:errcheck // it was read to its end, or is given up
	if failed := end(); err == nil && failed != nil {
		err = fmt.Errorf("read %s: %w", folder.Dir, failed)
	}
	if err == nil && !isImageID(id) {
		err = errors.New("the engine's answer names no image")
	}
	return id, digest, err
}

// withoutURL returns the error of a request without its URL, which has the arguments of a build.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return noAnswer(of.Err)
	}
	return err
}

// readBuild reads the messages of a build to their end, and returns the ID of the image.
func readBuild(r io.Reader, log *buildLog) (id string, err error) {
	d := json.NewDecoder(r)
	for {
		var m struct {
			Stream, Status, Error string
			Aux                   struct{ ID string }
		}
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return id, nil
		case err != nil:
			return id, fmt.Errorf("the engine's answer was cut: %w", err)
		case m.Error != "":
			return id, &buildError{m.Error}
		case m.Aux.ID != "":
			id = m.Aux.ID
		case m.Stream != "":
			log.add(m.Stream)
		case m.Status != "": // of the pull of an image that it begins with
			log.add(m.Status + "\n")
		}
	}
}

// buildError is the engine's message about a build that failed.
type buildError struct{ message string }

// Error returns the message.
func (e *buildError) Error() string { return e.message }

// buildFailed returns the problem of a build that did not succeed.
func (j *job) buildFailed(err error, log *buildLog) error {
	elsewhere := providers.Say("or build it elsewhere, and load it: docker buildx build --output type=docker,dest=FILE CONTEXT, and archive = \"FILE\" in the block")
	var known *providers.Problem
	if errors.As(err, &known) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f := failure(err, "%s %s", j.Op, j.Address)
	f.Code = "build_failed"
	var ofBuild *buildError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Outcome, f.Code, f.Seen = providers.Timeout, "deadline", log.last
		f.Next = append(providers.Say("give it more time: timeouts { create = \"2h\" } in the block of "+j.Address.String()), f.Next...)
	case errors.As(err, &ofBuild):
		f.Seen = log.last
		if log.path != "" {
			f.Seen = append(f.Seen, "all of its output is in "+log.path)
		}
		f.Next = append(providers.Say("mend the Dockerfile or what it needs, and apply again"), f.Next...)
		if strings.Contains(strings.ToLower(ofBuild.message), "buildkit") {
			f.Next = append(f.Next, elsewhere...)
		}
	case errdefs.IsNotFound(err), errdefs.IsNotImplemented(err), strings.Contains(err.Error(), http.StatusText(http.StatusMethodNotAllowed)):
		f.Code = "no_builder"
		f.Next = append(providers.Say("use an engine that builds, such as Docker's"), elsewhere...)
	}
	return f
}

// buildLog takes the output of a build, line by line and without secrets: it tells it, keeps it in a file, and has the last lines.
type buildLog struct {
	path string // "": it is not kept
	tell func(line string)
	mask func(string) string
	file *os.File
	rest string // of a line that is not whole yet
	last []string
	err  error
}

// buildLog returns the log of the build of the step, in the place of that of the build before.
func (j *job) buildLog() (*buildLog, error) {
	log := &buildLog{tell: func(line string) { j.log(providers.Progress{Text: line}) }, mask: j.Mask}
	if log.mask == nil {
		log.mask = func(text string) string { return text }
	}
	folder := j.p.settings.Logs
	if folder == "" {
		return log, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	log.path = filepath.Join(folder, url.QueryEscape(j.Address.String())+".build.log")
	var err error
	log.file, err = os.OpenFile(log.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return log, err
}

// add adds a part of the output.
func (l *buildLog) add(text string) {
	lines := strings.Split(l.rest+text, "\n")
	for _, line := range lines[:len(lines)-1] {
		l.line(strings.TrimRight(line, "\r"))
	}
	l.rest = lines[len(lines)-1]
}

func (l *buildLog) line(line string) {
	line = l.mask(line)
	if l.file != nil {
		_, err := l.file.WriteString(line + "\n")
		l.err = errors.Join(l.err, err)
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	l.tell(line)
	if l.last = append(l.last, "it wrote: "+line); len(l.last) > lastLines {
		l.last = l.last[1:]
	}
}

// close ends the log. A log that could not be written is an error.
func (l *buildLog) close() error {
	if l.rest != "" {
		l.line(l.rest)
		l.rest = ""
	}
	if l.file == nil {
		return l.err
	}
	return errors.Join(l.err, l.file.Close())
}
