package nocloud_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	backend "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"vmctl/internal/nocloud"
)

func access(user string) *nocloud.Access {
	return &nocloud.Access{
		User: user, Authorized: "ssh-ed25519 AAAAmine me",
		HostPrivate: "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n", HostPublic: "ssh-ed25519 AAAAhost h\n",
	}
}

// read returns the files of a CD-ROM by the names that a guest sees.
func read(t *testing.T, s nocloud.Seed) map[string]string {
	t.Helper()
	scratch := filepath.Join(t.TempDir(), "scratch")
	content, err := s.ISO(scratch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(scratch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder with secrets is left: %v", err)
	}
	// ISO 9660, 8.4.8: the volume's identifier, which is how cloud-init finds it.
	if got := strings.TrimRight(string(content[16*2048+40:][:32]), "\x00 "); got != "cidata" {
		t.Errorf("label = %q, want cidata", got)
	}
	// The long name in Rock Ridge's NM entry (IEEE P1282, 4.1.4), and in Joliet's two
	// bytes a character.
	for _, name := range []string{"NM\x0e\x01\x00user-data", "\x00u\x00s\x00e\x00r\x00-\x00d\x00a\x00t\x00a"} {
		if !strings.Contains(string(content), name) {
			t.Errorf("no file has the name %q", name)
		}
	}
	path := filepath.Join(t.TempDir(), "seed.iso")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	system, err := iso9660.Read(backend.New(f, true), 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := system.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		f, err := system.OpenFile(e.Name(), os.O_RDONLY)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func TestSeedHasTheFilesOfNoCloud(t *testing.T) {
	got := read(t, nocloud.Seed{
		InstanceID: "i-1", Hostname: "web-a", UserData: "#cloud-config\nruncmd: [ls]\n", NetworkConfig: "version: 2\n",
	})
	want := map[string]string{
		"meta-data":      `{"instance-id":"i-1","local-hostname":"web-a"}` + "\n",
		"network-config": "version: 2\n",
		"user-data":      "#cloud-config\nruncmd: [ls]\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The source takes a disk for none without user-data.
func TestSeedOfNothing(t *testing.T) {
	got := read(t, nocloud.Seed{InstanceID: "i-1", Hostname: "dev"})
	if got["user-data"] != "#cloud-config\n{}\n" || len(got) != 2 {
		t.Errorf("files = %q", got)
	}
}

// settings reads a cloud-config of vmctl's, which is JSON.
func settings(t *testing.T, text string) map[string]any {
	t.Helper()
	body, ok := strings.CutPrefix(text, "#cloud-config\n")
	if !ok {
		t.Fatalf("not a cloud-config: %s", text)
	}
	all := map[string]any{}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return all
}

func TestAccessOfRoot(t *testing.T) {
	root := access("root")
	root.Others = []string{"ssh-ed25519 AAAAbob bob"}
	got := settings(t, read(t, nocloud.Seed{InstanceID: "i", Hostname: "h", Access: root})["user-data"])
	want := map[string]any{
		"merge_how": []any{
			map[string]any{"name": "list", "settings": []any{"append"}},
			map[string]any{"name": "dict", "settings": []any{"no_replace", "recurse_list"}},
			map[string]any{"name": "str", "settings": []any{}},
		},
		"ssh_keys":            map[string]any{"ed25519_private": access("").HostPrivate, "ed25519_public": "ssh-ed25519 AAAAhost h"},
		"disable_root":        false,
		"ssh_authorized_keys": []any{"ssh-ed25519 AAAAmine me", "ssh-ed25519 AAAAbob bob"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestAccessOfAnotherUser(t *testing.T) {
	dev := map[string]any{
		"name": "dev", "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "lock_passwd": true,
		"ssh_authorized_keys": []any{"ssh-ed25519 AAAAmine me"},
	}
	for _, tt := range []struct {
		name, userData string
		want           []any
	}{
		{"alone", "", []any{"default", dev}},
		{"beside a list of users", "#cloud-config\nusers: [{name: other}]\n", []any{dev}},
		{"beside other settings", "#cloud-config\nruncmd: ['users: x']\n", []any{"default", dev}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := read(t, nocloud.Seed{InstanceID: "i", Hostname: "h", Access: access("dev"), UserData: tt.userData})["user-data"]
			if tt.userData != "" {
				text = parts(t, text)[1].text
			}
			got := settings(t, text)
			if diff := cmp.Diff(tt.want, got["users"]); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
			if got["disable_root"] != nil || got["ssh_authorized_keys"] != nil {
				t.Errorf("root and the image's own user are let in too: %v", got)
			}
		})
	}
}

type section struct{ kind, text string }

// parts reads a message as mail programs do, those inside of others too.
func parts(t *testing.T, text string) []section {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return sections(t, m.Header.Get("Content-Type"), m.Body)
}

func sections(t *testing.T, contentType string, body io.Reader) []section {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return []section{{kind, string(text)}}
	}
	var all []section
	r := multipart.NewReader(body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var inner io.Reader = p
		if p.Header.Get("Content-Transfer-Encoding") == "base64" {
			inner = base64.NewDecoder(base64.StdEncoding, p)
		}
		all = append(all, sections(t, p.Header.Get("Content-Type"), inner)...)
	}
}

func TestUserDataIsJoined(t *testing.T) {
	message := "Content-Type: multipart/mixed; boundary=\"==x==\"\nMIME-Version: 1.0\n\n--==x==\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho 1\n--==x==\nContent-Type: text/cloud-config\n\n#cloud-config\nruncmd: [ls]\n--==x==--\n"
	long := "#!/bin/sh\necho " + strings.Repeat("grüße ", 200) + "\n"
	for _, tt := range []struct {
		name, userData string
		want           []section // before vmctl's own
	}{
		{"settings", "#cloud-config\nruncmd: [ls]\n", []section{{"text/cloud-config", "#cloud-config\nruncmd: [ls]\n"}}},
		{"a script", long, []section{{"text/x-shellscript", long}}},
		{"an archive", "#cloud-config-archive\n- x\n", []section{{"text/cloud-config-archive", "#cloud-config-archive\n- x\n"}}},
		{"a template", "## template: jinja\n#cloud-config\n", []section{{"text/jinja2", "## template: jinja\n#cloud-config\n"}}},
		{"an address, once", "#include-once\nhttp://x\n", []section{{"text/x-include-once-url", "#include-once\nhttp://x\n"}}},
		{"a message of two parts", message, []section{
			{"text/x-shellscript", "#!/bin/sh\necho 1"}, {"text/cloud-config", "#cloud-config\nruncmd: [ls]"},
		}},
		{"a message of one part", "Content-Type: text/x-shellscript\n\n#!/bin/sh\n", []section{{"text/x-shellscript", "#!/bin/sh"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := nocloud.Seed{InstanceID: "i", Hostname: "h", Access: access("root"), UserData: tt.userData}
			got := parts(t, read(t, s)["user-data"])
			own := got[len(got)-1]
			if diff := cmp.Diff(tt.want, got[:len(got)-1], cmp.AllowUnexported(section{})); diff != "" {
				t.Errorf("the user's parts (-want +got):\n%s", diff)
			}
			// Only what comes later says how it is merged, and the user's word goes first.
			if own.kind != "text/cloud-config" || settings(t, own.text)["merge_how"] == nil {
				t.Errorf("the last part = %v, want vmctl's", own)
			}
		})
	}
}

func TestWithoutKeys(t *testing.T) {
	full := nocloud.Seed{InstanceID: "i", Hostname: "h", Access: access("dev"), UserData: "#cloud-config\nbootcmd: [ls]\n"}
	got := read(t, full.WithoutKeys())
	want := map[string]string{
		"meta-data": read(t, full)["meta-data"], // another instance would be set up anew, with other host keys
		"user-data": full.UserData,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestDigestIsOfWhatIsInIt(t *testing.T) {
	base := nocloud.Seed{InstanceID: "i", Hostname: "h", Access: access("dev"), UserData: "#!/bin/sh\n"}
	digest := func(change func(*nocloud.Seed)) string {
		t.Helper()
		s, a := base, *base.Access
		s.Access = &a
		change(&s)
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := []string{digest(func(*nocloud.Seed) {})}
	if again := digest(func(*nocloud.Seed) {}); again != seen[0] {
		t.Errorf("the same seed has two digests: %s, %s", seen[0], again)
	}
	for _, change := range []func(*nocloud.Seed){
		func(s *nocloud.Seed) { s.InstanceID = "j" },
		func(s *nocloud.Seed) { s.Hostname = "g" },
		func(s *nocloud.Seed) { s.UserData += "\n" },
		func(s *nocloud.Seed) { s.NetworkConfig = "version: 2" },
		func(s *nocloud.Seed) { s.Access.User = "root" },
		func(s *nocloud.Seed) { s.Access.Authorized += "2" },
		func(s *nocloud.Seed) { s.Access.HostPrivate += "2" },
		func(s *nocloud.Seed) { s.Access = nil },
	} {
		d := digest(change)
		if slices.Contains(seen, d) {
			t.Errorf("two seeds have the digest %s", d)
		}
		seen = append(seen, d)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"#!/bin/sh\n", ""},
		{"#cloud-config\n", ""},
		{"Content-Type: text/x\n\n", ""},
		{"MIME-Version: 1.0\n", ""},
		{"users:\n- x\n", `it begins with "users:", which cloud-init passes over: begin with "#cloud-config" for settings, or with "#!/bin/sh" for a script`},
		{"\n#cloud-config\n", `it begins with "", which cloud-init passes over: begin with "#cloud-config" for settings, or with "#!/bin/sh" for a script`},
		{"#!" + strings.Repeat("x", 1<<20), "it has 1048578 bytes, and 1048576 are the most: put what is large into the image, or fetch it from a script"},
	} {
		got := ""
		if err := nocloud.Check(tt.text); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Check(%.40q)\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// Who was set up with other keys gets these by a command, as the instance that it is.
func TestAccessAgain(t *testing.T) {
	a := access("dev")
	a.Again = true
	got := settings(t, read(t, nocloud.Seed{InstanceID: "i", Hostname: "h", Access: a})["user-data"])
	if got["users"] != nil || got["ssh_keys"] != nil || got["bootcmd"] == nil {
		t.Errorf("settings = %v", got)
	}
}

// What a killed process left in the folder is no part of the next seed.
func TestScratchIsEmptiedFirst(t *testing.T) {
	scratch := t.TempDir()
	tree := filepath.Join(scratch, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "old-secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "seed.iso"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := nocloud.Seed{InstanceID: "i", Hostname: "h"}.ISO(scratch)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "OLD") {
		t.Error("the seed holds a file of an earlier one")
	}
}
