//go:build unix

package lima_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/lima"
)

// A start fails, and names the port, while somebody else has a port of this host that the instance is to have.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) //nolint:errcheck // it is closed below
	_, number, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	h.clock = &leapingClock{}
	l := h.lab(set("running", cty.False), set("port_forward", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"guest": cty.NumberIntVal(80), "host": cty.StringVal(number), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
	})})))
	err = l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet)
	if p := (*providers.Problem)(nil); !errors.As(err, &p) || p.Code != "port_taken" || !strings.Contains(err.Error(), "port "+number+" of this host") {
		t.Errorf("started: %v", err)
	}
	if o := l.object(devID); o.State != providers.StateOff {
		t.Errorf("it is %s", o.State)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	l.do(dev, providers.Start)
}

// A guest that lets vmctl in is not ready while it lacks a mount, or after a script of the spec has failed. The failure
// has the guest's words.
func TestPromises(t *testing.T) {
	mount := set("mount", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"source": cty.StringVal("."), "target": cty.StringVal("/work of mine"), "writable": cty.True,
	})}))
	for _, test := range []struct{ param, code, says string }{
		{"none", "", ""},
		{"unmounted", "not_mounted", "nothing is mounted at /work of mine"},
		{"script", "script_failed", "/mnt/lima-cidata/provision.system/00000001 has failed: no such package: nginx"},
	} {
		t.Run(test.param, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mount, set("running", cty.False), set("params", cty.MapVal(map[string]cty.Value{test.param: cty.StringVal("fails")})))
			l.vm = cty.ObjectVal(mapWith(l.vm, "running", cty.True))
			err := l.try(dev, providers.Start)
			if test.code == "" {
				if err != nil {
					t.Errorf("it is not ready: %v", err)
				}
				return
			}
			p := (*providers.Problem)(nil)
			if !errors.As(err, &p) || p.Code != test.code {
				t.Fatalf("it is ready: %v", err)
			}
			if said := err.Error() + "\n" + strings.Join(p.Seen, "\n"); !strings.Contains(said, test.says) {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}

func mapWith(v cty.Value, name string, value cty.Value) map[string]cty.Value {
	all := v.AsValueMap()
	all[name] = value
	return all
}

// A console shows the scripts that have failed, each with its last words, and whether more may come.
func TestScriptsInConsole(t *testing.T) {
	const at = "[   12.3] cloud-init[500]: LIMA 2026-01-01T00:00:00+00:00| "
	for name, test := range map[string]struct {
		console        string
		mountsDisks    bool
		failed, others []string
		ended          bool
	}{
		"none":    {console: "Booting\nlogin:", ended: true},
		"running": {console: at + "Executing /mnt/lima-cidata/provision.system/00000000\n"},
		"well":    {console: at + "Executing /mnt/a.sh\nfine\n" + at + "Exiting with code 0\n", ended: true},
		"failed": {
			console: at + "Executing /mnt/lima-cidata/boot.Linux/26-host-services.sh\r\n" + at + "WARNING: Failed to execute /mnt/lima-cidata/boot.Linux/26-host-services.sh\r\n" +
				at + "Executing /mnt/lima-cidata/boot.Linux/05-lima-mounts.sh\r\none\r\ntwo\r\nthree\r\n" +
				at + "WARNING: Failed to execute /mnt/lima-cidata/boot.Linux/05-lima-mounts.sh\r\n" + at + "Exiting with code 1\r\n",
			failed: []string{"/mnt/lima-cidata/boot.Linux/05-lima-mounts.sh has failed: two; three"},
			others: []string{"/mnt/lima-cidata/boot.Linux/26-host-services.sh has failed"}, ended: true,
		},
		"Lima's of disks": {
			console: at + "Executing /mnt/lima-cidata/boot.Linux/05-lima-disks.sh\r\nmount: /mnt/lima-demo.raw: special device /dev/vdb1 does not exist.\r\n" +
				at + "WARNING: Failed to execute /mnt/lima-cidata/boot.Linux/05-lima-disks.sh\r\n" + at + "Exiting with code 1\r\n",
			failed: []string{"/mnt/lima-cidata/boot.Linux/05-lima-disks.sh has failed: mount: /mnt/lima-demo.raw: special device /dev/vdb1 does not exist."}, ended: true,
		},
		"Lima's of disks that vmctl mounts": {
			console: at + "Executing /mnt/lima-cidata/boot.Linux/05-lima-disks.sh\r\nmount: /mnt/lima-demo.raw: special device /dev/vdb1 does not exist.\r\n" +
				at + "WARNING: Failed to execute /mnt/lima-cidata/boot.Linux/05-lima-disks.sh\r\n" + at + "Exiting with code 1\r\n",
			mountsDisks: true, ended: true,
		},
	} {
		failed, others, ended := lima.ScriptsIn(test.console, test.mountsDisks)
		if diff := cmp.Diff([]any{test.failed, test.others, test.ended}, []any{failed, others, ended}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
