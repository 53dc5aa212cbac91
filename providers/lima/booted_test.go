//go:build unix

package lima_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// A plain instance is ready as soon as it lets vmctl in and says that its boot scripts have ended: its host agent, which
// has nothing else to do, says so later. One whose host agent sets something up is not ready before that has said so.
func TestBooted(t *testing.T) {
	plain, none := set("plain", cty.True), withoutDisks()
	scripts := func(how string) func(map[string]cty.Value) {
		return set("params", cty.MapVal(map[string]cty.Value{"slow": cty.StringVal("yes"), "scripts": cty.StringVal(how)}))
	}
	template := func(text string) func(map[string]cty.Value) { return set("template", cty.StringVal(text)) }
	type edits = []func(map[string]cty.Value)
	const own, agent, guest = "", "its host agent says so", "its scripts end"
	for _, test := range []struct {
		name  string
		edits edits
		home  string // a file in the home's _config
		until string // what makes it ready; "": it is at once
	}{
		{name: "its scripts have ended", edits: edits{plain, none, scripts("ended")}, until: own},
		{name: "its scripts run on", edits: edits{plain, none, scripts("run")}, until: guest},
		{name: "they ended before it restarted itself", edits: edits{plain, none, scripts("ended before")}, until: agent},
		{name: "it is not plain", edits: edits{none, scripts("ended")}, until: agent},
		{name: "its host agent frees a disk", edits: edits{plain, scripts("ended")}, until: agent},
		{name: "it forwards a port", until: agent, edits: edits{plain, none, scripts("ended"), set("port_forward", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
			"guest": cty.NumberIntVal(80), "host": cty.StringVal("auto"), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
		})}))}},
		{name: "its template forwards one", edits: edits{plain, none, scripts("ended"), template("portForwards: [{guestPort: 80, hostPort: 8080, static: true}]\n")}, until: agent},
		{name: "its template ignores one", edits: edits{plain, none, scripts("ended"), template("portForwards: [{guestPort: 80, ignore: true}]\n")}, until: own},
		{name: "it has a probe", edits: edits{plain, none, scripts("ended"), template("probes: [{script: '#!/bin/true'}]\n")}, until: agent},
		{name: "it has a file to copy", edits: edits{plain, none, scripts("ended"), template("copyToHost: [{guest: /etc/a, host: /nowhere}]\n")}, until: agent},
		{name: "it is no Linux", edits: edits{plain, none, scripts("ended"), template("os: FreeBSD\n")}, until: agent},
		{name: "its home has defaults", edits: edits{plain, none, scripts("ended")}, home: "default.yaml", until: agent},
		{name: "its home overrides", edits: edits{plain, none, scripts("ended")}, home: "override.yaml", until: agent},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, append(test.edits, set("running", cty.False))...)
			if test.home != "" {
				l.write("rosetta: {enabled: false}\n", "_config", test.home)
			}
			if err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet); err != nil {
				t.Fatal(err)
			}
			waited := ""
			err := l.await(func() {
				switch {
				case waited != "": // it has been told
				case test.until == guest:
					waited = guest
					l.write("iid-1700000000\n", "lab.dev", "boot-done")
					l.write(l.read("lab.dev", "serial.log")+"LIMA 2026-01-01T00:00:01+00:00| Exiting with code 0\r\n", "lab.dev", "serial.log")
				default:
					waited = agent
					l.write("", "lab.dev", "booted")
				}
			})
			if err != nil || waited != test.until {
				t.Errorf("it was ready after %q, want %q: %v", waited, test.until, err)
			}
			running := strings.Contains(l.read("lab.dev", "ha.stdout.log"), `"running":true`)
			if o := l.object(devID); running != (test.until == agent) || o.State != providers.StateRunning {
				t.Errorf("then its host agent has said so: %t; it is %s", running, o.State)
			}
		})
	}
}

// A plain instance whose console shows a failed script of the spec is not ready, whatever its host agent says.
func TestBootedWithFailure(t *testing.T) {
	l := newLab(t, set("running", cty.False), set("plain", cty.True), withoutDisks(),
		set("params", cty.MapVal(map[string]cty.Value{"slow": cty.StringVal("yes"), "script": cty.StringVal("fails"), "scripts": cty.StringVal("ended")})))
	if err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet); err != nil {
		t.Fatal(err)
	}
	err := l.await(func() { l.write("", "lab.dev", "booted") })
	if p := (*providers.Problem)(nil); !errors.As(err, &p) || p.Code != "script_failed" {
		t.Errorf("it is ready: %v", err)
	}
}

func withoutDisks() func(map[string]cty.Value) {
	return set("additional_disk", cty.ListValEmpty(cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})))
}

// await carries out the wait for the guest's SSH. unready is called when the guest is not ready yet.
func (l *lab) await(unready func()) error {
	l.t.Helper()
	w := providers.Work{Expect: l.object(devID).Fingerprint, Prior: l.vm, Want: l.vm, Policy: l.policy, Generation: 1}
	w.Op, w.Address, w.Object, w.Name, w.Phase, w.Timeout = "wait_ssh", dev, devID, "lab.dev", providers.PhaseReady, time.Minute
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	_, err := l.p.Do(ctx, w, func(p providers.Progress) {
		if strings.HasPrefix(p.Text, "it lets vmctl in, and its host agent has not reported it running") || p.Text == "its boot scripts have not ended" {
			unready()
		}
	})
	return err
}
