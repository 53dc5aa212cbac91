package sshx

// NextBanner is nextBanner.
var NextBanner = nextBanner

// Interval is interval.
var Interval = interval
