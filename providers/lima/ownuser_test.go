package lima

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"vmctl/providers"
)

// People enter an instance as limactl shell lets them in: as its own user, in their present folder if that is mounted.
func TestOwnUser(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, folder := range []string{"src/lib", "other", "home/x"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "src"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(root, path) }
	mounts := "mounts:\n- {location: " + at("src") + ", mountPoint: /work}\n- {location: " + at("src/lib") + "}\n" +
		"- {location: '~/x'}\n- {location: " + at("other") + ", mountPoint: '/mnt/{{.Name}}'}\n"
	for name, c := range map[string]struct {
		doc, dir   string
		user, want string
	}{
		"no mounts":            {doc: "cpus: 1\n", dir: at("src"), user: me.Username},
		"user of the template": {doc: "user: {name: ann}\n", dir: at("src"), user: "ann"},
		"mounted elsewhere":    {doc: mounts, dir: at("src"), user: me.Username, want: "/work"},
		"through a link":       {doc: mounts, dir: at("link"), user: me.Username, want: "/work"},
		"innermost mount":      {doc: mounts, dir: at("src/lib"), user: me.Username, want: at("src/lib")},
		"in the home":          {doc: mounts, dir: at("home/x"), user: me.Username, want: at("home/x")},
		"not mounted":          {doc: mounts, dir: root, user: me.Username},
		"filled in by Lima":    {doc: mounts, dir: at("other"), user: me.Username},
		"plain mode":           {doc: mounts + "plain: true\n", dir: at("src"), user: me.Username},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Provider{home: t.TempDir(), host: Host{Home: at("home")}}
			if err := os.Mkdir(p.dir("x"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.path("x", defsFile), []byte(c.doc), 0o600); err != nil {
				t.Fatal(err)
			}
			user, folder, err := p.OwnUser(providers.Object{Name: "x"}, c.dir)
			if err != nil || user != c.user || folder != c.want {
				t.Errorf("user %s in %q, %v, want %s in %q", user, folder, err, c.user, c.want)
			}
		})
	}
}

// A guest takes no user whose name Lima replaces: of people whose name is none of Linux, and of one that is reserved
// since Lima 1.0.
func TestGuestUser(t *testing.T) {
	for _, c := range []struct{ name, made, want string }{
		{"ann", "2.2.0", "ann"},
		{"_ann-1", "2.2.0", "_ann-1"},
		{"Ann", "2.2.0", "lima"},
		{"ann.lee", "2.2.0", "lima"},
		{"1ann", "2.2.0", "lima"},
		{"ann$", "2.2.0", "lima"},
		{`HOST\ann`, "2.2.0", "lima"},
		{"", "2.2.0", "lima"},
		{"Ann", "", "lima"},
		{"admin", "2.2.0", "lima"},
		{"admin", "1.0.0", "lima"},
		{"admin", "v1.0.0-3-gabcdef0", "lima"},
		{"admin", "0.23.2", "admin"},
		{"admin", "v0.23.2-1-gabcdef0.m", "admin"},
		{"admin", "", "admin"},
		{"admin", "<unknown>", "lima"},
		{"administrator", "2.2.0", "administrator"},
	} {
		t.Run(c.name+" of "+c.made, func(t *testing.T) {
			p := &Provider{home: t.TempDir(), host: Host{User: func() (string, error) { return c.name, nil }}}
			if err := os.Mkdir(p.dir("x"), 0o700); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{defsFile: "cpus: 1\n"}
			if c.made != "" {
				files[limaVersion] = c.made + "\n"
			}
			for name, text := range files {
				if err := os.WriteFile(p.path("x", name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, _, err := p.OwnUser(providers.Object{Name: "x"}, ""); err != nil || got != c.want {
				t.Errorf("the user is %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
