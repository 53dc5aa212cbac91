package providers

// Advice is one thing that the user can do next.
type Advice struct {
	Text string // in words, or a command of another program; Args follow it at once
	// Args are the words of a vmctl command after "vmctl", unquoted and without the flags of
	// the user's own command line: the view quotes them and adds the flags. nil: no command.
	Args []string
}

// Say returns one Advice in words for each line.
func Say(lines ...string) []Advice {
	var all []Advice
	for _, line := range lines {
		all = append(all, Advice{Text: line})
	}
	return all
}

// Vmctl returns the advice to type a vmctl command: Vmctl("plan").
func Vmctl(args ...string) []Advice { return SayVmctl("", args...) }

// SayVmctl returns the advice to type a vmctl command, introduced by words:
// SayVmctl("free the disk: ", "disk", "unlock", "disk.data").
func SayVmctl(words string, args ...string) []Advice { return []Advice{{Text: words, Args: args}} }
