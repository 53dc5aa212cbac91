package planner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// A plan warns of a port of a container in a VM to which no forwarded port leads.
func TestUnreachedPorts(t *testing.T) {
	const (
		nowhere  = "no port_forward of vm.a leads to its port 8080: nothing outside of the VM reaches it"
		loopback = "port 8080 listens on 127.0.0.1 of vm.a, where no port_forward leads: write host_ip = \"0.0.0.0\" into the port"
		anywhere = "    host_ip   = \"0.0.0.0\"\n"
		vm       = "  vm = vm.a\n"
		host     = "  host = \"unix:///s\"\n"
	)
	forward := func(guest int, protocol string) string {
		return fmt.Sprintf("  port_forward {\n    guest    = %d\n    protocol = %q\n  }\n", guest, protocol)
	}
	for _, test := range []struct {
		name, forward, in, port string
		change                  func(*providers.Type)
		want                    string
	}{
		{name: "none is forwarded", in: vm, port: anywhere, want: nowhere},
		{name: "another one is", forward: forward(80, "tcp"), in: vm, port: anywhere, want: nowhere},
		{name: "it is for another protocol", forward: forward(8080, "udp"), in: vm, port: anywhere, want: nowhere},
		{name: "it listens where none leads", forward: forward(80, "tcp") + forward(8080, "tcp"), in: vm, want: loopback},
		{name: "one leads to it", forward: forward(80, "tcp") + forward(8080, "tcp"), in: vm, port: anywhere},
		{name: "its system forwards to the loopback", forward: forward(8080, "tcp"), in: vm, change: func(t *providers.Type) { t.ForwardsToLoopback = true }},
		{name: "its system forwards nothing", in: vm, change: func(t *providers.Type) { delete(t.Kinds[spec.VM], "port_forward") }},
		{name: "it is on this host", in: host},
	} {
		t.Run(test.name, func(t *testing.T) {
			types := containerTypes()
			libvirt := types.Systems["libvirt"]
			if test.change != nil {
				test.change(&libvirt)
			}
			types.Systems["libvirt"] = libvirt
			config := load(t, "vm \"a\" {\n"+test.forward+"}\nengine \"here\" {\n"+test.in+"}\nimage \"box\" {\n  engine = engine.here\n  ref    = \"box:1\"\n}\n"+
				"container \"web\" {\n  engine = engine.here\n  image  = image.box\n  port {\n    container = 80\n    host      = 8080\n"+test.port+"  }\n}\n")
			s := &state.Snapshot{Format: state.Format, ID: project.ID, Project: project.Name, Serial: 7, Records: map[spec.Address]state.Record{}}
			open := func(context.Context, planner.Opening) (providers.Provider, error) { return &system{}, nil }
			p, w, err := planner.Make(t.Context(), open, config, s, planner.Options{Types: types, Project: project})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			made := false
			for _, c := range p.Changes {
				if c.Address != addr(t, "container.web") {
					continue
				}
				made = c.Action == providers.Create
				if got := strings.Join(c.Warnings, "\n"); got != test.want {
					t.Errorf("warned:\n%s\nwant:\n%s", got, test.want)
				}
			}
			if !made {
				t.Errorf("container.web is not made:\n%s", text(p))
			}
		})
	}
}
