package machine

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// Stays returns a computed attribute that keeps its value as long as its object exists.
func Stays() providers.Attribute {
	return providers.Attribute{Computed: true, Lasts: func(now, _ cty.Value) cty.Value { return now }}
}

// Ports returns the attribute that maps each forwarded guest port to its host port. It is
// known before a start if the spec chose all host ports. An object that is to be off has
// none.
func Ports() providers.Attribute {
	return providers.Attribute{Computed: true, Lasts: func(_, want cty.Value) cty.Value { return fixedPorts(want) }}
}

func fixedPorts(want cty.Value) cty.Value {
	unknown := cty.UnknownVal(cty.Map(cty.Number))
	if running := ctyread.Attr(want, "running"); ctyread.Known(running) && running.False() {
		return cty.MapValEmpty(cty.Number)
	}
	forwards := ctyread.Attr(want, "port_forward")
	if !ctyread.Known(forwards) || !forwards.IsWhollyKnown() {
		return unknown
	}
	ports := map[string]cty.Value{}
	for _, protocol := range []string{"udp", "tcp"} { // tcp last: a port of both is the tcp one
		for _, f := range forwards.AsValueSlice() {
			host, err := cty.ParseNumberVal(f.GetAttr("host").AsString())
			if err != nil { // the kernel chooses
				return unknown
			}
			if f.GetAttr("protocol").AsString() == protocol {
				ports[f.GetAttr("guest").AsBigFloat().Text('f', 0)] = host
			}
		}
	}
	if len(ports) == 0 {
		return cty.MapValEmpty(cty.Number)
	}
	return cty.MapVal(ports)
}
