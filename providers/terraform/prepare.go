package terraform

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/internal/lockfile"
	"vmctl/spec"
)

// preparedFile holds the Setup of the module that a data folder was prepared for.
const preparedFile = "vmctl-prepared"

// setup says what init takes beyond the module.
type setup struct {
	dir      string   // the data folder
	settings []string // of the backend, as of -backend-config: no secrets
	backend  backendConfig
}

// prepare runs init for a session, unless that was done in the data folder for this module. One init runs at a time: they share
// a cache of providers.
func (p *Provider) prepare(ctx context.Context, s *session, m spec.TerraformModule, with setup) error {
	if m.Backend == "" && !m.Providers {
		return nil // Terraform has all that it takes
	}
	mark := filepath.Join(with.dir, preparedFile)
	text, err := os.ReadFile(mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	prepared := err == nil && string(text) == m.Setup
	if prepared && with.backend.none() {
		return nil
	}
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if err := os.MkdirAll(p.settings.Dir, 0o700); err != nil { // the first plan of all is the first to need it
		return err
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(p.settings.Dir, "init.lock"), Wait: time.Hour})
	if err != nil {
		return err
	}
	err = p.prepareLocked(ctx, s, with, prepared)
	if err := errors.Join(err, lock.Release()); err != nil {
		return err
	}
	return atomicfile.Write(mark, []byte(m.Setup), 0o600)
}

func (p *Provider) prepareLocked(ctx context.Context, s *session, with setup, prepared bool) error {
	if !prepared {
		if err := errors.Join(os.RemoveAll(with.dir), os.MkdirAll(with.dir, 0o700)); err != nil {
			return err
		}
	}
	settings := with.settings
	if !with.backend.none() {
		files, err := with.backend.write(s.dir)
		if err == nil {
			err = s.confine(with.dir)
		}
		if err != nil {
			return err
		}
		settings = append(files, settings...)
	}
	if err := s.init(ctx, settings); err != nil {
		return p.explainLockFile(err)
	}
	// With one workspace in the backend, init selects it.
	if err := os.Remove(filepath.Join(s.env["TF_DATA_DIR"], "environment")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepState copies the state before Terraform rewrites it.
func (j *job) keepState(name string) error {
	var text []byte
	if j.seen != nil {
		text = j.seen.raw
	}
	if !isRemote(j.module) { // shared resources may have joined it
		now, err := os.ReadFile(j.p.statePath(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text = now
	}
	if len(text) == 0 {
		return nil
	}
	return atomicfile.Write(j.p.statePath(name)+beforeSuffix, text, 0o600)
}

// beforeSuffix ends the name of the file with the copy of a state from before its last change.
const beforeSuffix = ".before"

// given returns the variables of a VM that is destroyed: as it was made, or where the record has none, since they are secrets, as
// the spec has them.
func given(prior, want cty.Value) cty.Value {
	all := map[string]cty.Value{}
	for _, name := range []string{"variables", "variables_json"} {
		for _, from := range []cty.Value{prior, want} {
			if v := ctyread.Attr(from, name); ctyread.Known(v) {
				all[name] = v
				break
			}
		}
	}
	return cty.ObjectVal(all)
}

// variablesText returns the values of the variables of a VM as Terraform reads them. nil: there are none.
func variablesText(values cty.Value) []byte {
	all := objectOf(ctyread.Attr(values, "variables_json"))
	if texts := ctyread.Attr(values, "variables"); ctyread.Known(texts) {
		maps.Copy(all, texts.AsValueMap())
	}
	if len(all) == 0 {
		return nil
	}
	return spec.TerraformValues(all)
}

// objectOf returns the values of an object as JSON text; none: there is no text, or it is not known.
func objectOf(text cty.Value) map[string]cty.Value {
	all := map[string]cty.Value{}
	if !ctyread.Known(text) {
		return all
	}
	plain, _ := text.Unmark()
	raw := []byte(plain.AsString())
	kind, err := ctyjson.ImpliedType(raw)
	if err != nil || !kind.IsObjectType() {
		return all
	}
	if object, err := ctyjson.Unmarshal(raw, kind); err == nil && !object.IsNull() {
		maps.Copy(all, object.AsValueMap())
	}
	return all
}
