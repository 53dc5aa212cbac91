package sim

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// runner runs VMs of a host: as processes, as pairs of processes or as records. runnerOf and newVM
// choose one; nothing else depends on the choice.
type runner interface {
	// fits fails if the host's folder cannot hold the files of a run.
	fits() error
	// image decodes the image that a wanted VM is made from; nil: it needs none.
	image(want cty.Value) *machine.Image
	// lockClaims returns the claims on the locks that a run takes, out of all.
	lockClaims(all ...providers.Claim) []providers.Claim
	// prepare makes and grows the root disk of a VM before its configuration is written.
	prepare(j *job, f vmFile) error
	// discard removes all that a VM has beside its file.
	discard(j *job, f vmFile) error

	// find finds the processes of the VM of a name, or of all VMs if it is "".
	find(ctx context.Context, name string) foundProcesses
	// observe reads the run state of a VM.
	observe(ctx context.Context, f vmFile, s foundProcesses) observedVM

	// start starts a VM, and returns its run, which is not written yet.
	start(ctx context.Context, j *job, f vmFile) (*runFile, error)
	// attach gives a running VM the wanted disks that are new to it.
	attach(ctx context.Context, j *job, f *vmFile) error
	// ask puts a question to a running VM.
	ask(ctx context.Context, f vmFile, q question) (answer, error)
	// request asks the VM to end by itself, and force ends it.
	request(ctx context.Context, s observedVM) error
	force(s observedVM) error
	// lastWords returns the last lines of the VM's log, and advice about it.
	lastWords(id providers.ID) ([]string, []providers.Advice)

	// die makes the VM, or its host agent, end by itself, and returns once it has.
	die(ctx context.Context, s observedVM, kind string) error
	// faultOps lists the operations that the runner lets fail in ways of its own.
	faultOps() map[string][]string

	// readRun reads the run of a VM, nil if none is recorded. writeRun records it.
	readRun(f vmFile) (*runFile, error)
	writeRun(f vmFile, r *runFile) error
	// forgetRun removes the files of a run that is over.
	forgetRun(f vmFile) error
	// reclaim calls forgetRun, and frees the root disk if nobody else holds it. all: also the
	// other disks that the VM's processes had locked; vmctl has ended these processes.
	reclaim(f vmFile, all bool) error
}

func (p *Provider) runnerOf(f vmFile) runner {
	switch {
	case f.Weightless:
		return recordRunner{p}
	case f.HostAgent:
		return agentRunner{processRunner{p}}
	default:
		return processRunner{p}
	}
}

// newVM returns the file of a VM that is to be made.
func (p *Provider) newVM(id providers.ID, name string) vmFile {
	return vmFile{ID: id, Name: name, Weightless: p.weightless, HostAgent: p.hostAgent, Token: p.token}
}

// newRunner returns the runner of the VMs that are to be made.
func (p *Provider) newRunner() runner { return p.runnerOf(p.newVM("", "")) }

// runner returns the runner of the VM that the step has found.
func (j *job) runner() runner { return j.runnerOf(j.seen.vmFile) }
