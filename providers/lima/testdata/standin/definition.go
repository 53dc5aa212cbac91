//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// disksOf returns the names of the additional disks of a definition.
func disksOf(doc map[string]any) []string {
	var all []string
	list, _ := doc["additionalDisks"].([]any)
	for _, entry := range list {
		if disk, ok := entry.(map[string]any); ok {
			entry = disk["name"]
		}
		if name, ok := entry.(string); ok && name != "" {
			all = append(all, name)
		}
	}
	return all
}

// hostKeyIn returns the host key that vmctl's script gives the guest; "": none.
func hostKeyIn(doc map[string]any) string {
	const end = "END_OF_HOST_KEY\n"
	list, _ := doc["provision"].([]any)
	for _, entry := range list {
		script, _ := entry.(map[string]any)
		_, after, _ := strings.Cut(fmt.Sprint(script["script"]), "<<'"+strings.TrimSpace(end)+"'\n")
		if key, _, found := strings.Cut(after, end); found {
			return key
		}
	}
	return ""
}

// sizeOf reads a size of a definition, such as 256MiB.
func sizeOf(text string) uint64 {
	number := strings.TrimRight(text, "KMGTiB")
	n, err := strconv.ParseUint(number, 10, 64)
	shift, known := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[text[len(number):]]
	if err != nil || !known {
		panic("no size: " + text)
	}
	return n << shift
}

// powerDown presses the power button of a guest.
func powerDown(dir string) {
	conn, err := net.Dial("unix", filepath.Join(dir, "qmp.sock"))
	must(err)
	if err != nil {
		return
	}
	defer closed(conn)
	answers := bufio.NewScanner(conn)
	for _, command := range []string{"qmp_capabilities", "system_powerdown"} {
		fmt.Fprintln(conn, encoded(map[string]any{"execute": command}))
		for answers.Scan() && !strings.Contains(answers.Text(), `"return"`) {
		}
	}
	must(answers.Err())
}
