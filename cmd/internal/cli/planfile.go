package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/internal/atomicfile"
	"vmctl/planner"
	"vmctl/spec"
)

// planFormat is the format of plan files that this build reads and writes.
const planFormat = 1

// planFile is a saved plan. Its inputs serve to plan again later; its seal shows whether the
// new plan is the one that the user read.
type planFile struct {
	Format    int               `json:"format"`
	Version   string            `json:"vmctl_version"`
	Project   string            `json:"project"`
	ID        string            `json:"id"`
	Env       string            `json:"env,omitempty"`
	DataDirID string            `json:"seat,omitempty"` // the ID of the data directory from which the plan derived its IDs
	Destroy   bool              `json:"destroy,omitempty"`
	Flags     savedFlags        `json:"flags"`
	Source    spec.Source       `json:"source"`
	Seal      planner.Seal      `json:"seal"`
	Key       string            `json:"key,omitempty"`     // a digest that names the key of all digests in the file
	Secrets   map[string]string `json:"secrets,omitempty"` // digests of the sensitive variables, by name
	Plan      view.PlanDocument `json:"plan"`              // as plan --json shows it
	Review    view.Review       `json:"review,omitempty"`  // as plan shows it; a version before kept none
}

// reviewed holds a plan as its reader sees it.
type reviewed struct {
	document view.PlanDocument
	review   view.Review
}

// savedFlags holds the flags of a saved plan.
type savedFlags struct {
	Targets        []string `json:"target,omitempty"`
	Excludes       []string `json:"exclude,omitempty"`
	Replace        []string `json:"replace,omitempty"`
	Revert         []string `json:"revert,omitempty"`
	AllowReplace   []string `json:"allow_replace,omitempty"`
	AllowDestroy   []string `json:"allow_destroy,omitempty"`
	AllowInterrupt []string `json:"allow_interrupt,omitempty"`
	AllowDirty     []string `json:"allow_dirty,omitempty"`
}

func (s savedFlags) flags() planFlags {
	return planFlags{
		targets: s.Targets, excludes: s.Excludes, replace: s.Replace, revert: s.Revert,
		allowReplace: s.AllowReplace, allowDestroy: s.AllowDestroy, allowInterrupt: s.AllowInterrupt, allowDirty: s.AllowDirty,
	}
}

// sealedFile is the outer form of a plan file. Sum is the checksum of the bytes of Plan.
type sealedFile struct {
	Plan json.RawMessage `json:"plan_file"`
	Sum  string          `json:"sha256"`
}

// savePlan writes a plan to a file that only its owner can read: it holds the files of the
// spec.
func (a *app) savePlan(r planRequest, p *project, made madePlan, shown reviewed) error {
	seal, err := made.plan.Seal(made.snapshot, p.key)
	if err != nil {
		return err
	}
	body, err := json.Marshal(planFile{
		Format: planFormat, Version: a.env.Build.Version, Project: p.owner.Name, ID: p.owner.ID, Env: p.owner.Env, DataDirID: p.owner.DataDirID,
		Destroy: r.destroy,
		Flags: savedFlags{
			Targets: r.flags.targets, Excludes: r.flags.excludes, Replace: r.flags.replace, Revert: r.flags.revert,
			AllowReplace: r.flags.allowReplace, AllowDestroy: r.flags.allowDestroy, AllowInterrupt: r.flags.allowInterrupt, AllowDirty: r.flags.allowDirty,
		},
		Source: p.source(), Seal: seal, Key: p.keyName(), Secrets: p.secretDigests(), Plan: shown.document, Review: shown.review,
	})
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	text, err := json.Marshal(sealedFile{Plan: body, Sum: sumOf(body)})
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := atomicfile.Write(a.absolute(r.out), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// source returns the source of the spec for a plan file. Its digests of the files that the spec reads are made with the
// key: one of them may be a secret.
func (p *project) source() spec.Source {
	s := p.config.Source()
	for path, sum := range s.Read {
		if sum != "" {
			s.Read[path] = p.key.Text("read "+path, sum)
		}
	}
	return s
}

// keyName returns a digest that names the key of digests.
func (p *project) keyName() string { return p.key.Text("name", "key") }

// secretDigests returns digests of the values of the sensitive variables, by name.
func (p *project) secretDigests() map[string]string {
	all := map[string]string{}
	for name, v := range p.config.SensitiveVariables() {
		all[name] = p.key.Digest("", "variable "+name, v)
	}
	return all
}

// otherSecrets lists the differences between the secrets of a plan file and those that are given now. If the key of digests
// is another one, known is false: digests tell nothing.
func (f planFile) otherSecrets(p *project) (seen []string, known bool) {
	if f.Key != "" && f.Key != p.keyName() {
		return []string{"the key of digests in " + p.dir + " is not the one of the plan: whether sensitive values and files are the same is not known"}, false
	}
	now := p.secretDigests()
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		if f.Secrets[name] != now[name] {
			seen = append(seen, "var."+name+", which is sensitive, has another value than in the plan")
		}
	}
	return seen, true
}

// planOpening begins every plan file.
const planOpening = `{"plan_file":`

// checkOut refuses to write a plan over anything but a plan.
func (a *app) checkOut(path string) error {
	refused := func(why string) error {
		return rejected("out_refused", "read --out: "+why, "name a file that is not there yet, or a plan file to replace: --out=p.vmplan")
	}
	if path == "" {
		return refused("it names no file")
	}
	if strings.HasSuffix(path, spec.Suffix) {
		return refused(path + " would be read as a file of the spec")
	}
	full := a.absolute(path)
	info, err := os.Stat(full)
	if errors.Is(err, fs.ErrNotExist) {
		if folder, err := os.Stat(filepath.Dir(full)); err != nil || !folder.IsDir() {
			return refused("there is no folder " + filepath.Dir(full))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read --out: %w", err)
	}
	if !info.Mode().IsRegular() {
		return refused(path + " is no regular file")
	}
	text, err := os.ReadFile(full)
	if err != nil {
		return fmt.Errorf("read --out: %w", err)
	}
	if len(text) > 0 && !bytes.HasPrefix(text, []byte(planOpening)) {
		return refused(path + " is there, and is no plan file")
	}
	return nil
}

// readPlan reads a plan file. It refuses a file that it cannot understand in full.
func (a *app) readPlan(path string) (planFile, error) {
	text, err := os.ReadFile(a.absolute(path))
	if errors.Is(err, os.ErrNotExist) {
		return planFile{}, rejected("no_plan_file", "read the plan: there is no file "+path, a.commandLine("plan", planFlags{}, "--out="+path)+" writes one")
	}
	if err != nil {
		return planFile{}, fmt.Errorf("read the plan: %w", err)
	}
	corrupt := func(why string) error {
		next := a.commandLine("plan", planFlags{}, "--out="+path) + " makes it anew"
		if len(text) > 0 && !bytes.HasPrefix(text, []byte(planOpening)) {
			next = "name a file that " + a.commandLine("plan", planFlags{}, "--out=FILE") + " wrote"
		}
		return newProblem(classUnreadableState, "plan_file_corrupt", "read the plan: "+path+" is no whole plan file: "+why+"; nothing was changed", next)
	}
	var outer sealedFile
	if err := json.Unmarshal(text, &outer); err != nil {
		return planFile{}, corrupt(err.Error())
	}
	if outer.Sum != sumOf(outer.Plan) {
		return planFile{}, corrupt("its checksum does not match")
	}
	var format struct {
		Format  int    `json:"format"`
		Version string `json:"vmctl_version"`
	}
	if err := json.Unmarshal(outer.Plan, &format); err != nil {
		return planFile{}, corrupt(err.Error())
	}
	if format.Format != planFormat {
		return planFile{}, newProblem(classUnreadableState, "plan_file_format",
			fmt.Sprintf("read the plan: %s has format %d, and this vmctl knows format %d; nothing was changed: vmctl %s wrote it", path, format.Format, planFormat, format.Version),
			"use that version, or make the plan anew with this one")
	}
	var f planFile
	d := json.NewDecoder(bytes.NewReader(outer.Plan))
	d.UseNumber() // a size keeps every digit
	if err := d.Decode(&f); err != nil {
		return planFile{}, corrupt(err.Error())
	}
	return f, nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// stale returns the error for a plan that was made for another world, state or spec.
func stale(path string, seen []string, next string) error {
	p := newProblem(classRefused, "stale_plan", "apply "+path+": stale plan: nothing was started, for it would not be what was planned", next)
	p.Seen = seen
	return p
}
