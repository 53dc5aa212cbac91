package sshx

// NextBanner is nextBanner.
var NextBanner = nextBanner //nolint:gochecknoglobals // a function that tests call
