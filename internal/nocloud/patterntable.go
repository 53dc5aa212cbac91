package nocloud

import "vmctl/internal/pattern"

// namesUsers finds a list of users at the top of a cloud-config.
var namesUsers = pattern.New(`(?m)^"?users"?\s*:`)
