package lockfile

import "vmctl/internal/pattern"

var seatPattern = pattern.New(`^(.+)\.seat-[0-9]+$`)
