//go:build cgo && libvirt_dlopen

package libvirt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"vmctl/providers/libvirt"
)

// The refusal is reported before the call ends: the end would break the connection.
func TestBusyPoolIsReportedBeforeTheCallEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	busy, attempts := errors.New("pool 'a' has asynchronous jobs running"), 0
	err := libvirt.Settled(ctx, func() error {
		attempts++
		return busy
	})
	if !errors.Is(err, busy) || attempts != 1 {
		t.Errorf("after %d attempts, less than a second before the end of the call, it failed with %v", attempts, err)
	}
}
