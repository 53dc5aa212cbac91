//go:build cgo && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	virt "libvirt.org/go/libvirt"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// benchDomains is the number of domains that BenchmarkObserve observes.
const benchDomains = 500

// BenchmarkObserve compares an observation of many domains with a bare loop of the calls that it needs,
// each domain's run state and configuration, on libvirt's test driver. There a call costs next to
// nothing: what vmctl itself does weighs most. acceptance/bench has a daemon.
//
//	go test -tags libvirt_dlopen ./providers/libvirt -run '^$' -bench Observe
func BenchmarkObserve(b *testing.B) {
	l := made(b, vm(off))
	ours := l.Configured(devID)
	ours = strings.Replace(ours, `<domain type="qemu"`, `<domain type="test"`, 1)
	ours = strings.Replace(ours, "</domain>", `<test:runstate xmlns:test="http://libvirt.org/schemas/domain/test/1.0">5</test:runstate></domain>`, 1)
	theirs := regexp.MustCompile(`(?s)<metadata>.*</metadata>|<(qemu:)?commandline.*</(qemu:)?commandline>`).ReplaceAllString(ours, "")
	for _, tc := range []struct {
		name  string
		own   int // of 500
		known []providers.Known
	}{{"own", benchDomains, nil}, {"others", 0, nil}} {
		var domains strings.Builder
		for i := range benchDomains {
			text := theirs
			if i < tc.own {
				text = ours
			}
			domains.WriteString(strings.NewReplacer(devID, uuid(i), "lab.dev", fmt.Sprintf("lab.d%d", i), "vm.dev", fmt.Sprintf("vm.d%d", i)).Replace(text))
		}
		uri := testDriver(b, domains.String())
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(uri), "pool": null})
		p, err := libvirt.Type(libvirt.Host{UID: 1000, Getenv: func(string) string { return "" }, Proc: l.proc}).Open(b.Context(), l.settings)
		if err != nil {
			b.Fatal(err)
		}
		var q providers.Query
		for i := range tc.own {
			q.Known = append(q.Known, providers.Known{
				Address: spec.Address{Kind: spec.VM, Name: fmt.Sprintf("d%d", i)}, Kind: spec.VM, ID: providers.ID(uuid(i)), Want: cty.EmptyObjectVal,
			})
		}
		b.Run(tc.name+"/vmctl", func(b *testing.B) {
			for b.Loop() {
				inv, err := p.Observe(b.Context(), q)
				if err != nil || len(inv.Objects) != tc.own || len(inv.Unknown)+len(inv.Partial) > 0 {
					b.Fatalf("%d objects, unknown %v, partial %v, %v", len(inv.Objects), inv.Unknown, inv.Partial, err)
				}
			}
		})
		b.Run(tc.name+"/bare", func(b *testing.B) {
			c, err := virt.NewConnect(uri)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close() //nolint:errcheck // it ends with the process
			for b.Loop() {
				bareObserve(b, c)
			}
		})
	}
}

// bareObserve asks libvirt for the run state and the configuration of all domains.
func bareObserve(b *testing.B, c *virt.Connect) {
	all, err := c.ListAllDomains(0)
	if err != nil || len(all) != benchDomains {
		b.Fatalf("%d domains, %v", len(all), err)
	}
	for _, d := range all {
		if _, _, err := d.GetState(); err != nil {
			b.Fatal(err)
		}
		if _, err := d.GetXMLDesc(virt.DOMAIN_XML_INACTIVE); err != nil {
			b.Fatal(err)
		}
		if err := d.Free(); err != nil {
			b.Fatal(err)
		}
	}
}
