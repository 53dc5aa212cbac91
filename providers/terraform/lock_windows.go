package terraform

// lockHolder is false: VMs of Terraform are not supported on Windows.
func lockHolder(string) (pid int, held bool) { return 0, false }
