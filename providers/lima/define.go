package lima

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// definition returns the wanted definition and its mark.
func (j *job) definition(ctx context.Context) (written, mark, error) {
	g := parts{name: j.Name, vm: j.want, hosts: map[string]uint16{}}
	m := mark{Format: markFormat, ID: j.Object, Name: j.Name, Accel: j.want.Accel, Template: j.want.Template, Sources: map[string]string{}, MountPoints: map[string]string{}, Originals: map[string]any{}}
	for _, a := range j.want.Disks {
		g.disks = append(g.disks, j.usedDisk(j.Uses[a].Name, j.want.MountPoints[a]))
	}
	if j.seen != nil {
		for _, f := range forwardsOf(j.seen.doc, nil) {
			g.hosts[forwardKey(f)] = f.Host
		}
	}
	var err error
	if g.rest, err = j.rest(); err != nil {
		return written{}, m, err
	}
	m.Imported = j.seen != nil && j.seen.doc != nil && !j.seen.made()
	g.imported = m.Imported
	if g.authorized, err = j.authorized(ctx); err != nil {
		return written{}, m, err
	}
	public := ""
	if !m.Imported && j.want.SSH.HostKey != machine.HostKeyAcceptNew {
		if g.hostKey, public, err = j.hostKey(); err != nil {
			return written{}, m, err
		}
	}
	w, err := j.compose(g)
	if err != nil {
		return w, m, err
	}
	for _, mount := range j.want.Mounts {
		m.Sources[sourceKey(j.absolute(mount.Source), mount.Target)] = mount.Source
	}
	if given, _ := g.rest[keyParams].(map[string]any); m.Imported {
		for name := range j.want.Params {
			if value, there := given[name]; there {
				m.Originals[name] = value
			}
		}
	}
	for _, d := range g.disks {
		if d.mountPoint != "" {
			m.MountPoints[d.name] = d.mountPoint
		}
	}
	m.HadRoot = j.seen != nil && (j.seen.root > 0 || j.seen.mark != nil && j.seen.mark.HadRoot)
	m.Empty = emptyIn(j.Want)
	m.Keys, m.Params, m.Base, m.Forwards, m.Auto = w.keys, w.params, w.base, w.ports, w.auto
	p := j.settings.Project
	m.Owner = &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: j.Object, Generation: j.Generation, HostKey: public}
	return w, m, nil
}

// rest returns what a definition has beside its attributes: that of the template; of an instance that vmctl
// did not make, what it has, as long as the spec gives it no template.
func (j *job) rest() (map[string]any, error) {
	if s := j.seen; s != nil && s.doc != nil && !s.made() {
		switch {
		case s.mark == nil && j.want.Template == "":
			return s.doc, nil
		case s.mark != nil && s.mark.Template == j.want.Template:
			rest := base(s.doc, s.mark.Keys, s.mark.Params)
			if len(s.mark.Originals) > 0 {
				params, _ := rest[keyParams].(map[string]any)
				params = maps.Clone(params)
				if params == nil {
					params = map[string]any{}
				}
				for name, value := range s.mark.Originals {
					params[name] = value
				}
				rest[keyParams] = params
			}
			return rest, nil
		}
	}
	if j.want.Template == "" {
		return nil, nil
	}
	return yamltext.Parse(j.want.Template)
}

// isWanted reports whether the instance has the wanted definition and mark, and a root disk.
func (j *job) isWanted(ctx context.Context) (bool, error) {
	if machine.ArgsOf(j.Step).Keys == machine.KeysNew || j.seen == nil || j.seen.doc == nil || j.seen.mark == nil || !j.seen.isWhole() || !machine.IsMarked(j.Work, j.seen.mark.Owner.mark()) {
		return false, nil
	}
	w, m, err := j.definition(ctx)
	if err != nil {
		return false, err
	}
	now, err := yamltext.Marshal(j.seen.doc)
	grown := j.seen.on() || j.seen.root == 0 || j.seen.root >= j.want.RootDisk
	return err == nil && now == w.text && grown && sameMark(m, *j.seen.mark), err
}

func sameMark(a, b mark) bool {
	before, err := json.Marshal(a)
	after, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(before) == string(after)
}

// define makes or changes an instance: its folder comes into being with the mark in it, then its
// definition is checked and written, and last its root disk is made. It completes an instance that an
// interrupted attempt left half made.
func (j *job) define(ctx context.Context) (*guard.Outcome, error) {
	if j.seen != nil && j.seen.lost != "" {
		return nil, j.rootIsGone()
	}
	if err := j.checkKeys(); err != nil {
		return nil, err
	}
	w, m, err := j.definition(ctx)
	if err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	if err := j.checkDisks(); err != nil {
		return nil, err
	}
	if err := j.checkDefinition(ctx, w.text); err != nil {
		if j.seen == nil {
			err = errors.Join(err, j.forgetKeys())
		}
		return nil, err
	}
	if err := j.makeFolder(ctx, m); err != nil {
		return nil, err
	}
	if err := writeFile(j.path(j.Name, defsFile), w.text); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	if err := writeJSON(j.path(j.Name, markName), m); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	if j.seen != nil && (j.seen.root > 0 || m.Imported) {
		did, err := j.growRoot(ctx)
		if err == nil && machine.ArgsOf(j.Step).Keys == machine.KeysNew {
			did.Evidence = append(did.Evidence, "its host key is new, and the key to log in with is "+j.userKey()+", which all instances of the home let in: "+
				"to renew that, too, remove it and its .pub, and give each instance new keys")
		}
		return did, err
	}
	if err := j.ensureUserKey(ctx); err != nil {
		return nil, err
	}
	if err := j.run(ctx, "make", nil, "make", j.Name); err != nil {
		return nil, errors.Join(err, j.removeUnmade(ctx, m))
	}
	m.HadRoot = true
	if err := writeJSON(j.path(j.Name, markName), m); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// removeUnmade removes the folder of a new instance that Lima could not make.
func (j *job) removeUnmade(ctx context.Context, m mark) error {
	if j.seen != nil {
		return nil
	}
	return errors.Join(j.locked(ctx, func() error { return j.removeFolder(j.dir(j.Name), &m) }), j.forgetKeys())
}

// growRoot makes the root disk of an instance that is off as large as wanted. One that runs is grown by
// Lima when it starts.
func (j *job) growRoot(ctx context.Context) (*guard.Outcome, error) {
	if j.seen.on() || j.seen.root == 0 || j.seen.root >= j.want.RootDisk {
		return guard.Did(providers.Done), nil
	}
	path, format, err := j.rootDisk(j.Name)
	if err == nil {
		err = j.run(ctx, "grow its root disk", nil, "disk", "grow", path, format, strconv.FormatUint(j.want.RootDisk, 10))
	}
	if err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// makeFolder makes the folder of a new instance with its mark in it, at once: the name is the lock. An
// empty folder of the name, or one with no more than the remains of a run, gives way. A folder that could not get the
// name is removed.
func (j *job) makeFolder(ctx context.Context, m mark) error {
	if j.seen != nil {
		return nil
	}
	temp := j.dir(makingTemp + string(j.Object))
	err := removeTree(temp)
	if err == nil {
		err = os.MkdirAll(temp, 0o700)
	}
	if err == nil {
		err = writeJSON(filepath.Join(temp, markName), m)
	}
	if err == nil {
		err = j.locked(ctx, func() error { return j.publish(temp) })
	}
	taken := (*providers.Problem)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
	case errors.Is(err, fs.ErrExist) || isNotEmpty(err):
		err = j.nameTaken(&instance{name: j.Name})
	default:
		err = fail(err, "%s %s", j.Op, j.Name)
	}
	return errors.Join(err, removeTree(temp), j.forgetKeys())
}

// publish gives a folder with a mark in it the name of the instance.
func (j *job) publish(folder string) error {
	if err := j.clearLeftover(); err != nil {
		return err
	}
	if err := os.Rename(folder, j.dir(j.Name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(j.home)
}

// clearLeftover removes a folder of the instance's name that is no instance: what Lima's own deletion
// left, for example. It removes files of a run and Lima's settings, and refuses anything else.
func (j *job) clearLeftover() error {
	dir := j.dir(j.Name)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var strange []string
	for _, e := range entries {
		if !isRemains(e) {
			strange = append(strange, filepath.Join(dir, e.Name()))
		}
	}
	if len(strange) > 0 {
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "name_taken", Seen: strange,
			Next: providers.Say("see whether anybody needs them: ls -l "+dir, "then remove the folder: rm -r "+dir),
			Err:  fmt.Errorf("%s %s: the folder %s is no instance and has files that vmctl does not know", j.Op, j.Address, dir),
		}
	}
	for _, e := range entries {
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

func isRemains(e fs.DirEntry) bool {
	switch filepath.Ext(strings.TrimSuffix(e.Name(), ".1")) {
	case ".pid", ".sock", ".log", ".tmp":
		return true
	}
	return slices.Contains(runFiles, e.Name()) || strings.HasPrefix(e.Name(), "ssh.sock.") // one that ssh had not put in place yet
}

// checkDisks fails unless all additional disks are there.
func (j *job) checkDisks() error {
	for _, a := range j.want.Disks {
		if name := j.Uses[a].Name; !exists(j.diskPath(name, dataDisk)) {
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_disk", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: %s has no disk: %s is missing", j.Op, j.Address, a, j.diskPath(name, dataDisk)),
			}
		}
	}
	return nil
}

// detach removes the disks and ports that the step frees from the definition, so that another VM can
// have them before this one is changed. The instance is off.
func (j *job) detach(context.Context) (*guard.Outcome, error) {
	if j.seen.on() {
		return nil, j.stillRuns()
	}
	doc, err := yamltext.Parse(j.seen.text)
	if err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	disks, _ := doc[keyDisks].([]any)
	doc[keyDisks] = slices.DeleteFunc(slices.Clone(disks), func(entry any) bool {
		names := namesOf(map[string]any{keyDisks: []any{entry}})
		return len(names) == 1 && j.disks[names[0]] != nil && slices.Contains(j.Frees, machine.DiskClaim(j.disks[names[0]].id))
	})
	list, _ := doc[keyForwards].([]any)
	doc[keyForwards] = slices.DeleteFunc(slices.Clone(list), func(entry any) bool {
		f := forwardsOf(map[string]any{keyForwards: []any{entry}}, nil)
		return len(f) == 1 && slices.Contains(j.Frees, f[0].Claim())
	})
	text, err := yamltext.Marshal(doc)
	if err == nil {
		err = writeFile(j.path(j.Name, defsFile), text)
	}
	if err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// unmark removes the owner from the mark of the instance, which stays as it is: it keeps its ID.
func (j *job) unmark(context.Context) (*guard.Outcome, error) {
	m := *j.seen.mark
	m.Owner = nil
	if err := writeJSON(j.path(j.Name, markName), m); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}
