package libvirt_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/providers"
)

func TestReach(t *testing.T) {
	l := newLab(t)
	object := func(port int64) providers.Object {
		return providers.Object{ID: devID, Name: "lab.dev", Attrs: cty.ObjectVal(map[string]cty.Value{"ssh_port": cty.NumberIntVal(port)})}
	}
	values := func(user, identity, hostKey string) cty.Value {
		v := cty.NullVal(cty.String)
		if identity != "" {
			v = cty.StringVal(identity)
		}
		return cty.ObjectVal(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{
			"user": cty.StringVal(user), "identity": v, "host_key": cty.StringVal(hostKey),
		})})
	}
	keys, mine := filepath.Join(l.settings.Keys, devID), filepath.Join(t.TempDir(), "mine")
	for _, path := range []string{filepath.Join(keys, "id_ed25519"), filepath.Join(l.settings.Files, "keys", "mine"), mine} {
		if _, err := sshx.EnsureKey(path, ""); err != nil {
			t.Fatal(err)
		}
	}
	own := providers.Login{
		Address: "127.0.0.1", Port: 2222, User: "root", IdentityFile: filepath.Join(keys, "id_ed25519"),
		Alias: "lab.dev", KnownHosts: filepath.Join(keys, "known_hosts"),
	}
	for _, test := range []struct {
		name   string
		values cty.Value
		change func(*providers.Login)
	}{
		{"a pair of vmctl's own", values("root", "", "pin"), func(*providers.Login) {}},
		{"what was found names nobody", cty.EmptyObjectVal, func(*providers.Login) {}},
		{"another user, and any host key at first", values("me", "", "accept-new"), func(l *providers.Login) { l.User, l.AcceptNew = "me", true }},
		{"a key of the user's, beside the files", values("root", "keys/mine", "pin"), func(to *providers.Login) { to.IdentityFile = filepath.Join(l.settings.Files, "keys", "mine") }},
		{"a key of the user's, elsewhere", values("root", mine, "pin"), func(to *providers.Login) { to.IdentityFile = mine }},
	} {
		want := own
		test.change(&want)
		got, err := l.provider.Reach(object(2222), test.values)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

func TestReachSaysWhyNothingLeadsThere(t *testing.T) {
	l := newLab(t)
	off := providers.Object{Name: "lab.dev", Attrs: cty.EmptyObjectVal}
	unread := providers.Object{Name: "lab.dev", Attrs: cty.EmptyObjectVal, Unreadable: map[string]string{"ssh_port": "the monitor is silent"}}
	on := providers.Object{Name: "lab.dev", Attrs: cty.ObjectVal(map[string]cty.Value{"ssh_port": cty.NumberIntVal(2222)})}
	refused := func(o providers.Object, want string) {
		t.Helper()
		if _, err := l.provider.Reach(o, cty.NilVal); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	refused(off, "no port of this host leads to its SSH")
	refused(unread, "its SSH port could not be read: the monitor is silent")
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu+ssh://box/system"), "pool": null})
	l.open()
	refused(on, "its SSH is on the host box alone, which this build does not reach into")
}
