package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

var motd = spec.Address{Kind: spec.GuestFile, Name: "motd"}

const motdID = providers.ID("44444444-2222-8333-8444-555555555555")

// inside opens the inside of the lab's VM.
func (l *lab) inside() providers.Provider {
	l.t.Helper()
	settings := l.settings
	settings.Via = l.vm()
	p, err := simType(l.t).Inside.Open(l.t.Context(), settings)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// file carries out an action on a file in the guest, and returns the steps that were done.
func (l *lab) file(p providers.Provider, action providers.Action, content string) string {
	l.t.Helper()
	c := providers.Change{
		Address: motd, Kind: spec.GuestFile, Action: action, Name: "lab.motd", ID: motdID, Generation: l.generation,
		Want: cty.ObjectVal(map[string]cty.Value{"vm": cty.StringVal("vm.dev"), "path": cty.StringVal("/etc/motd"), "content": cty.StringVal(content)}),
	}
	inv, err := p.Observe(l.t.Context(), providers.Query{})
	if err != nil {
		l.t.Fatal(err)
	}
	expect := ""
	for i := range inv.Objects {
		if inv.Objects[i].ID == motdID {
			c.Object, expect = &inv.Objects[i], inv.Objects[i].Fingerprint
		}
	}
	if action == providers.Update {
		c.Edits = []providers.Edit{{Path: "content"}}
	}
	steps, err := p.Steps(c)
	if err != nil {
		l.t.Fatal(err)
	}
	var said []string
	for _, s := range steps {
		r, err := p.Do(l.t.Context(), providers.Work{Step: s, Expect: expect, Want: c.Want, Generation: c.Generation}, func(providers.Progress) {})
		if err != nil {
			return l.plain(fmt.Sprintf("%s: %v", s.Op, err))
		}
		expect = r.Fingerprint
		said = append(said, fmt.Sprintf("%s %s", s.Op, r.How))
	}
	return strings.Join(said, ", ")
}

func (l *lab) files(p providers.Provider) string {
	l.t.Helper()
	inv, err := p.Observe(l.t.Context(), providers.Query{})
	if err != nil {
		l.t.Fatal(err)
	}
	var all []string
	for _, o := range inv.Objects {
		all = append(all, fmt.Sprintf("%s %q %t", o.Attrs.GetAttr("path").AsString(), o.Attrs.GetAttr("content").AsString(), o.Owner != nil))
	}
	if why := inv.Partial[spec.GuestFile]; why != nil {
		all = append(all, "partial: "+l.plain(why.Error()))
	}
	return strings.Join(all, "\n")
}

// A file in a guest exists as long as its VM, and can be reached as long as the VM runs.
func TestGuestFile(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	p := l.inside()
	l.is("", l.files(p))
	l.is("write done", l.file(p, providers.Create, "be kind"))
	l.is(`/etc/motd "be kind" true`, l.files(p))
	l.generation = 2
	l.is("write done", l.file(p, providers.Update, "be brave"))
	l.is("write already", l.file(p, providers.Update, "be brave"))
	l.is("flush done", l.file(p, providers.Release, "be brave"))
	l.does(providers.Stop, "stop graceful")
	l.is("partial: the guest of lab.dev gives no answer: dial unix DIR/run/KEY.sock: connect: no such file or directory", l.files(p))
	l.apply(providers.Start)
	p = l.inside()
	l.is(`/etc/motd "be brave" true`, l.files(p))
	l.is("remove done", l.file(p, providers.Destroy, ""))
	l.is("", l.files(p))
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

// Somebody else's file in a guest is in the way, and left alone.
func TestGuestFileOfAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.write(l.dir+"/disks/lab.dev.guest", `{"/etc/motd":{"content":"theirs"}}`)
	p := l.inside()
	l.is(`/etc/motd "theirs" false`, l.files(p))
	l.is("write: write guest_file.motd: lab.dev has a file /etc/motd already (/etc/motd)", l.file(p, providers.Create, "be kind"))
	l.is(`/etc/motd "theirs" false`, l.files(p))
}
