package terraform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"vmctl/internal/clock"
)

// followEvery is the longest time until vmctl reads what Terraform wrote.
const followEvery = 100 * time.Millisecond

// runLasting runs a command of Terraform that outlives vmctl if the session has a record for it: a state is written. Its
// standard output is copied to out.
func (s *session) runLasting(ctx context.Context, give bool, out io.Writer, command func(*tfexec.Terraform, io.Writer) error) (err error) {
	if s.record == "" {
		return s.run(give, func(tf *tfexec.Terraform) error { return command(tf, out) })
	}
	l := &lasting{
		Output: filepath.Join(s.dir, "output"), Errors: filepath.Join(s.dir, "errors"),
		Records: s.records(),
	}
	output, err := os.OpenFile(l.Output, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	if err := os.WriteFile(l.Errors, nil, 0o600); err != nil {
		return err
	}
	s.order.Lasting = l
	defer func() { s.order.Lasting = nil }()
	running, done := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan error, 1)
	go func() { followed <- follow(running, output, out) }()
	err = s.run(give, func(tf *tfexec.Terraform) error { return command(tf, io.Discard) })
	done()
	if err != nil {
		if text, unread := os.ReadFile(l.Errors); unread == nil && len(text) > 0 {
			err = fmt.Errorf("%w\n%s", err, masked(strings.TrimSpace(string(text))))
		}
	}
	return errors.Join(err, <-followed)
}

// runEdit runs a command that edits a state, and tells nothing. give is as in run.
func (s *session) runEdit(ctx context.Context, give bool, command func(*tfexec.Terraform) error) error {
	return unlessCreating(ctx, func() error {
		return s.runLasting(ctx, give, io.Discard, func(tf *tfexec.Terraform, _ io.Writer) error { return command(tf) })
	})
}

// follow copies what is written to a file until ctx ends, and then the rest.
func follow(ctx context.Context, from io.Reader, to io.Writer) error {
	for {
		ended := ctx.Err() != nil
		if _, err := io.Copy(to, from); err != nil || ended {
			return err
		}
		clock.Pause(ctx, followEvery)
	}
}
