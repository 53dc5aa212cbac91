package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/shellword"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// The statuses of a check.
const (
	checkOK      = "ok"
	checkMissing = "missing"
	checkWarning = "warning"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check what is missing on this machine",
		Long: "Check what the files need: a project id, a data directory, a readable state, and\n" +
			"each provider's library, daemon and hypervisor. For everything that is missing, the\n" +
			"command says who needs it and how to get it. The exit code is 1 if the files need\n" +
			"something that is missing.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	p, idCheck, err := a.openForDoctor()
	if err != nil {
		return err
	}
	snapshot, stateCheck := a.checkState(ctx, p)
	checks := []view.Check{idCheck, checkDataDir(p.dir), stateCheck}
	if p.keyErr != nil {
		checks = append(checks, view.Check{
			Name: "digest key", Status: checkWarning, Detail: p.keyErr.Error(),
			NeededBy: []string{"every command that writes records of sensitive values"}, Next: a.problemOf(p.keyErr).Next,
		})
	}
	systems, err := a.checkSystems(ctx, p, snapshot)
	if err != nil {
		return err
	}
	doc := view.DoctorDocument{FormatVersion: view.FormatVersion, OK: true, Checks: append(checks, systems...)}
	for _, c := range doc.Checks {
		doc.OK = doc.OK && c.Status != checkMissing
	}
	a.show(doc, func(s view.Screen) { view.Doctor(s, doc) })
	if !doc.OK {
		return status{code: classFailed.code()}
	}
	return nil
}

// openForDoctor opens the project, even if the spec has no id yet.
func (a *app) openForDoctor() (*project, view.Check, error) {
	config, err := a.load()
	if err != nil {
		return nil, view.Check{}, err
	}
	check := view.Check{Name: "project", Status: checkOK, Detail: config.Settings.Project + ", id " + config.Settings.ID}
	if config.Settings.ID == "" {
		config.Settings.Project = projectName(filepath.Base(config.Dir))
		check = view.Check{
			Name: "project", Status: checkMissing, Detail: "the files have no id yet",
			NeededBy: []string{"every command that changes or observes"}, Next: []string{a.commandLine("init", planFlags{})},
		}
	}
	p, err := a.projectOf(config)
	return p, check, err
}

func (a *app) checkState(ctx context.Context, p *project) (*state.Snapshot, view.Check) {
	check := view.Check{Name: "state", Status: checkOK}
	snapshot, err := p.store.Read(ctx)
	if err != nil {
		check.Status, check.Detail, check.NeededBy = checkMissing, err.Error(), []string{"every command that changes or observes"}
		check.Next = a.problemOf(err).Next
		return &state.Snapshot{}, check
	}
	check.Detail = fmt.Sprintf("serial %d, %s", snapshot.Serial, counted(len(snapshot.Records), "record"))
	if n := len(snapshot.Interrupted); n > 0 {
		check.Status, check.Next = checkWarning, []string{a.commandLine("plan", planFlags{}) + " says more"}
		check.Detail += fmt.Sprintf(", and %s of an earlier run that did not end", counted(n, "step"))
	}
	return snapshot, check
}

// checkDataDir checks the data directory. One that does not exist yet is fine.
func checkDataDir(dir string) view.Check {
	check := view.Check{Name: "data directory", Status: checkOK, Detail: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		check.Detail += " (made by the first apply)"
		return check
	case err != nil:
		check.Status, check.Detail = checkMissing, err.Error()
	case !info.IsDir():
		check.Status, check.Detail = checkMissing, dir+" is no folder"
	case info.Mode().Perm()&0o077 != 0:
		check.Status = checkWarning
		check.Detail += fmt.Sprintf(" is open to others (mode %o)", info.Mode().Perm())
		check.Next = []string{"chmod 700 " + shellword.Quote(dir)}
		return check
	default:
		return check
	}
	check.NeededBy = []string{"every command that changes or observes"}
	check.Next = []string{"choose another one: --data-dir=DIR or VMCTL_DATA_DIR=DIR"}
	return check
}

// checkSystems opens every provider that the spec or the state names, and returns the checks
// of its host and of its partial observations.
func (a *app) checkSystems(ctx context.Context, p *project, s *state.Snapshot) (checks []view.Check, err error) {
	world, err := planner.Observe(ctx, a.opener(p), p.config, s, planner.Options{Types: a.types, Project: p.owner})
	defer func() { err = errors.Join(err, world.Close()) }()
	if err != nil {
		return nil, err
	}
	users, own := usersOf(p, s, world), a.ownFlags(planFlags{})
	for _, system := range world.Systems() {
		name := system.Ref.String()
		host := system.Inventory.Host
		for _, fact := range slices.Sorted(maps.Keys(host)) {
			checks = append(checks, view.Check{Name: name, Status: checkOK, Detail: fact + " " + host[fact]})
		}
		if why := system.Inventory.Blind; why != nil {
			checks = append(checks, view.Check{Name: name, Status: checkWarning, Detail: why.Error(), NeededBy: users[system.Key], Next: own.Advice(why.Next)})
		}
		for _, lacking := range []map[spec.Kind]*providers.Problem{system.Inventory.Missing, system.Inventory.Partial} {
			for _, kind := range slices.Sorted(maps.Keys(lacking)) {
				checks = append(checks, view.Check{
					Name: name, Status: checkMissing, Detail: lacking[kind].Error(), NeededBy: users[system.Key], Next: own.Advice(lacking[kind].Next),
				})
			}
		}
	}
	return checks, nil
}

// usersOf lists the addresses of each system, by its key.
func usersOf(p *project, s *state.Snapshot, world *planner.World) map[string][]string {
	users := map[string][]string{}
	seen := observation{project: p, snapshot: s, world: world, observations: world.Observations(s, p.owner)}
	for _, addr := range known(p, s) {
		v := seen.at(addr)
		if v.system != nil {
			users[v.system.Key] = append(users[v.system.Key], addr.String())
		}
	}
	return users
}
