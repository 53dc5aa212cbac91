package terraform

import "vmctl/internal/pattern"

var idPattern = pattern.New(`^[0-9a-f]{32}$`)
