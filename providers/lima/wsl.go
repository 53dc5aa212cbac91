package lima

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"vmctl/internal/process"
	"vmctl/internal/wsl"
	"vmctl/providers"
)

// driverWSL2 is the vmType of an instance that is a distribution of Windows Subsystem for Linux. Lima
// registers it when the instance is started for the first time, with its root disk in the instance's folder,
// and it runs inside a VM of Windows: no process of this machine is its driver.
const driverWSL2 = "wsl2"

// distributionPrefix begins the names of Lima's distributions. All homes of a user share these names.
const distributionPrefix = "lima-"

func distributionOf(instance string) string { return distributionPrefix + instance }

// wslContent is the content of WSL, read when it is first asked for. The zero one belongs to a machine without
// WSL.
type wslContent struct {
	registrations func() ([]wsl.Registration, error)
	distributions func() ([]wsl.Distribution, error)
}

func (p *Provider) readWSL(ctx context.Context) wslContent {
	if !p.host.WSL.Exists() {
		return wslContent{}
	}
	return wslContent{
		registrations: sync.OnceValues(p.host.WSL.Registered),
		distributions: sync.OnceValues(func() ([]wsl.Distribution, error) { return p.host.WSL.List(ctx) }),
	}
}

// wslPart is the part of an instance that WSL has.
type wslPart struct {
	own     *wsl.Registration // nil: the instance is not registered
	other   *wsl.Registration // that of another folder, which has the name of the instance; nil: there is none
	state   wsl.State         // of own
	hasDisk bool              // the root disk is there
	dead    bool              // own is all that is left: nothing runs, and its root disk is gone
}

// runsInWSL reports whether the distribution of an instance runs.
func (s *instance) runsInWSL() bool {
	return s.wsl != nil && s.wsl.own != nil && s.wsl.state == wsl.Running
}

// hasRoot reports whether the instance has a root disk.
func (s *instance) hasRoot() bool { return s.root > 0 || s.wsl != nil && s.wsl.hasDisk }

// isUp reports whether its one host agent and its one driver run.
func (s *instance) isUp() bool {
	return len(s.agents) == 1 && (len(s.drivers) == 1 || s.runsInWSL())
}

// isInWSL reports whether an instance is one of WSL: by its vmType, or if it names none, by the
// registration of its folder.
func (p *Provider) isInWSL(s *instance, c wslContent) (bool, error) {
	if c.registrations == nil {
		return false, nil
	}
	if kind := text(s.doc[keyVMType], ""); kind != "" {
		return kind == driverWSL2, nil
	}
	all, err := c.registrations()
	return slices.ContainsFunc(all, func(r wsl.Registration) bool { return p.isRegistrationOf(r, s.name) }), err
}

func (p *Provider) isRegistrationOf(r wsl.Registration, instance string) bool {
	return r.Has(distributionOf(instance)) && r.IsIn(p.dir(instance))
}

// isRegistered reports whether an instance without a folder is registered with WSL.
func (p *Provider) isRegistered(instance string, c wslContent) bool {
	alone, err := p.registeredAlone(c)
	_, is := alone[instance]
	return err == nil && is
}

// registeredAlone returns the registrations of instances of the home that have no folder, by the instance's
// name. Their root disks, which were in the folder, are gone, too.
func (p *Provider) registeredAlone(c wslContent) (map[string]wsl.Registration, error) {
	if c.registrations == nil {
		return nil, nil
	}
	if _, err := os.Stat(p.home); err != nil { // perhaps all of the home is only out of reach
		return nil, nil
	}
	all, err := c.registrations()
	alone := map[string]wsl.Registration{}
	for _, r := range all {
		name := filepath.Base(r.Folder)
		if p.isRegistrationOf(r, name) && !exists(p.dir(name)) {
			alone[name] = r
		}
	}
	return alone, err
}

// recognise gives an instance that has lost its files, or all of its folder, the ID of the one that vmctl has
// registered so.
func (p *Provider) recognise(s *instance) {
	if s.wsl == nil || !s.wsl.dead || s.mark != nil || s.copied != nil || s.doc != nil {
		return
	}
	if id := p.registeredBy(*s.wsl.own); id != "" {
		s.id, s.mark = id, &mark{Format: markFormat, ID: id, Name: s.name}
	}
}

// readDistribution adds the run state of an instance of WSL: by its distribution and its host agents. What
// WSL has is unknown, and never absent, if it does not say so twice.
func (p *Provider) readDistribution(ctx context.Context, s *instance, f found) {
	s.wsl = &wslPart{}
	all, err := f.wsl.distributions()
	hidden, unread, runs := p.unreadable(ctx, s.name, f), err, none
	d := wsl.Find(all, distributionOf(s.name))
	switch {
	case err != nil:
		runs = unseen
	case d != nil && d.IsIn(p.dir(s.name)):
		s.wsl.own, s.wsl.state = &d.Registration, d.State
		if d.State == wsl.Running {
			runs = one
		}
		if d.State == wsl.Busy {
			runs, unread = unseen, fmt.Errorf("the distribution %s is being installed, converted, exported or unregistered", d.Name)
		}
	case d != nil:
		s.wsl.other = &d.Registration
	}
	path := filepath.Join(p.dir(s.name), wslDisk)
	if s.wsl.own != nil {
		path = s.wsl.own.Disk
	}
	_, diskErr := os.Stat(path)
	s.wsl.hasDisk = diskErr == nil
	if s.wsl.own != nil && diskErr != nil && !errors.Is(diskErr, fs.ErrNotExist) {
		runs, unread = unseen, diskErr
	}
	row := phaseOf(countOf(s.agents, hidden), runs)
	s.state = row.state
	s.reason = fill(cmp.Or(wslReasons[row.reason], row.reason), process.Words(identities(s.agents)), distributionOf(s.name))
	if row.reason == reasonUnseen {
		s.cause = errors.Join(hidden, unread)
		s.reason += ": " + s.cause.Error()
	}
	if s.state == providers.StateOff && s.wsl.own != nil && !s.wsl.hasDisk {
		s.wsl.dead = true
		s.state, s.reason = providers.StateBroken, fmt.Sprintf("WSL has the registration %s, and its root disk %s is gone", s.wsl.own.Name, path)
	}
}

// addFindings adds the problems of the part of an instance that WSL has.
func (w *wslPart) addFindings(s *instance, add func(kind providers.FindingKind, action, evidence string)) {
	switch {
	case w == nil:
	case w.other != nil:
		add(providers.FindBroken, "left alone: it cannot be started", w.othersName())
	case w.own == nil && w.hasDisk:
		add(providers.FindBroken, "left alone: it cannot be started", w.lostDisk(s.name))
	}
}

func (w *wslPart) othersName() string {
	return fmt.Sprintf("WSL has given its name %s to another distribution, which is in %s", w.other.Name, w.other.Folder)
}

func (w *wslPart) lostDisk(name string) string {
	return fmt.Sprintf("its root disk %s is there, and WSL has no registration %s", wslDisk, distributionOf(name))
}

// brokenAction returns the action of vmctl on a broken instance; "": the plan says it.
func (s *instance) brokenAction() string {
	if s.wsl != nil && s.wsl.dead && s.mark == nil {
		return "left alone: nothing shows that vmctl has registered it; wsl.exe --unregister " + s.wsl.own.Name + " removes it"
	}
	return ""
}

// startableInWSL fails if a start would run another distribution, or could not import one.
func (j *job) startableInWSL() error {
	w := j.seen.wsl
	switch {
	case w == nil:
		return nil
	case w.other != nil:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "name_taken", Seen: []string{w.othersName()},
			Next: providers.Say("see what WSL has: wsl.exe --list --verbose", fmt.Sprintf("set another name in the block of %s", j.Address)),
			Err:  fmt.Errorf("start %s: a start would run another distribution", j.Address),
		}
	case w.own == nil && w.hasDisk:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "not_registered", Seen: []string{w.lostDisk(j.Name)},
			Next: providers.Say(
				"register it: wsl.exe --import-in-place "+distributionOf(j.Name)+" "+j.path(j.Name, wslDisk),
				"or move it away, and a start makes a new one from the image",
			),
			Err: fmt.Errorf("start %s: its root disk is not registered", j.Address),
		}
	}
	return nil
}

// registeredFile is the file, beside vmctl's own keys of an instance, which says what vmctl has registered
// with WSL: it outlives the instance's folder.
const registeredFile = "wsl.json"

// registeredAs is the content of registeredFile.
type registeredAs struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
}

// noteRegistration notes that vmctl registers the instance with WSL, before Lima does.
func (j *job) noteRegistration() error {
	if j.seen.wsl == nil {
		return nil
	}
	if err := os.MkdirAll(j.keyFolder(j.Object), 0o700); err != nil {
		return err
	}
	return writeJSON(filepath.Join(j.keyFolder(j.Object), registeredFile), registeredAs{Name: distributionOf(j.Name), Folder: j.dir(j.Name)})
}

// registeredBy returns the ID of the instance for which vmctl made a registration; "": none is known.
func (p *Provider) registeredBy(r wsl.Registration) providers.ID {
	notes, err := filepath.Glob(filepath.Join(p.settings.Keys, "*", registeredFile))
	if err != nil { // the path of the data directory is no pattern: nothing is recognised
		return ""
	}
	for _, path := range notes {
		var note registeredAs
		content, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(content, &note) == nil && r.Has(note.Name) && r.IsIn(note.Folder) {
			return providers.ID(filepath.Base(filepath.Dir(path)))
		}
	}
	return ""
}
