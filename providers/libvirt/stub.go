//go:build !cgo || !libvirt_dlopen

package libvirt

import "context"

// dial fails: this build has no libvirt.
func dial(context.Context, string) (connection, error) {
	return nil, errNotBuiltIn
}
