//go:build cgo && libvirt_dlopen

package libvirt

// Settled repeats an operation on a pool or volume that libvirt is busy with.
var Settled = settled
