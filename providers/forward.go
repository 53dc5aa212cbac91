package providers

// Forward returns outer, a wrapper around inner, with the optional abilities that inner has.
func Forward(outer, inner Provider) Provider {
	reader, reads := inner.(ConsoleReader)
	reacher, reaches := inner.(Reacher)
	switch {
	case reads && reaches:
		return struct {
			Provider
			ConsoleReader
			Reacher
		}{outer, reader, reacher}
	case reads:
		return struct {
			Provider
			ConsoleReader
		}{outer, reader}
	case reaches:
		return struct {
			Provider
			Reacher
		}{outer, reacher}
	}
	return outer
}
