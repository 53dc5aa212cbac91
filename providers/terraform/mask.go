package terraform

// masked returns a text of Terraform without the passwords in addresses and in settings of connections: a backend that does not
// understand its configuration repeats it.
func masked(text string) string {
	for _, p := range maskPatterns {
		text = p.ReplaceAllString(text, "${1}***${2}")
	}
	return text
}

// withoutSecrets returns an error of a command without passwords.
func withoutSecrets(err error) error {
	if err == nil {
		return nil
	}
	if text := masked(err.Error()); text != err.Error() {
		return &framed{text, err}
	}
	return err
}
