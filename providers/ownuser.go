package providers

// OwnUser is a provider whose VMs have a user of their own for the people of this host.
type OwnUser interface {
	// OwnUser returns that user of a VM, and where the VM has dir, a folder of this host; "": it does not have it.
	OwnUser(o Object, dir string) (user, folder string, err error)
}
