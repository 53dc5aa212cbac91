package wsl

import (
	"time"

	"vmctl/internal/pattern"
)

// stateWords maps the English words for run states (ListDistributionsHelper in WslClient.cpp of
// github.com/microsoft/WSL).
var stateWords = map[string]State{
	"Stopped": Stopped, "Running": Running,
	"Installing": Busy, "Uninstalling": Busy, "Converting": Busy, "Exporting": Busy,
}

// rowPattern matches a line of a verbose listing: a mark of the default, a name, a run state and a version.
// WSL pads the name by four spaces, and the state to 16 characters: a longer one touches the version.
var rowPattern = pattern.New(`^([* ]) (\S(?:.*?\S)?) {2,}(\S(?:.*?\S)?) *[12]$`)

// headerPattern matches the names of the three columns.
var headerPattern = pattern.New(`^ {2}\S.*? {2,}\S.*? +\S`)

// noneCode matches the code of the error that there is no distribution.
var noneCode = pattern.New(`\bWSL_E_DEFAULT_DISTRO_NOT_FOUND\b`)

// limits maps the first argument of a call to its longest time.
var limits = map[string]time.Duration{"--unregister": 30 * time.Second}
