// vmctl-lima does one act of Lima for vmctl and ends: it checks an instance's YAML, makes an
// instance, starts it, or is its hostagent. It is the only program of vmctl that has Lima's
// packages in it.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
