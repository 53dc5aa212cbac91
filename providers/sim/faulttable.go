package sim

// The kinds of faults.
const (
	kindFail       = "fail"           // it fails, and nothing was done
	kindHang       = "hang"           // it never ends by itself
	kindSlow       = "slow"           // it takes a delay longer
	kindUnreadable = "unreadable"     // what is there cannot be read
	kindPartial    = "partial"        // half of it is done, and it fails
	kindIgnore     = "ignore_request" // the VM does not end when it is asked to
	kindLate       = "late_exit"      // the VM ends a delay after it was asked to
	kindLeak       = "leak_pid"       // the VM ends, and its pid file stays
	kindDie        = "die"            // the VM ends by itself, and leaves its files
	kindUnkillable = "unkillable"     // neither a request nor force ends the VM
)

// faultOps lists the operations that each kind of fault can strike; nil: all of them.
var faultOps = map[string][]string{
	kindFail:       nil,
	kindHang:       nil,
	kindSlow:       nil,
	kindUnreadable: nil,
	kindPartial:    {opDefine, opRedefine, opGrow, opUpload, opStart, opStop, opRecover, opDelete, opWrite, opRemove, opDetach, opUnmark},
	kindIgnore:     {opStop, opRecover},
	kindLate:       {opStop, opRecover},
	kindLeak:       {opStop, opRecover},
	kindDie:        {opStart, opWaitReady},
	kindUnkillable: {opStop, opRecover},
}
