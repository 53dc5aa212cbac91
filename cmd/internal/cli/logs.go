package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/providers/keptlog"
	"vmctl/spec"
)

// logsRequest holds the argument and flags of a vm logs.
type logsRequest struct {
	name   string
	tail   int // lines; below 0: all
	follow bool
	script string // the name of a script, whose log is shown; "": the console is
	kept   bool   // the logs that are kept are shown
	host   bool   // the logs of the processes that run the VM are shown
}

type logsDocument struct {
	FormatVersion string `json:"format_version"`
	Type          string `json:"type,omitempty"` // "log", of a line of --follow
	Address       string `json:"address"`
	Stream        string `json:"stream,omitempty"` // "stderr", of a container
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
			"is a document on a line of its own.\n\n" +
			"--provision NAME shows what the last run of that script of the VM has written instead,\n" +
			"with (sensitive) in place of secrets. vmctl keeps it on the machine that ran the script.\n\n" +
			"--kept shows the logs that vmctl has kept of a VM: when it could not be made or\n" +
			"started, and when it was removed by apply or destroy with --keep-logs. It shows each\n" +
			"file, the latest VM of the name last, with (sensitive) in place of secrets: the\n" +
			"console, the logs of the scripts, and for Lima those of the host agent. vmctl keeps\n" +
			fmt.Sprintf("at most 16 MiB of each, of the last %d VMs of a name, on the machine that ran it.\n\n"+
				"--host shows the logs of the processes that run the VM on this host, each after its\n"+
				"path: for Lima what the host agent reports, and its log.", keptlog.VMs),
		Args: one("the name of a VM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = args[0]
			if cmd.Flags().Changed("tail") && r.tail < 0 {
				return rejected("usage", "read --tail: it has to be 0 or more")
			}
			if r.follow && r.script != "" {
				return rejected("usage", "follow a script: the log of --provision NAME is kept, and an apply shows it as it grows")
			}
			if r.kept && (r.follow || r.script != "") {
				return rejected("usage", "vm logs: --kept shows files that do not grow, those of scripts too: leave out --follow and --provision")
			}
			if r.host && (r.follow || r.script != "" || r.kept) {
				return rejected("usage", "vm logs: --host shows files as they are now: leave out --follow, --provision and --kept")
			}
			if r.host {
				return a.hostLogs(cmd.Context(), r)
			}
			if r.kept {
				return a.keptLogs(cmd.Context(), r)
			}
			return a.logs(cmd.Context(), r)
		},
	}
	r.register(cmd.Flags(), "VM")
	cmd.Flags().StringVar(&r.script, "provision", "", "show the log of the script `NAME` instead")
	cmd.Flags().BoolVar(&r.kept, "kept", false, "show the logs that were kept when the VM failed or was removed")
	cmd.Flags().BoolVar(&r.host, "host", false, "show the logs of the processes that run the VM instead")
	return cmd
}

// register adds the flags that logs of every thing have.
func (r *logsRequest) register(flags *pflag.FlagSet, thing string) {
	flags.IntVar(&r.tail, "tail", -1, "begin with the last `N` lines")
	flags.Lookup("tail").DefValue = "0" // which help does not show
	flags.BoolVar(&r.follow, "follow", false, "also show new output, until the "+thing+" ends")
}

func (a *app) logs(ctx context.Context, r logsRequest) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	c, err := a.console(s, r)
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
	all := a.logText(c.address)
	if err := c.copy(ctx, from, all.write); err != nil {
		return err
	}
	all.end()
	return nil
}

// copy hands over the console from a place on, as it is now.
func (c console) copy(ctx context.Context, from int64, write func([]byte)) error {
	for {
		part, err := c.read(ctx, from, partSize)
		if err != nil {
			return err
		}
		if len(part.Text) == 0 || part.Start < from { // no text is left, or the VM has begun its console anew
			return nil
		}
		from = part.Next()
		write(part.Text)
	}
}

// logText writes the text of logs: at once, or with --json in one document at its end.
func (a *app) logText(addr spec.Address) logText {
	if !a.global.json {
		out := a.consoleWriter()
		return logText{write: out.Write, end: out.Flush}
	}
	var all bytes.Buffer
	return logText{
		write: func(text []byte) { all.Write(text) },
		end: func() {
			a.document(logsDocument{FormatVersion: view.FormatVersion, Address: addr.String(), Text: strings.ToValidUTF8(all.String(), "\ufffd")})
		},
	}
}

type logText struct {
	write func([]byte)
	end   func()
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

// console is the console of a VM, or the log of one of its scripts, with its reader.
type console struct {
	address spec.Address
	object  providers.Object
	reader  providers.ConsoleReader
}

// scriptLog reads the log of a script of a VM as if it were its console.
type scriptLog struct {
	logger  providers.ScriptLogger
	address spec.Address
	name    string
}

// Console implements providers.ConsoleReader.
func (l scriptLog) Console(ctx context.Context, _ providers.Object, from int64, most int) (providers.Console, error) {
	return l.logger.ScriptLog(ctx, l.address, l.name, from, most)
}

// logged finds the VM whose logs are to be read.
func (a *app) logged(s observation, r logsRequest) (observedAddress, error) {
	addr, err := vmOf(s.project, r.name)
	if err != nil {
		return observedAddress{}, err
	}
	v := s.at(addr)
	switch status := v.status(); {
	case v.unknown != nil:
		e := newProblem(classRefused, "unknown", "read the console of "+addr.String()+": it cannot be said what is there", status.Next...)
		e.Seen = []string{status.Reason}
		return v, e
	case v.object == nil:
		next := []string{a.commandLine("apply", planFlags{})}
		if kept, err := keptlog.List(s.project.keptLogs(), addr); err == nil && len(kept) > 0 {
			next = append(next, a.commandLine("vm logs", planFlags{}, addr.String(), "--kept")+" shows logs that were kept")
		}
		return v, newProblem(classFailed, "missing", "read the console of "+addr.String()+": it does not exist ("+status.Reason+")", next...)
	}
	return v, nil
}

// console finds the console of one VM, or the log of one of its scripts.
func (a *app) console(s observation, r logsRequest) (console, error) {
	v, err := a.logged(s, r)
	if err != nil {
		return console{}, err
	}
	addr := v.address
	if r.script != "" {
		logger, ok := providers.Ability[providers.ScriptLogger](v.system.Provider)
		if !ok {
			return console{}, newProblem(classFailed, "no_log", "read the log of provision "+r.script+" of "+addr.String()+": "+v.system.Ref.String()+" runs no scripts")
		}
		return console{address: addr, reader: scriptLog{logger, addr, r.script}}, nil
	}
	reader, ok := providers.Ability[providers.ConsoleReader](v.system.Provider)
	if !ok {
		return console{}, newProblem(classFailed, "no_console", "read the console of "+addr.String()+": "+v.system.Ref.String()+" keeps none")
	}
	return console{address: addr, object: *v.object, reader: reader}, nil
}

// partSize is the most bytes that one read of a console returns.
const partSize = 1 << 20

func (c console) read(ctx context.Context, from, most int64) (providers.Console, error) {
	part, err := c.reader.Console(ctx, c.object, from, int(most))
	if script, is := c.reader.(scriptLog); is && err != nil {
		return part, fmt.Errorf("read the log of provision %s of %s: %w", script.name, c.address, err)
	}
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
