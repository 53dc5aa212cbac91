package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/internal/run"
	"vmctl/providers"
)

// session runs Terraform's commands for one workspace. Its folder is private and short-lived.
type session struct {
	p         *Provider
	module    string // the folder of the module, or one that shows it
	tf        *tfexec.Terraform
	env       map[string]string
	lockWait  string // how long Terraform waits for a lock, such as "30s"
	order     order
	dir       string // 0700
	around    string // the folder with those of all sessions, which vmctl has locked
	record    string // the file with the record of a Terraform that writes the state of a VM; "": none does
	variables []byte // in HCL; nil: none are given
	log       providers.Log
}

// openSession prepares commands in the folder of a module. The caller closes the session.
func (p *Provider) openSession(ctx context.Context, module, dataDir string) (*session, error) {
	program, err := p.findProgram()
	if err != nil {
		return nil, err
	}
	if p.host.Program == "" {
		return nil, errors.New("vmctl does not know its own program, which runs Terraform")
	}
	s := &session{p: p, module: module, order: order{Program: program, Init: "-lockfile=readonly"}, lockWait: p.lockWait(), env: p.environment()}
	if s.dir, s.around, err = p.sessionFolder(ctx); err != nil {
		return nil, err
	}
	s.env["TF_DATA_DIR"], s.env["TMPDIR"], s.env["CHECKPOINT_DISABLE"] = dataDir, s.dir, "1"
	if err := s.take(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// take gives the session the Terraform of a closed one, or else a new one.
func (s *session) take() (err error) {
	p := s.p
	p.asking.Lock()
	defer p.asking.Unlock()
	s.order.Version = p.asked.text
	if last := len(p.idle) - 1; last >= 0 && s.module == p.module {
		s.tf, p.idle = p.idle[last], p.idle[:last]
		s.tf.SetStdout(io.Discard)
		return nil
	}
	s.tf, err = tfexec.NewTerraform(s.module, p.host.Program)
	return err
}

// give leaves the Terraform of the session to a later one.
func (s *session) give() {
	p := s.p
	p.asking.Lock()
	defer p.asking.Unlock()
	if s.tf != nil && s.module == p.module {
		p.idle = append(p.idle, s.tf)
	}
}

func (s *session) close() error {
	s.give()
	err := os.RemoveAll(s.dir)
	if s.record == "" {
		return err
	}
	return errors.Join(err, atomicfile.Remove(s.record))
}

// records lists the files with the record of a Terraform that writes a state: while it lives, that in the folder of the session keeps
// the folder of all sessions, since it may use what another one has prepared.
func (s *session) records() []string {
	return []string{filepath.Join(s.dir, recordName), s.record}
}

// findProgram returns the path of Terraform.
func (p *Provider) findProgram() (string, error) {
	dir := p.host.Dir
	if strings.ContainsRune(p.binary, filepath.Separator) {
		dir = p.settings.Files
	}
	path, err := process.LookPath(p.binary, dir, p.host.Environ)
	if err == nil {
		return path, nil
	}
	problem := &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_missing", Err: fmt.Errorf("run %s, which makes the VMs of provider.terraform.%s: %w", p.binary, p.settings.Name, err),
		Next: providers.Say("install Terraform 1.5 or newer, or OpenTofu and set binary = \"tofu\" in the provider block"),
	}
	if errors.Is(err, fs.ErrNotExist) {
		problem.Err = fmt.Errorf("provider.terraform.%s needs the program %s, which is not in PATH", p.settings.Name, p.binary)
	}
	return "", problem
}

// environment returns the environment of Terraform: that of vmctl, with its cloud credentials, but without
// anything that would change a command behind vmctl's back.
func (p *Provider) environment() map[string]string {
	env := map[string]string{}
	for _, entry := range p.host.Environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || name == "TF_DATA_DIR" || strings.HasPrefix(name, "VMCTL_") {
			continue
		}
		env[name] = value
	}
	return tfexec.CleanEnv(env)
}

// run runs a command of Terraform through terraform-exec. It ends with vmctl.
func (s *session) run(command func(*tfexec.Terraform) error) error {
	text, err := json.Marshal(s.order)
	if err != nil {
		return err
	}
	s.env[CallVariable] = string(text)
	if err := s.tf.SetEnv(s.env); err != nil {
		return err
	}
	return withoutSecrets(command(s.tf))
}

// init prepares the module: it installs its providers and sets up its backend.
func (s *session) init(ctx context.Context, settings []string) error {
	o := s.order
	defer func() { s.order = o }()
	s.order.Workspace = "" // init refuses a workspace that does not exist yet
	options := []tfexec.InitOption{}
	for _, setting := range settings {
		options = append(options, tfexec.BackendConfig(setting))
	}
	return s.run(func(tf *tfexec.Terraform) error { return tf.Init(ctx, options...) })
}

// importResource lets the state have an object that exists.
func (s *session) importResource(ctx context.Context, state, address, id string) error {
	args := append([]string{"import", "-no-color", "-input=false", "-lock-timeout=" + s.lockWait}, s.stateOption(state)...)
	input, given, err := s.values()
	if err != nil {
		return err
	}
	if input != nil {
		defer input.Close() //nolint:errcheck // a file in memory
	}
	return s.edit(ctx, append(append(args, given...), address, id), input)
}

// forget takes a resource out of the state, which stays as it is.
func (s *session) forget(ctx context.Context, state, address string) error {
	args := append([]string{"state", "rm", "-no-color", "-lock-timeout=" + s.lockWait}, s.stateOption(state)...)
	return s.edit(ctx, append(args, address), nil)
}

// stateOption returns the option for the file with the state; "": the backend has it. It is deprecated, and the only way for a module
// without a backend.
func (s *session) stateOption(state string) []string {
	if state == "" {
		return nil
	}
	return []string{"-state=" + state}
}

// stdinPath is the standard input as a file, which Terraform reads the values of variables from.
const stdinPath = "/dev/stdin"

// values returns a file with the values of the variables, which is the input of a command, and the option that reads them. nil: there
// are none.
func (s *session) values() (input *os.File, option []string, err error) {
	if s.variables == nil {
		return nil, nil, nil
	}
	if input, err = process.InMemory(s.variables); err != nil {
		return nil, nil, fmt.Errorf("give the values of variables to %s: %w", s.p.tool(), err)
	}
	return input, []string{"-var-file=" + stdinPath}, nil
}

// planFile is the name of the plan in the folder of a session.
const planFile = "plan"

// plan plans, and reads the plan. Both commands write no state, and end with vmctl.
func (s *session) plan(ctx context.Context, state string, further ...string) (*preview, error) {
	file := filepath.Join(s.dir, planFile)
	args := append([]string{"plan", "-json", "-no-color", "-input=false", "-detailed-exitcode", "-lock-timeout=" + s.lockWait, "-out=" + file}, further...)
	args = append(args, s.stateOption(state)...)
	if err := makePrivate(file); err != nil {
		return nil, err
	}
	input, given, err := s.values()
	if err != nil {
		return nil, err
	}
	if input != nil {
		defer input.Close() //nolint:errcheck // a file in memory
	}
	args = append(args, given...)
	var out messages
	err = unlessCreating(ctx, func() error {
		out = messages{}
		status, err := s.bound(ctx, args, input, &out)
		if err != nil && (status != planHasChanges || ctx.Err() != nil) {
			return out.failure(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if _, err := s.bound(ctx, []string{"show", "-json", "-no-color", file}, nil, &text); err != nil {
		return nil, err
	}
	var plan tfjson.Plan
	if err := json.Unmarshal(text.Bytes(), &plan); err != nil {
		return nil, fmt.Errorf("read the plan of %s: %w", s.p.tool(), err)
	}
	return previewOf(&plan, out.reasons), nil
}

// planHasChanges is the exit code of a plan that has changes.
const planHasChanges = 2

// makePrivate makes an empty file that only the user can read, unless there is one. Terraform would make one that others can read.
func makePrivate(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// bound runs a command of Terraform that ends with vmctl. input may be nil.
func (s *session) bound(ctx context.Context, args []string, input *os.File, out io.Writer) (status int, err error) {
	c := run.Command{Args: append([]string{s.order.Program}, args...), Env: s.environ(), Dir: s.module, Stdout: out}
	if input != nil {
		c.Stdin = input
	}
	status, err = run.Bound(ctx, c)
	return status, withoutSecrets(err)
}

// environ returns the environment of a command of Terraform.
func (s *session) environ() []string {
	env := []string{"TF_IN_AUTOMATION=1"}
	for name, value := range s.env {
		if name != CallVariable {
			env = append(env, name+"="+value)
		}
	}
	if s.order.Workspace != "" {
		env = append(env, "TF_WORKSPACE="+s.order.Workspace)
	}
	return env
}

// apply carries out the plan that was made last.
func (s *session) apply(ctx context.Context, state string) error {
	args := append([]string{"apply", "-json", "-no-color", "-auto-approve", "-input=false", "-lock-timeout=" + s.lockWait}, s.stateOption(state)...)
	args = append(args, filepath.Join(s.dir, planFile))
	return unlessCreating(ctx, func() error {
		out := messages{log: s.log}
		if err := s.lasting(ctx, args, nil, &out); err != nil {
			return out.failure(err)
		}
		return nil
	})
}
