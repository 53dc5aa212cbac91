package lima

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
)

// fail returns a failure with err as its cause.
func fail(err error, format string, args ...any) *providers.Problem {
	f := &providers.Problem{Outcome: providers.Failed, Code: "lima", Next: providers.Vmctl("plan")}
	if errors.Is(err, context.DeadlineExceeded) {
		f.Outcome, f.Code = providers.Timeout, "no_answer"
	}
	f.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	return f
}

// Failure returns a failure with err as its cause.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return fail(err, format, args...)
}
