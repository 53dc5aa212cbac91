package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"vmctl/cmd/internal/view"
	"vmctl/internal/mask"
	"vmctl/internal/pattern"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/secret"
	"vmctl/spec"
	"vmctl/state"
)

// project is a spec, with its data directory and its state.
type project struct {
	config *spec.Config
	owner  providers.Project
	dir    string // the data directory
	folder state.Folder
	store  state.Store
	key    state.DigestKey // of the data directory; zero: it has none yet, or it cannot be read
	keyErr error           // why the key cannot be read; nil: it can, or there is none
	masker *mask.Masker    // knows the secrets of the spec
	flawed error           // the mistakes of the spec, which was read as far as it goes; nil: it has none
}

// specDir returns the absolute path of the folder of the files.
func (a *app) specDir() string { return a.absolute(a.global.dir) }

func (a *app) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.env.Dir, path)
}

// load reads the spec. It shows the warnings, and fails with the mistakes.
func (a *app) load() (*spec.Config, error) { return a.sound(a.readSpec(nil)) }

// sound returns a spec without mistakes. It shows the warnings, and fails with the mistakes.
func (a *app) sound(config *spec.Config, diags hcl.Diagnostics) (*spec.Config, error) {
	if !diags.HasErrors() {
		diags = append(diags, a.longNames(config)...)
	}
	var sources map[string]*hcl.File
	if config != nil {
		sources = config.Files()
	}
	if diags.HasErrors() {
		return nil, a.mistakes(diags, sources)
	}
	a.warn(diags, sources)
	a.log().Debug("spec read", slog.String("dir", config.Dir), slog.Int("resources", len(config.Resources)))
	return config, nil
}

// readAnyway reads as much of the spec as it can, whatever mistakes that has.
func (a *app) readAnyway() *spec.Config {
	config, diags := a.readSpec(nil)
	a.log().Debug("spec read as far as it goes", slog.String("dir", config.Dir), slog.Int("problems", len(diags)))
	return config
}

// readSpec reads the spec and shows nothing. source replaces the files; nil: the files are
// read.
func (a *app) readSpec(source *spec.Source) (*spec.Config, hcl.Diagnostics) {
	in := a.inputs(source)
	in.Check, in.Expand = a.check, a.expand
	config, diags := spec.Load(a.specDir(), in)
	a.config = config
	return config, diags
}

// readUnchecked is readSpec without the providers' checks, for resources that nobody will
// make.
func (a *app) readUnchecked(source *spec.Source) (*spec.Config, hcl.Diagnostics) {
	return spec.Load(a.specDir(), a.inputs(source))
}

// readToEnd is readSpec for a command that only ends what exists. If the spec has mistakes,
// it tries again and accepts missing files.
func (a *app) readToEnd(source *spec.Source) (*spec.Config, hcl.Diagnostics) {
	config, diags := a.readSpec(source)
	if !diags.HasErrors() {
		return config, diags
	}
	in := a.inputs(source)
	in.AllowMissingFiles = true
	if without, other := spec.Load(a.specDir(), in); !other.HasErrors() {
		return without, other
	}
	return config, diags
}

// varFiles returns the absolute paths of the files of variables.
func (a *app) varFiles() []string {
	files := make([]string, len(a.global.varFiles))
	for i, f := range a.global.varFiles {
		files[i] = a.absolute(f)
	}
	return files
}

func (a *app) inputs(source *spec.Source) spec.Inputs {
	return spec.Inputs{
		Vars: a.global.vars, VarFiles: a.varFiles(), Environ: a.env.Environ, Supports: a.supports, System: a.system,
		ProviderTypes: a.typeNames(), BuiltIn: a.builtInType(), Version: a.env.Build.Version, Source: source,
	}
}

// open reads the spec and finds its data directory. It refuses a spec without an id: vmctl
// could not tell its own objects from others.
func (a *app) open() (*project, error) { return a.opened(a.readSpec(nil)) }

// openToEnd is open for a command that only ends what exists. Where the spec has mistakes the
// records count. It refuses a spec with an unreadable removed block, which might let go of an
// object.
func (a *app) openToEnd() (*project, error) {
	config, diags := a.readToEnd(nil)
	return a.openedAnyway(config, diags, true)
}

// openExisting is open for a command that acts on what exists. Where the spec has mistakes
// the records count.
func (a *app) openExisting() (*project, error) {
	config, diags := a.readSpec(nil)
	return a.openedAnyway(config, diags, false)
}

// openedAnyway is opened, but reads a spec with mistakes as far as it goes.
func (a *app) openedAnyway(config *spec.Config, diags hcl.Diagnostics, ending bool) (*project, error) {
	p, err := a.opened(config, diags)
	var flawed *specError
	if err == nil || !errors.As(err, &flawed) {
		return p, err
	}
	in := a.inputs(nil)
	in.Check, in.Expand, in.Partial, in.AllowMissingFiles = a.check, a.expand, true, ending
	config, _ = spec.Load(a.specDir(), in) //nolint:errcheck // what is wrong is known: flawed
	if config.Settings.ID == "" || ending && config.RemovalsUnread {
		return nil, err
	}
	if p, err = a.projectOf(config); err != nil {
		return nil, err
	}
	p.flawed = flawed
	a.warnKey(p)
	view.Warning(a.errScreen(), "the spec has mistakes ("+flawed.brief()+"): for what they are in, and for what refers to that, the records count. "+
		a.commandLine("validate", planFlags{})+" lists them")
	return p, nil
}

func (a *app) opened(config *spec.Config, diags hcl.Diagnostics) (*project, error) {
	config, err := a.sound(config, diags)
	if err != nil {
		return nil, err
	}
	if config.Settings.ID == "" {
		return nil, rejected("no_id", "the spec in "+config.Dir+" has no id, by which vmctl would know its own objects",
			a.commandLine("init", planFlags{})+" writes one")
	}
	p, err := a.projectOf(config)
	if err != nil {
		return nil, err
	}
	a.warnKey(p)
	return p, nil
}

// projectOf finds the data directory of a spec, and makes nothing.
func (a *app) projectOf(config *spec.Config) (*project, error) {
	if err := checkEnvName(a.global.env); err != nil {
		return nil, err
	}
	owner := providers.Project{Name: config.Settings.Project, ID: config.Settings.ID, Env: a.global.env}
	dir, err := a.dataDir(owner)
	if err != nil {
		return nil, err
	}
	a.log().Debug("data directory", slog.String("dir", dir))
	folder := state.Folder{Dir: dir, Now: a.env.Now}
	if owner.DataDirID, err = folder.DataDirID(); err != nil {
		return nil, err
	}
	store := state.NewStore(folder, state.Config{
		ID: owner.Lineage(), Project: owner.Name, Version: a.env.Build.Version, Now: a.env.Now,
		RepairWith: a.commandLine("state repair", planFlags{}),
	})
	p := &project{config: config, owner: owner, dir: dir, folder: folder, store: store, masker: &mask.Masker{}}
	p.masker.Add(config.Secrets()...)
	p.key, p.keyErr = folder.DigestKey()
	return p, nil
}

// warnKey warns that the key of digests cannot be read: nothing that is compared needs it.
func (a *app) warnKey(p *project) {
	if p.keyErr != nil {
		view.Warning(a.errScreen(), p.keyErr.Error()+"; "+strings.Join(a.problemOf(p.keyErr).Next, "; "))
	}
}

// read reads the state, and shows its notes as warnings.
func (a *app) read(ctx context.Context, p *project) (*state.Snapshot, error) {
	snapshot, err := p.store.Read(ctx)
	if err != nil {
		return nil, err
	}
	a.notes(snapshot)
	return snapshot, nil
}

func (a *app) notes(s *state.Snapshot) {
	for _, note := range s.Notes {
		view.Warning(a.errScreen(), note)
	}
}

// readBeside is read for a command that takes no lock. The holder is a run that holds the
// lock now, or held it before the state was read: it may be at work on steps that the state
// calls interrupted. The snapshot has the moves of the files in it.
func (a *app) readBeside(ctx context.Context, p *project) (*state.Snapshot, *state.Holder, error) {
	before, err := p.store.Holder(ctx)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	after, err := p.store.Holder(ctx)
	return snapshot.With(planner.Moves(p.config, snapshot)...), cmp.Or(after, before), err
}

// keys returns the folder of the keys of VMs. Their lock stands beside it.
func (p *project) keys() string { return filepath.Join(p.dir, "keys") }

// keptLogs returns the folder of the logs of VMs that are kept.
func (p *project) keptLogs() string { return filepath.Join(p.dir, "logs") }

// specPaths returns the absolute paths of everything that the spec of a project was read from.
func (a *app) specPaths(p *project) []string {
	return append(p.config.ReadPaths(), a.varFiles()...)
}

// opener returns a function that opens providers for the planner.
func (a *app) opener(p *project) planner.Open {
	return func(ctx context.Context, o planner.Opening) (providers.Provider, error) {
		ref := o.Ref
		if o.Type.Open == nil {
			return nil, fmt.Errorf("open %s: this build of vmctl has no provider type %q", ref, ref.Type)
		}
		if o.Via == nil && ref.IsOnThisHost() {
			o.Via = a.thisHost()
		}
		inside := ""
		if o.Via != nil {
			inside = o.Via.Address.String()
		}
		a.log().Debug("open provider", slog.String("provider", ref.String()), slog.String("inside", inside))
		s := providers.Settings{
			Name: ref.Label(), Attrs: o.Attrs, Project: p.owner, Files: p.config.Dir, Read: a.specPaths(p), Now: a.env.Now, Via: o.Via,
			Dir:  filepath.Join(p.dir, providerFolder(ref)),
			Keys: p.keys(), Logs: p.keptLogs(),
		}
		if key := p.key; !key.IsZero() {
			s.Digest = func(text string) string { return key.Text(ref.String(), text) }
		}
		provider, err := secret.Open(ctx, o.Type, s, p.masker)
		if err != nil { // a system that does not answer is no error here, so the settings are wrong
			return nil, rejected("provider_settings", "open "+ref.String()+": "+err.Error())
		}
		return provider, nil
	}
}

var plainKey = pattern.New(`^[A-Za-z0-9_-]{1,16}$`)

// providerFolder returns the name of a provider's own folder, different for each. The name is
// short, since the folder holds sockets: a digest stands for a key that is long or unfit for
// a file name.
func providerFolder(ref spec.ProviderRef) string {
	name := ref.Type + "-" + ref.Name
	if ref.Key == "" {
		return name
	}
	if plainKey.MatchString(ref.Key) {
		return name + "." + ref.Key
	}
	sum := sha256.Sum256([]byte(ref.Key))
	return name + ".=" + hex.EncodeToString(sum[:6])
}
