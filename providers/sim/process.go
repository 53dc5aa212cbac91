package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// processRunner runs each VM as a process with a pid file, a socket, and a lock on each of its
// disks.
type processRunner struct{ *Provider }

func (p processRunner) fits() error { return p.fitsSocket(p.socket("")) }

// fitsSocket fails if the path of a socket is too long.
func (p processRunner) fitsSocket(path string) error {
	longest := len(path)
	if longest <= socketLimit {
		return nil
	}
	return fmt.Errorf("provider.%s.%s: the folder %s is too long for the sockets inside: they would have names of %d bytes, and the system allows %d: "+
		"choose a shorter data directory (--data-dir=DIR) or folder, or set weightless = true", TypeName, p.settings.Name, p.dir, longest, socketLimit)
}

func (processRunner) image(want cty.Value) *machine.Image { return machine.DecodeImage(want) }

func (processRunner) lockClaims(all ...providers.Claim) []providers.Claim { return all }

func (p processRunner) prepare(j *job, f vmFile) error {
	if f.Config == nil {
		if err := errors.Join(j.writeVM(f), j.makeRoot(f), j.dropReserved()); err != nil {
			return err
		}
	}
	return j.growRoot(f)
}

func (p processRunner) discard(j *job, f vmFile) error {
	if _, err := p.unlock(p.rootLock(f.Name)); err != nil {
		return err
	}
	if err := errors.Join(atomicfile.Remove(p.logPath(f.ID)), atomicfile.Remove(p.rootPath(f.Name))); err != nil {
		return err
	}
	if machine.ArgsOf(j.Step).ThenMake { // its successor needs the reserved image
		return p.dropImages()
	}
	return j.dropReserved()
}

func (p processRunner) attach(ctx context.Context, j *job, f *vmFile) error {
	has := names(j.seen.run.With.Disks)
	for _, a := range j.want.Disks {
		if slices.Contains(has, a.Name) {
			continue
		}
		if _, err := p.ask(ctx, *f, question{Ask: askAttach, Lock: p.diskLock(a.Name)}); err != nil {
			return fail(err, "attach %s to %s", a.Name, j.Name)
		}
		j.log(providers.Progress{Text: "attached " + a.Name})
	}
	return nil
}

func (p processRunner) ask(ctx context.Context, f vmFile, q question) (answer, error) {
	return ask(ctx, p.socket(f.ID), q)
}

// request asks every process of the VM to end. Each is verified just before.
func (p processRunner) request(_ context.Context, s observedVM) error {
	return process.Each(s.alive, p.processes.Request)
}

// force ends every process of the VM, with its group.
func (p processRunner) force(s observedVM) error {
	return process.Each(s.alive, func(id process.Identity) error {
		_, err := p.processes.Force(id)
		return err
	})
}

func (p processRunner) lastWords(id providers.ID) ([]string, []providers.Advice) {
	const lines = 3
	next := slices.Concat(providers.Say("see its log: "+p.logPath(id)), providers.Vmctl("plan"))
	text, err := os.ReadFile(p.logPath(id))
	if err != nil {
		return []string{"its log cannot be read: " + err.Error()}, next
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	if all[0] == "" {
		return nil, next
	}
	for i, line := range all {
		all[i] = "its log says: " + line
	}
	return all[max(0, len(all)-lines):], next
}

func (p processRunner) readRun(f vmFile) (*runFile, error) {
	var r runFile
	err := readJSON(p.pidPath(f.ID), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && r.Process == nil {
		err = fmt.Errorf("read %s: it names no process", p.pidPath(f.ID))
	}
	return &r, err
}

func (p processRunner) writeRun(f vmFile, r *runFile) error { return p.write(p.pidPath(f.ID), r) }

// forgetRun removes also the files of a host agent: what is left of a VM whose own file is gone
// does not tell whether it had one.
func (p processRunner) forgetRun(f vmFile) error {
	return errors.Join(atomicfile.Remove(p.agentPid(f.ID)), atomicfile.Remove(p.agentSocket(f.ID)), atomicfile.Remove(p.pidPath(f.ID)), atomicfile.Remove(p.socket(f.ID)))
}

func (p processRunner) reclaim(f vmFile, all bool) error {
	_, err := p.unlock(p.rootLock(f.Name))
	errs := []error{p.forgetRun(f), err}
	if all {
		for name, h := range p.diskLocks() {
			if h.VM == f.ID {
				_, err := p.unlock(p.diskLock(name))
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
