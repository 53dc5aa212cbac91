package lima

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// described returns the instance in a spec's words. label returns the planner's name of a disk.
func (p *Provider) described(s *instance, disks map[string]*observedDisk, label func(*observedDisk) string) machine.Seen {
	seen := machine.Seen{
		ID: s.id, Name: s.name, Mark: s.owner(), State: s.state, Claims: p.claims(s, disks),
		Findings: s.findings(), Digest: p.settings.Digest, Facts: [][2]string{{"root disk", thereIs(s.hasRoot())}},
	}
	if s.guarded {
		seen.Protected = "it is protected by limactl"
	}
	if s.state == stateUnknown {
		seen.Unreadable = s.reason
	}
	if s.starting() {
		seen.Words = "starting"
	}
	if s.state == providers.StateEnding { // a guest that ignores the request runs on
		seen.Power = providers.StateRunning
	}
	if s.isWhole() {
		seen.Configured = p.config(s, s.doc, s.accel(), disks, label)
	}
	if s.state == providers.StateRunning || s.state == providers.StatePaused || s.state == providers.StateEnding {
		seen.Running = p.runningConfig(s, disks, label)
		seen.Got = seen.Running.Forwards
		if s.run != nil {
			if doc, err := yamltext.Parse(s.run.Definition); err == nil {
				seen.Got = forwardsOf(doc, nil)
			}
		}
	}
	seen.Computed = s.computed(seen.Got)
	return seen
}

func thereIs(there bool) string {
	if there {
		return "there"
	}
	return "gone"
}

// isWhole reports whether the making of the instance came to its end.
func (s *instance) isWhole() bool {
	return s.doc != nil && (s.root > 0 || s.lost != "" || !s.made() || s.wsl != nil)
}

// made reports whether vmctl made the instance. One that has lost its mark has vmctl's scripts.
func (s *instance) made() bool {
	if s.mark != nil {
		return !s.mark.Imported
	}
	list, _ := s.doc[keyProvision].([]any)
	return slices.ContainsFunc(list, isOwnScript)
}

func (s *instance) owner() *providers.Mark {
	switch {
	case s.mark != nil:
		return s.mark.Owner.mark()
	case s.copied != nil:
		return s.copied.Owner.mark()
	}
	return nil
}

func (s *instance) accel() string {
	if s.mark == nil || s.mark.Accel == "" {
		return machine.AccelAuto
	}
	return s.mark.Accel
}

// config returns a definition in a spec's words.
func (p *Provider) config(s *instance, doc map[string]any, accel string, disks map[string]*observedDisk, label func(*observedDisk) string) *machine.Config {
	var auto []string
	if s.mark != nil {
		auto = s.mark.Auto
	}
	c := &machine.Config{
		CPUs: p.cpusOf(doc), Memory: p.memoryOf(doc), Accel: accel, Forwards: s.mark.forwards(doc, auto),
		Others: map[string]cty.Value{
			"root_disk": cty.NullVal(cty.DynamicPseudoType), "template": cty.NullVal(cty.String),
			"params": paramsOf(doc, s.mark), "plain": cty.NullVal(cty.Bool), "mount": mountsOf(doc, s.mark),
		},
	}
	if size, ok := parseSize(text(doc[keyDisk], "")); ok && s.wsl != nil { // WSL makes it as large as it likes
		c.Others["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberUIntVal(size)})
	}
	if s.root > 0 {
		c.Others["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberUIntVal(s.root)})
	}
	if text := templateOf(doc, s.mark); text != "" && (s.mark != nil || s.copied != nil) {
		c.Others["template"] = cty.StringVal(text)
	}
	if plain, _ := doc[keyPlain].(bool); plain {
		c.Others["plain"] = cty.True
	} else if s.mark.hasEmpty("plain") {
		c.Others["plain"] = cty.False
	}
	if label != nil {
		s.mark.addDisks(c, namesOf(doc), disks, label)
		s.mark.addMounts(c)
	}
	return c
}

// addMounts adds the paths at which the guest mounts its disks.
func (m *mark) addMounts(c *machine.Config) {
	if m == nil || len(m.MountPoints) == 0 {
		return
	}
	for _, name := range c.Files {
		c.Mounted = append(c.Mounted, m.MountPoints[name])
	}
}

// addDisks adds additional disks by their names, if attributes set them.
func (m *mark) addDisks(c *machine.Config, names []string, disks map[string]*observedDisk, label func(*observedDisk) string) {
	if !m.sets(keyDisks) {
		return
	}
	for _, name := range names {
		id, word := providers.ID(""), name+" (gone)"
		if d := disks[name]; d != nil {
			id, word = d.id, label(d)
		}
		c.DiskIDs, c.Disks, c.Files = append(c.DiskIDs, id), append(c.Disks, word), append(c.Files, name)
	}
}

// runningConfig returns what an instance runs with: what QEMU's arguments say, and the definition that
// it was started with, if vmctl started it. An attribute that neither tells is as configured.
func (p *Provider) runningConfig(s *instance, disks map[string]*observedDisk, label func(*observedDisk) string) *machine.Config {
	doc, accel := s.doc, s.accel()
	if s.run != nil {
		if started, err := yamltext.Parse(s.run.Definition); err == nil {
			doc, accel = started, s.run.Accel
		}
	}
	if doc == nil {
		doc = map[string]any{}
	}
	c := p.config(s, doc, accel, nil, nil)
	if s.run != nil {
		c.Forwards = s.mark.forwards(doc, s.run.Auto)
	}
	delete(c.Others, "root_disk") // its size is the file's
	c.DiskIDs, c.Disks, c.Files = nil, nil, nil
	if len(s.drivers) == 0 {
		s.mark.addDisks(c, namesOf(doc), disks, label)
		s.mark.addMounts(c)
		return c
	}
	argv := s.drivers[0].Argv
	if all := values(argv, "-smp"); len(all) > 0 {
		if n, err := strconv.ParseUint(leadingNumber.FindString(all[0]), 10, 64); err == nil {
			c.CPUs = n
		}
	}
	if all := values(argv, "-m"); len(all) > 0 {
		if n, err := strconv.ParseUint(leadingNumber.FindString(all[0]), 10, 64); err == nil && n<<20 != c.Memory>>20<<20 {
			c.Memory = n << 20
		}
	}
	s.mark.addDisks(c, p.attachedTo(argv), disks, label)
	s.mark.addMounts(c)
	return c
}

// attachedTo returns the names of the home's disks that are in QEMU's arguments.
func (p *Provider) attachedTo(argv []string) []string {
	var all []string
	for _, drive := range values(argv, "-drive") {
		file, ok := strings.CutSuffix(field(drive, "file"), "/"+dataDisk)
		if !ok {
			continue
		}
		folder, name, ok := cutLast(file)
		if home, isDisks := strings.CutSuffix(folder, "/"+disksDir); ok && isDisks && p.isHome(home) {
			all = append(all, name)
		}
	}
	return all
}

func cutLast(path string) (folder, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// computed returns the attributes that Lima sets.
func (s *instance) computed(got []machine.Forward) map[string]cty.Value {
	port := cty.NullVal(cty.Number)
	if s.state == providers.StateRunning && s.events.sshPort != 0 {
		port = cty.NumberUIntVal(uint64(s.events.sshPort))
	}
	return map[string]cty.Value{
		"id": cty.StringVal(string(s.id)), "address": cty.StringVal(loopback), "ssh_port": port, "ports": machine.PortsValue(got),
	}
}

const loopback = "127.0.0.1"

// findings returns the problems of an instance.
func (s *instance) findings() []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action, evidence string) {
		f := providers.Finding{Kind: kind, Object: s.name, Evidence: []string{evidence}, Action: action}
		if o := s.owner(); o != nil {
			f.Address = o.Address
		}
		all = append(all, f)
	}
	if s.state == providers.StateBroken {
		add(providers.FindBroken, s.brokenAction(), s.reason)
	}
	s.wsl.addFindings(s, add)
	if s.silent != "" {
		add(providers.FindBroken, "left alone: it can be stopped", s.silent)
	}
	if s.outdated != "" {
		add(providers.FindOutdated, "left alone: its next start brings it up to date", s.outdated)
	}
	if s.leftover != "" {
		add(providers.FindLeftover, "removed when it is started or deleted", s.leftover)
	}
	switch {
	case s.lost != "":
		add(providers.FindBroken, "put it back, or give it up: --replace=ADDR", "its root disk "+s.lost+" is gone")
		all[len(all)-1].Attr = rootAttr
	case s.mark == nil:
	case s.doc == nil:
		add(providers.FindPartial, "completed when it is changed or started", "it is half made: it has no "+defsFile)
	case s.root == 0 && s.wsl == nil && s.state != stateUnknown:
		add(providers.FindPartial, "completed when it is changed or started", "it is half made: it has no root disk")
	}
	return all
}

// cpusOf returns the number of CPUs of a definition, by Lima's default if it names none.
func (p *Provider) cpusOf(doc map[string]any) uint64 {
	if n, ok := number(doc[keyCPUs]); ok {
		return n
	}
	return min(4, p.cpus)
}

// memoryOf returns the memory of a definition, by Lima's default if it names none.
func (p *Provider) memoryOf(doc map[string]any) uint64 {
	if text, ok := doc[keyMemory].(string); ok {
		if n, ok := parseSize(text); ok {
			return n
		}
	}
	if n, ok := number(doc[keyMemory]); ok {
		return n
	}
	const most = 4 << 30
	if p.memory == 0 {
		return most
	}
	return min(most, p.memory/2)
}

// number reads a whole number of a document.
func number(v any) (uint64, bool) {
	switch n := v.(type) {
	case int:
		return uint64(n), n >= 0 //nolint:gosec // it is not negative where it counts
	case int64:
		return uint64(n), n >= 0 //nolint:gosec // it is not negative where it counts
	case uint64:
		return n, true
	case float64:
		return uint64(n), n >= 0 && n == float64(uint64(n))
	default:
		return 0, false
	}
}

// parseSize reads a size as Lima does: all units are powers of 1024 (RAMInBytes of go-units).
func parseSize(text string) (uint64, bool) {
	m := sizePattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	shift := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}[strings.ToLower(m[2])]
	return uint64(n * float64(uint64(1)<<shift)), true
}

// sets reports whether attributes set a key of the definition, and not the template. Without a mark they set all.
func (m *mark) sets(key string) bool { return m == nil || slices.Contains(m.Keys, key) }

// forwards returns the ports that attributes forward in a definition.
func (m *mark) forwards(doc map[string]any, auto []string) []machine.Forward {
	if !m.sets(keyForwards) {
		return nil
	}
	return m.inOrder(forwardsOf(doc, auto))
}

// inOrder returns forwarded ports in the order in which the spec has them.
func (m *mark) inOrder(all []machine.Forward) []machine.Forward {
	if m == nil {
		return all
	}
	slices.SortStableFunc(all, func(a, b machine.Forward) int {
		return slices.Index(m.Forwards, forwardKey(a)) - slices.Index(m.Forwards, forwardKey(b))
	})
	return all
}

// forwardsOf returns the ports that a definition forwards from the host to the guest. Those in auto
// have host port 0.
func forwardsOf(doc map[string]any, auto []string) []machine.Forward {
	var all []machine.Forward
	list, _ := doc[keyForwards].([]any)
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		if ignored, _ := e["ignore"].(bool); ignored {
			continue
		}
		guest, _ := number(e["guestPort"])
		host, _ := number(e["hostPort"])
		if guest == 0 || guest > 65535 || host > 65535 { // a range or a socket
			continue
		}
		f := machine.Forward{Guest: uint16(guest), Host: uint16(host), HostIP: text(e["hostIP"], loopback), Protocol: text(e["proto"], machine.TCP)}
		if f.Host == 0 {
			f.Host = f.Guest
		}
		if slices.Contains(auto, forwardKey(f)) {
			continue
		}
		all = append(all, f)
	}
	for _, key := range auto {
		if f, ok := parseForwardKey(key); ok {
			all = append(all, f)
		}
	}
	return all
}

func parseForwardKey(key string) (machine.Forward, bool) {
	var f machine.Forward
	at, host, ok := strings.Cut(key, " at ")
	guest, protocol, ok2 := strings.Cut(at, "/")
	n, err := strconv.ParseUint(guest, 10, 16)
	if !ok || !ok2 || err != nil {
		return f, false
	}
	return machine.Forward{Guest: uint16(n), HostIP: host, Protocol: protocol}, true
}

func text(v any, otherwise string) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return otherwise
}

// namesOf returns the names of the additional disks of a definition.
func namesOf(doc map[string]any) []string {
	var all []string
	list, _ := doc[keyDisks].([]any)
	for _, entry := range list {
		switch e := entry.(type) {
		case string:
			all = append(all, e)
		case map[string]any:
			if name := text(e["name"], ""); name != "" {
				all = append(all, name)
			}
		}
	}
	return all
}

// paramsOf returns the parameters that attributes set; without a mark, all of them.
func paramsOf(doc map[string]any, m *mark) cty.Value {
	all := map[string]cty.Value{}
	params, _ := doc[keyParams].(map[string]any)
	for name, value := range params {
		if m == nil || slices.Contains(m.Params, name) {
			all[name] = cty.StringVal(fmt.Sprint(value))
		}
	}
	switch {
	case len(all) > 0:
		return cty.MapVal(all)
	case m.hasEmpty("params"):
		return cty.MapValEmpty(cty.String)
	default:
		return cty.NullVal(cty.Map(cty.String))
	}
}

// mountsOf returns the mounts that attributes set in a definition, as the attribute mount.
func mountsOf(doc map[string]any, m *mark) cty.Value {
	var all []cty.Value
	list, _ := doc[keyMounts].([]any)
	if !m.sets(keyMounts) {
		list = nil
	}
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		writable, _ := e["writable"].(bool)
		target := cty.NullVal(cty.String)
		if at := text(e["mountPoint"], ""); at != "" {
			target = cty.StringVal(at)
		}
		all = append(all, cty.ObjectVal(map[string]cty.Value{
			"source": cty.StringVal(m.source(text(e["location"], ""), text(e["mountPoint"], ""))), "target": target, "writable": cty.BoolVal(writable),
		}))
	}
	if len(all) == 0 {
		return cty.ListValEmpty(cty.Object(map[string]cty.Type{"source": cty.String, "target": cty.String, "writable": cty.Bool}))
	}
	return cty.ListVal(all)
}
