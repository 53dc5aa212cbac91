package libvirt_test

import (
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// A description that vmctl cannot read concerns nobody, unless it may be of a domain that matters.
func TestDescriptionsThatMatter(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		known      providers.Known
		disk       bool // vmctl has a disk
		matters    bool
	}{
		{name: "another's", text: "<domain><broken"},
		{name: "with a mark", text: `<domain><v:owner xmlns:v="urn:vmctl:1"/><broken`, matters: true},
		{name: "with a forwarded port", text: `<domain><arg value="user,hostfwd=tcp::80-:80"/><broken`, matters: true},
		{name: "beside a disk of vmctl's", text: "<domain><broken", disk: true, matters: true},
		{name: "that is recorded", text: "<domain><broken", known: providers.Known{ID: otherID}, matters: true},
		{name: "that has a wanted name", text: "<domain><broken", known: providers.Known{Name: "theirs"}, matters: true},
		{name: "that is to be imported", text: "<domain><broken", known: providers.Known{Import: "theirs"}, matters: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			if tc.disk {
				l = withDisk(t)
			}
			l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "theirs", tc.text })
			tc.known.Kind, tc.known.Address = spec.VM, dev
			inv, err := l.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{tc.known}})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(inv); strings.Contains(got, "unknown theirs: read the domain's description: ") != tc.matters {
				t.Errorf("it matters: %t, and the inventory is\n%s", tc.matters, got)
			}
		})
	}
}
