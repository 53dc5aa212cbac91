package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/spec"
)

// logsRequest holds the argument and flags of a vm logs.
type logsRequest struct {
	name   string
	tail   int // lines; below 0: all
	follow bool
}

type logsDocument struct {
	FormatVersion string `json:"format_version"`
	Type          string `json:"type,omitempty"` // "log", of a line of --follow
	Address       string `json:"address"`
	Text          string `json:"text"`
}

func (a *app) logsCommand() *cobra.Command {
	r := logsRequest{tail: -1}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the console output of a VM",
		Long: "Show what the guest has written to its console since its last start, whether it is\n" +
			"running or off.\n\n" +
			"On a terminal, control characters are escaped and colors are left out, so that no\n" +
			"guest can move the cursor or change the window's title. Into a pipe or a file, every\n" +
			"byte is written unchanged, as docker logs and kubectl logs do.\n\n" +
			"--follow also shows new output, until the VM ends. With --json, each piece of output\n" +
			"is a document on a line of its own.",
		Args: one("the name of a VM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = args[0]
			if cmd.Flags().Changed("tail") && r.tail < 0 {
				return rejected("usage", "read --tail: it has to be 0 or more")
			}
			return a.logs(cmd.Context(), r)
		},
	}
	cmd.Flags().IntVar(&r.tail, "tail", -1, "begin with the last `N` lines")
	cmd.Flags().Lookup("tail").DefValue = "0" // which help does not show
	cmd.Flags().BoolVar(&r.follow, "follow", false, "also show new output, until the VM ends")
	return cmd
}

func (a *app) logs(ctx context.Context, r logsRequest) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	c, err := a.console(s, r.name)
	if err != nil {
		return err
	}
	from, err := c.tail(ctx, r.tail)
	if err != nil {
		return err
	}
	if r.follow {
		return a.follow(ctx, c, from)
	}
	return a.shown(ctx, c, from)
}

// shown writes the console as it is now.
func (a *app) shown(ctx context.Context, c console, from int64) error {
	var all bytes.Buffer
	out := a.consoleWriter()
	for {
		part, err := c.read(ctx, from, partSize)
		if err != nil {
			return err
		}
		if len(part.Text) == 0 || part.Start < from { // no text is left, or the VM has begun its console anew
			break
		}
		from = part.Next()
		if a.global.json {
			all.Write(part.Text)
			continue
		}
		out.Write(part.Text)
	}
	out.Flush()
	if a.global.json {
		a.document(logsDocument{FormatVersion: view.FormatVersion, Address: c.address.String(), Text: strings.ToValidUTF8(all.String(), "\ufffd")})
	}
	return nil
}

// follow writes the console and all that is added to it, until the VM has ended.
func (a *app) follow(ctx context.Context, c console, from int64) error {
	out := a.consoleWriter()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		part, err := c.read(ctx, from, partSize)
		if err != nil {
			return err
		}
		from = part.Next()
		switch {
		case a.stdout.ended():
			return nil
		case len(part.Text) == 0:
			out.Flush() // a line that is not ended yet, such as a prompt
			if !part.More {
				return nil
			}
		case a.global.json:
			a.line(logsDocument{
				FormatVersion: view.FormatVersion, Type: "log", Address: c.address.String(), Text: strings.ToValidUTF8(string(part.Text), "\ufffd"),
			})
			continue
		default:
			out.Write(part.Text)
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// pollInterval is the time between two looks at a console that may grow.
const pollInterval = 500 * time.Millisecond

func (a *app) consoleWriter() *view.Console {
	return &view.Console{W: a.stdout, Raw: !a.env.Terminal.Out}
}

// console is the console of a VM, with its reader.
type console struct {
	address spec.Address
	object  providers.Object
	reader  providers.ConsoleReader
}

// console finds the console of one VM.
func (a *app) console(s observation, name string) (console, error) {
	addr, err := vmOf(s.project, name)
	if err != nil {
		return console{}, err
	}
	v := s.at(addr)
	switch status := v.status(); {
	case v.unknown != nil:
		e := newProblem(classRefused, "unknown", "read the console of "+addr.String()+": it cannot be said what is there", status.Next...)
		e.Seen = []string{status.Reason}
		return console{}, e
	case v.object == nil:
		return console{}, newProblem(classFailed, "missing", "read the console of "+addr.String()+": it does not exist ("+status.Reason+")",
			a.commandLine("apply", planFlags{}))
	}
	reader, ok := v.system.Provider.(providers.ConsoleReader)
	if !ok {
		return console{}, newProblem(classFailed, "no_console", "read the console of "+addr.String()+": "+v.system.Ref.String()+" keeps none")
	}
	return console{address: addr, object: *v.object, reader: reader}, nil
}

// partSize is the most bytes that one read of a console returns.
const partSize = 1 << 20

func (c console) read(ctx context.Context, from, most int64) (providers.Console, error) {
	part, err := c.reader.Console(ctx, c.object, from, int(most))
	if err != nil {
		return part, fmt.Errorf("read the console of %s: %w", c.address, err)
	}
	return part, nil
}

// tail returns the offset at which the last lines begin; lines < 0 is all of them. It reads a
// long console in parts, backwards from its end.
func (c console) tail(ctx context.Context, lines int) (int64, error) {
	if lines < 0 {
		return 0, nil
	}
	part, err := c.read(ctx, -partSize, partSize)
	if err != nil || lines == 0 {
		return part.Next(), err
	}
	text := bytes.TrimSuffix(part.Text, []byte("\n")) // it ends the last line, and begins none
	for ; ; text = part.Text {
		var at int
		if at, lines = lineStart(text, lines); lines == 0 || part.Start == 0 {
			return part.Start + int64(at), nil
		}
		before := max(0, part.Start-partSize)
		if part, err = c.read(ctx, before, part.Start-before); err != nil {
			return 0, err
		}
	}
}

// lineStart goes back over so many line ends. It returns the offset after the last of them,
// and the number of line ends that text lacks.
func lineStart(text []byte, lines int) (at, missing int) {
	for end := len(text); ; lines-- {
		if lines == 0 {
			return end + 1, 0
		}
		if end = bytes.LastIndexByte(text[:end], '\n'); end < 0 {
			return 0, lines
		}
	}
}
