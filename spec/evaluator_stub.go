package spec

type evaluator struct{}
