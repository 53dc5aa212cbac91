package lima

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"vmctl/internal/process"
	"vmctl/providers"
)

// environment returns the environment of vmctl-lima for an instance with that accelerator.
func (p *Provider) environment(accel string) []string {
	all := append(p.host.environment(), "LIMA_HOME="+p.home)
	if p.emulates(accel) {
		all = append(all, "QEMU_SYSTEM_X86_64=qemu-system-x86_64 -machine q35,vmport=off -accel tcg,thread=multi")
	}
	return all
}

// environment returns the environment of vmctl-lima for an act that no home has a part in.
func (h Host) environment() []string {
	var all []string
	for _, name := range passedOn {
		if value := h.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// run runs vmctl-lima for the step, with input and until its end.
func (j *job) run(ctx context.Context, doing string, input []byte, args ...string) error {
	err := j.runTool(ctx, j.want.Accel, input, nil, j.log, args...)
	if err == nil {
		return nil
	}
	f := fail(err, "%s %s: %s", j.Op, j.Address, doing)
	var refused *refusedError
	if errors.As(err, &refused) {
		f.Code, f.Seen = "lima_refused", refused.said
	}
	return f
}

// checkDefinition lets Lima check a definition before anything is written or stopped for it.
func (j *job) checkDefinition(ctx context.Context, text string) error {
	err := j.run(ctx, "Lima refuses the definition", []byte(text), "check", j.Name)
	if f := (*providers.Problem)(nil); errors.As(err, &f) && f.Code == "lima_refused" {
		f.Code, f.Next = "bad_definition", providers.Say("change the template or the attributes of "+j.Address.String())
		return f
	}
	return err
}

// refusedError is a failure that vmctl-lima reports.
type refusedError struct {
	reason string
	said   []string // the last lines of its log
}

func (e *refusedError) Error() string { return e.reason }

// runTool runs vmctl-lima to its end, forwards what Lima logs as progress, and returns the failure that it
// reports.
func (p *Provider) runTool(ctx context.Context, accel string, input []byte, answer any, log providers.Log, args ...string) error {
	return p.runIn(ctx, p.environment(accel), input, answer, log, args...)
}

// runIn is runTool in another environment.
func (p *Provider) runIn(ctx context.Context, environment []string, input []byte, answer any, log providers.Log, args ...string) (err error) {
	if missing := p.missing(); missing != nil {
		return missing
	}
	in, out, said, err := p.streams(input)
	if err != nil {
		return err
	}
	child, err := p.processes.Start(process.Command{
		Path: p.host.Program, Args: args, Env: environment, Stdin: in, Stdout: out.theirs, Stderr: said.theirs,
	})
	closeAll(in, out.theirs, said.theirs)
	if err != nil {
		closeAll(out.ours, said.ours)
		return err
	}
	text := make(chan []byte, 1)
	lines := make(chan []string, 1)
	go func() { text <- readAll(out.ours) }()
	go func() { lines <- follow(said.ours, log) }()
	ended := child.Wait(ctx)
	interrupted := ctx.Err() != nil
	if interrupted {
		ended = errors.Join(context.Cause(ctx), p.endTool(ctx, child))
	}
	// A host agent that it started has streams of its own: these end with it, and with the programs that it ran.
	for _, f := range []*os.File{out.ours, said.ours} {
		_ = f.SetReadDeadline(time.Now().Add(streamLimit)) //nolint:errcheck // it may have been read and closed, or have no deadlines here
	}
	reply, last := <-text, <-lines
	if !interrupted {
		return judge(ended, reply, last, answer)
	}
	if answer != nil { // it may have done its work before it ended
		_ = json.Unmarshal(reply, answer) //nolint:errcheck // else there is none
	}
	return ended
}

// streamLimit is the time that programs which the tool has left behind keep its streams open at most.
const streamLimit = time.Minute

// endTool ends the program: by a request, after which it says what it has done and ends the programs that it runs, and by
// force if it does not end soon.
func (p *Provider) endTool(ctx context.Context, child *process.Child) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*forceLimit)
	defer cancel()
	requested, enough := context.WithTimeout(own, forceLimit)
	defer enough()
	id, err := child.Capture(requested)
	if err == nil {
		err = p.processes.Request(id)
	}
	if err == nil {
		_ = child.Wait(requested) //nolint:errcheck // it only says how it ended
		if requested.Err() == nil {
			return nil
		}
	}
	forced := child.Force()
	if err := child.Wait(own); own.Err() != nil { // else it only says how it ended
		return errors.Join(forced, err)
	}
	return forced
}

// judge returns the failure that the program reported, or reads its answer into answer, if that is not nil.
func judge(ended error, reply []byte, last []string, answer any) error {
	var failed struct {
		Error string `json:"error"`
	}
	if ended != nil {
		if json.Unmarshal(reply, &failed) == nil && failed.Error != "" {
			reason := firstLine(failed.Error)
			return &refusedError{reason: reason, said: slices.DeleteFunc(last, func(line string) bool { return line == reason })}
		}
		return &refusedError{reason: ended.Error(), said: last}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(reply, answer); err != nil {
		return fmt.Errorf("vmctl-lima answered what cannot be read: %w", err)
	}
	return nil
}

// firstLine returns a text without the excerpt of a definition that Lima adds to it: the numbers of its lines
// are those of a text that the user never sees.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// pipe is a stream from the program to vmctl.
type pipe struct{ ours, theirs *os.File }

func (p *Provider) streams(input []byte) (in *os.File, out, said pipe, err error) {
	if input != nil {
		var feed *os.File
		if in, feed, err = os.Pipe(); err != nil {
			return nil, out, said, err
		}
		go func() {
			defer closeAll(feed)
			_, _ = feed.Write(input) //nolint:errcheck // a program that does not read it fails by itself
		}()
	}
	if out.ours, out.theirs, err = os.Pipe(); err == nil {
		said.ours, said.theirs, err = os.Pipe()
	}
	if err != nil {
		closeAll(in, out.ours, out.theirs)
	}
	return in, out, said, err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() //nolint:errcheck // it was read, or is the other process's
		}
	}
}

func readAll(f *os.File) []byte {
	defer closeAll(f)
	const most = 1 << 20
	text, _ := io.ReadAll(io.LimitReader(f, most)) //nolint:errcheck // half an answer cannot be read, and is refused
	return text
}

// follow reads the log of the program, tells log each line that is meant for people, and returns the
// last ones.
func follow(f *os.File, log providers.Log) []string {
	defer closeAll(f)
	const kept = 5
	var last []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := words(lines.Bytes())
		if words == "" {
			continue
		}
		if log != nil {
			log(providers.Progress{Text: words})
		}
		last = append(last, words)
		last = last[max(0, len(last)-kept):]
	}
	_, _ = io.Copy(io.Discard, f) //nolint:errcheck // so that the program never waits for a reader
	return last
}

// words returns a line of Lima's log for people; "": it is not for them.
func words(line []byte) string {
	var said struct {
		Level, Msg, Error string
	}
	if json.Unmarshal(line, &said) != nil {
		return strings.TrimSpace(string(bytes.ToValidUTF8(line, []byte("?"))))
	}
	switch {
	case said.Level == "debug" || said.Level == "trace":
		return ""
	case said.Error != "":
		return firstLine(said.Msg + ": " + said.Error)
	default:
		return firstLine(said.Msg)
	}
}
