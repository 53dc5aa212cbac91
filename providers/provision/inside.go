package provision

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"vmctl/providers"
)

// inside runs run.sh in a guest, for the scripts of one name.
type inside struct {
	guest providers.Guest
	name  string
}

// begun is a run that goes on, or has ended.
type begun struct {
	run    string
	digest string        // of its script and variables
	ended  bool          // well
	met    bool          // this step did not start it
	ran    time.Duration // how long it had run when it was found
	limit  time.Duration // how long it may run
	at     time.Time     // when it was found
}

func (in inside) command(action string, args ...string) providers.Command {
	return providers.Command{Args: append([]string{"sh", "-c", runScript, "vmctl-provision", runScript, action, in.name}, args...)}
}

// start starts a run for a step, unless it has ended well or a run of this name goes on.
func (in inside) start(ctx context.Context, run, step, digest string, s script) (begun, error) {
	var out bytes.Buffer
	fresh := "again"
	if s.fresh {
		fresh = "fresh"
	}
	c := in.command("start", run, strconv.Itoa(len(s.text)), digest, inSeconds(s.timeout), step, fresh)
	c.Env, c.Stdin, c.Stdout = s.env, strings.NewReader(s.text), &out
	if err := c.Valid(); err != nil {
		return begun{}, fmt.Errorf("start its script: %w", err)
	}
	did, err := in.guest.Run(ctx, c)
	if err != nil {
		return begun{}, &awayError{err: err}
	}
	own := begun{run: run, digest: digest, limit: s.timeout}
	words := append(strings.Fields(out.String()), "", "") // the digest may be empty
	switch {
	case did.Status != 0:
	case words[0] == "started":
		return own, nil
	case words[0] == "ended":
		own.digest, own.ended, own.met = words[1], true, true
		return own, nil
	case words[0] == "running" && len(words) >= 6:
		ran, limit := fromSeconds(words[2]), cmp.Or(fromSeconds(words[3]), s.timeout)
		return begun{run: words[1], digest: words[4], met: true, ran: ran, limit: limit}, nil
	}
	return begun{}, fmt.Errorf("start its script: the guest's shell ended with status %d: %s", did.Status, strings.TrimSpace(out.String()+did.Stderr))
}

func inSeconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// fromSeconds reads a number of seconds that the guest wrote: 0 if it is none.
func fromSeconds(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// follow copies the log of a run until it ends, and returns its status. Without a copier the log is dropped.
func (in inside) follow(ctx context.Context, run string, c *copier) (int, error) {
	command := in.command("follow", run, strconv.Itoa(math.MaxInt)) // no log is that long
	if c != nil {
		command = in.command("follow", run, strconv.FormatInt(c.read, 10))
		command.Stdout = c
	}
	did, err := in.guest.Run(ctx, command)
	if err != nil {
		var fate *providers.FateError
		return 0, &awayError{err: err, reached: errors.As(err, &fate)}
	}
	lines := strings.Split(strings.TrimSpace(did.Stderr), "\n")
	switch words := strings.Fields(lines[len(lines)-1]); {
	case did.Status != 0 || len(words) == 0:
	case words[0] == "lost":
		return statusLost, nil
	case words[0] == "status" && len(words) == 2:
		if status, err := strconv.Atoi(words[1]); err == nil {
			return status, nil
		}
		return statusLost, nil // it was ended by force
	}
	return 0, fmt.Errorf("follow its script: the guest's shell ended with status %d: %s", did.Status, strings.TrimSpace(did.Stderr))
}

// end ends a run by force.
func (in inside) end(ctx context.Context, run string) error {
	did, err := in.guest.Run(ctx, in.command("end", run))
	if err == nil && did.Status != 0 {
		err = fmt.Errorf("the guest's shell ended with status %d: %s", did.Status, strings.TrimSpace(did.Stderr))
	}
	return err
}
