package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

var _ providers.LogStreamer = (*Objects)(nil)

// StreamLog implements providers.LogStreamer.
func (p *Objects) StreamLog(ctx context.Context, o providers.Object, q providers.LogQuery) error {
	now, err := p.inspect(ctx, ctyread.Text(o.Attrs, "container_id"))
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", o.Name, err)
	}
	options := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: q.Follow, Tail: "all"}
	if q.Tail >= 0 {
		options.Tail = strconv.Itoa(q.Tail)
	}
	r, err := p.c.ContainerLogs(ctx, now.id, options)
	if err != nil {
		return refusal(err, "read the log of %s", o.Name)
	}
	err = copyOutput(r, now.terminal, q.Stdout, q.Stderr)
	_ = r.Close() //nolint:errcheck // it was only read
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("read the log of %s to its end: %w", o.Name, err)
	}
	return nil
}

// copyOutput copies the outputs of a process. Those of one that is not on a terminal come in frames: an end within one is
// an error.
func copyOutput(r io.Reader, terminal bool, stdout, stderr io.Writer) error {
	if terminal {
		_, err := io.Copy(stdout, r)
		return err
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		to := stdout
		switch stdcopy.StdType(head[0]) {
		case stdcopy.Stdin, stdcopy.Stdout:
		case stdcopy.Stderr:
			to = stderr
		case stdcopy.Systemerr:
			fallthrough
		default:
			text, _ := io.ReadAll(io.LimitReader(r, int64(min(binary.BigEndian.Uint32(head[4:]), answerPart)))) //nolint:errcheck // it only tells more
			return fmt.Errorf("the engine sent no output but %.200q", text)
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		if n, err := io.CopyN(to, r, size); errors.Is(err, io.EOF) && n < size {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}

// answerPart is the size of the most of an unexpected answer that is read.
const answerPart = 4096

// refusal returns the problem of a request that an engine did not carry out.
func refusal(err error, format string, args ...any) error {
	f := failure(err, format, args...)
	f.Code, f.Next = "engine_refused", providers.SayVmctl("see what the engine has now: ", "status")
	return f
}
