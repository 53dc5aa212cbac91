package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"vmctl/spec"
)

// seen is an object of an engine as the engine shows it. Decoding is total: a part that is not as it should
// be is in flaw, and the other parts are there.
type seen struct {
	kind   spec.Kind
	id     string // the engine's own: of a volume its name, of an image the name that it is seen by, if it has one
	name   string
	labels map[string]string
	flaw   error // nil: all of it could be read

	state     string // of a container, in the engine's word
	health    string // of a container: "": it has no check
	exit      int
	failure   string // of a container: why it could not be started
	image     string // of a container, as the engine writes it
	imageID   string
	memory    int64
	nanoCPUs  int64
	restart   string
	stop      string   // the signal that asks a container to end
	terminal  bool     // a container's output is that of a terminal, and not in two streams
	bound     []bound  // of a container that runs
	networks  []string // that a container is on
	volumes   []string // that a container mounts
	tags      int      // of an image: how many names it has
	digests   []string // of an image: the names with digests under which registries have it
	forced    bool     // of an image that is to go: its name goes even if a container uses it
	driver    string
	inspected bool
}

// bound is a port of the engine's machine that a container has.
type bound struct{ ip, port, protocol string }

// fields reads the parts of a JSON object one by one.
type fields struct {
	all  map[string]json.RawMessage
	flaw error
}

func fieldsOf(raw json.RawMessage) *fields {
	f := &fields{}
	if err := json.Unmarshal(raw, &f.all); err != nil {
		f.flaw = fmt.Errorf("it is no object: %w", err)
	} else if f.all == nil {
		f.flaw = fmt.Errorf("it is %s", raw)
	}
	return f
}

// read reads a part, if it is there and not null.
func (f *fields) read(name string, into any) {
	raw, ok := f.all[name]
	if !ok || string(raw) == "null" {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil && f.flaw == nil {
		f.flaw = fmt.Errorf("%s is %.40s", name, raw)
	}
}

// within returns the parts of a part.
func (f *fields) within(name string) *fields {
	raw, ok := f.all[name]
	if !ok || string(raw) == "null" {
		return &fields{}
	}
	return fieldsOf(raw)
}

func (f *fields) also(inner *fields) {
	if f.flaw == nil {
		f.flaw = inner.flaw
	}
}

// listedContainer reads an item of the list of containers.
func listedContainer(raw json.RawMessage) seen {
	f := fieldsOf(raw)
	s := seen{kind: spec.Container}
	var names []string
	var ports []json.RawMessage
	f.read("Id", &s.id)
	f.read("Names", &names)
	f.read("Labels", &s.labels)
	f.read("State", &s.state)
	f.read("Image", &s.image)
	f.read("ImageID", &s.imageID)
	f.read("Ports", &ports)
	s.readUses(f, f.within("NetworkSettings"))
	for _, n := range names { // others are names of links to it
		if n = strings.TrimPrefix(n, "/"); !strings.Contains(n, "/") {
			s.name = n
		}
	}
	for _, raw := range ports {
		p := fieldsOf(raw)
		b, port := bound{}, 0
		p.read("IP", &b.ip)
		p.read("PublicPort", &port)
		p.read("Type", &b.protocol)
		if port != 0 {
			b.port = strconv.Itoa(port)
			s.bound = append(s.bound, b)
		}
		f.also(p)
	}
	if s.flaw = f.flaw; s.flaw == nil && !isID(s.id) {
		s.flaw = fmt.Errorf("its ID is %.70q", s.id)
	}
	return s
}

// inspectedContainer reads what the engine says of one container.
func inspectedContainer(raw json.RawMessage) seen {
	f := fieldsOf(raw)
	s := seen{kind: spec.Container, inspected: true}
	f.read("Id", &s.id)
	f.read("Name", &s.name)
	f.read("Image", &s.imageID)
	s.name = strings.TrimPrefix(s.name, "/")
	config, state, host, net := f.within("Config"), f.within("State"), f.within("HostConfig"), f.within("NetworkSettings")
	config.read("Labels", &s.labels)
	config.read("Image", &s.image)
	config.read("StopSignal", &s.stop)
	config.read("Tty", &s.terminal)
	state.read("Status", &s.state)
	state.read("ExitCode", &s.exit)
	state.read("Error", &s.failure)
	health := state.within("Health")
	health.read("Status", &s.health)
	host.read("Memory", &s.memory)
	host.read("NanoCpus", &s.nanoCPUs)
	restart := host.within("RestartPolicy")
	restart.read("Name", &s.restart)
	if s.restart == "" {
		s.restart = "no"
	}
	s.readUses(f, net)
	s.bound = boundPorts(net)
	for _, inner := range []*fields{config, state, host, net, health, restart} {
		f.also(inner)
	}
	if s.flaw = f.flaw; s.flaw == nil {
		s.flaw = s.missing()
	}
	return s
}

// readUses reads the volumes and the networks that a container uses.
func (s *seen) readUses(f, net *fields) {
	var networks map[string]json.RawMessage
	net.read("Networks", &networks)
	s.networks = slices.Sorted(maps.Keys(networks))
	var mounts []json.RawMessage
	f.read("Mounts", &mounts)
	for _, raw := range mounts {
		m := fieldsOf(raw)
		var sort, name string
		m.read("Type", &sort)
		m.read("Name", &name)
		if sort == "volume" && name != "" {
			s.volumes = append(s.volumes, name)
		}
		f.also(m)
	}
	f.also(net)
}

// missing returns what a container that was inspected does not have.
func (s seen) missing() error {
	switch {
	case !isID(s.id):
		return fmt.Errorf("its ID is %.70q", s.id)
	case s.name == "":
		return fmt.Errorf("it has no name")
	case s.state == "":
		return fmt.Errorf("it has no state")
	}
	return nil
}

func boundPorts(networks *fields) []bound {
	var ports map[string][]struct{ HostIP, HostPort string }
	networks.read("Ports", &ports)
	var all []bound
	for port, bindings := range ports {
		_, protocol, _ := strings.Cut(port, "/")
		for _, b := range bindings {
			all = append(all, bound{b.HostIP, b.HostPort, protocol})
		}
	}
	slices.SortFunc(all, func(a, b bound) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// String returns the port for people.
func (b bound) String() string { return net.JoinHostPort(b.ip, b.port) + "/" + b.protocol }

// listedImages reads an item of the list of images: one for each name that the image has. An image without any is seen by its ID.
func listedImages(raw json.RawMessage) []seen {
	f := fieldsOf(raw)
	one := seen{kind: spec.Image}
	var tags []string
	f.read("Id", &one.imageID)
	f.read("RepoTags", &tags)
	f.read("RepoDigests", &one.digests)
	f.read("Labels", &one.labels)
	one.flaw = f.flaw
	var all []seen
	for _, tag := range tags {
		if ref := canonical(tag); ref != "" { // "<none>:<none>" is no name
			one.id, one.name = ref, ref
			all = append(all, one)
		}
	}
	for i := range all {
		all[i].tags = len(all)
	}
	if len(all) > 0 {
		return all
	}
	if one.id, one.name, one.state = one.imageID, one.imageID, stateDangling; one.flaw == nil && !isImageID(one.id) {
		one.flaw = fmt.Errorf("its ID is %.80q", one.id)
	}
	return []seen{one}
}

// readVolume reads an item of the list of volumes, or one volume.
func readVolume(raw json.RawMessage) seen {
	f := fieldsOf(raw)
	s := seen{kind: spec.Volume}
	f.read("Name", &s.name)
	f.read("Driver", &s.driver)
	f.read("Labels", &s.labels)
	s.id = s.name
	if s.flaw = f.flaw; s.flaw == nil && s.name == "" {
		s.flaw = fmt.Errorf("it has no name")
	}
	return s
}

// readNetwork reads an item of the list of networks, or one network.
func readNetwork(raw json.RawMessage) seen {
	f := fieldsOf(raw)
	s := seen{kind: spec.Network}
	f.read("Id", &s.id)
	f.read("Name", &s.name)
	f.read("Driver", &s.driver)
	f.read("Labels", &s.labels)
	if s.flaw = f.flaw; s.flaw == nil && (s.name == "" || s.id == "") {
		s.flaw = fmt.Errorf("it has no name or no ID")
	}
	return s
}

// The states of a container as a spec names them.
const (
	stateRunning = "running"
	stateCreated = "created" // it does not run
	statePaused  = "paused"
)

// The words of an engine for a container that is on its way out, and for one that it failed to remove, and never starts again.
const (
	stateRemoving = "removing"
	stateDead     = "dead"
)

// wantable returns the state of a container in the spec's words; "" for a state that vmctl does not know.
func (s seen) wantable() string {
	switch s.state {
	case "running", "restarting":
		return stateRunning
	case "created", "exited", stateDead:
		return stateCreated
	case "paused":
		return statePaused
	default: // stateRemoving, too
		return ""
	}
}
