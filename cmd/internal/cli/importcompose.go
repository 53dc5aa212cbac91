package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"vmctl/cmd/internal/view"
	"vmctl/internal/compose"
	"vmctl/internal/ctyread"
	"vmctl/internal/shellword"
	"vmctl/spec"
)

type composeDocument struct {
	FormatVersion string            `json:"format_version"`
	Addresses     []string          `json:"addresses"`
	LeftOut       []leftOutDocument `json:"left_out"`
	File          string            `json:"file"` // "": none was written
	Text          string            `json:"text"`
}

type leftOutDocument struct {
	Address string `json:"address"` // "": of the whole file
	Setting string `json:"setting"`
	Reason  string `json:"reason"`
}

// importCompose writes blocks for what a compose file declares.
func (a *app) importCompose(r importRequest) error {
	config, err := a.load()
	if err != nil {
		return err
	}
	if err := a.checkNewFile(r.out); err != nil {
		return err
	}
	target, err := a.composeTarget(config, r.engine)
	if err != nil {
		return err
	}
	project, err := a.readCompose(r.compose)
	if err != nil {
		return err
	}
	made, err := spec.GenerateCompose(project, target)
	if err != nil {
		return a.composeProblem(r.compose, strings.Split(err.Error(), "\n")...)
	}
	if err := a.composeLoads(config, r.compose, made.Text); err != nil {
		return err
	}
	doc := composeDocument{FormatVersion: view.FormatVersion, Addresses: view.Addresses(made.Addresses), LeftOut: []leftOutDocument{}, Text: string(made.Text)}
	for _, l := range made.LeftOut {
		one := leftOutDocument{Setting: l.Setting, Reason: l.Reason}
		if l.Address != (spec.Address{}) {
			one.Address = l.Address.String()
		}
		doc.LeftOut = append(doc.LeftOut, one)
	}
	if r.out == "" {
		a.show(doc, func(view.Screen) { a.stdout.keep(write(a.stdout, doc.Text)) })
		return nil
	}
	if err := writeNew(a.absolute(r.out), made.Text); err != nil {
		return err
	}
	doc.File = r.out
	a.show(doc, func(s view.Screen) {
		view.Note(s, "Wrote "+strings.Join(doc.Addresses, ", ")+" into "+r.out+".")
		if n := len(doc.LeftOut); n > 0 {
			view.Note(s, fmt.Sprintf("Settings that no block can say: %d. Each is a comment that begins with \"Left out\".", n))
		}
		view.Note(s, "Next: "+a.commandLine("plan", planFlags{}))
	})
	return nil
}

// composeTarget returns the engine for the containers of a compose file, and the images that have blocks already.
func (a *app) composeTarget(c *spec.Config, name string) (spec.ComposeTarget, error) {
	target := spec.ComposeTarget{Images: map[string]spec.Address{}, Taken: map[spec.Address]bool{}}
	var engines []spec.Address
	var names []string
	for _, r := range c.Resources {
		if r.Address.Kind == spec.Engine {
			names = append(names, r.Address.String())
			if name == "" || name == r.Address.String() || string(spec.Engine)+"."+name == r.Address.String() {
				engines = append(engines, r.Address)
			}
		}
	}
	switch {
	case len(names) == 0 && name == "":
		target.Engine, target.NewEngine = spec.Address{Kind: spec.Engine, Name: "here"}, true
	case len(engines) == 0:
		return target, rejected("usage", "read --engine "+quoted(name)+": the files have no engine of that name", "they have "+strings.Join(names, ", "))
	case len(engines) > 1:
		return target, rejected("usage", "import --compose: the files have several engines", "say which: --engine="+strings.Join(names, ", --engine="))
	default:
		target.Engine = engines[0]
	}
	for _, r := range c.Resources {
		target.Taken[r.Address.Block()] = true
		full := ""
		if ref := ctyread.Text(r.Want, "ref"); r.Address.Kind == spec.Image && ctyread.Text(r.Want, "engine") == target.Engine.String() {
			full = compose.CanonicalImage(ref)
		}
		if full != "" {
			target.Images[full] = r.Address
		}
	}
	return target, nil
}

// readCompose reads a compose file, and the files beside it that it needs.
func (a *app) readCompose(path string) (*compose.Project, error) {
	name := a.absolute(path)
	text, err := readComposeFile(name)
	if err != nil {
		return nil, a.composeProblem(path, err.Error())
	}
	dir := filepath.Dir(name)
	dotEnv, err := readComposeFile(filepath.Join(dir, ".env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, a.composeProblem(path, "the file .env beside it: "+err.Error())
	}
	environ := map[string]string{}
	for _, entry := range a.env.Environ {
		if key, value, ok := strings.Cut(entry, "="); ok {
			environ[key] = value
		}
	}
	project, err := compose.Read(text, compose.Inputs{
		Folder: filepath.Base(dir), Environ: environ, DotEnv: dotEnv,
		ReadFile: func(path string) (string, error) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			return readComposeFile(path)
		},
	})
	var mistakes compose.Mistakes
	if errors.As(err, &mistakes) {
		return nil, a.composeProblem(path, mistakes...)
	}
	return project, err
}

// maxComposeFile limits the bytes of a compose file and of each file that it needs.
const maxComposeFile = 4 << 20

// readComposeFile reads a regular file of a bounded size.
func readComposeFile(path string) (text string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, maxComposeFile+1))
	if err == nil && len(data) > maxComposeFile {
		err = fmt.Errorf("%s has more than %d MiB", path, maxComposeFile>>20)
	}
	return string(data), err
}

// composeProblem returns the problem of a compose file that has mistakes.
func (a *app) composeProblem(path string, mistakes ...string) *problem {
	p := rejected("compose_file", "import --compose "+path+": nothing was written",
		"correct the file; where it includes or extends others: "+shellword.Join([]string{"docker", "compose", "-f", path, "config"})+" writes it as one")
	p.Seen = mistakes
	return p
}

// composeLoads fails if the spec cannot hold the blocks of a compose file.
func (a *app) composeLoads(c *spec.Config, path string, text []byte) error {
	source := c.Source()
	source.Variables = "" // the inputs give them
	source.Files[stubFile] = string(text)
	config, diags := a.readSpec(&source)
	if !diags.HasErrors() {
		diags = append(diags, a.longNames(config)...)
	}
	var mistakes []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			mistakes = append(mistakes, d.Summary+": "+d.Detail)
		}
	}
	if len(mistakes) == 0 {
		return nil
	}
	return a.composeProblem(path, mistakes...)
}
