package view

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// AdoptDocument is `drift --adopt` as JSON.
type AdoptDocument struct {
	FormatVersion string       `json:"format_version"`
	Adopted       []AdoptEntry `json:"adopted"`
	Pending       bool         `json:"pending"` // the next plan has steps
}

// AdoptEntry is one value that was written into a file.
type AdoptEntry struct {
	Address string `json:"address"`
	Path    string `json:"path"`
	Value   any    `json:"value"` // null: the block has none any more
	File    string `json:"file"`

	Kind spec.Kind `json:"-"`
	Is   cty.Value `json:"-"` // Value as a plan shows it
}

// Adopt lists the values that were written into files.
func Adopt(s Screen, d AdoptDocument, next string) {
	p := &page{screen: s}
	if len(d.Adopted) == 0 {
		p.put(0, 2, txt("No drift to adopt: the files stay as they are."))
		p.flush()
		return
	}
	for _, e := range d.Adopted {
		p.put(0, 2, txt(fmt.Sprintf("%s: %s = %s, in %s", e.Address, e.Path, spec.FormatValue(e.Kind, e.Path, e.Is), e.File)))
	}
	text := "The files and the records say now what is there."
	if d.Pending {
		text = "The files say now what is there. The next plan still has steps for it."
	}
	p.put(0, 2, txt(text))
	p.command("Next:", next)
	p.flush()
}
