package sshfs

// PathsOf returns the visible mounts of sshfs in a list of mounts.
func PathsOf(text string) ([]Mount, error) {
	all, err := parse(text)
	return mounts(all), err
}
