package sim

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
)

// fail returns a failure with err as its cause.
func fail(err error, format string, args ...any) *providers.Problem {
	f := &providers.Problem{Outcome: providers.Failed, Code: "host", Next: providers.Vmctl("plan")}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Outcome, f.Code = providers.Timeout, "no_answer"
	}
	f.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	return f
}
