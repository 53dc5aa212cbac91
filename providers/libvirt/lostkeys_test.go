package libvirt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
)

// lacks returns the evidence of the finding no_key of vm.dev, "" without one.
func (l *lab) lacks(want cty.Value) string {
	l.t.Helper()
	for _, f := range l.object(want).Findings {
		if f.Kind == providers.FindNoKey {
			return l.plain(strings.Join(f.Evidence, "\n"))
		}
	}
	return ""
}

func (l *lab) key(name string) string { return filepath.Join(l.settings.Keys, devID, name) }

// A finding reports the keys that this machine lacks; they are no edit.
func TestKeysThatAreElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(l *lab)
	}{
		{"none", "", func(*lab) {}},
		{"the private key alone", "KEYS/id_ed25519 is missing", func(l *lab) { removeFile(t, l.key("id_ed25519")) }},
		{"the pair", "KEYS/id_ed25519 is missing", func(l *lab) {
			removeFile(t, l.key("id_ed25519"))
			removeFile(t, l.key("id_ed25519.pub"))
		}},
		{"the private key is everybody's", "the private key KEYS/id_ed25519 may be read by others (mode 0644): chmod 600 KEYS/id_ed25519", func(l *lab) {
			if err := os.Chmod(l.key("id_ed25519"), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"all", "KEYS/id_ed25519 is missing", func(l *lab) {
			if err := os.RemoveAll(l.settings.Keys); err != nil {
				t.Fatal(err)
			}
		}},
		{"another pair", "it has other keys than those in KEYS", func(l *lab) {
			removeFile(t, l.key("id_ed25519"))
			if _, err := sshx.EnsureKey(l.key("id_ed25519"), ""); err != nil {
				t.Fatal(err)
			}
		}},
		{"the host's pair, which only the guest needs", "", func(l *lab) {
			removeFile(t, l.key("ssh_host_ed25519_key"))
			removeFile(t, l.key("ssh_host_ed25519_key.pub"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := made(t, vm(nil))
			before := l.object(vm(nil))
			tt.change(l)
			after := l.object(vm(nil))
			wantText(t, "what is found", tt.want, l.lacks(vm(nil)))
			if !after.Attrs.RawEquals(before.Attrs) || after.Fingerprint != before.Fingerprint {
				t.Errorf("it is shown as another object: %#v", after.Attrs)
			}
		})
	}
}

// A user who has the key that the block names needs nothing else.
func TestKeyOfTheBlock(t *testing.T) {
	identity := filepath.Join(t.TempDir(), "mine")
	if _, err := sshx.EnsureKey(identity, "me"); err != nil {
		t.Fatal(err)
	}
	want := vm(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{
		"user": cty.StringVal("root"), "identity": cty.StringVal(identity), "host_key": cty.StringVal("pin"),
	})})
	l := made(t, want)
	if err := os.RemoveAll(l.settings.Keys); err != nil {
		t.Fatal(err)
	}
	wantText(t, "what is found", "", l.lacks(want))
	to, err := l.provider.Reach(*l.object(want), want)
	if err != nil || to.IdentityFile != identity || !strings.HasPrefix(to.HostKey, "ssh-ed25519 ") {
		t.Errorf("logging in: %+v, %v", to, err)
	}
	wantText(t, "an edit", "redefine: done, off", lineOf(l.apply(l.change(providers.RestartIt, larger(want), "memory")), "redefine"))
}

// larger returns a vm with other memory.
func larger(want cty.Value) cty.Value {
	m := want.AsValueMap()
	m["memory"] = cty.NumberIntVal(512 << 20)
	return cty.ObjectVal(m)
}

// lineOf returns the line with the outcome of a step.
func lineOf(said, op string) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, op+":") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// A guest whose keys are elsewhere can be changed, and keeps them; only files with the keys
// in them cannot be written.
func TestEditsWithoutKeys(t *testing.T) {
	l := booted(t, nil)
	if err := os.RemoveAll(l.settings.Keys); err != nil {
		t.Fatal(err)
	}
	initrd := initrdOf(l)
	want := larger(vm(nil))
	if got := l.apply(l.change(providers.Update, want, "memory")); lineOf(got, "redefine") != "redefine: done, off" || initrdOf(l) != initrd {
		t.Fatalf("its memory:\n%s", got)
	}
	got := l.waiting(t.Context(), want)
	_, got, _ = strings.Cut(got, "wait_ssh: ")
	wantText(t, "ready", "done, running\n  = its host key is proven, and nobody has logged in: KEYS/id_ed25519 is missing\n", got)

	l.file("files/initrd", "another")
	m := want.AsValueMap()
	b := m["boot"].AsValueMap()
	b["initrd_sha256"] = digestOf("another")
	m["boot"] = cty.ObjectVal(b)
	_, err := l.provider.Steps(l.change(providers.RestartIt, cty.ObjectVal(m), "boot.initrd_sha256"))
	var refusal *providers.Problem
	if !errors.As(err, &refusal) {
		t.Fatalf("another initial RAM disk: %v", err)
	}
	wantText(t, "another initial RAM disk", `
what is written for its guest holds its keys, which are not on this machine
run vmctl where the keys are: with the data directory that made them
or give it new ones: vmctl vm rekey vm.dev
`, refusal.Error()+"\n"+strings.Join(providertest.Lines(refusal.Next), "\n")+"\n")
	if _, err := l.provider.Reach(*l.object(want), want); err == nil ||
		l.plain(err.Error()) != "this machine has no key to log in with: KEYS/id_ed25519 is missing" {
		t.Errorf("logging in: %v", err)
	}
}

// A guest that answers with another host key is not ready, keys or not.
func TestWrongHostKeyWithoutKeys(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.HostKey = sshtest.NewKey(t) })
	if err := os.RemoveAll(l.settings.Keys); err != nil {
		t.Fatal(err)
	}
	if got := lineOf(l.waiting(t.Context(), vm(nil)), "wait_ssh"); !strings.HasPrefix(got, "wait_ssh: refused host_key_changed") {
		t.Errorf("got %s", got)
	}
}

// rekey gives the guest new keys, whether this machine has its present ones or not.
func TestRekey(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"keys that are here": func(*lab) {},
		"keys that are elsewhere": func(l *lab) {
			if err := os.RemoveAll(l.settings.Keys); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := made(t, vm(nil))
			identity, hostKey, initrd := readFile(t, l.key("id_ed25519.pub")), l.object(vm(nil)).Owner.HostKey, initrdOf(l)
			change(l)
			if got := l.apply(rekeyed(l.change(providers.RestartIt, vm(nil)))); !strings.HasSuffix(got, "start: done, running\n") {
				t.Fatal(got)
			}
			o := l.object(vm(nil))
			if readFile(t, l.key("id_ed25519.pub")) == identity || o.Owner.HostKey == hostKey || initrdOf(l) == initrd {
				t.Error("the guest has the same keys")
			}
			wantText(t, "what is found", "", l.lacks(vm(nil)))
		})
	}
}

// A folder that an older vmctl named by the VM's name is used, and moved with the next
// change; its mark says no host key.
func TestKeysOfAnOlderVersion(t *testing.T) {
	l := made(t, vm(nil))
	if err := os.Rename(filepath.Join(l.settings.Keys, devID), filepath.Join(l.settings.Keys, "lab.dev")); err != nil {
		t.Fatal(err)
	}
	hostKey := ` host_key="` + l.object(vm(nil)).Owner.HostKey + `"`
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured, d.Running = strings.ReplaceAll(d.Configured, hostKey, ""), strings.ReplaceAll(d.Running, hostKey, "")
	})
	wantText(t, "what is found", "", l.lacks(vm(nil)))
	to, err := l.provider.Reach(*l.object(vm(nil)), vm(nil))
	if err != nil || to.IdentityFile != filepath.Join(l.settings.Keys, "lab.dev", "id_ed25519") {
		t.Errorf("logging in: %+v, %v", to, err)
	}
	initrd := initrdOf(l)
	l.apply(l.change(providers.RestartIt, larger(vm(nil)), "memory"))
	if o := l.object(larger(vm(nil))); o.Owner.HostKey == "" || initrdOf(l) != initrd || readFile(t, l.key("id_ed25519")) == "" {
		t.Errorf("after a change: %+v", o.Owner)
	}
	wantText(t, "what is found after it", "", l.lacks(vm(nil)))
	l.apply(l.change(providers.Destroy, vm(nil)))
	if left, err := os.ReadDir(l.settings.Keys); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The keys of other people are part of the guest's keys at its boot; vmctl's own keys stay
// the same.
func TestKeysOfOthers(t *testing.T) {
	const ann, bob = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFW3DidxaOFcw/DP7UEyrUZK7EootroTQf2mI743ygzE ann", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFW3DidxaOFcw/DP7UEyrUZK7EootroTQf2mI743ygzE bob"
	with := func(lines ...string) cty.Value {
		all := cty.ListValEmpty(cty.String)
		for _, line := range lines {
			all = cty.ListVal(append(all.AsValueSlice(), cty.StringVal(line)))
		}
		return vm(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{
			"user": cty.StringVal("root"), "identity": null, "host_key": cty.StringVal("pin"), "authorized_keys": all,
		})})
	}
	edit := func(l *lab, before, after cty.Value) providers.Change {
		c := l.change(providers.RestartIt, after, "ssh.authorized_keys")
		c.Prior, c.Object = before, l.object(before)
		return c
	}
	guestsFile := func(l *lab) string {
		volume := l.Volume(poolName, devID+".initrd-"+initrdOf(l))
		return unpack(t, bytes.TrimPrefix(volume, []byte("ramdisk\x00")))["vmctl/authorized_keys"]
	}
	l := made(t, with(ann))
	identity, hostKey := readFile(t, l.key("id_ed25519.pub")), l.object(with(ann)).Owner.HostKey
	if got := guestsFile(l); got != identity+ann+"\n" {
		t.Errorf("the guest gets\n%q", got)
	}
	if got := l.apply(edit(l, with(ann), with(bob))); !strings.HasSuffix(got, "start: done, running\n") {
		t.Fatal(got)
	}
	if got := guestsFile(l); got != identity+bob+"\n" {
		t.Errorf("then the guest gets\n%q", got)
	}
	if readFile(t, l.key("id_ed25519.pub")) != identity || l.object(with(bob)).Owner.HostKey != hostKey {
		t.Error("its own keys are others")
	}
	if err := os.RemoveAll(l.settings.Keys); err != nil {
		t.Fatal(err)
	}
	lost := edit(l, with(bob), with())
	_, err := l.provider.Steps(lost)
	var refusal *providers.Problem
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Error(), "which are not on this machine") {
		t.Errorf("without its keys: %v", err)
	}
}

// A line that is no public key is reported at its line.
func TestKeysOfOthersAreChecked(t *testing.T) {
	for line, want := range map[string]string{
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFW3DidxaOFcw/DP7UEyrUZK7EootroTQf2mI743ygzE\n": "",
		"": "is no line of authorized_keys",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----\n":                 "is a private key: write the public half",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFW3DidxaOFcw/DP7UEyrUZK7EootroTQf2mI743ygzE\nssh-rsa x": "has several lines",
	} {
		got := ""
		if err := sshx.CheckAuthorized(line); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %s", line, got)
		}
	}
}
