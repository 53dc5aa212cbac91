package state

// WithAdvice is reached from inside: no test can fill a disk as an ordinary user.
var WithAdvice = withAdvice
