package terraform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/spec"
)

// states is the place of the states of the VMs of a module.
type states interface {
	// list lists the workspaces of the project, by name.
	list(ctx context.Context) ([]workspace, error)
	// read returns the state of a workspace that is listed, and writes nothing. nil: nothing was made in it yet.
	read(ctx context.Context, name string) ([]byte, error)
	// write replaces the state of the workspace of a session by a later one.
	write(ctx context.Context, s *session, name string, text []byte) error
	// remove removes a workspace in which nothing is left.
	remove(ctx context.Context, name string) error
	// release renames a workspace, so that it is vmctl's no more, and returns its place.
	release(ctx context.Context, name string) (place string, err error)
}

var (
	_ states = localStates{}
	_ states = remoteStates{}
	_ states = recalledStates{}
)

// isRemote reports whether the backend of a module keeps the states elsewhere than in the data directory.
func isRemote(m spec.TerraformModule) bool { return m.Backend != "" && m.Backend != "local" }

// sharesState reports whether the backend of a module has one state, or is told to use one.
func sharesState(m spec.TerraformModule) bool {
	return slices.Contains(withoutWorkspaces(), m.Backend) || m.OneWorkspace
}

// statesOf returns the place of the states of a module.
func (p *Provider) statesOf(m spec.TerraformModule) states {
	if isRemote(m) {
		return remoteStates{p, m}
	}
	return localStates{p}
}

// statesDir returns the folder of what vmctl keeps about each workspace on this machine.
func (p *Provider) statesDir() string { return filepath.Join(p.settings.Dir, "states") }

// statePath returns the file with the state of a workspace that is on this machine.
func (p *Provider) statePath(name string) string {
	return filepath.Join(p.statesDir(), name, stateName)
}

// folders lists the workspaces of the project that have a folder on this machine, by name.
func (p *Provider) folders() ([]workspace, error) {
	names, err := readNames(p.statesDir(), func(name string) bool { return strings.HasPrefix(name, prefix+separator) })
	return p.ours(names), err
}

// readNames lists the names in a folder for which keep is true, sorted. A folder that does not exist has none.
func readNames(dir string, keep func(name string) bool) ([]string, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(-1)
	if err = errors.Join(err, folder.Close()); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !keep(name) })
	slices.Sort(names)
	return names, nil
}

// ours returns the workspaces of the project among the names of workspaces.
func (p *Provider) ours(names []string) []workspace {
	var all []workspace
	lineage := encode(p.settings.Project.Lineage())
	for _, name := range names {
		if w, ok := parseWorkspace(name); ok && w.lineage == lineage {
			all = append(all, w)
		}
	}
	return all
}

// folderOf returns the workspace of an object that has a folder on this machine. nil: there is none.
func (p *Provider) folderOf(id providers.ID) (*workspace, error) {
	names, err := readNames(p.statesDir(), func(name string) bool { return strings.HasSuffix(name, separator+digits(id)) })
	return workspaceOf(p.ours(names), id), err
}

func workspaceOf(all []workspace, id providers.ID) *workspace {
	for _, w := range all {
		if w.id == id {
			return &w
		}
	}
	return nil
}

// removeFolders removes what vmctl and Terraform keep about a workspace on this machine.
func (p *Provider) removeFolders(name string) error {
	// The state goes last: a later run finds what is left by it.
	for _, path := range []string{p.dataPath(name), p.copyPath(name), p.appliedPath(name)} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(p.statesDir(), name))
}

// releasedPrefix begins the name of a workspace that is vmctl's no more.
const releasedPrefix = "released" + separator

// localStates are states in the data directory.
type localStates struct{ p *Provider }

func (l localStates) list(context.Context) ([]workspace, error) { return l.p.folders() }

func (l localStates) read(_ context.Context, name string) ([]byte, error) {
	text, err := os.ReadFile(l.p.statePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (l localStates) write(_ context.Context, _ *session, name string, text []byte) error {
	return atomicfile.Write(l.p.statePath(name), text, 0o600)
}

func (l localStates) remove(_ context.Context, name string) error { return l.p.removeFolders(name) }

func (l localStates) release(_ context.Context, name string) (string, error) {
	to := filepath.Join(l.p.statesDir(), releasedPrefix+name)
	if err := errors.Join(os.RemoveAll(l.p.copyPath(name)), os.RemoveAll(l.p.appliedPath(name))); err != nil {
		return "", err
	}
	return to, os.Rename(filepath.Join(l.p.statesDir(), name), to)
}

// recalledStates are states as they were observed: what is not among them is read.
type recalledStates struct {
	states

	all   []workspace
	texts map[string][]byte
}

func (r recalledStates) list(context.Context) ([]workspace, error) { return r.all, nil }

func (r recalledStates) read(ctx context.Context, name string) ([]byte, error) {
	if text, ok := r.texts[name]; ok {
		return text, nil
	}
	return r.states.read(ctx, name)
}

// recall returns the states for a preview: those of a backend elsewhere as they were observed last, since each costs a process.
func (p *Provider) recall(m spec.TerraformModule) states {
	p.recalling.Lock()
	defer p.recalling.Unlock()
	if p.observed == nil || !isRemote(m) {
		return p.statesOf(m)
	}
	return *p.observed
}

// keep keeps what was observed for previews.
func (p *Provider) keep(r recalledStates) {
	p.recalling.Lock()
	defer p.recalling.Unlock()
	p.observed = &r
}

// placeName is the name of the file that says which backend keeps the state of a workspace; there is none for one in the data
// directory.
const placeName = "backend"

// notePlace notes which backend keeps the state of a workspace.
func (p *Provider) notePlace(m spec.TerraformModule, name string) error {
	if !isRemote(m) {
		return nil
	}
	if err := atomicfile.Write(filepath.Join(p.statesDir(), name, placeName), []byte(p.placeOf(m)), 0o600); err != nil {
		return err
	}
	// The backend has its state, and that on this machine is the one before.
	err := os.Rename(p.statePath(name), p.statePath(name)+beforeSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// placeOf describes the backend of a module: its type, and digests of its configuration.
func (p *Provider) placeOf(m spec.TerraformModule) string {
	return m.Backend + " " + m.BackendDigest + " " + p.backend.place()
}

// hasPlace reports whether a backend elsewhere keeps, or kept, the state of a workspace.
func (p *Provider) hasPlace(w workspace) bool {
	_, err := os.Stat(filepath.Join(p.statesDir(), w.name, placeName))
	return err == nil
}

// elsewhere fails if the state of a workspace, which the backend of the module does not have, was kept in another place.
func (p *Provider) elsewhere(m spec.TerraformModule, w workspace) error {
	text, err := os.ReadFile(filepath.Join(p.statesDir(), w.name, placeName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = os.Stat(p.statePath(w.name))
	isHere := err == nil
	backend, _, _ := strings.Cut(string(text), " ")
	command := p.commandLine(setting{"TF_WORKSPACE", w.name})
	switch {
	case backend == "" && isHere && sharesState(m):
		return fmt.Errorf("its state is in %s, and the module has the backend %s now, with one state for all VMs: take that edit back", p.statePath(w.name), m.Backend)
	case backend == "" && isRemote(m) && isHere:
		return fmt.Errorf("its state is in %s, and the module has the backend %s now: take that edit back, or, once the module is initialised, run %s",
			p.statePath(w.name), m.Backend, command("state", "push", p.statePath(w.name)))
	case backend == "" || isHere:
		return nil
	case !isRemote(m):
		return fmt.Errorf("its state was kept by the backend %s, and the module keeps states in the data directory now: take that edit back, or put the state into %s",
			backend, p.statePath(w.name))
	case string(text) != p.placeOf(m):
		return fmt.Errorf("its state was kept by the backend %s as the module configured it then, and is not where the backend %s of the module is now: take that edit back, or copy the workspace %s",
			backend, m.Backend, w.name)
	default:
		return nil
	}
}
