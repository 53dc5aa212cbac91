package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// The sockets of these tests: of our engine, and of those that other contexts lead to.
const (
	ourSocket   = "/ours"
	otherSocket = "/other"
)

// withContext returns the want of an engine with a docker context.
func withContext(name, current string) cty.Value {
	block := cty.NullVal(cty.Object(map[string]cty.Type{"name": cty.String, "make_current": cty.String}))
	if name != "" {
		block = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name), "make_current": cty.StringVal(current)})
	}
	return cty.ObjectVal(map[string]cty.Value{"host": cty.StringVal("unix://" + ourSocket), "docker_context": block})
}

// metaPath returns the file of a context.
func (f *fake) metaPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(f.docker, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json")
}

// hasContext writes a context of others.
func (f *fake) hasContext(name, text string) {
	f.t.Helper()
	f.file(f.metaPath(name), text)
}

func (f *fake) file(path, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

// text returns the content of a file; "" if it does not exist.
func (f *fake) text(path string) string {
	f.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(text)
}

func (f *fake) config() string { return filepath.Join(f.docker, "config.json") }

// engineChange carries out the steps of a change of an engine, and returns what they say.
func engineChange(ctx context.Context, t *testing.T, p providers.Provider, c providers.Change, prior cty.Value) (string, error) {
	t.Helper()
	c.Address, c.Kind, c.Name = here, spec.Engine, "demo.here"
	if c.ID == "" {
		c.ID = "one"
	}
	steps, err := p.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	expect := ""
	if c.Object != nil {
		expect = c.Object.Fingerprint
	}
	for _, s := range steps {
		r, err := p.Do(ctx, providers.Work{Step: s, Expect: expect, Want: c.Want, Prior: prior}, func(providers.Progress) {})
		if err != nil {
			return strings.Join(said, "\n"), err
		}
		expect = r.Fingerprint
		said = append(said, r.Evidence...)
	}
	return strings.Join(said, "\n"), nil
}

// destroysEngine lets go of the engine.
func destroysEngine(ctx context.Context, t *testing.T, p providers.Provider, prior cty.Value) string {
	t.Helper()
	inv, err := p.Observe(ctx, providers.Query{Known: []providers.Known{{Address: here, Kind: spec.Engine, ID: "one", Name: "demo.here", Prior: prior}}})
	if err != nil || len(inv.Objects) != 1 {
		t.Fatalf("observed %v, %v, %v", inv.Objects, inv.Unknown, err)
	}
	said, err := engineChange(ctx, t, p, providers.Change{Action: providers.Destroy, Object: &inv.Objects[0], Want: prior}, prior)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func refused(context.Context) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func absent(context.Context) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENOENT)}
}

func forbidden(context.Context) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}
}

// ends is a connection that the other side ends before it answers.
func ends(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Read(make([]byte, 1024)) //nolint:errcheck // then it ends
		_ = theirs.Close()                     //nolint:errcheck // see above
	}()
	return ours, nil
}

const (
	otherMeta = `{"Name":"other","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///other","SkipTLSVerify":false}}}`
	chosen    = "{\n  \"auths\": {\"a\": {}},\n  \"currentContext\": \"other\",\n  \"zeal\": [1, 2]\n}\n"
	ours      = "{\n  \"auths\": {\"a\": {}},\n  \"currentContext\": \"ours\",\n  \"zeal\": [1, 2]\n}\n"
)

// A context becomes the current one only if that is missing, or provably leads to no engine, and the rest of Docker's
// configuration stays byte for byte.
//
// row E44, of the current context
// row E19, of Docker's configuration
func TestCurrentContext(t *testing.T) {
	for _, test := range []struct {
		name    string
		current string // make_current
		config  string // "": there is none
		meta    string // of the context other; "": there is none
		dial    func(context.Context) (net.Conn, error)
		path    string // that dial is for; "": that of the context other
		want    string // config.json afterwards
	}{
		{name: "it answers", config: chosen, meta: otherMeta, want: chosen},
		{name: "it does not exist", config: chosen, want: ours},
		{name: "its socket does not exist", config: chosen, meta: otherMeta, dial: absent, want: ours},
		{name: "nobody listens", config: chosen, meta: otherMeta, dial: refused, want: ours},
		{name: "it ends connections", config: chosen, meta: otherMeta, dial: ends, want: ours},
		{name: "another user's", config: chosen, meta: otherMeta, dial: forbidden, want: chosen},
		{name: "it cannot be read", config: chosen, meta: "{", dial: refused, want: chosen},
		{name: "it is far away", config: chosen, meta: `{"Name":"other","Endpoints":{"docker":{"Host":"tcp://127.0.0.1:1"}}}`, dial: refused, want: chosen},
		{name: "never", current: "never", config: chosen, want: chosen},
		{name: "the default answers", config: "{}", want: "{}"},
		{name: "the default is dead", config: "{}", dial: absent, path: "/var/run/docker.sock", want: "{\n\t\"currentContext\": \"ours\"\n}"},
		{name: "the default by its name", config: `{"currentContext":"default"}`, dial: refused, path: "/var/run/docker.sock", want: `{"currentContext":"ours"}`},
		{name: "no configuration", dial: absent, path: "/var/run/docker.sock", want: "{\n\t\"currentContext\": \"ours\"\n}\n"},
		{name: "ours already", config: `{"currentContext": "ours" , "a":1}`, want: `{"currentContext": "ours" , "a":1}`},
		{name: "no JSON", config: `{"currentContext": "gone"`, want: `{"currentContext": "gone"`},
		{name: "no object", config: `["gone"]`, want: `["gone"]`},
		{name: "no text", config: `{"currentContext": 7}`, want: `{"currentContext": 7}`},
		{name: "twice", config: `{"currentContext": "gone", "currentContext": "gone"}`, want: `{"currentContext": "gone", "currentContext": "gone"}`},
		{name: "an empty file", config: " ", want: " "},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.docker = t.TempDir()
			path := test.path
			if path == "" {
				path = otherSocket
			}
			f.dials = map[string]func(context.Context) (net.Conn, error){path: test.dial}
			if test.config != "" {
				f.file(f.config(), test.config)
			}
			if test.meta != "" {
				f.hasContext("other", test.meta)
			}
			current := test.current
			if current == "" {
				current = "if_unhealthy"
			}
			want := withContext("ours", current)
			p := f.openEngines()
			said, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: want}, cty.NilVal)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.text(f.config())); diff != "" {
				t.Errorf("it says\n%s\nand config.json is (-want +got):\n%s", said, diff)
			}
			if meta := f.text(f.metaPath("ours")); !strings.Contains(meta, `"Host":"unix:///ours"`) || !strings.Contains(meta, `"address":"engine.here"`) {
				t.Errorf("the context is %s", meta)
			}
			if about, err := os.Stat(f.config()); err == nil && about.Mode().Perm() != 0o600 {
				t.Errorf("config.json has the mode %s", about.Mode())
			}
			if meta := f.text(f.metaPath("other")); meta != test.meta {
				t.Errorf("the other context is %s, and was %s", meta, test.meta)
			}
		})
	}
}

// Letting go of an engine removes its context, and clears the current one if it was that. What others made, or cannot be read,
// stays.
//
// row E44, of the end of a context
func TestContextEnds(t *testing.T) {
	for _, test := range []struct{ name, config, want string }{
		{"ours is current", ours, "{\n  \"auths\": {\"a\": {}},\n  \"zeal\": [1, 2]\n}\n"},
		{"another is current", chosen, chosen},
		{"ours is first", `{"currentContext":"ours", "a": 1}`, `{"a": 1}`},
		{"ours is alone", `{"currentContext":"ours"}`, `{}`},
		{"no JSON", "{", "{"},
		{"no configuration", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.docker = t.TempDir()
			want := withContext("ours", "never")
			p := f.openEngines()
			if _, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: want}, cty.NilVal); err != nil {
				t.Fatal(err)
			}
			if test.config != "" {
				f.file(f.config(), test.config)
			}
			f.hasContext("other", otherMeta)
			said := destroysEngine(t.Context(), t, p, want)
			if diff := cmp.Diff(test.want, f.text(f.config())); diff != "" {
				t.Errorf("it says\n%s\nand config.json is (-want +got):\n%s", said, diff)
			}
			if _, err := os.Lstat(filepath.Dir(f.metaPath("ours"))); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the context is left: %v", err)
			}
			if meta := f.text(f.metaPath("other")); meta != otherMeta {
				t.Errorf("the other context is %s", meta)
			}
		})
	}
}

// A context of others that has the wanted name is neither replaced nor removed.
//
// row E44, of contexts of others
func TestForeignContext(t *testing.T) {
	for name, meta := range map[string]string{
		"without a mark":          `{"Name":"ours","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///theirs"}}}`,
		"of another project":      `{"Name":"ours","Metadata":{"vmctl":{"id":"theirs","address":"engine.here"}},"Endpoints":{"docker":{"Host":"unix:///ours"}}}`,
		"of another engine":       `{"Name":"ours","Metadata":{"vmctl":{"id":"lineage","address":"engine.other"}},"Endpoints":{"docker":{"Host":"unix:///ours"}}}`,
		"one that cannot be read": "{",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.docker = t.TempDir()
			f.hasContext("ours", meta)
			f.file(f.config(), `{"currentContext":"ours"}`)
			p := f.openEngines()
			want := withContext("ours", "if_unhealthy")
			_, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: want}, cty.NilVal)
			if err == nil {
				t.Error("it was made all the same")
			}
			destroysEngine(t.Context(), t, p, want)
			if now := f.text(f.metaPath("ours")); now != meta {
				t.Errorf("it is %s, and was %s; %v", now, meta, err)
			}
			if now := f.text(f.config()); now != `{"currentContext":"ours"}` {
				t.Errorf("config.json is %s", now)
			}
		})
	}
}

// A context that was removed or changed by hand is no longer shown, so that the next apply makes it again; another name takes
// the place of the first one.
//
// row E10, of a docker context
func TestContextIsObserved(t *testing.T) {
	f := newFake(t)
	f.docker = t.TempDir()
	p := f.openEngines()
	want := withContext("ours", "never")
	shown := func() (providers.Object, bool) {
		inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: here, Kind: spec.Engine, ID: "one", Name: "demo.here", Prior: want, Want: want}}})
		if err != nil || len(inv.Objects) != 1 {
			t.Fatalf("observed %v, %v", inv.Objects, err)
		}
		return inv.Objects[0], !inv.Objects[0].Attrs.GetAttr("docker_context").IsNull()
	}
	if _, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: want}, cty.NilVal); err != nil {
		t.Fatal(err)
	}
	if _, is := shown(); !is {
		t.Error("a context that was made is not shown")
	}
	made := f.text(f.metaPath("ours"))
	f.file(f.metaPath("ours"), strings.Replace(made, "/ours", "/elsewhere", 1))
	if _, is := shown(); is {
		t.Error("a context that leads elsewhere is shown")
	}
	if err := os.RemoveAll(filepath.Dir(f.metaPath("ours"))); err != nil {
		t.Fatal(err)
	}
	o, is := shown()
	if is {
		t.Error("a context that is gone is shown")
	}
	again := providers.Change{Action: providers.Update, Want: want, Object: &o, Edits: []providers.Edit{{Path: "docker_context"}}}
	if _, err := engineChange(t.Context(), t, p, again, want); err != nil {
		t.Fatal(err)
	}
	if now := f.text(f.metaPath("ours")); now != made {
		t.Errorf("it was made again as %s, and was %s", now, made)
	}
	// An engine that is replaced by one at another socket keeps its name for docker.
	f.file(f.config(), ours)
	replaced := providers.Change{Action: providers.ReplaceIt, Want: want, Object: &o}
	if _, err := engineChange(t.Context(), t, p, replaced, want); err != nil || f.text(f.config()) != ours || f.text(f.metaPath("ours")) != made {
		t.Errorf("its engine was replaced, and the context is %q, and config.json %q; %v", f.text(f.metaPath("ours")), f.text(f.config()), err)
	}
	f.hasContext("taken", otherMeta)
	taken := providers.Change{Action: providers.Update, Want: withContext("taken", "never"), Object: &o, Edits: []providers.Edit{{Path: "docker_context.name"}}}
	if _, err := engineChange(t.Context(), t, p, taken, want); err == nil || f.text(f.metaPath("ours")) != made || f.text(f.metaPath("taken")) != otherMeta {
		t.Errorf("its new name is taken, and the context is %q: %v", f.text(f.metaPath("ours")), err)
	}
	renamed := providers.Change{Action: providers.Update, Want: withContext("renamed", "never"), Object: &o, Edits: []providers.Edit{{Path: "docker_context.name"}}}
	if _, err := engineChange(t.Context(), t, p, renamed, want); err != nil {
		t.Fatal(err)
	}
	if f.text(f.metaPath("ours")) != "" || f.text(f.metaPath("renamed")) == "" {
		t.Error("another name did not take the place of the first one")
	}
	gone := providers.Change{Action: providers.Update, Want: withContext("", ""), Object: &o, Edits: []providers.Edit{{Path: "docker_context"}}}
	if _, err := engineChange(t.Context(), t, p, gone, withContext("renamed", "never")); err != nil || f.text(f.metaPath("renamed")) != "" {
		t.Errorf("without its block the context is left: %v", err)
	}
}

// A slow look at the current context that is cut short writes nothing, neither before the engine is let go nor after it: the
// step has ended when it says so.
//
// row E45
func TestSlowProbe(t *testing.T) {
	f := newFake(t)
	f.docker = t.TempDir()
	f.file(f.config(), chosen)
	f.hasContext("other", otherMeta)
	probing, release := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	f.dials = map[string]func(context.Context) (net.Conn, error){otherSocket: func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		slow.Go(func() {
			_, _ = theirs.Read(make([]byte, 1024)) //nolint:errcheck // then it hangs
			close(probing)
			<-release
			_ = theirs.Close() //nolint:errcheck // now it would prove that nobody is there
		})
		return ours, nil
	}}
	p := f.openEngines()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := engineChange(ctx, t, p, providers.Change{Action: providers.Create, Want: withContext("ours", "if_unhealthy")}, cty.NilVal)
		ended <- err
	}()
	<-probing
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the step ended with %v", err)
	}
	destroysEngine(t.Context(), t, p, withContext("ours", "if_unhealthy"))
	close(release)
	slow.Wait()
	if now := f.text(f.config()); now != chosen {
		t.Errorf("config.json is\n%s", now)
	}
	if left := f.text(f.metaPath("ours")); left != "" {
		t.Errorf("the context is left: %s", left)
	}
}

// A user who chooses a context while the current one is looked at keeps it.
//
// row E45, of a choice meanwhile
func TestChoiceMeanwhile(t *testing.T) {
	f := newFake(t)
	f.docker = t.TempDir()
	f.file(f.config(), chosen)
	f.hasContext("other", otherMeta)
	now := fmt.Sprintf("{%q: %q}", "currentContext", "mine")
	f.dials = map[string]func(context.Context) (net.Conn, error){otherSocket: func(ctx context.Context) (net.Conn, error) {
		f.file(f.config(), now)
		return refused(ctx)
	}}
	p := f.openEngines()
	said, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: withContext("ours", "if_unhealthy")}, cty.NilVal)
	if err != nil || f.text(f.config()) != now {
		t.Errorf("config.json is %s, want %s; %v\n%s", f.text(f.config()), now, err, said)
	}
}

// A configuration that is kept elsewhere, with a mode of its own, stays there and keeps it.
//
// row E44, of a configuration behind a link
func TestLinkedConfiguration(t *testing.T) {
	f := newFake(t)
	f.docker = t.TempDir()
	real := filepath.Join(t.TempDir(), "docker.json")
	f.file(real, chosen)
	if err := errors.Join(os.Chmod(real, 0o640), os.Symlink(real, f.config())); err != nil {
		t.Fatal(err)
	}
	p := f.openEngines()
	if _, err := engineChange(t.Context(), t, p, providers.Change{Action: providers.Create, Want: withContext("ours", "if_unhealthy")}, cty.NilVal); err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink(f.config())
	if err != nil || link != real || f.text(real) != ours {
		t.Errorf("it leads to %q, %v, which is\n%s", link, err, f.text(real))
	}
	if about, err := os.Stat(real); err != nil || about.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", about, err)
	}
}
