package main

import _ "github.com/lima-vm/lima/v2/pkg/driver/qemu" // registers the driver
