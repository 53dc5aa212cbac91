package sim

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// fail returns a failure with err as its cause.
func fail(err error, format string, args ...any) *providers.Failure {
	f := &providers.Failure{Outcome: providers.Failed, Code: "host", Next: providers.Vmctl("plan")}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Outcome, f.Code = providers.Timeout, "no_answer"
	}
	f.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	return f
}

// asFailure makes sure that Do's error is a failure.
func asFailure(err error, doing string) *providers.Failure { return guard.AsFailure(err, fail, doing) }
