package process

// wrappers are the programs that do nothing but replace themselves by another,
// in the same process and at once. `#!/usr/bin/env` makes every such script
// begin as env.
var wrappers = map[string]bool{
	"env": true, "nice": true, "ionice": true, "nohup": true, "stdbuf": true, "taskset": true, "chrt": true,
}
