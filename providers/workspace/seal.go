package workspace

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/gitx"
	"vmctl/providers"
	"vmctl/spec"
)

// sealOf returns the seal of a record in an object with that ID: a digest of the ID and of every field, made with the key of
// this host. "": there is no key.
func (p *Provider) sealOf(r record, around providers.ID) (string, error) {
	if p.settings.Digest == nil {
		return "", nil
	}
	r.Seal = ""
	line, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return p.settings.Digest(fmt.Sprintf("record of a workspace in %q: %s", around, line)), nil
}

// around returns the ID of the object in which the workspaces are.
func (p *Provider) around(ctx context.Context) (providers.ID, error) {
	o, err := p.settings.Via.Object(ctx)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", p.settings.Via.Address, err)
	}
	return o.ID, nil
}

// text returns a record as its file is to have it. One in a guest is sealed.
func (p *Provider) text(ctx context.Context, r record) ([]byte, error) {
	r.Seal = ""
	if !p.onHost() {
		around, err := p.around(ctx)
		if err != nil {
			return nil, err
		}
		if r.Seal, err = p.sealOf(r, around); err != nil {
			return nil, err
		}
	}
	return r.text(p.tree())
}

// memory holds the facts about a workspace that this host wrote down itself.
type memory struct {
	address                  spec.Address
	name                     string
	repo, branch, path, base string
}

// remember notes what this host has written down about the object with an ID. Values of another object count for nothing.
func (p *Provider) remember(id providers.ID, a spec.Address, name string, values cty.Value) {
	if values == cty.NilVal || ctyread.Text(values, "id") != string(id) {
		return
	}
	p.keepInMind(id, memory{
		address: a, name: name, repo: ctyread.Text(values, "repo"), branch: ctyread.Text(values, "branch"),
		path: ctyread.Text(values, "path"), base: ctyread.Text(values, "base"),
	})
}

func (p *Provider) keepInMind(id providers.ID, m memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[providers.ID]memory{}
	}
	p.known[id] = m
}

func (p *Provider) remembered(id providers.ID) (memory, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.known[id]
	return m, ok
}

// wrote notes the record that this host has written.
func (p *Provider) wrote(r record, a spec.Address) {
	p.keepInMind(r.ID, memory{address: a, name: r.Name, repo: r.Repo, branch: r.Branch, path: r.Path, base: r.Base})
}

// contradicts returns the first fact of a record that is another one here; "": there is none.
func (m memory) contradicts(r record) string {
	for _, fact := range []struct{ name, here, there string }{
		{"repo", m.repo, r.Repo}, {"branch", m.branch, r.Branch}, {"path", m.path, r.Path}, {"base", m.base, r.Base},
	} {
		if fact.here != "" && fact.here != fact.there {
			return fact.name
		}
	}
	return ""
}

// unseal finds the records that this host did not write, or not as they are now. Nothing that they say is followed on this
// host: in place of it stands what this host remembers of the workspace in that folder.
func (p *Provider) unseal(ctx context.Context, all []*seen) error {
	if p.onHost() || len(all) == 0 {
		return nil
	}
	around, err := p.around(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Unsealed == "" {
			if w.Unsealed, err = p.unsealed(w, around); err != nil {
				return err
			}
		}
		if w.Unsealed != "" {
			p.distrust(w)
		}
	}
	return nil
}

// unsealed returns the reason why a record is not followed; "": it is.
func (p *Provider) unsealed(w *seen, around providers.ID) (string, error) {
	want, err := p.sealOf(w.record, around)
	switch {
	case err != nil:
		return "", err
	case want == "":
		return "this host has no key to check its seal with", nil
	case w.Seal == "":
		return "it has no seal", nil
	case !hmac.Equal([]byte(want), []byte(w.Seal)):
		return "its seal is false: it was changed in the guest, or was written for another VM or with another key", nil
	case string(w.ID) != w.Folder:
		return "it is a copy of that of workspace " + w.Name, nil
	}
	if m, ok := p.remembered(w.ID); ok {
		if fact := m.contradicts(w.record); fact != "" {
			return "it is not the last one that was written: its " + fact + " differs from the one in the state", nil
		}
	}
	return "", nil
}

// distrust replaces what a record says by what this host remembers.
func (p *Provider) distrust(w *seen) {
	w.ID, w.Repository, w.Env, w.Seal = providers.ID(w.Folder), "", "", ""
	m, ok := p.remembered(w.ID)
	if !ok {
		if !gitx.IsObjectName(w.Base) {
			w.Base = ""
		}
		if w.Name == "" {
			w.Name = w.Folder
		}
		return
	}
	w.Name, w.Repo, w.Branch, w.Path, w.Base = m.name, m.repo, m.branch, m.path, m.base
	w.Owner = p.settings.Project.MarkOf(m.address, w.ID)
}

// whyUnsealed says in words that the record of a workspace is not followed; "": it is.
func (w *seen) whyUnsealed() string {
	if w.Unsealed == "" {
		return ""
	}
	return "its record in the guest is not followed: " + w.Unsealed
}

// refuseUnsealed refuses to follow a record that is not sealed.
func (w *seen) refuseUnsealed() error {
	if w.Unsealed == "" {
		return nil
	}
	return &RefusedError{Why: w.whyUnsealed(), Seen: []string{w.recordFile()}, Next: []string{"to write it anew from what this host knows: vmctl apply"}}
}

// recordFile returns the path of the file with a record, in the home there.
func (w *seen) recordFile() string { return strings.Join([]string{"~", home, w.Folder, "mark"}, "/") }

// sealDue returns the finding about a record that is not sealed, and the step that writes it anew.
func (p *Provider) sealDue(w *seen) (*providers.Due, *providers.Finding) {
	if w.Unsealed == "" {
		return nil, nil
	}
	if _, known := p.remembered(w.ID); !known && (w.Owner == nil || w.Owner.ID != p.settings.Project.Lineage()) {
		return nil, nil // somebody else's
	}
	return &providers.Due{Op: opWrite, Reason: "its record is written anew from what this host knows"}, &providers.Finding{
		Kind: providers.FindUnsealed, Object: w.Name, Action: "its record is not followed",
		Evidence: []string{w.recordFile() + ": " + w.Unsealed},
		Next:     providers.SayVmctl("see whether somebody in the VM did that; to write it anew from what this host knows: ", "apply"),
	}
}
