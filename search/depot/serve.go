package depot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Requests returns the names of the requests that can fail.
func Requests() []string {
	return []string{"create", "start", "kill", "rename", "update", "pause", "unpause", "remove", "pull", "untag", "volume", "drop volume"}
}

// server serves the engine in a file.
type server struct {
	depots *Depots
	path   string
	c      Contents
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	text   string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.depots.mu.Lock()
	defer s.depots.mu.Unlock()
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1.") {
		path = path[strings.Index(path[1:], "/")+1:]
	}
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	var err error
	if s.c, err = Read(s.path); err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"message": err.Error()})
		return
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		v, no := s.shown(path, r)
		if no != nil {
			answer(w, no.status, map[string]string{"message": no.text})
			return
		}
		answer(w, http.StatusOK, v)
		return
	}
	name, act := s.request(path, r)
	if s.depots.struck(name) {
		answer(w, http.StatusInternalServerError, map[string]string{"message": "injected fault"})
		return
	}
	v, no := act()
	if no == nil {
		if err := s.c.Write(s.path); err != nil {
			no = &refusal{http.StatusInternalServerError, err.Error()}
		}
	}
	switch {
	case no != nil:
		answer(w, no.status, map[string]string{"message": no.text})
	case s.depots.struck("lost " + name):
		panic(http.ErrAbortHandler)
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusCreated, v)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("an answer has a JSON form: " + err.Error())
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) //nolint:errcheck // the client may have left
}

// shown returns the answer to a request that changes nothing.
func (s *server) shown(path string, r *http.Request) (any, *refusal) {
	id, isOne := strings.CutSuffix(strings.TrimPrefix(path, "/containers/"), "/json")
	ref, isImage := strings.CutPrefix(path, "/images/")
	switch {
	case path == "/_ping":
		return "OK", nil
	case path == "/info":
		return map[string]any{"ID": "depot", "ServerVersion": "1", "DockerRootDir": "/"}, nil
	case path == "/containers/json":
		return s.listed(r), nil
	case path == "/images/json":
		all := []any{}
		for _, ref := range slices.Sorted(maps.Keys(s.c.Images)) {
			all = append(all, map[string]any{"Id": s.c.Images[ref], "RepoTags": []string{ref}})
		}
		return all, nil
	case isImage:
		return s.image(strings.TrimSuffix(ref, "/json"))
	case path == "/volumes":
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(s.c.Volumes)) {
			all = append(all, map[string]any{"Name": name, "Driver": "local", "Labels": s.c.Volumes[name].Labels})
		}
		return map[string]any{"Volumes": all}, nil
	case path == "/networks":
		return []any{}, nil
	case isOne:
		c, no := s.container(id)
		if no != nil {
			return nil, no
		}
		return map[string]any{
			"Id": c.ID, "Name": "/" + c.Name, "Image": c.Image, "State": map[string]any{"Status": c.State},
			"Config":     map[string]any{"Labels": c.Labels, "Image": c.Image, "Env": c.Env},
			"HostConfig": map[string]any{"Memory": c.Memory, "RestartPolicy": map[string]any{"Name": c.Restart}}, "NetworkSettings": map[string]any{}, "Mounts": c.mounts(),
		}, nil
	default:
		return nil, &refusal{http.StatusNotFound, "page not found"}
	}
}

// image returns the image of a name or an ID. None has labels.
func (s *server) image(ref string) (any, *refusal) {
	for name, id := range s.c.Images {
		if slices.Contains([]string{name, "docker.io/" + name, id}, ref) {
			return map[string]any{"Id": id, "Config": map[string]any{}}, nil
		}
	}
	return nil, &refusal{http.StatusNotFound, "No such image: " + ref}
}

func (c *Container) mounts() []any {
	all := []any{}
	for _, name := range c.Volumes {
		all = append(all, map[string]any{"Type": "volume", "Name": name})
	}
	return all
}

// listed returns the list of containers that a filter leaves.
func (s *server) listed(r *http.Request) []any {
	var filters map[string][]string
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters) //nolint:errcheck // without any, all are listed
	all := []any{}
	for _, c := range s.c.Containers {
		kept := len(filters["id"]) == 0 || slices.Contains(filters["id"], c.ID)
		for _, label := range filters["label"] {
			key, value, _ := strings.Cut(label, "=")
			kept = kept && c.Labels[key] == value
		}
		if kept {
			all = append(all, map[string]any{
				"Id": c.ID, "Names": []string{"/" + c.Name}, "State": c.State, "Labels": c.Labels, "Image": c.Image, "ImageID": c.Image, "Mounts": c.mounts(),
			})
		}
	}
	return all
}

func (s *server) container(id string) (*Container, *refusal) {
	for _, c := range s.c.Containers {
		if c.ID == id {
			return c, nil
		}
	}
	return nil, &refusal{http.StatusNotFound, "No such container: " + id}
}

type act = func() (any, *refusal)

// request returns the name of a request that changes something, and what it does.
func (s *server) request(path string, r *http.Request) (string, act) {
	ref, isImage := strings.CutPrefix(path, "/images/")
	volume, isVolume := strings.CutPrefix(path, "/volumes/")
	id, op, _ := strings.Cut(strings.TrimPrefix(path, "/containers/"), "/")
	switch {
	case path == "/images/create":
		return "pull", func() (any, *refusal) { return s.pull(r) }
	case isImage && r.Method == http.MethodDelete:
		return "untag", func() (any, *refusal) { return s.untag(ref) }
	case path == "/volumes/create":
		return "volume", func() (any, *refusal) { return s.makeVolume(r) }
	case isVolume && r.Method == http.MethodDelete:
		return "drop volume", func() (any, *refusal) { return s.dropVolume(volume) }
	case path == "/containers/create":
		return "create", func() (any, *refusal) { return s.create(r) }
	case r.Method == http.MethodDelete:
		return "remove", func() (any, *refusal) { return s.remove(id) }
	default:
		return op, func() (any, *refusal) { return s.act(id, op, r) }
	}
}

func (s *server) pull(r *http.Request) (any, *refusal) {
	q := r.URL.Query()
	ref := q.Get("fromImage") + ":" + q.Get("tag")
	s.c.Images[ref] = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(ref)))
	return map[string]string{"status": "done"}, nil
}

func (s *server) untag(ref string) (any, *refusal) {
	for name, id := range s.c.Images {
		if name != ref && "docker.io/"+name != ref && id != ref {
			continue
		}
		for _, c := range s.c.Containers {
			if c.Image == id {
				return nil, &refusal{http.StatusConflict, "conflict: container " + c.ID + " is using its referenced image"}
			}
		}
		delete(s.c.Images, name)
		return []any{}, nil
	}
	return nil, &refusal{http.StatusNotFound, "No such image: " + ref}
}

func (s *server) makeVolume(r *http.Request) (any, *refusal) {
	var v struct {
		Name   string
		Labels map[string]string
	}
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	if _, there := s.c.Volumes[v.Name]; !there { // an engine takes the request, and changes nothing
		s.c.Volumes[v.Name] = Volume{v.Labels}
	}
	return map[string]any{"Name": v.Name, "Driver": "local", "Labels": s.c.Volumes[v.Name].Labels}, nil
}

func (s *server) dropVolume(name string) (any, *refusal) {
	if _, there := s.c.Volumes[name]; !there {
		return nil, &refusal{http.StatusNotFound, "no such volume: " + name}
	}
	for _, c := range s.c.Containers {
		if slices.Contains(c.Volumes, name) {
			return nil, &refusal{http.StatusConflict, "volume is in use - [" + c.ID + "]"}
		}
	}
	delete(s.c.Volumes, name)
	return nil, nil
}

func (s *server) create(r *http.Request) (any, *refusal) {
	var v struct {
		Image      string
		Labels     map[string]string
		Env        []string
		HostConfig struct {
			Memory        int64
			RestartPolicy struct{ Name string }
			Mounts        []struct{ Source string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	name := r.URL.Query().Get("name")
	if no := s.free(name); no != nil {
		return nil, no
	}
	image, there := s.c.Images[v.Image]
	if !there {
		return nil, &refusal{http.StatusNotFound, "No such image: " + v.Image}
	}
	s.c.Made++
	c := &Container{
		ID: fmt.Sprintf("%064x", s.c.Made), Name: name, Image: image, State: "created", Labels: v.Labels, Env: v.Env,
		Memory: v.HostConfig.Memory, Restart: v.HostConfig.RestartPolicy.Name,
	}
	for _, m := range v.HostConfig.Mounts {
		if _, there := s.c.Volumes[m.Source]; !there {
			s.c.Volumes[m.Source] = Volume{}
		}
		c.Volumes = append(c.Volumes, m.Source)
	}
	s.c.Containers = append(s.c.Containers, c)
	return map[string]any{"Id": c.ID, "Warnings": nil}, nil
}

func (s *server) free(name string) *refusal {
	for _, c := range s.c.Containers {
		if c.Name == name {
			return &refusal{http.StatusConflict, "Conflict. The container name \"/" + name + "\" is already in use"}
		}
	}
	return nil
}

// isTheirs notes a request about a container of others.
func (s *server) isTheirs(c *Container, op string) {
	if c.Labels["vmctl.id"] == "" {
		s.depots.touched = append(s.depots.touched, op+" "+c.Name)
	}
}

func (s *server) remove(id string) (any, *refusal) {
	c, no := s.container(id)
	if no != nil {
		return nil, no
	}
	if s.isTheirs(c, "remove"); c.State == "running" || c.State == "paused" {
		return nil, &refusal{http.StatusConflict, "cannot remove container: container is running"}
	}
	s.c.Containers = slices.DeleteFunc(s.c.Containers, func(other *Container) bool { return other == c })
	return nil, nil
}

// act does one of the other requests about a container.
func (s *server) act(id, op string, r *http.Request) (any, *refusal) {
	c, no := s.container(id)
	if no != nil {
		return nil, no
	}
	s.isTheirs(c, op)
	need := map[string]string{"kill": "running", "pause": "running", "unpause": "paused"}[op]
	if need != "" && c.State != need {
		return nil, &refusal{http.StatusConflict, "container " + id + " is not " + need}
	}
	switch op {
	case "start", "unpause":
		if c.State != "running" && c.State != "paused" || op == "unpause" {
			c.State = "running"
		}
	case "pause":
		c.State = "paused"
	case "kill", "stop":
		c.State = "exited"
	case "rename":
		name := r.URL.Query().Get("name")
		if no := s.free(name); no != nil {
			return nil, no
		}
		c.Name = name
	case "update":
		var v struct {
			Memory        int64
			RestartPolicy struct{ Name string }
		}
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			return nil, &refusal{http.StatusBadRequest, err.Error()}
		}
		if v.Memory > 0 {
			c.Memory = v.Memory
		}
		c.Restart = v.RestartPolicy.Name
		return map[string]any{"Warnings": nil}, nil
	default:
		return nil, &refusal{http.StatusNotFound, "page not found"}
	}
	return nil, nil
}
