package terraform

import "regexp"

var idPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)
