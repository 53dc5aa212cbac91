package process_test

import "vmctl/internal/process"

// realHosts are the ways in which this machine can be asked.
func realHosts() map[string]process.Host {
	return map[string]process.Host{
		"linux":            {},
		"linux before 6.9": process.NewHost(process.LinuxBefore6()),
		"linux before 5.3": process.NewHost(process.LinuxBefore5()),
	}
}

// otherHost reads the processes of a folder.
func otherHost(args []string) process.Host { return process.NewHost(process.LinuxAt(args[0])) }
