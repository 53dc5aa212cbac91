//go:build cgo && libvirt_dlopen

package libvirt

/*
#cgo LDFLAGS: -Wl,--wrap=virSetErrorFuncWrapper

typedef void (*errorFunc)(void *data, void *error);

static void *keptData;
static errorFunc kept;

void __real_virSetErrorFuncWrapper(void *data, errorFunc handler);

// The package of libvirt calls this as it is initialised, which would open the library.
void
__wrap_virSetErrorFuncWrapper(void *data, errorFunc handler)
{
    keptData = data;
    kept = handler;
}

static void
setErrorFunc(void)
{
    __real_virSetErrorFuncWrapper(keptData, kept);
}
*/
import "C"

// openLibrary opens libvirt's library. It and the 60 libraries that it needs take a quarter of the time of a vmctl that has
// nothing to do with libvirt: hence not at the start of the process, but before the first connection.
func openLibrary() { C.setErrorFunc() }
