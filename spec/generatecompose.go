package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/compose"
)

// ComposeTarget says what surrounds the blocks of a compose file.
type ComposeTarget struct {
	Engine    Address
	NewEngine bool               // the engine has no block yet: one is written, for this host
	Images    map[string]Address // images that have a block already, by full name
	Taken     map[Address]bool   // all that have a block already
}

// Composed is the result of GenerateCompose.
type Composed struct {
	Text      []byte    // formatted
	Addresses []Address // of the blocks, as they stand in Text
	LeftOut   []LeftOut // what no block can say; Text has it as comments
}

// LeftOut is a setting of a compose file that no block can say.
type LeftOut struct {
	Address Address // of the block that lacks it; zero: a setting of the whole file
	Setting string
	Reason  string // a clause
}

// GenerateCompose writes blocks for the services, networks and volumes of a compose file, and for their images. What a
// block cannot say becomes a comment in it, with the reason. The error names each label that two blocks would have.
func GenerateCompose(p *compose.Project, to ComposeTarget) (Composed, error) {
	g := composer{to: to, file: hclwrite.NewEmptyFile(), labels: map[Address]string{}, images: map[string]Address{}}
	for _, l := range p.LeftOut {
		g.leave(g.file.Body(), Address{}, l)
	}
	g.begun = len(p.LeftOut) > 0
	if to.NewEngine {
		g.add(to.Engine)
	}
	for _, s := range p.Services {
		g.image(s)
	}
	for _, n := range p.Networks {
		g.network(n)
	}
	for _, v := range p.Volumes {
		g.volume(v)
	}
	for _, s := range p.Services {
		g.container(s)
	}
	if err := errors.Join(g.errs...); err != nil {
		return Composed{}, err
	}
	return Composed{Text: hclwrite.Format(g.file.Bytes()), Addresses: g.addresses, LeftOut: g.leftOut}, nil
}

// composer writes the blocks of one compose file.
type composer struct {
	to        ComposeTarget
	file      *hclwrite.File
	begun     bool               // the file has something already
	labels    map[Address]string // names in the compose file
	images    map[string]Address // by full name
	addresses []Address
	leftOut   []LeftOut
	errs      []error
}

// address returns the address for a name of the compose file. A name that is no label is written with LabelOf.
func (g *composer) address(kind Kind, name string) Address {
	addr := Address{Kind: kind, Name: name}
	if !labelPattern.MatchString(name) {
		addr.Name = LabelOf(name)
	}
	if other, taken := g.labels[addr]; taken && other != name {
		g.errs = append(g.errs, fmt.Errorf("%q and %q would both be %s: rename one of them", other, name, addr))
	}
	if _, known := g.labels[addr]; !known && g.to.Taken[addr] {
		g.errs = append(g.errs, fmt.Errorf("%s is in the files already: remove its block, or %q from the compose file", addr, name))
	}
	g.labels[addr] = name
	return addr
}

// composedBlock is one block that is being written.
type composedBlock struct {
	g     *composer
	addr  Address
	shape Block
	body  *hclwrite.Body
	left  []compose.LeftOut
}

// add begins a block at the end of the file.
func (g *composer) add(addr Address) *composedBlock {
	if g.begun {
		g.file.Body().AppendNewline()
	}
	g.begun = true
	g.addresses = append(g.addresses, addr)
	shape := resourceShapes[addr.Kind]
	b := &composedBlock{g: g, addr: addr, shape: shape, body: g.file.Body().AppendNewBlock(shape.Name, []string{addr.Name}).Body()}
	if _, inside := shape.attr("engine"); inside {
		b.body.SetAttributeTraversal("engine", g.to.Engine.traversal())
	}
	return b
}

// end writes what was left out.
func (b *composedBlock) end(all []compose.LeftOut) {
	all = append(slices.Clone(all), b.left...)
	if len(all) > 0 && len(b.body.Attributes())+len(b.body.Blocks()) > 0 {
		b.body.AppendNewline()
	}
	for _, l := range all {
		b.g.leave(b.body, b.addr, l)
	}
}

// leave writes a comment about a setting that was left out.
func (g *composer) leave(body *hclwrite.Body, addr Address, l compose.LeftOut) {
	g.leftOut = append(g.leftOut, LeftOut{Address: addr, Setting: l.Setting, Reason: l.Reason})
	comment := func(line string) {
		body.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte("# " + visible(line) + "\n")}})
	}
	comment(fmt.Sprintf("Left out, %s: %s.", l.Setting, strings.TrimSuffix(l.Reason, ".")))
	if l.Text == "" {
		return
	}
	for line := range strings.Lines(l.Text) {
		comment("  " + strings.TrimRight(line, "\r\n"))
	}
}

// visible returns a line without characters that could end a comment or that cannot be seen.
func visible(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsGraphic(r) && r != '\u2028' && r != '\u2029' {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// set writes an attribute if it is allowed and not the default; else it is left out with the reason.
func (b *composedBlock) set(name string, said cty.Value) {
	attr, ok := b.shape.attr(name)
	if !ok {
		panic("no attribute " + name)
	}
	value, problem := canonical(attr, said)
	if problem != "" {
		b.left = append(b.left, compose.LeftOut{Setting: name, Text: commentOf(said), Reason: "it " + problem})
		return
	}
	if attr.Default != cty.NilVal && value.RawEquals(attr.Default) {
		return
	}
	b.body.SetAttributeValue(name, said)
}

// setText writes an attribute whose text is not empty.
func (b *composedBlock) setText(name, text string) {
	if text != "" {
		b.set(name, cty.StringVal(text))
	}
}

// setTexts writes a list that is not nil.
func (b *composedBlock) setTexts(name string, texts []string) {
	if texts != nil {
		b.set(name, textList(texts))
	}
}

// setMap writes a mapping that is not empty. What its attribute does not allow is left out.
func (b *composedBlock) setMap(name string, in map[string]string) {
	attr, _ := b.shape.attr(name)
	var all []hclwrite.ObjectAttrTokens
	for _, key := range slices.Sorted(maps.Keys(in)) {
		value := cty.StringVal(in[key])
		if _, problem := canonical(attr, cty.MapVal(map[string]cty.Value{key: value})); problem != "" {
			b.left = append(b.left, compose.LeftOut{Setting: name + "." + key, Text: strconv.Quote(in[key]), Reason: "it " + problem})
			continue
		}
		all = append(all, hclwrite.ObjectAttrTokens{Name: keyTokens(key), Value: hclwrite.TokensForValue(value)})
	}
	if len(all) > 0 {
		b.body.SetAttributeRaw(name, hclwrite.TokensForObject(all))
	}
}

// keyTokens returns the key of an object. The word for would begin an expression.
func keyTokens(key string) hclwrite.Tokens {
	if key == "for" || !labelPattern.MatchString(key) {
		return hclwrite.TokensForValue(cty.StringVal(key))
	}
	return hclwrite.TokensForIdentifier(key)
}

// nestedPart is an attribute of a nested block: a value, or the address that it refers to.
type nestedPart struct {
	name  string
	value cty.Value
	refer Address
}

// nest writes a nested block. A part that is not allowed is left out with the reason, and the whole block if it requires
// that part.
func (b *composedBlock) nest(name string, parts ...nestedPart) {
	shape, ok := b.shape.block(name)
	if !ok {
		panic("no block " + name)
	}
	block := hclwrite.NewBlock(name, nil)
	inner := &composedBlock{g: b.g, addr: b.addr, shape: shape, body: block.Body()}
	var text []string
	for _, p := range parts {
		switch {
		case p.refer != Address{}:
			inner.body.SetAttributeTraversal(p.name, p.refer.traversal())
			text = append(text, p.name+": "+p.refer.String())
		case p.value != cty.NilVal:
			inner.set(p.name, p.value)
			text = append(text, p.name+": "+commentOf(p.value))
		}
	}
	required := false
	for _, l := range inner.left {
		attr, _ := shape.attr(l.Setting)
		required = required || attr.Required
	}
	for _, l := range inner.left {
		l.Setting = name + "." + l.Setting
		if required {
			l.Text = strings.Join(text, "\n")
		}
		b.left = append(b.left, l)
	}
	if !required {
		appendBlock(b.body, block)
	}
}

func (g *composer) image(s compose.Service) {
	full := compose.CanonicalImage(s.Image)
	if addr, ok := g.to.Images[full]; ok {
		g.images[full] = addr
	}
	if _, ok := g.images[full]; ok {
		return
	}
	repository := full[:strings.LastIndexAny(full, ":@")]
	if before, _, ok := strings.Cut(full, "@"); ok {
		repository = before
	}
	base := Address{Kind: Image, Name: labelNear(repository[strings.LastIndexByte(repository, '/')+1:])}
	addr := base
	for n := 2; g.labels[addr] != "" || g.to.Taken[addr]; n++ {
		addr.Name = fmt.Sprintf("%s_%d", base.Name, n)
	}
	g.labels[addr], g.images[full] = full, addr
	b := g.add(addr)
	b.set("ref", cty.StringVal(s.Image))
	b.end(nil)
}

// labelNear returns a label that resembles a text.
func labelNear(text string) string {
	if strings.Contains(text, ":") {
		text = text[:strings.IndexByte(text, ':')]
	}
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, text)
	if !labelPattern.MatchString(label) {
		label = "image_" + label
	}
	return label
}

func (g *composer) network(n compose.Network) {
	b := g.add(g.address(Network, n.Name))
	b.setText("name", n.ObjectName)
	b.setText("driver", n.Driver)
	b.set("internal", cty.BoolVal(n.Internal))
	b.setMap("labels", n.Labels)
	b.end(append(slices.Clone(n.LeftOut), b.external(n.External, n.ObjectName)...))
}

func (g *composer) volume(v compose.Volume) {
	b := g.add(g.address(Volume, v.Name))
	b.setText("name", v.ObjectName)
	b.setText("driver", v.Driver)
	b.setMap("labels", v.Labels)
	b.end(append(slices.Clone(v.LeftOut), b.external(v.External, v.ObjectName)...))
}

// external protects an object that exists already, and returns how to take it over.
func (b *composedBlock) external(is bool, name string) []compose.LeftOut {
	if !is {
		return nil
	}
	b.body.AppendNewline()
	b.body.AppendNewBlock(lifecycleBlock.Name, nil).Body().SetAttributeValue("prevent_destroy", cty.True)
	return []compose.LeftOut{{
		Setting: "external", Text: "external: true",
		Reason: fmt.Sprintf("it exists already, so that vmctl manages it only after: vmctl import %s %s", b.addr, name),
	}}
}

func (g *composer) container(s compose.Service) {
	b := g.add(g.address(Container, s.Name))
	b.body.SetAttributeTraversal("image", g.images[compose.CanonicalImage(s.Image)].traversal())
	b.setText("name", s.ContainerName)
	b.setTexts("entrypoint", s.Entrypoint)
	b.setTexts("command", s.Command)
	b.setMap("env", s.Env)
	b.setText("user", s.User)
	b.setText("workdir", s.WorkingDir)
	b.setText("hostname", s.Hostname)
	b.setMap("labels", s.Labels)
	b.setText("restart", s.Restart)
	if s.Memory > 0 {
		b.set("memory", cty.StringVal(FormatSize(s.Memory)))
	}
	if s.CPUs != "" {
		b.setNumber("cpus", s.CPUs)
	}
	b.dependsOn(s.DependsOn)
	for _, p := range s.Ports {
		b.nest("port", nestedPart{name: "container", value: cty.NumberIntVal(p.Container)}, nestedPart{name: "host", value: cty.NumberIntVal(p.Host)},
			nestedPart{name: "host_ip", value: cty.StringVal(p.HostIP)}, nestedPart{name: "protocol", value: cty.StringVal(p.Protocol)})
	}
	mounted := map[string]bool{}
	for _, m := range s.Mounts {
		if mounted[m.Volume] {
			b.left = append(b.left, compose.LeftOut{
				Setting: "volumes", Text: fmt.Sprintf("%s:%s", m.Volume, m.Target), Reason: "a container mounts a volume once",
			})
			continue
		}
		mounted[m.Volume] = true
		b.nest("mount", nestedPart{name: "volume", refer: g.address(Volume, m.Volume)}, nestedPart{name: "target", value: cty.StringVal(m.Target)},
			nestedPart{name: "read_only", value: cty.BoolVal(m.ReadOnly)})
	}
	for _, n := range s.Networks {
		b.nest("network", nestedPart{name: "network", refer: g.address(Network, n.Network)}, nestedPart{name: "aliases", value: textList(n.Aliases)})
	}
	if h := s.Healthcheck; h != nil {
		parts := []nestedPart{{name: "command", value: textList(h.Command)}, duration("interval", h.Interval), duration("timeout", h.Timeout)}
		if h.Retries != 0 {
			parts = append(parts, nestedPart{name: "retries", value: cty.NumberIntVal(h.Retries)})
		}
		b.nest("healthcheck", append(parts, duration("start_period", h.StartPeriod))...)
	}
	if s.StopGrace != "" {
		b.nest("stop", duration("grace", s.StopGrace))
	}
	left := s.LeftOut
	for _, file := range s.EnvFiles {
		left = append(left, compose.LeftOut{
			Setting: "env_file", Text: "env_file: " + strconv.Quote(file),
			Reason: "env has its variables as they were; for a secret write a reference to a sensitive variable",
		})
	}
	b.end(left)
}

// setNumber writes a number, of its text.
func (b *composedBlock) setNumber(name, text string) {
	n, err := cty.ParseNumberVal(text)
	if err != nil {
		b.left = append(b.left, compose.LeftOut{Setting: name, Text: text, Reason: "it is no number"})
		return
	}
	b.set(name, n)
}

// dependsOn writes the containers of the services that a service depends on.
func (b *composedBlock) dependsOn(services []string) {
	var all []hclwrite.Tokens
	for _, name := range services {
		all = append(all, hclwrite.TokensForTraversal(b.g.address(Container, name).traversal()))
	}
	if len(all) > 0 {
		b.body.SetAttributeRaw("depends_on", hclwrite.TokensForTuple(all))
	}
}

func duration(name, text string) nestedPart {
	if text == "" {
		return nestedPart{name: name}
	}
	return nestedPart{name: name, value: cty.StringVal(text)}
}

// textList returns a list of texts.
func textList(texts []string) cty.Value {
	all := make([]cty.Value, len(texts))
	for i, text := range texts {
		all[i] = cty.StringVal(text)
	}
	if len(all) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(all)
}

// commentOf returns a value for a comment.
func commentOf(v cty.Value) string {
	return strings.TrimSpace(string(hclwrite.TokensForValue(v).Bytes()))
}
