package terraform

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// backendConfig holds the settings of the backend that the provider block has. They may be secrets: they reach Terraform in
// private files that go away, and Terraform keeps them in the folder of a session only.
type backendConfig struct {
	values map[string]cty.Value
	file   string // absolute; "": there is none
}

func backendConfigOf(s providers.Settings) backendConfig {
	c := backendConfig{file: ctyread.Text(s.Attrs, "backend_config_file")}
	if v := ctyread.Attr(s.Attrs, "backend_config"); ctyread.Known(v) {
		c.values = v.AsValueMap()
		maps.DeleteFunc(c.values, func(_ string, v cty.Value) bool { return v.IsNull() }) // as Terraform reads one in a block: it is not set
	}
	if c.file != "" && !filepath.IsAbs(c.file) {
		c.file = filepath.Join(s.Files, c.file)
	}
	return c
}

func (c backendConfig) none() bool { return len(c.values) == 0 && c.file == "" }

// checkBackendConfig refuses settings of a backend that the module does not have: Terraform would ignore them.
func (p *Provider) checkBackendConfig(m spec.TerraformModule) error {
	if m.Backend != "" || p.backend.none() {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_backend",
		Next: providers.Say("add a backend block to the module, such as terraform { backend \"s3\" {} }", "or take backend_config and backend_config_file out of the provider block"),
		Err:  fmt.Errorf("provider.terraform.%s: backend_config is set, and the module %s has no backend block", p.settings.Name, p.module),
	}
}

// write writes the settings into private files in a folder, and returns these in the order in which Terraform is to read them.
func (c backendConfig) write(dir string) (files []string, err error) {
	if c.file != "" {
		text, err := os.ReadFile(c.file)
		if err != nil {
			return nil, fmt.Errorf("read backend_config_file: %w", err)
		}
		// Terraform takes a path with an equals sign for a setting.
		files = append(files, filepath.Join(dir, "backend-file"+filepath.Ext(c.file)))
		if err := os.WriteFile(files[0], text, 0o600); err != nil {
			return nil, err
		}
	}
	if len(c.values) == 0 {
		return files, nil
	}
	path := filepath.Join(dir, "backend-values.hcl")
	return append(files, path), os.WriteFile(path, spec.TerraformValues(c.values), 0o600)
}

// confine lets a session keep what Terraform notes about the backend in its own folder, which goes away: that has the settings.
// The providers that init installs stay in the data folder.
func (s *session) confine(dir string) error {
	installed, own := filepath.Join(dir, "providers"), filepath.Join(s.dir, "data")
	if err := errors.Join(os.MkdirAll(installed, 0o700), os.Mkdir(own, 0o700)); err != nil {
		return err
	}
	s.env["TF_DATA_DIR"] = own
	return os.Symlink(installed, filepath.Join(own, "providers"))
}

// placeSettings returns the settings that say where a backend keeps states: they are no secrets.
func placeSettings() []string {
	return []string{
		"address", "bucket", "container_name", "hostname", "key", "namespace", "organization", "path", "prefix", "region", "resource_group_name",
		"schema_name", "secret_suffix", "storage_account_name", "table", "workspace_key_prefix",
	}
}

// place returns a digest of the settings that say where the states are.
func (c backendConfig) place() string {
	all := map[string]string{}
	if c.file != "" {
		text, _ := os.ReadFile(c.file) //nolint:errcheck // init tells
		all = spec.TerraformTexts(text)
	}
	for name, v := range c.values {
		all[name] = v.AsString()
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(placeSettings(), name) {
			fmt.Fprintf(sum, "%q %q\n", name, all[name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
