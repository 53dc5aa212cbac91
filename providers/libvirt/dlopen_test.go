//go:build cgo && libvirt_dlopen

package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// testDriver writes a fixture for libvirt's test driver. Connections to different fixtures
// share nothing.
func testDriver(t testing.TB, domains string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fixture.xml")
	text := "<node xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>" + domains + "</node>"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "test://" + path
}

// testDomain returns a domain of the test driver in one of libvirt's states.
func testDomain(name, uuid string, state int, metadata string) string {
	return fmt.Sprintf("<domain type='test'><name>%s</name><uuid>%s</uuid><metadata>%s</metadata><memory unit='MiB'>64</memory><vcpu>2</vcpu>"+
		"<os><type>hvm</type></os><test:runstate>%d</test:runstate></domain>", name, uuid, metadata, state)
}

func uuid(n int) string { return fmt.Sprintf("%08d-2222-8333-8444-555555555555", n) }

func mark(address, of string) string {
	return fmt.Sprintf(`<vmctl:owner xmlns:vmctl="urn:vmctl:1" id="%s" project="lab" address="%s" of="%s" generation="3">`+
		`<vmctl:wanted accel="auto" memory="67108864"/></vmctl:owner>`, lineage, address, of)
}

func TestObserveThroughLibvirt(t *testing.T) {
	uri := testDriver(t, testDomain("lab.on", uuid(1), 1, mark("vm.on", uuid(1)))+
		testDomain("lab.paused", uuid(2), 3, mark("vm.paused", uuid(2)))+
		testDomain("lab.off", uuid(3), 5, mark("vm.off", uuid(3)))+
		testDomain("lab.copy", uuid(4), 5, mark("vm.off", uuid(3)))+
		strings.Replace(testDomain("lab.saved", uuid(7), 5, mark("vm.saved", uuid(7))), "</domain>", "<test:hasmanagedsave/></domain>", 1)+
		testDomain("lab.ending", uuid(8), 4, mark("vm.ending", uuid(8)))+
		testDomain("lab.asleep", uuid(9), 7, mark("vm.asleep", uuid(9)))+
		testDomain("taken", uuid(5), 5, "")+
		testDomain("stranger", uuid(6), 1, ""))
	l := newLab(t)
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(uri), "pool": null})
	p, err := libvirt.Type(libvirt.Host{UID: 1000, Getenv: func(string) string { return "" }, Proc: l.proc}).Open(t.Context(), l.settings)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Kind: spec.VM, Name: "taken"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	wantText(t, "inventory", `
lab.asleep paused running=false owner=k7m2qd9x4r/vm.asleep/3
  drift: its guest suspended it: it holds its memory and does not answer -> woken when it is started, and before it is asked to shut down
  holds name URI lab.asleep
lab.copy off running=false owner=k7m2qd9x4r/vm.off/3
  copy: its mark was written for 00000003-2222-8333-8444-555555555555 -> left alone
  holds name URI lab.copy
lab.ending ending running=false owner=k7m2qd9x4r/vm.ending/3
  holds name URI lab.ending
lab.off off running=false owner=k7m2qd9x4r/vm.off/3
  holds name URI lab.off
lab.on running running=true owner=k7m2qd9x4r/vm.on/3
  holds name URI lab.on
lab.paused paused running=false owner=k7m2qd9x4r/vm.paused/3
  broken: it is paused (internal error)
  holds name URI lab.paused
lab.saved off running=false owner=k7m2qd9x4r/vm.saved/3
  dirty: its memory was saved when it was shut off: the next start goes on from there -> kept until it is started or deleted
  holds name URI lab.saved
taken off running=false
  holds name URI taken
`, strings.ReplaceAll(show(inv), uri, "URI"))
	if got := inv.Objects[4].Attrs.GetAttr("memory"); !got.RawEquals(cty.NumberIntVal(64 << 20)) {
		t.Errorf("memory %#v", got)
	}
}

func TestConnection(t *testing.T) {
	ctx := t.Context()
	c, err := libvirt.Dial(ctx, testDriver(t, testDomain("a", uuid(1), 5, "<x:y xmlns:x='urn:x'/>")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	power := func(want string) {
		t.Helper()
		p, err := c.Power(ctx, uuid(1))
		if err != nil || p.Words != want {
			t.Errorf("it is %q (%v), want %q", p.Words, err, want)
		}
	}
	if _, err := c.Domain(ctx, uuid(9)); !errors.Is(err, libvirt.ErrAbsent) {
		t.Errorf("a domain that does not exist: %v", err)
	}
	if _, err := c.DomainNamed(ctx, "b"); !errors.Is(err, libvirt.ErrAbsent) {
		t.Errorf("a name that nobody has: %v", err)
	}
	if ref, err := c.DomainNamed(ctx, "a"); err != nil || ref.UUID != uuid(1) || ref.Transient {
		t.Errorf("%+v, %v", ref, err)
	}
	ok("start", c.Start(ctx, uuid(1)))
	power("running (booted)")
	if err := c.Start(ctx, uuid(1)); err == nil {
		t.Error("started twice")
	}
	for _, v := range []libvirt.Version{libvirt.AsRunning, libvirt.AsConfigured} {
		if xml, err := c.XML(ctx, uuid(1), v); err != nil || strings.Contains(xml, " id='1'") != (v == libvirt.AsRunning) {
			t.Errorf("the %s version: %v\n%s", v, err, xml)
		}
	}
	ok("shut down", c.Shutdown(ctx, uuid(1)))
	power("shut off (shutdown)")
	ok("start", c.Start(ctx, uuid(1)))
	ok("force", c.Destroy(ctx, uuid(1)))
	power("shut off (destroyed)")
	ok("undefine", c.Undefine(ctx, uuid(1)))
	if _, err := c.Power(ctx, uuid(1)); !errors.Is(err, libvirt.ErrAbsent) {
		t.Errorf("after it was undefined: %v", err)
	}
	ok("define", c.Define(ctx, testDomain("a", uuid(1), 5, "")))
	if all, err := c.Domains(ctx); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}

	if _, err := c.Pool(ctx, "p"); !errors.Is(err, libvirt.ErrAbsent) {
		t.Errorf("a pool that does not exist: %v", err)
	}
	ok("define pool", c.DefinePool(ctx, "<pool type='dir'><name>p</name><target><path>/p</path></target></pool>"))
	if p, err := c.Pool(ctx, "p"); err != nil || p.Active || p.Type != "dir" || p.Path != "/p" {
		t.Errorf("%+v, %v", p, err)
	}
	ok("start pool", c.StartPool(ctx, "p"))
	if p, err := c.Pool(ctx, "p"); err != nil || !p.Active || p.Available == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if names, err := c.Volumes(ctx, "p"); err != nil || len(names) > 0 {
		t.Errorf("volumes %v, %v", names, err)
	}
	if err := c.DeleteVolume(ctx, "p", "v"); !errors.Is(err, libvirt.ErrAbsent) {
		t.Errorf("a volume that does not exist: %v", err)
	}
	ok("remove pool", c.RemovePool(ctx, "p"))
	f, err := c.Facts(ctx)
	if err != nil || f.Libvirt == "" || !strings.HasPrefix(f.URI, "test:") {
		t.Errorf("%+v, %v", f, err)
	}
	if want := (providers.Capacity{CPUs: 16, Memory: 3 << 30}); f.Capacity != want { // of libvirt's test driver
		t.Errorf("the host has %+v, want %+v", f.Capacity, want)
	}
}

func TestConnectionWhoseContextEnded(t *testing.T) {
	c, err := libvirt.Dial(t.Context(), testDriver(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // it is chance whether select takes a slot or the end of ctx first
		if err = c.Start(ctx, uuid(1)); err != nil && !errors.Is(err, libvirt.ErrAbsent) {
			break
		}
	}
	if fmt.Sprint(err) != "start a domain: libvirt gave no answer: context canceled" {
		t.Errorf("got %v", err)
	}
}

// A daemon that accepts a connection and never answers does not hold vmctl up.
func TestConnectToADaemonThatHangs(t *testing.T) {
	dir := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	})
	l := newLab(t)
	uri := "qemu+unix:///session?socket=" + filepath.Join(dir, "sock")
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(uri), "pool": null})
	p, err := libvirt.OpenHurried(libvirt.Host{UID: 1000}, l.settings)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := p.Observe(t.Context(), providers.Query{})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "partial", "connect to "+uri+": no answer within 1ms", inv.Partial[spec.VM].Error())
	wantText(t, "next", "see whether the daemon hangs: virsh -c "+uri+" list", inv.Partial[spec.VM].Next[0].Text)
}
