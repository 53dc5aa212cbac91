package lima

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

const (
	forceLimit   = 10 * time.Second       // the time for a process that was forced to end
	pollInterval = 100 * time.Millisecond // the pause between two observations of an instance that comes up
)

// runRecord reads the record of the last run; fs.ErrNotExist: there is none.
func (p *Provider) runRecord(name string) (*runRecord, error) {
	text, err := os.ReadFile(p.path(name, runName))
	if err != nil {
		return nil, err
	}
	var r runRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", p.path(name, runName), err)
	}
	return &r, nil
}

// start brings the instance up: it returns once QEMU runs. What it is started with is recorded before.
func (j *job) start(ctx context.Context) (*guard.Outcome, error) {
	if err := j.startable(); err != nil {
		return nil, err
	}
	removed, err := j.reclaim(ctx)
	if err != nil {
		return nil, fail(err, "tidy up after the last run of %s", j.Name)
	}
	if err := j.ensureUserKey(ctx); err != nil {
		return nil, err
	}
	if err := j.portsAreFree(ctx); err != nil {
		return nil, err
	}
	if err := j.fitToKVM(ctx); err != nil {
		return nil, fail(err, "start %s", j.Name)
	}
	tried := j.triesKVM() // another VM's start may find out meanwhile that it does not work
	err = j.bringUp(ctx)
	if why := j.whyNotKVM(err); tried && why != "" {
		var fell []string
		if fell, err = j.fallBack(ctx, why); err == nil {
			removed = append(removed, fell...)
			err = j.bringUp(ctx)
		}
	}
	if err != nil {
		return nil, j.notStarted(ctx, err)
	}
	return guard.Did(providers.Done, removed...), nil
}

// bringUp starts the host agent, and returns once QEMU runs. It records the definition before the start,
// and the host agent after it.
func (j *job) bringUp(ctx context.Context) error {
	if err := j.keepDisks(); err != nil {
		return err
	}
	text, err := j.choosePorts()
	if err != nil {
		return err
	}
	r := runRecord{Definition: text, Accel: j.want.Accel, Lima: j.version(), Auto: j.seen.mark.Auto}
	if err := writeJSON(j.path(j.Name, runName), r); err != nil {
		return err
	}
	if err := errors.Join(j.rotateLogs(), j.noteRegistration()); err != nil {
		return err
	}
	var started struct {
		PID int `json:"pid"`
	}
	err = j.runTool(ctx, j.want.Accel, nil, &started, j.log, "start", j.Name)
	j.agent = started.PID // also if the start was interrupted
	if err != nil {
		return err
	}
	s, err := j.waitForQEMU(ctx)
	if err == nil && j.triesKVM() {
		err = j.watch(ctx)
	}
	if err != nil {
		return err
	}
	r.Agent = &s.agents[0].Identity
	if err := writeJSON(j.path(j.Name, runName), r); err != nil { // it runs: only what it runs with is less sure
		j.log(providers.Progress{Text: "it runs, and that could not be recorded: " + err.Error()})
	}
	return nil
}

// rotateLogs keeps the logs of the run before, which Lima would overwrite: ha.stderr.log becomes
// ha.stderr.log.1.
func (j *job) rotateLogs() error {
	entries, err := os.ReadDir(j.dir(j.Name))
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".log" {
			err = errors.Join(err, os.Rename(j.path(j.Name, e.Name()), j.path(j.Name, e.Name()+".1")))
		}
	}
	return err
}

// startable fails if the instance cannot be started as it is.
func (j *job) startable() error {
	switch {
	case j.seen.on():
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "broken", Seen: []string{j.seen.reason}, Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("start %s: something of it runs already", j.Address),
		}
	case j.seen.doc == nil:
		return fail(errors.New("it is half made"), "start %s", j.Name)
	case j.seen.mark == nil:
		return fail(errors.New("it bears no mark"), "start %s", j.Name)
	case j.seen.lost != "":
		return j.rootIsGone()
	case !j.seen.isWhole():
		return fail(errors.New("it is half made: it has no root disk"), "start %s", j.Name)
	}
	if err := errors.Join(j.startableInWSL(), j.checkDisks()); err != nil {
		return err
	}
	return j.disksAreFree()
}

// disksAreFree fails if another instance has locked one of the disks.
func (j *job) disksAreFree() error {
	for _, name := range namesOf(j.seen.doc) {
		target, holder, err := j.readLock(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && holder == j.Name:
		case err != nil:
			return fail(err, "start %s", j.Name)
		default:
			return &providers.Problem{
				Outcome: providers.Unsafe, Code: "disk_locked", Seen: []string{fmt.Sprintf("%s names %s", j.diskPath(name, lockName), target)},
				Next: providers.Vmctl("plan"), Err: fmt.Errorf("start %s: the disk %s is locked by another instance", j.Address, name),
			}
		}
	}
	return nil
}

// choosePorts chooses the host ports that the spec leaves open, writes them into the definition, and
// returns its text.
func (j *job) choosePorts() (string, error) {
	auto := j.seen.mark.Auto
	if len(auto) == 0 {
		return j.seen.text, nil
	}
	doc, err := yamltext.Parse(j.seen.text)
	if err != nil {
		return "", fail(err, "start %s", j.Name)
	}
	fixed := forwardsOf(doc, auto)
	fixed = slices.DeleteFunc(fixed, func(f machine.Forward) bool { return !f.Fixed() })
	chosen := map[string]uint16{}
	before := forwardsOf(doc, nil)
	all := slices.Clone(fixed)
	for _, key := range auto {
		f, ok := parseForwardKey(key)
		if !ok {
			continue
		}
		if chosen[key], err = j.choosePort(f, before); err != nil {
			return "", fail(err, "start %s: choose a host port for its port %d", j.Name, f.Guest)
		}
		all = append(all, f)
	}
	doc[keyForwards], _ = forwards(all, chosen)
	text, err := yamltext.Marshal(doc)
	if err == nil {
		err = writeFile(j.path(j.Name, defsFile), text)
	}
	if err != nil {
		return "", fail(err, "start %s", j.Name)
	}
	j.seen.doc, j.seen.text = doc, text
	return text, nil
}

// choosePort returns a free port of the host: the one that the last run had, if it is free. Lima
// listens a moment later, so that somebody else may take it meanwhile.
func (j *job) choosePort(f machine.Forward, before []machine.Forward) (uint16, error) {
	if !machine.ArgsOf(j.Step).NewPorts {
		for _, had := range before {
			if had.Guest != f.Guest || had.Protocol != f.Protocol || had.HostIP != f.HostIP {
				continue
			}
			if port, err := listenOnce(f, had.Host); err == nil {
				return port, nil
			}
		}
	}
	return listenOnce(f, 0)
}

// listenOnce returns a port on which somebody can listen: the given one, or for 0 one that the kernel
// chooses.
func listenOnce(f machine.Forward, port uint16) (uint16, error) {
	at := net.JoinHostPort(f.HostIP, strconv.Itoa(int(port)))
	if f.Protocol == machine.UDP {
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			return 0, err
		}
		defer c.Close()                                       //nolint:errcheck // nothing was sent
		return uint16(c.LocalAddr().(*net.UDPAddr).Port), nil //nolint:forcetypeassert,gosec // a port of a listener on udp
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return 0, err
	}
	defer l.Close()                                  //nolint:errcheck // nobody has connected
	return uint16(l.Addr().(*net.TCPAddr).Port), nil //nolint:forcetypeassert,gosec // a port of a listener on tcp
}

// waitForQEMU waits until the host agent has started QEMU, and fails as soon as it has ended. An instance
// that cannot be read for a moment is read again.
func (j *job) waitForQEMU(ctx context.Context) (*instance, error) {
	for {
		s, err := j.readInstance(ctx, j.Name, j.find(ctx))
		switch {
		case err == nil && s.isUp():
			return s, nil
		case err == nil && s.state == providers.StateOff:
			return nil, errors.New("its host agent ended before its guest ran")
		}
		if j.host.Sleep(ctx, pollInterval) != nil {
			return nil, errors.Join(context.Cause(ctx), errors.New("its guest did not run in time"), err)
		}
	}
}

// notStarted returns the failure of an instance that did not come up. It ends what the step has started,
// and nothing else: somebody else may have started the instance meanwhile. The logs stay.
func (j *job) notStarted(ctx context.Context, cause error) error {
	last := j.lastWords(j.Name)
	if err := j.endStarted(ctx); err != nil {
		return fail(errors.Join(cause, err), "start %s: what runs of it does not end", j.Name)
	}
	f := fail(cause, "start %s", j.Address)
	if f.Outcome == providers.Failed {
		f.Code = "not_started"
	}
	var refused *refusedError
	if errors.As(cause, &refused) {
		last = append(refused.said, last...)
	}
	f.Seen = append(f.Seen, last...)
	f.Next = slices.Concat(providers.Say("read the log of its host agent: "+j.path(j.Name, agentLog)), providers.Vmctl("plan"))
	return f
}

// endStarted ends the host agent that the step has started, with its QEMU, and removes their files. What somebody else has
// started stays as it is.
func (j *job) endStarted(ctx context.Context) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceLimit)
	defer cancel()
	ours := startedBy(j.agent, j.find(own).of[j.Name])
	err := process.Each(ours, func(id process.Identity) error {
		_, err := j.processes.Force(id)
		return err
	})
	if err := errors.Join(err, j.processes.Wait(own, ours...)); err != nil {
		return err
	}
	if err := j.terminateStarted(own); err != nil {
		return err
	}
	j.agent = 0
	switch _, err := j.reclaim(own); {
	case errors.Is(err, errRuns):
		return nil
	case err != nil:
		return err
	}
	return atomicfile.Remove(j.path(j.Name, runName))
}

// startedBy returns the identities of a host agent with that pid and of its QEMU, QEMU first. Lima puts QEMU into a
// process group of its own: it is that agent's child, or an orphan beside no other host agent.
func startedBy(agent int, all map[role][]process.Found) []process.Identity {
	if agent == 0 {
		return nil
	}
	var ours []process.Identity
	alone := !slices.ContainsFunc(all[roleAgent], func(f process.Found) bool { return f.PID != agent })
	for _, f := range all[roleDriver] {
		if alone || f.Parent == agent || f.PGID == agent {
			ours = append(ours, f.Identity)
		}
	}
	for _, f := range all[roleAgent] {
		if f.PID == agent {
			ours = append(ours, f.Identity)
		}
	}
	return ours
}

// errRuns says that an instance that was off runs by now.
var errRuns = errors.New("it runs by now: somebody else has started it")

// reclaim removes the files of processes of the instance, which is confirmed to be off, and frees the disks
// that it has locked. It searches for processes once more before, since a start of somebody else makes such files. It returns
// what it did, in words.
func (j *job) reclaim(ctx context.Context) ([]string, error) {
	f := j.find(ctx)
	if len(f.of[j.Name]) > 0 {
		return nil, errRuns
	}
	if err := j.unreadable(ctx, j.Name, f); err != nil {
		return nil, err
	}
	if err := j.offInWSL(f); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(j.dir(j.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".pid", ".sock", ".tmp":
			errs = append(errs, atomicfile.Remove(j.path(j.Name, e.Name())))
			removed = append(removed, "removed "+e.Name())
		}
	}
	disks, err := j.releaseLocks(j.Name)
	return append(removed, freed(disks)...), errors.Join(append(errs, err)...)
}
