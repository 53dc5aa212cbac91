package compose

import (
	"errors"
	"io/fs"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/go-units"
)

// service reads a service.
func (r *reader) service(name string, in map[string]any) Service {
	service := Service{Name: name}
	s := r.section("services."+name, in, &service.LeftOut)
	if _, ok := s.take("extends"); ok {
		r.fail(s.at("extends"), "takes settings of another service, and each service is read by itself")
	}
	service.Image = s.image()
	service.ContainerName = s.takeText("container_name")
	service.User, service.Hostname = s.takeText("user"), s.takeText("hostname")
	service.WorkingDir = s.takeText("working_dir")
	if v, ok := s.take("entrypoint"); ok {
		service.Entrypoint = r.words(s.at("entrypoint"), v)
	}
	if v, ok := s.take("command"); ok {
		service.Command = r.words(s.at("command"), v)
	}
	service.Env, service.EnvFiles = s.env()
	service.Labels = s.labels()
	service.Restart = s.restart()
	service.Memory, service.CPUs = s.limits()
	service.Ports = s.ports()
	service.Mounts = s.mounts()
	service.Networks = s.networks(name)
	service.Healthcheck = s.healthcheck()
	service.StopGrace = s.takeDuration("stop_grace_period")
	service.DependsOn = s.dependsOn()
	s.rest(serviceReason)
	return service
}

// image returns the image of a service. One that is built only has the name that compose gives it.
func (s *section) image() string {
	image := s.takeText("image")
	build := s.in["build"]
	switch {
	case image == "" && build == nil:
		s.r.fail(s.path, "has no image")
		return ""
	case image == "":
		image = strings.TrimLeft(s.r.name+"-"+strings.ToLower(strings.TrimPrefix(s.path, "services.")), "-._")
	}
	if CanonicalImage(image) == "" {
		s.r.fail(s.at("image"), "is %s, which is not the name of an image", quote(image))
	}
	return image
}

// CanonicalImage returns the full name of an image: registry, repository and tag. "" for a text that is none.
func CanonicalImage(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	return reference.TagNameOnly(named).String()
}

// env returns the variables of a service, and the files that some of them are from.
func (s *section) env() (map[string]string, []string) {
	all := map[string]string{}
	files := s.envFiles(all)
	v, ok := s.take("environment")
	if !ok {
		return all, files
	}
	given := s.r.pairs(s.at("environment"), v)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if value := given[name]; value != nil {
			all[name] = *value
			continue
		}
		value, set := s.r.vars.lookup(name)
		if _, fromFile := all[name]; !set && !fromFile {
			s.leave("environment."+name, nil, "the variable is not set here, and compose leaves it out then, too")
		}
		if set {
			all[name] = value
		}
	}
	return all, files
}

// envFiles adds the variables of the files of a service, later files last.
func (s *section) envFiles(to map[string]string) []string {
	v, ok := s.take("env_file")
	if !ok {
		return nil
	}
	entries, isList := v.([]any)
	if !isList {
		entries = []any{v}
	}
	var files []string
	for _, entry := range entries {
		path, required, raw := "", true, false
		if long, isLong := entry.(map[string]any); isLong {
			f := s.nested("env_file", long)
			path = f.takeText("path")
			if _, says := long["required"]; says {
				required = f.takeBool("required")
			}
			raw = f.takeText("format") == "raw"
			f.rest(because("an env_file has no such setting"))
		} else {
			path, _ = s.r.text(s.at("env_file"), entry)
		}
		if path == "" {
			s.r.fail(s.at("env_file"), "names no file")
			continue
		}
		text, err := s.r.in.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && !required {
			s.leave("env_file", path, "the file does not exist, and is not required")
			continue
		}
		var some map[string]string
		if err == nil && raw {
			some, err = readRawEnv(text)
		} else if err == nil {
			some, err = readEnv(text, func(name string) (string, bool) {
				if value, ok := s.r.vars.lookup(name); ok {
					return value, true
				}
				value, ok := to[name]
				return value, ok
			})
		}
		if err != nil {
			s.r.fail(s.at("env_file"), "cannot be read: %s: %v", path, err)
			continue
		}
		maps.Copy(to, some)
		files = append(files, path)
	}
	return files
}

func (s *section) restart() string {
	text := s.takeText("restart")
	policy, count, counted := strings.Cut(text, ":")
	switch policy {
	case "", "no", "always", "unless-stopped", "on-failure":
	default:
		s.r.fail(s.at("restart"), "is %s, which is none of no, always, unless-stopped and on-failure", quote(text))
		return ""
	}
	if counted {
		s.leave("restart", text, "a container has no limit of its restarts, here "+quote(count))
	}
	return policy
}

// limits returns the limits of memory and CPUs, those of deploy too.
func (s *section) limits() (memory int64, cpus string) {
	if v, ok := s.take("mem_limit"); ok {
		memory = s.size("mem_limit", v)
	}
	if v, ok := s.take("cpus"); ok {
		cpus = s.decimal("cpus", v)
	}
	deploy, _ := s.take("deploy")
	if deploy == nil {
		return memory, cpus
	}
	d := s.nested("deploy", s.r.mapping(s.at("deploy"), deploy))
	resources, _ := d.take("resources")
	res := d.nested("resources", s.r.mapping(d.at("resources"), resources))
	limits, _ := res.take("limits")
	l := res.nested("limits", s.r.mapping(res.at("limits"), limits))
	if v, ok := l.take("memory"); ok {
		if n := l.size("memory", v); memory == 0 {
			memory = n
		}
	}
	if v, ok := l.take("cpus"); ok {
		if n := l.decimal("cpus", v); cpus == "" {
			cpus = n
		}
	}
	for _, part := range []*section{d, res, l} {
		part.rest(because(serviceReason("deploy")))
	}
	return memory, cpus
}

// size returns a number of bytes; 0: no limit.
func (s *section) size(key string, v any) int64 {
	text, ok := s.r.text(s.at(key), v)
	if !ok {
		return 0
	}
	n, err := units.RAMInBytes(text)
	if err != nil || n < 0 || n > maxMemory {
		s.r.fail(s.at(key), "is %s, which is no size like 512m", quote(text))
		return 0
	}
	return n
}

// decimal returns a positive decimal number; "": it is 0, which means no limit.
func (s *section) decimal(key string, v any) string {
	text, ok := s.r.text(s.at(key), v)
	text = strings.TrimSpace(text)
	n, valid := new(big.Rat).SetString(boundedNumber(text))
	if ok && (!valid || n.Sign() < 0) {
		s.r.fail(s.at(key), "is %s, which is no number like 0.5", quote(text))
	}
	if !valid || n.Sign() <= 0 {
		return ""
	}
	return text
}

// boundedNumber returns a text if it is a decimal number of a few digits.
func boundedNumber(text string) string {
	if len(text) > 40 || strings.Trim(text, "0123456789.") != "" {
		return ""
	}
	return text
}

// dependsOn returns the names of the services that must run before this one.
func (s *section) dependsOn() []string {
	v, ok := s.take("depends_on")
	if !ok {
		return nil
	}
	var names []string
	long, isLong := v.(map[string]any)
	if !isLong {
		names = s.r.texts(s.at("depends_on"), v)
	}
	for name, in := range s.r.named(s.at("depends_on"), long) {
		names = append(names, name)
		d := s.nested("depends_on."+name, in)
		switch condition := d.takeText("condition"); condition {
		case "", "service_started", "service_healthy":
		default:
			d.leave("condition", condition, "a container waits until another one runs, and is healthy if it has a healthcheck")
		}
		d.rest(because("depends_on has no such setting"))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if _, ok := s.r.services[name]; !ok {
			s.r.fail(s.at("depends_on"), "names the service %s, which the file does not declare", quote(name))
		}
	}
	return names
}
