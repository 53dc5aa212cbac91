package compose

const (
	// maxExpanded limits the bytes of all texts after their variables were replaced.
	maxExpanded = 4 << 20
	// maxNested limits how deep variables nest in the defaults of others.
	maxNested = 20
	// maxMemory limits the bytes of memory, which are a float64 on their way.
	maxMemory = 1 << 60
	// maxPorts limits the ports of one service: ranges of them are short to write.
	maxPorts = 1000
)
