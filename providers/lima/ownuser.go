package lima

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
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
	return p.ownUser(s), p.mountedAt(s.doc, dir), nil
}

// ownUser returns the user that Lima makes in an instance.
func (p *Provider) ownUser(s *instance) string {
	if u, ok := s.doc[keyUser].(map[string]any); ok {
		if name := text(u["name"], ""); name != "" {
			return name
		}
	}
	name, err := p.userName()
	if err != nil {
		return limaUser
	}
	made, err := os.ReadFile(p.path(s.name, limaVersion))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // Lima takes its own version then
		made = []byte("unknown")
	}
	return guestUser(name, strings.TrimSpace(string(made)))
}

func (p *Provider) userName() (string, error) {
	if p.host.User != nil {
		return p.host.User()
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// guestUser returns the user that Lima makes in a guest for a user of this host. made is the version of Lima that made
// the instance; "": one before 0.20. Source: LimaUser in pkg/osutil/user.go of Lima v2.2.0.
func guestUser(name, made string) string {
	reserved := name == "admin" && made != "" && !beforeLima1.MatchString(made)
	if reserved || !guestName.MatchString(name) {
		return limaUser
	}
	return name
}

// limaUser is the user in the place of those whose names no guest takes.
const limaUser = "lima"

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
