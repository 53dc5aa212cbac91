// Package clock waits.
package clock

import (
	"context"
	"time"
)

// Sleep returns after d, or with the cause of the context's end if that comes before.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pause sleeps like Sleep, and reports whether d passed before the context ended.
func Pause(ctx context.Context, d time.Duration) bool { return Sleep(ctx, d) == nil }
