package engine_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// show writes what was observed of one kind as text.
func show(inv providers.Inventory, kind spec.Kind) string {
	var b strings.Builder
	for _, o := range inv.Objects {
		if o.Kind != kind {
			continue
		}
		fmt.Fprintf(&b, "%s %.8s", o.Name, o.ID)
		if o.Owner != nil && o.Owner.Of == o.ID {
			fmt.Fprintf(&b, " of %s", o.Owner.Address)
		} else if o.Owner != nil {
			b.WriteString(" copy")
		}
		if state := ctyread.Text(o.Attrs, "state"); state != "" {
			b.WriteString(" " + state)
		}
		b.WriteString("\n")
	}
	for _, u := range inv.Unknown {
		if u.Kind == kind {
			fmt.Fprintf(&b, "unknown %s %.8s: %s\n", u.Name, u.ID, u.Reason)
		}
	}
	if p := inv.Partial[kind]; p != nil {
		b.WriteString("partial\n")
	}
	return b.String()
}

// Whatever an engine answers, nothing that could not be read is absent, and the rest is seen.
//
// row E13
// row E14
// row E30
// row E43
// row E36, of containers
func TestObserveContainers(t *testing.T) {
	other := strings.Repeat("2", 64)
	for _, test := range []struct {
		name string
		set  func(t *testing.T, f *fake)
		want string
	}{
		{"none", func(*testing.T, *fake) {}, ""},
		{"ours, running", func(_ *testing.T, f *fake) { f.has("demo.web", "running", labels("demo.web")) }, "demo.web aaaaaaaa of container.web running\n"},
		{"one that ended", func(_ *testing.T, f *fake) { f.has("demo.web", "exited", labels("demo.web")) }, "demo.web aaaaaaaa of container.web created\n"},
		{"in a state of a later engine", func(_ *testing.T, f *fake) { f.has("demo.web", "foo", labels("demo.web")) }, "demo.web aaaaaaaa of container.web\n"},
		{"another's", func(_ *testing.T, f *fake) { f.has("theirs", "running", nil) }, "theirs 11111111 running\n"},
		{"a copy of ours", func(_ *testing.T, f *fake) { f.has("copy", "running", labels("demo.web")) }, "copy 11111111 copy running\n"},
		{"made of an image that was made of ours", func(_ *testing.T, f *fake) {
			f.has("demo.web", "running", labels("demo.web"))
			f.set("GET /images/json", answer{body: asJSON(f.t, []any{map[string]any{"Id": "sha256:one", "RepoTags": []string{"c:1"}, "Labels": labels("demo.web")}})})
		}, "demo.web 11111111 copy running\n"},
		{"without a config", func(t *testing.T, f *fake) {
			f.set("GET /containers/json", answer{body: asJSON(t, []any{
				map[string]any{"Id": other, "Names": []string{"/bare"}, "State": "created", "Labels": nil, "Ports": nil},
				item(cid, "demo.web", "running", labels("demo.web")),
			})})
			f.set("GET /containers/"+cid+"/json", answer{body: fmt.Sprintf(`{"Id":%q,"Name":"/demo.web","Image":"x","State":{"Status":"running"},"Config":null,"HostConfig":null,"NetworkSettings":null}`, cid)})
		}, "bare 22222222 created\nunknown demo.web aaaaaaaa: its labels are not those that the list of the engine shows\npartial\n"},
		{"an item that cannot be read", func(t *testing.T, f *fake) {
			bad := item(other, "bad", "running", nil)
			bad["Labels"] = 7
			f.set("GET /containers/json", answer{body: asJSON(t, []any{bad, item(cid, "theirs", "running", nil)})})
		}, "theirs 11111111 running\nunknown bad 22222222: Labels is 7\npartial\n"},
		{"an item that is null", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: "[null]"}) }, "unknown  : it is null\npartial\n"},
		{"an address that is none", func(t *testing.T, f *fake) {
			odd := item(cid, "theirs", "running", nil)
			odd["Ports"] = []any{map[string]any{"IP": "not an address", "PublicPort": 80, "Type": "tcp"}}
			f.set("GET /containers/json", answer{body: asJSON(t, []any{odd})})
		}, "theirs 11111111 running\n"},
		{"an ID that leads elsewhere", func(t *testing.T, f *fake) {
			f.set("GET /containers/json", answer{body: asJSON(t, []any{item("../../images/x", "evil", "running", labels("evil"))})})
		}, "unknown evil aaaaaaaa: its ID is \"../../images/x\"\npartial\n"},
		{"one that goes meanwhile", func(t *testing.T, f *fake) {
			f.set("GET /containers/json", answer{body: asJSON(t, []any{item(cid, "demo.web", "running", labels("demo.web"))})})
			f.set("GET /containers/"+cid+"/json", answer{status: 404, body: `{"message":"No such container: 11"}`})
		}, ""},
		{"a proxy's 404", func(t *testing.T, f *fake) {
			f.set("GET /containers/json", answer{body: asJSON(t, []any{item(cid, "demo.web", "running", labels("demo.web"))})})
			f.set("GET /containers/"+cid+"/json", answer{status: 404, body: "<html>not found</html>"})
		}, "unknown demo.web aaaaaaaa: HTTP status 404\npartial\n"},
		{"null", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: "null"}) }, "partial\n"},
		{"an object", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: "{}"}) }, "partial\n"},
		{"garbage", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: "<html>"}) }, "partial\n"},
		{"half of a list", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: `[{"Id":"`}) }, "partial\n"},
		{"a connection that ends", func(_ *testing.T, f *fake) { f.set("GET /containers/json", answer{body: `[`, cut: true}) }, "partial\n"},
		{"a failure", func(_ *testing.T, f *fake) {
			f.set("GET /containers/json", answer{status: 500, body: `{"message":"no"}`})
		}, "partial\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			test.set(t, f)
			inv, err := f.open().Observe(t.Context(), providers.Query{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, show(inv, spec.Container)); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
			if len(f.asked) > 0 {
				t.Errorf("observing changed something: %q", f.asked)
			}
		})
	}
}

// An engine that is not there, or takes the request and says nothing, is no empty engine.
//
// row E29, of an engine that gives no answer
func TestObserveNoAnswer(t *testing.T) {
	kinds := []spec.Kind{spec.Container, spec.Image, spec.Network, spec.Volume}
	refuses := func(err error) func(*fake) {
		return func(f *fake) {
			f.dials = map[string]func(context.Context) (net.Conn, error){"engine": func(context.Context) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/x.sock"}, Err: os.NewSyscallError("connect", err)}
			}}
		}
	}
	for name, test := range map[string]struct {
		end  func(*fake)
		said string
	}{
		"it is gone": {func(f *fake) { f.server.Close() }, "connection refused"},
		"it hangs": {func(f *fake) {
			f.set("GET /_ping", answer{body: "hang"})
			f.set("HEAD /_ping", answer{body: "hang"})
		}, "deadline exceeded"},
		"nobody listens at its socket": {refuses(syscall.ECONNREFUSED), "dial unix /run/x.sock: connect: connection refused"},
		"its socket is not there":      {refuses(syscall.ENOENT), "dial unix /run/x.sock: connect: no such file or directory"},
		"its socket is another user's": {refuses(syscall.EACCES), "dial unix /run/x.sock: connect: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			p := f.open()
			test.end(f)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			inv, _ := p.Observe(ctx, providers.Query{}) //nolint:errcheck // that ctx ended is no finding
			if got := slices.Sorted(maps.Keys(inv.Partial)); !slices.Equal(got, kinds) || len(inv.Objects) > 0 {
				t.Errorf("partial %v, want %v; objects %v", got, kinds, inv.Objects)
			}
			for kind, why := range inv.Partial { // the name that the connection has for the engine is nothing to a user
				if text := why.Error(); !strings.Contains(text, test.said) || strings.Contains(text, "://") {
					t.Errorf("%s: %s; want %q", kind, text, test.said)
				}
			}
		})
	}
}

// The record is the ownership of an image, as long as it has the recorded content or a block wants its name.
//
// row E36, of images
// row E32, of images
func TestObserveImages(t *testing.T) {
	box := spec.Address{Kind: spec.Image, Name: "box"}
	prior := cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1"), "image_id": cty.StringVal("sha256:one")})
	moved := cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1"), "image_id": cty.StringVal("sha256:before")})
	want := cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1")})
	bare := "sha256:" + strings.Repeat("2", 64) // it has no name
	for _, test := range []struct {
		name  string
		known []providers.Known
		want  string
	}{
		{"not recorded", nil, "docker.io/library/box:1 docker.i\ndocker.io/library/my_box:X docker.i\n" + bare + " sha256:2\n"},
		{"recorded", []providers.Known{{Address: box, Kind: spec.Image, ID: "docker.io/library/box:1", Name: "demo.box", Prior: prior}}, "demo.box docker.i of image.box\ndocker.io/library/my_box:X docker.i\n" + bare + " sha256:2\n"},
		{"another content, not wanted", []providers.Known{{Address: box, Kind: spec.Image, ID: "docker.io/library/box:1", Name: "demo.box", Prior: moved}}, "docker.io/library/box:1 docker.i\ndocker.io/library/my_box:X docker.i\n" + bare + " sha256:2\n"},
		{"another content, wanted", []providers.Known{{Address: box, Kind: spec.Image, ID: "docker.io/library/box:1", Name: "demo.box", Prior: moved, Want: want}}, "demo.box docker.i of image.box\ndocker.io/library/my_box:X docker.i\n" + bare + " sha256:2\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.set("GET /images/json", answer{body: `[
				{"Id":"sha256:one","RepoTags":["box:1","<none>:<none>"],"Labels":null,"Config":null},
				{"Id":"` + bare + `","RepoTags":null},{"Id":"sha256:three","RepoTags":["my_box:X"]}]`})
			inv, err := f.open().Observe(t.Context(), providers.Query{Known: test.known})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, show(inv, spec.Image)); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

// The order of an engine's listing, which is its whim, changes nothing.
//
// row E22, of an engine
func TestObserveInAnyOrder(t *testing.T) {
	f := newFake(t)
	p := f.open()
	one, two := item(strings.Repeat("2", 64), "one", "running", nil), item(strings.Repeat("3", 64), "two", "exited", nil)
	var before string
	for i, all := range [][]any{{one, two}, {two, one}} {
		f.set("GET /containers/json", answer{body: asJSON(t, all)})
		inv, err := p.Observe(t.Context(), providers.Query{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%#v", inv.Objects[0].Name) + inv.Objects[0].Fingerprint + inv.Objects[1].Fingerprint
		if i > 0 && got != before {
			t.Errorf("got %s, and before %s", got, before)
		}
		before = got
	}
}
