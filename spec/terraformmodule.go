package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// TerraformTool is the program that runs a Terraform module, by its own name.
type TerraformTool string

// The programs that run Terraform modules.
const (
	Terraform TerraformTool = "Terraform"
	OpenTofu  TerraformTool = "OpenTofu"
)

// TerraformModule holds the facts of a Terraform module that vmctl relies on.
type TerraformModule struct {
	// Backend is the type of its backend block, or "cloud"; "": the module has none.
	Backend string
	// BackendDigest changes whenever that block does.
	BackendDigest string
	// OneWorkspace says that the block names the only workspace that it uses.
	OneWorkspace bool
	// Encryption says that it has an encryption block, with which OpenTofu encrypts states and plans.
	Encryption bool
	// Providers says that it needs providers that are not built into Terraform.
	Providers bool
	// Digest changes whenever a file of the module does: its configuration, its lock file, and what lies below
	// its folder.
	Digest string
	// Files holds a digest of each of these files, by its path under the folder.
	Files map[string]string
	// Setup changes whenever something that `terraform init` reads does.
	Setup string
}

// TerraformModules reads the module in one folder again and again, and parses it anew only when its files have changed. It may be
// used by several goroutines.
type TerraformModules struct {
	mu   sync.Mutex
	last map[TerraformTool]TerraformModule
}

// Read reads the module in the folder as the tool does: OpenTofu alone reads x.tofu, and in place of x.tf. It decides nothing about the
// resources: only the tool understands them.
func (r *TerraformModules) Read(dir string, tool TerraformTool) (TerraformModule, error) {
	files, err := moduleFiles(dir)
	if err != nil {
		return TerraformModule{}, fmt.Errorf("read the module %s: %w", dir, err)
	}
	whole, setup, each := sha256.New(), sha256.New(), map[string]string{}
	var configuration []string
	texts := map[string][]byte{}
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(overrides(a), overrides(b)) })
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return TerraformModule{}, fmt.Errorf("read the module %s: %w", dir, err)
		}
		fmt.Fprintf(whole, "%q %d\n", name, len(text))
		whole.Write(text)
		sum := sha256.Sum256(text)
		each[name] = hex.EncodeToString(sum[:])
		if !isConfiguration(name) && name != ".terraform.lock.hcl" {
			continue
		}
		fmt.Fprintf(setup, "%q %d\n", name, len(text))
		setup.Write(text)
		if filepath.Dir(name) == "." && isConfiguration(name) && tool.reads(name, files) {
			configuration, texts[name] = append(configuration, name), text
		}
	}
	if len(configuration) == 0 {
		return TerraformModule{}, fmt.Errorf("read the module %s: it has no .tf file", dir)
	}
	digest := hex.EncodeToString(whole.Sum(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[tool]; ok && last.Digest == digest {
		return last, nil
	}
	m := TerraformModule{Digest: digest, Files: each, Setup: hex.EncodeToString(setup.Sum(nil))}
	for _, name := range configuration {
		m.read(name, texts[name])
	}
	if r.last == nil {
		r.last = map[TerraformTool]TerraformModule{}
	}
	r.last[tool] = m
	return m, nil
}

// mostModuleFiles limits the files of a module whose changes count.
const mostModuleFiles = 10000

// moduleFiles lists the files of a module, without the folders in which Terraform keeps its own.
func moduleFiles(dir string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "terraform.tfstate.d"):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.Contains(d.Name(), ".tfstate"):
			return nil
		case len(all) == mostModuleFiles:
			return errors.New("it has too many files")
		}
		all = append(all, name)
		return nil
	})
	slices.Sort(all)
	return all, err
}

func isConfiguration(name string) bool {
	return slices.ContainsFunc([]string{".tf", ".tf.json", ".tofu", ".tofu.json"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// overrides is 1 for a file that Terraform reads after the others, and whose backend takes the place of theirs. Source:
// developer.hashicorp.com/terraform/language/files/override
func overrides(name string) int {
	base, _, _ := strings.Cut(filepath.Base(name), ".")
	if isConfiguration(name) && (base == "override" || strings.HasSuffix(base, "_override")) {
		return 1
	}
	return 0
}

// reads reports whether the tool reads a file of configuration in a folder with these files.
func (t TerraformTool) reads(name string, files []string) bool {
	plain := strings.TrimSuffix(name, ".json")
	base, ok := strings.CutSuffix(plain, ".tf")
	if !ok {
		return t == OpenTofu // .tofu
	}
	return t != OpenTofu || !slices.Contains(files, base+".tofu"+name[len(plain):])
}

// read takes the facts from one file. A mistake in it is Terraform's to report.
func (m *TerraformModule) read(name string, text []byte) {
	var body hcl.Body
	if strings.HasSuffix(name, ".json") {
		file, _ := json.Parse(text, name) //nolint:errcheck // a mistake is Terraform's to report
		if file == nil {
			return
		}
		body = file.Body
	} else {
		file, _ := hclsyntax.ParseConfig(text, name, hcl.InitialPos) //nolint:errcheck // a mistake is Terraform's to report
		if file == nil {
			return
		}
		body = file.Body
	}
	for _, b := range blocksOf(body, "terraform", nil) {
		for _, backend := range blocksOf(b.Body, "backend", []string{"type"}) {
			m.Backend, m.BackendDigest, m.OneWorkspace = backend.Labels[0], blockDigest(backend, text), namesWorkspace(backend)
		}
		for _, cloud := range blocksOf(b.Body, "cloud", nil) {
			m.Backend, m.BackendDigest, m.OneWorkspace = "cloud", blockDigest(cloud, text), namesWorkspace(cloud)
		}
		m.Encryption = m.Encryption || len(blocksOf(b.Body, "encryption", nil)) > 0
		m.Providers = m.Providers || len(blocksOf(b.Body, "required_providers", nil)) > 0
	}
	for _, kind := range []string{"resource", "data"} {
		for _, b := range blocksOf(body, kind, []string{"type", "name"}) {
			m.Providers = m.Providers || !strings.HasPrefix(b.Labels[0], "terraform_")
		}
	}
	m.Providers = m.Providers || len(blocksOf(body, "module", []string{"name"})) > 0
}

// namesWorkspace reports whether a block about states names one workspace, as HCP Terraform lets it.
func namesWorkspace(b *hcl.Block) bool {
	for _, w := range blocksOf(b.Body, "workspaces", nil) {
		content, _, _ := w.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "name"}}}) //nolint:errcheck // a mistake is Terraform's to report
		if content != nil && content.Attributes["name"] != nil {
			return true
		}
	}
	return false
}

// blockDigest returns a digest of a block in a file; in JSON, of the file.
func blockDigest(b *hcl.Block, file []byte) string {
	if body, ok := b.Body.(*hclsyntax.Body); ok {
		file = file[b.DefRange.Start.Byte:body.EndRange.End.Byte]
	}
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

func blocksOf(body hcl.Body, kind string, labels []string) hcl.Blocks {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: kind, LabelNames: labels}}}) //nolint:errcheck // a mistake is Terraform's to report
	if content == nil {
		return nil
	}
	return content.Blocks
}

// TerraformTexts returns the values in a file of -backend-config or -var-file that are plain texts.
func TerraformTexts(text []byte) map[string]string {
	all := map[string]string{}
	file, _ := hclsyntax.ParseConfig(text, "", hcl.InitialPos) //nolint:errcheck // a mistake is Terraform's to report
	if file == nil {
		return all
	}
	attrs, _ := file.Body.JustAttributes() //nolint:errcheck // a mistake is Terraform's to report
	for name, a := range attrs {
		if v, diags := a.Expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && !v.IsNull() {
			all[name] = v.AsString()
		}
	}
	return all
}

// TerraformValues returns the values of variables in Terraform's own language, as a file of -var-file.
func TerraformValues(variables map[string]cty.Value) []byte {
	file := hclwrite.NewEmptyFile()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		file.Body().SetAttributeValue(name, variables[name])
	}
	return file.Bytes()
}
