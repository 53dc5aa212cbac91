package lima

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/yamltext"
	"vmctl/providers"
)

// overridden returns the problem of a home whose override.yaml sets what attributes set, too: Lima
// takes its values for all instances, whatever their definitions say, so that no apply could end in what the
// spec wants. nil: there is none.
func (p *Provider) overridden() *providers.Problem {
	path := filepath.Join(p.home, configDir, "override.yaml")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var doc map[string]any
	if err == nil {
		doc, err = yamltext.Parse(string(content))
	}
	if err != nil && !errors.Is(err, yamltext.ErrEmpty) {
		return providers.Unread(fmt.Errorf("read %s: %w", path, err))
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(doc)), func(key string) bool { return !slices.Contains(attributeKeys, key) })
	if len(keys) == 0 {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "overridden",
		Next: providers.Say("take "+strings.Join(keys, ", ")+" out of "+path, "or use a home of its own: leave home out of the provider block"),
		Err:  fmt.Errorf("%s sets %s for all instances, whatever a spec says", path, strings.Join(keys, ", ")),
	}
}
