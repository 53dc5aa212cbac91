//go:build cgo && libvirt_dlopen && !linux

package libvirt

// openLibrary has nothing to do: the library is open since the start of the process.
func openLibrary() {}
