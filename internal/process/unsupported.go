package process

import "fmt"

// unsupported is an operating system without support: vmctl recognises no process there, and never
// reports one as gone.
type unsupported struct{ name string }

func (u unsupported) HostIdentity() (hostIdentity, error) { return hostIdentity{}, u.err() }
func (u unsupported) Look(int) (processFacts, error)      { return processFacts{}, u.err() }
func (u unsupported) PIDs() ([]int, error)                { return nil, u.err() }
func (u unsupported) Tree(int) ([]int, error)             { return nil, u.err() }
func (u unsupported) Open(int) (handle, error)            { return nil, u.err() }
func (u unsupported) err() error {
	return fmt.Errorf("processes of %s cannot be recognised: use Linux, macOS or Windows", u.name)
}
