package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"vmctl/internal/clock"
)

func TestSleepEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		if err := clock.Sleep(t.Context(), time.Hour); err != nil || time.Since(before) != time.Hour {
			t.Errorf("it slept %s: %v", time.Since(before), err)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		before := time.Now()
		if err := clock.Sleep(ctx, time.Hour); !errors.Is(err, why) || time.Since(before) != time.Minute {
			t.Errorf("it slept %s: %v, want %v", time.Since(before), err, why)
		}
	})
}
