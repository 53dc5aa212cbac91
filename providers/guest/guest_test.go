package guest_test

import "errors"

var errOff = errors.New("the VM is off")
