package run

import (
	"context"
	"errors"
	"fmt"

	"vmctl/internal/process"
)

// Lasting runs a program that goes on when this process ends, in a process group of its own. c starts a process that waits at its gate,
// and then becomes the program at an absolute path; its outputs are files: a pipe would end a program that nobody reads. Before, begin
// gets the identity of the process. After an error of begin, or the end of this process meanwhile, the program never begins. Once ctx
// ends, Lasting asks the program to end, and forces it after a minute. A status other than 0 is an error, too; after the end of ctx,
// also that of ctx.
func Lasting(ctx context.Context, c Command, path string, begin func(process.Identity) error) (status int, err error) {
	cmd := unattended(ctx, c)
	cmd.SysProcAttr = apart()
	held, err := process.Host{}.Hold(cmd, path)
	if err != nil {
		return 0, err
	}
	if err := begin(held.Identity); err != nil {
		err = errors.Join(fmt.Errorf("start %s: %w", path, err), held.Drop())
		_ = cmd.Wait() //nolint:errcheck // it was given up, and tells that
		return 0, err
	}
	unheard := held.Begin() // it may have been asked to end already
	if err = cmd.Wait(); err == nil {
		return 0, unheard
	}
	return statusOf(cmd), errors.Join(err, ctx.Err())
}
