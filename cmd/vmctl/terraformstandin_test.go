package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// standIn speaks as much of Terraform's command line as vmctl uses. Its module has the resource terraform_data.vm, whose
// input holds the variables, those that resources.json beside main.tf lists by name, and the outputs of outputs.json.
// A listed resource is a file in $STANDIN/world, which must not exist when it is made. The stand-in records each call in
// $STANDIN/calls: arguments, and the names of the variables in its environment.
func standIn() {
	if err := standInMain(os.Args[1:]); err != nil {
		said := map[string]string{"severity": "error", "summary": err.Error()}
		if at := (standInClash{}); errors.As(err, &at) {
			said["address"] = at.address
		}
		line := map[string]any{"type": "diagnostic", "diagnostic": said}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			panic(err)
		}
		os.Exit(1)
	}
}

type standInPlan struct {
	Actions   map[string]string `json:"actions"` // by resource: create, update, delete, replace; none is missing
	Variables string            `json:"variables"`
	Serial    int               `json:"serial"` // of the state that it was made for
}

func standInMain(args []string) error {
	if err := recordCall(args); err != nil {
		return err
	}
	flags, rest := map[string]string{}, []string{}
	for _, arg := range args {
		if name, value, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "-") {
			flags[name] = value
		} else {
			rest = append(rest, arg)
		}
	}
	if len(rest) == 0 {
		return fmt.Errorf("no command")
	}
	switch rest[0] {
	case "version":
		version := os.Getenv("STANDIN_VERSION")
		if version == "" {
			version = "1.11.4"
		}
		if os.Getenv("STANDIN_TOOL") == "OpenTofu" {
			fmt.Printf("{\"terraform_version\":%q}\n", version)
		} else {
			fmt.Printf("{\"terraform_version\":%q,\"terraform_outdated\":false}\n", version)
		}
		return nil
	case "init":
		if os.Getenv("STANDIN_FAIL") == "init" {
			return fmt.Errorf("Provider dependency changes detected")
		}
		return nil
	case "plan":
		return standInPlans(flags)
	case "show":
		return standInShows(rest[1])
	case "apply":
		return standInApplies(flags["-state"], rest[1])
	case "import":
		s, err := standInState(flags["-state"])
		if err != nil {
			return err
		}
		s.add(strings.TrimPrefix(rest[1], "terraform_data."), rest[2])
		return s.write(flags["-state"])
	case "state":
		s, err := standInState(flags["-state"])
		if err != nil {
			return err
		}
		s.Resources = slices.DeleteFunc(s.Resources, func(r standInResource) bool { return "terraform_data."+r.Name == rest[2] })
		return s.write(flags["-state"])
	default:
		return fmt.Errorf("the stand-in does not know %s", rest[0])
	}
}

func recordCall(args []string) error {
	var names []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "VMCTL_") {
			names = append(names, name)
		}
	}
	file, err := os.OpenFile(filepath.Join(os.Getenv("STANDIN"), "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(file, strings.Join(args, " "), "ENV", strings.Join(names, " "))
	return file.Close()
}

type standInFile struct {
	Version          int               `json:"version"`
	TerraformVersion string            `json:"terraform_version"`
	Serial           int               `json:"serial"`
	Lineage          string            `json:"lineage"`
	Outputs          map[string]any    `json:"outputs"`
	Resources        []standInResource `json:"resources"`
	Variables        string            `json:"standin_variables"`
}

type standInResource struct {
	Mode      string           `json:"mode"`
	Type      string           `json:"type"`
	Name      string           `json:"name"`
	Instances []map[string]any `json:"instances"`
}

func standInState(path string) (*standInFile, error) {
	s := &standInFile{Version: 4, TerraformVersion: "1.11.4", Lineage: "a-lineage"}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) || err == nil && len(text) == 0 {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, s)
}

func (s *standInFile) has(name string) bool {
	return slices.ContainsFunc(s.Resources, func(r standInResource) bool { return r.Name == name })
}

func (s *standInFile) add(name, id string) {
	s.Resources = append(s.Resources, standInResource{
		Mode: "managed", Type: "terraform_data", Name: name, Instances: []map[string]any{{"attributes": map[string]string{"id": id}}},
	})
}

func (s *standInFile) write(path string) error {
	s.Serial++
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// standInNames lists the resources of the module.
func standInNames() ([]string, error) {
	var names []string
	text, err := os.ReadFile("resources.json")
	if err == nil {
		err = json.Unmarshal(text, &names)
	} else if os.IsNotExist(err) {
		err = nil
	}
	return append(names, "vm"), err
}

func standInPlans(flags map[string]string) error {
	variables := ""
	if path := flags["-var-file"]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		variables = string(text)
	}
	s, err := standInState(flags["-state"])
	if err != nil {
		return err
	}
	names, err := standInNames()
	if err != nil {
		return err
	}
	_, destroy := flags["-destroy"]
	p := standInPlan{Actions: map[string]string{}, Variables: variables, Serial: s.Serial}
	for _, name := range names {
		switch {
		case destroy && s.has(name):
			p.Actions[name] = "delete"
		case destroy:
		case !s.has(name):
			p.Actions[name] = "create"
		case name == "vm" && s.Variables != variables && strings.Contains(variables, "replace"):
			p.Actions[name] = "replace"
		case name == "vm" && s.Variables != variables:
			p.Actions[name] = "update"
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(flags["-out"], text, 0o600); err != nil {
		return err
	}
	if len(p.Actions) > 0 {
		os.Exit(2)
	}
	return nil
}

func standInShows(path string) error {
	p, err := readStandInPlan(path)
	if err != nil {
		return err
	}
	changes := []any{}
	for _, name := range slices.Sorted(maps.Keys(p.Actions)) {
		actions := []string{p.Actions[name]}
		if actions[0] == "replace" {
			actions = []string{"delete", "create"}
		}
		changes = append(changes, map[string]any{
			"address": "terraform_data." + name, "mode": "managed", "type": "terraform_data", "name": name,
			"change": map[string]any{"actions": actions, "before": nil, "after": map[string]string{"input": p.Variables}},
		})
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"format_version": "1.2", "resource_changes": changes})
}

func readStandInPlan(path string) (standInPlan, error) {
	var p standInPlan
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// standInClash is the failure of a resource.
type standInClash struct{ address, text string }

func (c standInClash) Error() string { return c.text }

func standInApplies(state, path string) error {
	p, err := readStandInPlan(path)
	if err != nil {
		return err
	}
	s, err := standInState(state)
	if err != nil {
		return err
	}
	if s.Serial != p.Serial {
		return fmt.Errorf("Saved plan is stale")
	}
	if strings.Contains(p.Variables, "broken") || p.Actions["vm"] == "delete" && os.Getenv("STANDIN_FAIL") == "destroy" {
		return fmt.Errorf("the cloud says no")
	}
	if p.Actions["vm"] == "replace" && os.Getenv("STANDIN_FAIL") == "replace" {
		return errors.Join(fmt.Errorf("the cloud says no"), s.change("vm", "delete"), s.write(state))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Actions)) {
		fmt.Printf("{\"type\":\"apply_start\",\"hook\":{\"resource\":{\"addr\":\"terraform_data.%s\"},\"action\":%q}}\n", name, p.Actions[name])
		if err := standInWaits(); err != nil {
			return err
		}
		if err := s.change(name, p.Actions[name]); err != nil {
			return errors.Join(err, s.write(state))
		}
	}
	s.Variables, s.Outputs = p.Variables, map[string]any{}
	if s.has("vm") {
		text, err := os.ReadFile("outputs.json")
		if err != nil {
			return err
		}
		values := map[string]string{}
		if err := json.Unmarshal(text, &values); err != nil {
			return err
		}
		for name, value := range values {
			s.Outputs[name] = map[string]any{"value": value, "type": "string"}
		}
	}
	return s.write(state)
}

// standInWaits does what the provisioners of a module do: it runs $STANDIN/hold, if there is one.
func standInWaits() error {
	hold := filepath.Join(os.Getenv("STANDIN"), "hold")
	if _, err := os.Stat(hold); err != nil {
		return nil
	}
	return exec.Command(hold, "during").Run()
}

func (s *standInFile) change(name, action string) error {
	thing := filepath.Join(os.Getenv("STANDIN"), "world", name)
	switch {
	case action == "create" && name != "vm":
		file, err := os.OpenFile(thing, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if os.IsExist(err) {
			return standInClash{"terraform_data." + name, name + " already exists"}
		}
		if err != nil {
			return err
		}
		s.add(name, name+"-id")
		return file.Close()
	case action == "create":
		s.add(name, "vm-id")
	case action == "delete":
		s.Resources = slices.DeleteFunc(s.Resources, func(r standInResource) bool { return r.Name == name })
		if name != "vm" {
			return os.Remove(thing)
		}
	}
	return nil
}
