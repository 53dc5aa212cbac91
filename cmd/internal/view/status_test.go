package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// fleet returns a status with VMs in many states.
func fleet() view.StatusDocument {
	running := view.ConditionDocument{Type: "vm.running", Status: "true"}
	off := view.ConditionDocument{Type: "vm.running", Status: "false"}
	unknown := view.ConditionDocument{Type: "vm.running", Status: "unknown", Message: "qemu+ssh://far/system does not answer"}
	return view.StatusDocument{
		FormatVersion: view.FormatVersion, Project: "quickstart", ID: "k7m2qd9x4r",
		Lock: "the run lock is held by vmctl apply (process 4711 on ada, since 2026-03-01T10:00:00Z)",
		Resources: []view.ResourceStatus{
			{
				Address: vm("db"), Provider: "provider.libvirt.default", Object: "quickstart.db", ID: "6c1e", State: "running",
				Endpoint: "127.0.0.1:40022", Conditions: []view.ConditionDocument{running, {Type: "ssh.ready", Status: "true"}},
			},
			{
				Address: vm("dev"), Provider: "provider.libvirt.default", Object: "quickstart.dev", ID: "6c1f", State: "running",
				Endpoint:   "127.0.0.1:40023",
				Conditions: []view.ConditionDocument{running, {Type: "ssh.ready", Status: "false", Reason: "NoAnswer", Message: "no answer within 2s", Generation: 3, Producer: "libvirt"}},
			},
			{
				Address: vm("far"), Provider: "provider.libvirt.far", Object: "quickstart.far", State: "unknown",
				Reason: "qemu+ssh://far/system does not answer", Conditions: []view.ConditionDocument{unknown},
			},
			{
				Address: vm("gone"), Provider: "provider.libvirt.default", Object: "quickstart.gone", State: "missing",
				Reason: "recorded, and the system does not list it", Conditions: []view.ConditionDocument{off},
			},
			{
				Address: vm("held"), Provider: "provider.libvirt.default", Object: "quickstart.held", ID: "6c20", State: "paused",
				Reason: "the hypervisor paused it: I/O error", Conditions: []view.ConditionDocument{off},
			},
			{
				Address: spec.Address{Kind: spec.VM, Name: "web", Key: "a"}, Provider: "provider.libvirt.default",
				Object: "quickstart.web.a", ID: "6c21", State: "stopped", Conditions: []view.ConditionDocument{off},
			},
		},
	}
}

// row A51
func TestStatus(t *testing.T) {
	golden(t, "status-80", on(80, func(s view.Screen) { view.Status(s, fleet()) }))
	golden(t, "status-40", on(40, func(s view.Screen) { view.Status(s, fleet()) }))
	golden(t, "status-none-80", on(80, func(s view.Screen) { view.Status(s, view.StatusDocument{}) }))
	var out bytes.Buffer
	if err := view.JSON(&out, fleet()); err != nil {
		t.Fatal(err)
	}
	golden(t, "status-json", out.String())
}

func shown() view.Shown {
	resource := tiny("dev")
	return view.Shown{
		Status:   fleet().Resources[1],
		Resource: resource,
		Object: &providers.Object{
			Attrs:      object("cpus", num(2), "memory", mib(128), "ssh_port", num(40023), "address", str("127.0.0.1")),
			Unreadable: map[string]string{"boot": "the volume is gone"},
			Findings:   []providers.Finding{{Kind: providers.FindBroken, Address: vm("dev"), Evidence: []string{"QEMU says: I/O error"}}},
		},
		Record: &state.Record{
			Provider: here(), ID: "6c1f", Name: "quickstart.dev", Generation: 3, Starts: 1, Replaced: 2, LastStop: "forced",
			Values: object("cpus", num(2), "memory", mib(256)), Policy: resource.Policy, Uses: []spec.Address{vm("db")},
		},
	}
}

func TestShow(t *testing.T) {
	golden(t, "show-80", on(80, func(s view.Screen) { view.Show(s, shown()) }))
	golden(t, "show-40", on(40, func(s view.Screen) { view.Show(s, shown()) }))
	var out bytes.Buffer
	if err := view.JSON(&out, view.ShowJSON(shown())); err != nil {
		t.Fatal(err)
	}
	golden(t, "show-json", out.String())
}

func TestOutputs(t *testing.T) {
	all := []spec.Output{
		{Name: "address", Value: str("127.0.0.1")},
		{Name: "ports", Value: cty.MapVal(map[string]cty.Value{"80": num(40080), "443": num(40443)})},
		{Name: "soon", Value: cty.UnknownVal(cty.String)},
		{Name: "token", Value: str("hidden"), Sensitive: true},
	}
	golden(t, "outputs-80", on(80, func(s view.Screen) { view.Outputs(s, all) }))
	var out bytes.Buffer
	if err := view.JSON(&out, view.OutputsDocument{FormatVersion: view.FormatVersion, Outputs: view.OutputsJSON(all)}); err != nil {
		t.Fatal(err)
	}
	golden(t, "outputs-json", out.String())
	for i, want := range []string{"127.0.0.1", `{"443":40443,"80":40080}`, "(not known yet)", "hidden"} {
		if got := view.RawOutput(all[i]); got != want {
			t.Errorf("raw %s is %q, want %q", all[i].Name, got, want)
		}
	}
}

func TestDoctor(t *testing.T) {
	d := view.DoctorDocument{FormatVersion: view.FormatVersion, Checks: []view.Check{
		{Name: "data directory", Status: "ok", Detail: "/home/ada/.local/state/vmctl/quickstart-k7m2qd9x4r"},
		{
			Name: "libvirt library", Status: "missing", Detail: "libvirt.so.0 cannot be opened",
			NeededBy: []string{"vm.db", "vm.dev"}, Next: []string{"sudo apt install libvirt0"},
		},
		{
			Name: "/dev/kvm", Status: "warning", Detail: "permission denied: guests are emulated",
			Next: []string{"sudo usermod -aG kvm $USER, then log in again"},
		},
	}}
	golden(t, "doctor-80", on(80, func(s view.Screen) { view.Doctor(s, d) }))
	golden(t, "doctor-40", on(40, func(s view.Screen) { view.Doctor(s, d) }))
	d.OK, d.Checks = true, d.Checks[:1]
	golden(t, "doctor-ok-80", on(80, func(s view.Screen) { view.Doctor(s, d) }))
}

func problem() view.ProblemDocument {
	return view.ProblemDocument{
		Code: "data_dir_too_long", Message: "use data directory /home/ada/\x1b]0;title\x07: its name is too long for sockets",
		Seen: []string{"a socket inside would have a name of 162 bytes, and the system allows 107"},
		Next: []string{"choose a shorter one: --data-dir=/tmp/q"},
	}
}

func TestFailed(t *testing.T) {
	golden(t, "error-80", on(80, func(s view.Screen) { view.Failed(s, problem()) }))
	golden(t, "error-40", on(40, func(s view.Screen) { view.Failed(s, problem()) }))
	var out bytes.Buffer
	if err := view.JSON(&out, view.FailureJSON(problem(), diagnostics())); err != nil {
		t.Fatal(err)
	}
	golden(t, "error-json", out.String())
}

const source = "vm \"dev\" {\n  memory = \"8G\" # \x1b[31m\n}\n"

func diagnostics() hcl.Diagnostics {
	place := hcl.Range{
		Filename: "a.vmctl.hcl",
		Start:    hcl.Pos{Line: 2, Column: 12, Byte: 21},
		End:      hcl.Pos{Line: 2, Column: 16, Byte: 25},
	}
	return hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: "Unknown size", Detail: `"8G" is ambiguous: write "8GiB".`, Subject: &place},
		{Severity: hcl.DiagWarning, Summary: "Deprecated \x1b[2J", Detail: "Somewhere."},
	}
}

func TestDiagnostics(t *testing.T) {
	files := map[string]*hcl.File{"a.vmctl.hcl": {Bytes: []byte(source)}}
	golden(t, "diagnostics-80", on(80, func(s view.Screen) { view.Diagnostics(s, files, diagnostics()) }))
	golden(t, "diagnostics-40", on(40, func(s view.Screen) { view.Diagnostics(s, files, diagnostics()) }))
	if got := on(80, func(s view.Screen) { view.Diagnostics(s, files, nil) }); got != "" {
		t.Errorf("no diagnostics are %q", got)
	}
}

// Of thousands of mistakes, people see the first ones and the number of the others, and every error
// before any warning.
func TestManyDiagnostics(t *testing.T) {
	var many hcl.Diagnostics
	for i := range 4600 {
		severity := hcl.DiagError
		if i < 5 {
			severity = hcl.DiagWarning
		}
		many = append(many, &hcl.Diagnostic{Severity: severity, Summary: fmt.Sprintf("Mistake %d", i), Detail: "It is one."})
	}
	got := on(80, func(s view.Screen) { view.Diagnostics(s, nil, many) })
	if strings.Count(got, "Error: ") != 20 || strings.Contains(got, "Warning: ") || !strings.HasSuffix(got, "and 4,580 more; --json lists all\n") {
		t.Errorf("got\n%s", got)
	}
	if n := len(view.DiagnosticsJSON(many)); n != 4600 {
		t.Errorf("the JSON has %d diagnostics", n)
	}
}
