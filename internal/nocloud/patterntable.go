package nocloud

import "regexp"

// namesUsers finds a list of users at the top of a cloud-config.
var namesUsers = regexp.MustCompile(`(?m)^"?users"?\s*:`)
