package yamltext

import "vmctl/internal/pattern"

var (
	// integer matches the integers that every reader takes for the same number.
	integer = pattern.New(`^[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*|0[0-7]+|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)$`)
	// numeric matches strings that some reader of YAML 1.1 or 1.2 takes for a number: 1:30, 0O17, 08.
	numeric = pattern.New(`^[-+.]?[0-9][-+0-9_:.,eE]*$|^[-+]?0[xXoObB]`)
	// word matches strings that some reader takes for a boolean or null.
	word = pattern.New(`^(?i:y|n|yes|no|on|off|true|false|null|nil|~|[-+]?\.?(?:inf|infinity|nan)|=|<<)$`)
)
