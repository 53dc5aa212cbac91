package lima

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vmctl/internal/lockfile"
)

// homes has the locks of the homes that the provider blocks of a process name. Several blocks may name one home.
type homes struct {
	mutex sync.Mutex
	all   map[string]*homeLocks
}

// homeLocks are the locks of one home within a process.
type homeLocks struct {
	writing sync.Mutex   // held with the lock of the home
	steps   sync.RWMutex // read-locked while a step is at work: the home is not swept then
}

// of returns the locks of a home.
func (h *homes) of(home string) *homeLocks {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.all == nil {
		h.all = map[string]*homeLocks{}
	}
	if h.all[home] == nil {
		h.all[home] = new(homeLocks)
	}
	return h.all[home]
}

// homeWait is the time that a writer waits for another one. What is done under the lock takes milliseconds: after half
// a minute, something is wrong.
const homeWait = 30 * time.Second

// locked runs a function that gives or takes a name of the home, or writes its keys, while no other vmctl does. A step
// that is told to end finishes that first.
func (p *Provider) locked(ctx context.Context, do func() error) (err error) {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("lock %s: %w", p.home, err)
	}
	if err := os.MkdirAll(filepath.Join(p.home, configDir), 0o700); err != nil {
		return fmt.Errorf("lock %s: %w", p.home, err)
	}
	p.locks.writing.Lock()
	defer p.locks.writing.Unlock()
	held, err := lockfile.Acquire(context.WithoutCancel(ctx), lockfile.Request{
		Path: filepath.Join(p.home, configDir, ".vmctl.lock"), Wait: homeWait,
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: "vmctl", Since: time.Now().UTC()},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	return do()
}
