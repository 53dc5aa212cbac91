package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// recordRunner runs weightless VMs: a run is a part of the VM's file. Such a VM has no process,
// no root disk, no lock and no log.
type recordRunner struct{ *Provider }

func (recordRunner) fits() error                                     { return nil }
func (recordRunner) image(cty.Value) *machine.Image                  { return nil }
func (recordRunner) lockClaims(...providers.Claim) []providers.Claim { return nil }
func (recordRunner) prepare(*job, vmFile) error                      { return nil }
func (recordRunner) discard(*job, vmFile) error                      { return nil }
func (recordRunner) find(context.Context, string) (s foundProcesses) { return s }

func (p recordRunner) observe(_ context.Context, f vmFile, _ foundProcesses) observedVM {
	s := observedVM{vmFile: f, onDisk: true, root: true, processState: processState{state: providers.StateOff, run: f.Run}}
	switch {
	case f.Run == nil:
	case p.hasEnded(f.Run):
		s.leftover = "its record says that it ran, and that it has ended"
	default:
		s.state, s.runs = providers.StateRunning, "its record says that it runs"
	}
	return s
}

func (p recordRunner) hasEnded(r *runFile) bool {
	return r.Ended || !r.Ends.IsZero() && !p.settings.Now().Before(r.Ends)
}

func (p recordRunner) start(_ context.Context, j *job, f vmFile) (*runFile, error) {
	ports, err := p.choosePorts(j, f)
	return &runFile{With: *f.Config, Ports: ports}, err
}

func (recordRunner) attach(_ context.Context, j *job, f *vmFile) error {
	r := *f.Run
	r.With.Disks = j.want.Disks
	f.Run = &r
	return nil
}

func (p recordRunner) ask(_ context.Context, f vmFile, q question) (answer, error) {
	if f.Run == nil || p.hasEnded(f.Run) {
		return answer{}, fmt.Errorf("VM %s does not run", f.Name)
	}
	a, r := answer{OK: true, Up: true}, *f.Run
	switch q.Ask {
	case askDeaf:
		r.Deaf = true
	case askLate:
		r.Delay = q.Delay
	case askDie:
		r.Ended = true
	default:
		return a, nil
	}
	return a, p.writeRun(f, &r)
}

func (p recordRunner) request(_ context.Context, s observedVM) error {
	r := *s.run
	switch {
	case r.Deaf || !r.Ends.IsZero():
		return nil
	case r.Delay > 0:
		r.Ends = p.settings.Now().Add(time.Duration(r.Delay * float64(time.Second)))
	default:
		r.Ended = true
	}
	return p.writeRun(s.vmFile, &r)
}

func (p recordRunner) force(s observedVM) error {
	r := *s.run
	r.Ended = true
	return p.writeRun(s.vmFile, &r)
}

func (recordRunner) lastWords(providers.ID) ([]string, []providers.Advice) {
	return nil, providers.Vmctl("plan")
}

func (recordRunner) readRun(f vmFile) (*runFile, error) { return f.Run, nil }

func (p recordRunner) writeRun(f vmFile, r *runFile) error {
	f.Run = r
	return p.writeVM(f)
}

func (p recordRunner) forgetRun(f vmFile) error {
	if f.Run == nil {
		return nil
	}
	return p.writeRun(f, nil)
}

func (p recordRunner) reclaim(f vmFile, _ bool) error { return p.forgetRun(f) }
