package lima

// For the stand-ins of tests.
var (
	ParseSize = parseSize
	NamesOf   = namesOf
	HostKeyIn = hostKeyIn
	PowerDown = powerDown

	WithoutForks = withoutForks
)
