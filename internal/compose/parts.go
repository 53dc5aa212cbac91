package compose

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultNetwork is the network of services that name none.
const defaultNetwork = "default"

// everyAddress is where compose publishes a port that names no address.
const everyAddress = "0.0.0.0"

// ports returns the published ports of a service.
func (s *section) ports() []Port {
	v, ok := s.take("ports")
	if !ok {
		return nil
	}
	var all []Port
	for i, entry := range s.r.list(s.at("ports"), v) {
		path := fmt.Sprintf("%s[%d]", s.at("ports"), i)
		var ip, published, target, protocol string
		if long, isLong := entry.(map[string]any); isLong {
			p := s.nested(fmt.Sprintf("ports[%d]", i), long)
			ip, published, target, protocol = p.takeText("host_ip"), p.takeText("published"), p.takeText("target"), p.takeText("protocol")
			p.rest(because("a port has no such setting"))
		} else if text, ok := s.r.text(path, entry); ok {
			ip, published, target, protocol = splitPort(text)
		}
		if target == "" {
			s.r.fail(path, "names no port of the container")
			continue
		}
		ports, reason, mistake := portsOf(ip, published, target, protocol)
		switch {
		case mistake != "":
			s.r.fail(path, "%s", mistake)
		case reason != "":
			s.leave(fmt.Sprintf("ports[%d]", i), entry, reason)
		}
		if all = append(all, ports...); len(all) > maxPorts {
			s.r.fail(s.at("ports"), "publishes more than %d ports", maxPorts)
			return nil
		}
	}
	return all
}

// splitPort takes the short form apart: [[IP:]HOST:]CONTAINER[/PROTOCOL].
func splitPort(text string) (ip, published, target, protocol string) {
	text, protocol, _ = strings.Cut(text, "/")
	at := strings.LastIndexByte(text, ':')
	target = text[at+1:]
	if at < 0 {
		return "", "", target, protocol
	}
	text = text[:at]
	at = strings.LastIndexByte(text, ':')
	published = text[at+1:]
	if at >= 0 {
		ip = strings.TrimSuffix(strings.TrimPrefix(text[:at], "["), "]")
	}
	return ip, published, target, protocol
}

// portsOf returns the ports of one entry, or why it is left out, or its mistake.
func portsOf(ip, published, target, protocol string) (all []Port, reason, mistake string) {
	protocol = strings.ToLower(protocol)
	switch protocol {
	case "":
		protocol = "tcp"
	case "tcp", "udp":
	case "sctp":
		return nil, "a port is of tcp or udp", ""
	default:
		return nil, "", "has the protocol " + quote(protocol) + ", which is none of tcp, udp and sctp"
	}
	if ip == "" {
		ip = everyAddress
	} else if _, err := netip.ParseAddr(ip); err != nil {
		return nil, "", "has the address " + quote(ip) + ", which is no IP address"
	}
	first, last, ok := portRange(target)
	if !ok {
		return nil, "", "has the port " + quote(target) + ", which is none from 1 to 65535"
	}
	if published == "" || published == "0" {
		return nil, "the engine would choose the port of its machine; a port needs one", ""
	}
	hostFirst, hostLast, ok := portRange(published)
	switch {
	case !ok:
		return nil, "", "has the port " + quote(published) + ", which is none from 1 to 65535"
	case last == first && hostLast > hostFirst:
		return nil, "the engine would choose one of the ports of its machine; a port needs one", ""
	case hostLast-hostFirst != last-first:
		return nil, "", "has ranges of different lengths"
	}
	for n := int64(0); n <= last-first; n++ {
		all = append(all, Port{Container: first + n, Host: hostFirst + n, HostIP: ip, Protocol: protocol})
	}
	return all, "", ""
}

// portRange returns the ends of a range of ports like 80 or 8000-8009.
func portRange(text string) (first, last int64, ok bool) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.ParseInt(from, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.ParseInt(to, 10, 32)
	return first, last, err == nil && first >= 1 && first <= last && last <= 65535
}

// mounts returns the named volumes that a service mounts.
func (s *section) mounts() []Mount {
	v, ok := s.take("volumes")
	if !ok {
		return nil
	}
	var all []Mount
	for i, entry := range s.r.list(s.at("volumes"), v) {
		setting := fmt.Sprintf("volumes[%d]", i)
		var m Mount
		var kind string
		if long, isLong := entry.(map[string]any); isLong {
			p := s.nested(setting, long)
			kind = p.takeText("type")
			m = Mount{Volume: p.takeText("source"), Target: p.takeText("target"), ReadOnly: p.takeBool("read_only")}
			if kind == "volume" { // else all of it is left out
				p.rest(because("a mount has no such setting"))
			}
		} else if text, ok := s.r.text(s.at(setting), entry); ok {
			m, kind = s.shortMount(setting, text)
		} else {
			continue
		}
		switch {
		case kind == "bind":
			s.leave(setting, entry, "a container mounts volumes only, and no folder of the engine's machine")
		case kind != "volume":
			s.leave(setting, entry, "a container mounts volumes only")
		case m.Volume == "":
			s.leave(setting, entry, "a container mounts volumes that have a name only")
		case !s.r.volumes[m.Volume]:
			s.r.fail(s.at(setting), "mounts the volume %s, which the file does not declare", quote(m.Volume))
		default:
			all = append(all, m)
		}
	}
	return all
}

// shortMount reads the short form of a mount: [SOURCE:]TARGET[:OPTIONS].
func (s *section) shortMount(setting, text string) (m Mount, kind string) {
	parts := strings.Split(text, ":")
	if len(parts) == 1 {
		return Mount{Target: text}, "volume"
	}
	m = Mount{Volume: parts[0], Target: parts[1]}
	if m.Volume == "" || strings.ContainsAny(m.Volume, `/\~`) || strings.HasPrefix(m.Volume, ".") || len(parts) > 3 {
		return m, "bind"
	}
	if len(parts) < 3 {
		return m, "volume"
	}
	for _, option := range strings.Split(parts[2], ",") {
		switch option {
		case "ro":
			m.ReadOnly = true
		case "rw":
		default:
			s.leave(setting, text, "a mount has no option "+quote(option))
		}
	}
	return m, "volume"
}

// networks returns the networks of a service, with its name as the first alias in each, as compose has it. A service that names
// none, or an empty list of them, is in the default network; so is one whose network_mode is empty.
func (s *section) networks(name string) []Attachment {
	mode := s.in["network_mode"]
	v, _ := s.take("networks")
	if empty(v) && !empty(mode) {
		return nil
	}
	list, isList := v.([]any)
	var all []Attachment
	switch {
	case empty(v):
		all = append(all, Attachment{Network: defaultNetwork})
	case isList:
		names := s.r.texts(s.at("networks"), list)
		slices.Sort(names)
		for _, network := range slices.Compact(names) {
			all = append(all, Attachment{Network: network})
		}
	default:
		for network, in := range s.r.named(s.at("networks"), v) {
			n := s.nested("networks."+network, in)
			a := Attachment{Network: network}
			if aliases, ok := n.take("aliases"); ok {
				a.Aliases = s.r.texts(n.at("aliases"), aliases)
			}
			n.rest(because("a container's place in a network has no such setting"))
			all = append(all, a)
		}
	}
	for i, a := range all {
		if a.Network != defaultNetwork && !s.r.networks[a.Network] {
			s.r.fail(s.at("networks"), "names the network %s, which the file does not declare", quote(a.Network))
		}
		aliases := []string{name}
		for _, alias := range a.Aliases {
			if !slices.Contains(aliases, alias) {
				aliases = append(aliases, alias)
			}
		}
		all[i].Aliases = aliases
	}
	return all
}

// empty reports whether a setting says nothing.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// healthcheck returns the check of a service's health, nil without one.
func (s *section) healthcheck() *Healthcheck {
	v, ok := s.take("healthcheck")
	if !ok {
		return nil
	}
	c := s.nested("healthcheck", s.r.mapping(s.at("healthcheck"), v))
	test, tested := c.take("test")
	if c.takeBool("disable") {
		s.leave("healthcheck", v, serviceReason("healthcheck"))
		return nil
	}
	if !tested {
		s.leave("healthcheck", v, "it has no test of its own, and a healthcheck needs one")
		return nil
	}
	var h Healthcheck
	if line, isLine := test.(string); isLine {
		h.Command = []string{"/bin/sh", "-c", line}
	} else {
		words := s.r.texts(c.at("test"), test)
		switch {
		case len(words) == 1 && words[0] == "NONE":
			s.leave("healthcheck", v, serviceReason("healthcheck"))
			return nil
		case len(words) > 1 && words[0] == "CMD":
			h.Command = words[1:]
		case len(words) == 2 && words[0] == "CMD-SHELL":
			h.Command = []string{"/bin/sh", "-c", words[1]}
		default:
			s.r.fail(c.at("test"), "begins with none of NONE, CMD and CMD-SHELL, or has no command after it")
			return nil
		}
	}
	h.Interval, h.Timeout, h.StartPeriod = c.takeDuration("interval"), c.takeDuration("timeout"), c.takeDuration("start_period")
	if v, ok := c.take("retries"); ok {
		h.Retries = s.r.whole(c.at("retries"), v)
	}
	c.rest(because("a healthcheck has no such setting"))
	return &h
}

// takeDuration returns a duration. "": there is none, or it is 0, which means the default.
func (s *section) takeDuration(key string) string {
	v, ok := s.take(key)
	if !ok {
		return ""
	}
	text, ok := s.r.text(s.at(key), v)
	d, err := time.ParseDuration(text)
	if ok && (err != nil || d < 0) {
		s.r.fail(s.at(key), "is %s, which is no duration like 30s", quote(text))
	}
	if d == 0 {
		return ""
	}
	return d.String()
}

// network reads a declaration of a network.
func (r *reader) network(name string, in map[string]any) Network {
	n := Network{Name: name}
	s := r.section("networks."+name, in, &n.LeftOut)
	n.ObjectName, n.External = s.objectName(name)
	n.Driver, n.Internal, n.Labels = s.takeText("driver"), s.takeBool("internal"), s.labels()
	s.rest(networkReason)
	return n
}

// volume reads a declaration of a volume.
func (r *reader) volume(name string, in map[string]any) Volume {
	v := Volume{Name: name}
	s := r.section("volumes."+name, in, &v.LeftOut)
	v.ObjectName, v.External = s.objectName(name)
	v.Driver, v.Labels = s.takeText("driver"), s.labels()
	s.rest(volumeReason)
	return v
}

// objectName returns the name of a network or a volume in the engine, and whether it exists already. Its older form is
// external: {name: NAME}.
func (s *section) objectName(name string) (object string, external bool) {
	object = s.takeText("name")
	v, ok := s.take("external")
	if old, isOld := v.(map[string]any); isOld {
		o := s.nested("external", old)
		if named := o.takeText("name"); object == "" {
			object = named
		}
		o.rest(because("external has no such setting"))
		external = true
	} else if ok {
		external = s.r.truth(s.at("external"), v)
	}
	if external && object == "" {
		object = name
	}
	return object, external
}
