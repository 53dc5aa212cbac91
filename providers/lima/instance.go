package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/process"
	"vmctl/internal/yamltext"
	"vmctl/providers"
)

// instance holds all observations of one instance.
type instance struct {
	name    string
	id      providers.ID
	mark    *mark // nil: it bears none of its own
	copied  *mark // a mark that was written for another instance
	text    string
	doc     map[string]any // its definition; nil: it has none
	root    uint64         // the size of its root disk in bytes; 0: there is none
	lost    string         // the path of its root disk, which was there and is gone; "": it is not
	guarded bool           // limactl protect

	state    string // one of providers.State…; "" if it could not be read
	reason   string // of a broken or an unknown state
	cause    error  // of an unknown state, as far as it is an error
	outdated string // evidence that another version of Lima runs it; "": the present one does
	silent   string // evidence that QEMU runs and its monitor does not answer; "": it does
	leftover string // evidence of files of processes that are gone
	agents   []process.Found
	drivers  []process.Found
	events   events
	alone    bool       // it is starting, and its host agent sets nothing up in it
	booted   bool       // its boot scripts have ended then
	run      *runRecord // of the present run; nil: it is off, or somebody else started it
	wsl      *wslPart   // nil: WSL does not run it
}

// on reports whether a process of the instance runs, or may run.
func (s *instance) on() bool { return s.state != providers.StateOff }

// unknown returns the reason of an unknown state as an error.
func (s *instance) unknown() error { return &unknownError{reason: s.reason, cause: s.cause} }

// unknownError reports that it could not be read whether an instance runs.
type unknownError struct {
	reason string
	cause  error // nil: it is none
}

func (e *unknownError) Error() string { return e.reason }
func (e *unknownError) Unwrap() error { return e.cause }

// starting reports whether the instance runs, and neither its host agent nor its console has reported it ready.
func (s *instance) starting() bool {
	return s.state == providers.StateRunning && len(s.agents) > 0 && !s.isSetUp()
}

// isSetUp reports whether its host agent has reported the guest running, or its boot scripts have ended and nothing else is
// to be set up.
func (s *instance) isSetUp() bool { return s.events.running || s.booted }

// readInstance reads the files of an instance and joins them with its processes. fs.ErrNotExist:
// there is no folder and no process of that name.
func (p *Provider) readInstance(ctx context.Context, name string, f found) (*instance, error) {
	s := &instance{name: name, id: unmarkedID("vm", name)}
	info, err := os.Stat(p.dir(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(f.of[name]) > 0: // its processes tell enough
	case errors.Is(err, fs.ErrNotExist) && p.isRegistered(name, f.wsl): // its registration does
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no folder", p.dir(name))
	}
	if err := p.readFiles(s); err != nil {
		return s, err
	}
	p.readProcesses(ctx, s, f)
	s.lost = p.lostRoot(s)
	p.recognise(s)
	return s, nil
}

// readFiles reads the mark, the definition and the root disk of an instance.
func (p *Provider) readFiles(s *instance) error {
	m, err := readMark(p.path(s.name, markName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case m.Name != s.name: // limactl clone and rename take the mark along
		s.copied = &m
	default:
		s.mark, s.id = &m, m.ID
	}
	text, err := os.ReadFile(p.path(s.name, defsFile))
	if err == nil {
		s.text = string(text)
		s.doc, err = yamltext.Parse(s.text)
		if err != nil {
			err = fmt.Errorf("read %s: %w", p.path(s.name, defsFile), err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path, _, err := p.rootDisk(s.name)
	if err == nil {
		s.root, _, err = diskSize(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.guarded = exists(p.path(s.name, protection))
	return nil
}

// rootDisk returns the file of an instance's root disk, and its format.
func (p *Provider) rootDisk(name string) (path, format string, err error) {
	for _, file := range []string{rootName, oldRoot} {
		path = p.path(name, file)
		if _, format, err = diskSize(path); !errors.Is(err, fs.ErrNotExist) {
			return path, format, err
		}
	}
	return "", "", err
}

// readProcesses adds the run state of an instance: by its processes first, then by the report of
// each.
func (p *Provider) readProcesses(ctx context.Context, s *instance, f found) {
	s.agents, s.drivers = f.of[s.name][roleAgent], f.of[s.name][roleDriver]
	switch inWSL, err := p.isInWSL(s, f.wsl); {
	case err != nil:
		s.state, s.reason = stateUnknown, err.Error()
	case inWSL:
		p.readDistribution(ctx, s, f)
	default:
		p.readDriver(ctx, s, f)
	}
	switch s.state {
	case providers.StateOff:
		s.leftover = p.leftovers(ctx, s.name, f.locks[s.name])
		return
	case stateUnknown:
		return
	}
	var err error
	if s.events, err = p.readEvents(s.name); err != nil {
		s.state, s.reason = stateUnknown, err.Error()
		return
	}
	s.run = p.readRun(s)
	p.readBoot(s)
	if now := p.version(); s.run != nil && s.run.Lima != "" && now != "" && s.run.Lima != now {
		s.outdated = fmt.Sprintf("its host agent is of Lima %s, and vmctl has Lima %s", s.run.Lima, now)
	}
	switch {
	case len(s.agents) == 1 && (s.events.ending || s.events.exiting):
		s.state, s.reason = providers.StateEnding, ""
	case s.state == providers.StateRunning && s.wsl == nil:
		p.askMonitor(ctx, s)
	}
}

// readDriver adds the run state of an instance by its processes.
func (p *Provider) readDriver(ctx context.Context, s *instance, f found) {
	unread := p.unreadable(ctx, s.name, f)
	row := phaseOf(countOf(s.agents, unread), countOf(s.drivers, unread))
	s.state = row.state
	if row.reason != "" {
		s.reason = fill(row.reason, process.Words(identities(s.agents)), process.Words(identities(s.drivers)))
	}
	if row.reason == reasonUnseen {
		s.reason += ": " + unread.Error()
	}
	if driver := otherDriver(s.doc); driver != "" && len(s.agents) > 0 && len(s.drivers) == 0 {
		s.state, s.reason = stateUnknown, fmt.Sprintf(reasonDriver, process.Words(identities(s.agents)), driver)
	}
}

// driverQEMU is the vmType of an instance that QEMU runs.
const driverQEMU = "qemu"

// otherDriver returns the vmType of a definition whose instance no QEMU runs; "": it is QEMU.
func otherDriver(doc map[string]any) string {
	if kind := text(doc[keyVMType], driverQEMU); kind != driverQEMU {
		return kind
	}
	return ""
}

// fill puts the processes into a reason, which may name both, one or none of them.
func fill(reason string, agents, drivers string) string {
	return strings.NewReplacer("%[1]s", agents, "%[2]s", drivers).Replace(reason)
}

func countOf(all []process.Found, err error) count {
	switch {
	case len(all) == 0 && err != nil:
		return unseen
	case len(all) == 0:
		return none
	case len(all) == 1:
		return one
	default:
		return several
	}
}

// askMonitor asks QEMU for the state of the guest. An instance whose monitor gives no answer in time
// runs, as its processes say: QEMU hangs, or somebody else has the monitor. It can be stopped.
func (p *Provider) askMonitor(ctx context.Context, s *instance) {
	status, err := guestState(ctx, p.path(s.name, qmpSock))
	switch {
	case errors.Is(err, errBusy):
		s.silent = fmt.Sprintf("QEMU (%s) runs, and its monitor gave no answer within %s", process.Words(identities(s.drivers)), qmpLimit)
		return
	case err != nil && !s.isSetUp():
		return // it has just begun
	case err != nil:
		s.state, s.reason = providers.StateBroken, "QEMU ("+process.Words(identities(s.drivers))+") does not answer: "+err.Error()
		return
	}
	state, known := monitorStates[status]
	if !known {
		s.state, s.reason = providers.StateBroken, fmt.Sprintf("QEMU (%s) runs, and its guest does not: it is in the state %s", process.Words(identities(s.drivers)), status)
		return
	}
	s.state = state
}

// readRun returns the record of the present run. A record of another run, which somebody else's
// start followed, says nothing.
func (p *Provider) readRun(s *instance) *runRecord {
	r, err := p.runRecord(s.name)
	if err != nil || len(s.agents) != 1 {
		return nil
	}
	switch {
	case r.Agent == nil && r.Definition == s.text: // the start was cut short, and nobody has changed the definition since
		return r
	case r.Agent != nil && r.Agent.PID == s.agents[0].PID && r.Agent.StartTime == s.agents[0].StartTime:
		return r
	}
	return nil
}

// leftovers returns evidence of files of processes that are gone, those of a writer that was killed among
// them; "": there are none.
func (p *Provider) leftovers(ctx context.Context, name string, locks []string) string {
	entries, err := os.ReadDir(p.dir(name))
	if err != nil { // the instance itself says so
		return ""
	}
	var all []string
	for _, e := range entries {
		file, path := e.Name(), p.path(name, e.Name())
		if !slices.Contains([]string{agentPid, agentSock, driverPid, qmpSock}, file) && filepath.Ext(file) != ".tmp" {
			continue
		}
		said := path
		if strings.HasSuffix(file, ".pid") {
			said += " (" + p.pidIn(ctx, path) + ")"
		}
		all = append(all, said)
	}
	for _, disk := range locks {
		all = append(all, "the lock of the disk "+disk)
	}
	if len(all) == 0 {
		return ""
	}
	return "its processes are gone, and left " + strings.Join(all, ", ")
}

// pidIn tells in words what became of the process that a pid file names.
func (p *Provider) pidIn(ctx context.Context, path string) string {
	pid, err := readPid(path)
	if err != nil {
		return err.Error()
	}
	now, err := p.processes.Capture(ctx, pid)
	switch {
	case errors.Is(err, process.ErrGone):
		return fmt.Sprintf("pid %d is gone", pid)
	case err != nil:
		return fmt.Sprintf("pid %d: %v", pid, err)
	}
	return fmt.Sprintf("pid %d is %s by now, which is no process of it", pid, filepath.Base(now.Exe))
}

// identities returns the identities of processes.
func identities(all ...[]process.Found) []process.Identity {
	var ids []process.Identity
	for _, f := range slices.Concat(all...) {
		ids = append(ids, f.Identity)
	}
	return ids
}
