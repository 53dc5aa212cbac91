package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// standIn speaks as much of Terraform's command line as vmctl uses. Its module has one resource, terraform_data.vm, whose
// input holds the variables, and the outputs of the file outputs.json beside main.tf. It records each call in
// $STANDIN/calls: arguments, and the names of the variables in its environment.
func standIn() {
	if err := standInMain(os.Args[1:]); err != nil {
		line := map[string]any{"type": "diagnostic", "diagnostic": map[string]string{"severity": "error", "summary": err.Error()}}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			panic(err)
		}
		os.Exit(1)
	}
}

type standInPlan struct {
	Action    string `json:"action"` // create, update, delete, no-op
	Variables string `json:"variables"`
	Serial    int    `json:"serial"` // of the state that it was made for
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
		fmt.Printf("{\"terraform_version\":%q}\n", version)
		return nil
	case "init":
		return nil
	case "plan":
		return standInPlans(flags)
	case "show":
		return standInShows(rest[1])
	case "apply":
		return standInApplies(flags["-state"], rest[1])
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

func standInState(path string) (map[string]any, int, string, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) || err == nil && len(text) == 0 {
		return nil, 0, "", nil
	}
	if err != nil {
		return nil, 0, "", err
	}
	var s struct {
		Serial    int
		Resources []map[string]any
		Check     string `json:"standin_variables"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, 0, "", err
	}
	if len(s.Resources) == 0 {
		return nil, s.Serial, "", nil
	}
	return s.Resources[0], s.Serial, s.Check, nil
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
	resource, serial, had, err := standInState(flags["-state"])
	if err != nil {
		return err
	}
	_, destroy := flags["-destroy"]
	p := standInPlan{Action: "no-op", Variables: variables, Serial: serial}
	switch {
	case destroy && resource != nil:
		p.Action = "delete"
	case destroy:
	case resource == nil:
		p.Action = "create"
	case had != variables && strings.Contains(variables, "replace"):
		p.Action = "replace"
	case had != variables:
		p.Action = "update"
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(flags["-out"], text, 0o600); err != nil {
		return err
	}
	if p.Action != "no-op" {
		os.Exit(2)
	}
	return nil
}

func standInShows(path string) error {
	p, err := readStandInPlan(path)
	if err != nil {
		return err
	}
	actions := []string{p.Action}
	if p.Action == "replace" {
		actions = []string{"delete", "create"}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"format_version": "1.2", "resource_changes": []any{map[string]any{
			"address": "terraform_data.vm", "mode": "managed", "type": "terraform_data", "name": "vm",
			"change": map[string]any{"actions": actions, "before": nil, "after": map[string]string{"input": p.Variables}},
		}},
	})
}

func readStandInPlan(path string) (standInPlan, error) {
	var p standInPlan
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

func standInApplies(state, path string) error {
	p, err := readStandInPlan(path)
	if err != nil {
		return err
	}
	_, serial, _, err := standInState(state)
	if err != nil {
		return err
	}
	if serial != p.Serial {
		return fmt.Errorf("Saved plan is stale")
	}
	if strings.Contains(p.Variables, "broken") || p.Action == "delete" && os.Getenv("STANDIN_FAIL") == "destroy" {
		return fmt.Errorf("the cloud says no")
	}
	fmt.Printf("{\"type\":\"apply_start\",\"hook\":{\"resource\":{\"addr\":\"terraform_data.vm\"},\"action\":%q}}\n", p.Action)
	resources, outputs := []any{}, map[string]any{}
	if p.Action != "delete" {
		resources = append(resources, map[string]any{
			"mode": "managed", "type": "terraform_data", "name": "vm", "instances": []any{map[string]any{}},
		})
		text, err := os.ReadFile("outputs.json")
		if err != nil {
			return err
		}
		values := map[string]string{}
		if err := json.Unmarshal(text, &values); err != nil {
			return err
		}
		for name, value := range values {
			outputs[name] = map[string]any{"value": value, "type": "string"}
		}
	}
	text, err := json.Marshal(map[string]any{
		"version": 4, "terraform_version": "1.11.4", "serial": serial + 1, "lineage": "a-lineage", "outputs": outputs, "resources": resources,
		"standin_variables": p.Variables,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(state, text, 0o600)
}
