package gitx

// IsObjectName reports whether a text is the whole name of an object, as git writes it: 40 hexadecimal digits in lower case,
// or 64 in a repository with SHA-256. Anything else that comes from another place is not an argument for git.
func IsObjectName(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
