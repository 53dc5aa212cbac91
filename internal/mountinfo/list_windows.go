package mountinfo

// Below returns none: what is mounted in a folder is a link there, which removing the folder does not follow.
func Below(string) ([]string, error) { return nil, nil }
