package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/internal/scratch"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// recordName is the name of the file that names the Terraform at work, in the folder of its session and beside the state.
const recordName = "running"

// running is the record of a Terraform that writes a state: it outlives a vmctl that is killed.
type running struct {
	Process process.Identity `json:"process"`
	Command string           `json:"command"` // of Terraform, as in "apply"
	Folder  string           `json:"folder"`  // with the lock that its vmctl holds as long as it lives

	tool spec.TerraformTool
}

// recordPath returns the file with the record of the Terraform that writes the state of a workspace.
func (p *Provider) recordPath(name string) string {
	return filepath.Join(p.statesDir(), name, recordName)
}

// readRunning reads a record. nil: there is none.
func readRunning(path string) (*running, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r running
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &r, nil
}

// ended reports whether the Terraform is gone, on positive proof. r may be nil.
func (r *running) ended() bool {
	if r == nil {
		return true
	}
	verdict, _ := process.Host{}.Verify(r.Process)
	return verdict == process.Gone || verdict == process.Reused
}

// leftRunning returns the Terraform that a killed vmctl left at work on a workspace. nil: there is none.
func (p *Provider) leftRunning(ctx context.Context, name string) (*running, error) {
	r, err := readRunning(p.recordPath(name))
	if err != nil || r.ended() {
		return nil, err
	}
	r.tool = p.tool()
	if _, held, err := lockfile.Holder(ctx, filepath.Join(r.Folder, scratch.LockName)); err == nil && held {
		return nil, nil // its vmctl lives, and waits for it
	}
	if r.ended() { // and its vmctl freed the lock after that
		return nil, nil
	}
	return r, nil
}

// String describes the Terraform in words.
func (r *running) String() string {
	return fmt.Sprintf("the %s of a killed vmctl (%s, pid %d) still writes its state", r.tool, r.Command, r.Process.PID)
}

// said describes the Terraform with the advice of until.
func (r *running) said(ctx context.Context, record string) string {
	text := r.String()
	for _, next := range r.until(ctx, record) {
		if next.Text != "" {
			text += "; " + next.Text
		}
	}
	return text
}

// until returns advice for the time until it has ended.
func (r *running) until(ctx context.Context, record string) []providers.Advice {
	if verdict, reason := (process.Host{}).Verify(r.Process); verdict == process.Unknown && !r.becameAnother(ctx) {
		return providers.Say("nothing shows whether it has ended (" + reason + "); if it has: " + shellword.Join([]string{"rm", record}))
	}
	return append(providers.Say(fmt.Sprintf("wait until pid %d has ended", r.Process.PID)), providers.Vmctl("plan")...)
}

// becameAnother reports whether the process runs another program now: the user's Terraform is a script.
func (r *running) becameAnother(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	now, err := process.Host{}.Capture(short, r.Process.PID)
	now.Exe, now.Argv0, now.PGID = r.Process.Exe, r.Process.Argv0, r.Process.PGID
	return err == nil && now == r.Process
}

// checkRunning refuses to start a second Terraform for a workspace.
func (j *job) checkRunning(ctx context.Context) error {
	w, err := j.p.folderOf(j.Object)
	if err != nil || w == nil {
		return err
	}
	r, err := j.p.leftRunning(ctx, w.name)
	if err != nil || r == nil {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "terraform_busy", Next: r.until(ctx, j.p.recordPath(w.name)),
		Err: fmt.Errorf("%s %s: %s", j.Op, j.Address, r),
	}
}

// awaitLeft waits until no Terraform of a killed vmctl is at work on any workspace: it may make what all share.
func (p *Provider) awaitLeft(ctx context.Context, log providers.Log) error {
	all, err := p.folders()
	if err != nil {
		return err
	}
	for _, w := range all {
		r, err := p.leftRunning(ctx, w.name)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if log != nil {
			log(providers.Progress{Text: fmt.Sprintf("waiting for %s: %s", w.name, r)})
		}
		if err := (process.Host{}).Wait(ctx, r.Process); err != nil {
			return err
		}
	}
	return nil
}
