package sshx

// NextBanner is nextBanner.
var NextBanner = nextBanner
