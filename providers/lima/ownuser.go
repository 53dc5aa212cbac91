package lima

import (
	"path"
	"path/filepath"
	"strings"

	"vmctl/providers"
)

var _ providers.OwnUser = (*Provider)(nil)

// OwnUser implements providers.OwnUser: as limactl shell enters an instance.
func (p *Provider) OwnUser(o providers.Object, dir string) (user, folder string, err error) {
	s := &instance{name: o.Name, id: o.ID}
	if err := p.readFiles(s); err != nil {
		return "", "", err
	}
	return ownUser(s.doc), p.mountedAt(s.doc, dir), nil
}

// mountedAt returns the path in the guest of a folder of this host, by the innermost mount that it is in; "": it is in
// none. Paths that Lima fills in are not looked at.
func (p *Provider) mountedAt(doc map[string]any, dir string) string {
	if plain, _ := doc[keyPlain].(bool); plain || dir == "" {
		return ""
	}
	found, longest := "", -1
	list, _ := doc[keyMounts].([]any)
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		source := text(e["location"], "")
		if source == "~" {
			source = p.host.Home
		}
		source = p.absolute(source)
		target := text(e["mountPoint"], source)
		if strings.Contains(source+target, "{{") {
			continue
		}
		rest, err := filepath.Rel(resolveExisting(source), resolveExisting(dir))
		if err != nil || !filepath.IsLocal(rest) || len(source) <= longest {
			continue
		}
		found, longest = path.Join(target, filepath.ToSlash(rest)), len(source)
	}
	return found
}
