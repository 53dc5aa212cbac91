package lockfile

import "regexp"

var seatPattern = regexp.MustCompile(`^(.+)\.seat-[0-9]+$`)
