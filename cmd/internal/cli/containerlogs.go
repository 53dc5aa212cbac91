package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) containerLogsCommand() *cobra.Command {
	r := logsRequest{tail: -1}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show what a container has written",
		Long: "Show what a container has written to its outputs since it was made, as its engine keeps it,\n" +
			"whether it runs or not: its standard output on standard output, its standard error on\n" +
			"standard error.\n\n" +
			"On a terminal, control characters are escaped and colors are left out. Into a pipe or a\n" +
			"file, every byte is written unchanged.\n\n" +
			"--follow also shows new output, until the container ends. With --json, each piece of\n" +
			"output is then a document on a line of its own.",
		Args: one("the name of a container"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = args[0]
			if cmd.Flags().Changed("tail") && r.tail < 0 {
				return rejected("usage", "read --tail: it has to be 0 or more")
			}
			return a.containerLogs(cmd.Context(), r)
		},
	}
	r.register(cmd.Flags(), "container")
	return cmd
}

func (a *app) containerLogs(ctx context.Context, r logsRequest) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	addr, err := oneOfKind(s.project, spec.Container, r.name)
	if err != nil {
		return err
	}
	v, err := a.containerAt(s, addr, "read the log of "+addr.String())
	if err != nil {
		return err
	}
	streamer, ok := providers.Ability[providers.LogStreamer](v.system.Provider)
	if !ok {
		return newProblem(classFailed, "no_log", fmt.Sprintf("read the log of %s: %s keeps none", addr, v.system.Ref))
	}
	q := providers.LogQuery{Tail: r.tail, Follow: r.follow}
	var all bytes.Buffer
	switch {
	case a.global.json && r.follow:
		q.Stdout, q.Stderr = a.logWriter(a.logLines(addr, "")), a.logWriter(a.logLines(addr, "stderr"))
	case a.global.json:
		q.Stdout, q.Stderr = &all, &all
	default:
		out, errs := a.consoleWriter(), &view.Console{W: a.stderr, Raw: !a.env.Terminal.Err}
		q.Stdout, q.Stderr = a.logWriter(out.Write), a.logWriter(errs.Write)
		defer func() { out.Flush(); errs.Flush() }()
	}
	if err := streamer.StreamLog(ctx, *v.object, q); err != nil && !a.stdout.ended() {
		return err
	}
	if a.global.json && !r.follow {
		a.document(logsDocument{FormatVersion: view.FormatVersion, Address: addr.String(), Text: strings.ToValidUTF8(all.String(), "\ufffd")})
	}
	return nil
}

// logLines returns a function that writes each piece of a log as a document.
func (a *app) logLines(addr spec.Address, stream string) func([]byte) {
	return func(text []byte) {
		a.line(logsDocument{FormatVersion: view.FormatVersion, Type: "log", Address: addr.String(), Stream: stream, Text: strings.ToValidUTF8(string(text), "\ufffd")})
	}
}

// logWriter returns a writer that fails once nobody reads any more.
func (a *app) logWriter(write func([]byte)) io.Writer { return logWriter{a, write} }

type logWriter struct {
	a     *app
	write func([]byte)
}

// Write implements io.Writer.
func (w logWriter) Write(text []byte) (int, error) {
	if w.write(text); w.a.stdout.ended() {
		return 0, io.ErrClosedPipe
	}
	return len(text), nil
}
