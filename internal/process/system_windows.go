package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// win asks the kernel, and runs no program: nobody's PATH matters.
type win struct{}

func thisSystem() system { return win{} }

// noBoot stands for the boot ID: start times are absolute, so that no process of
// an earlier boot has the same.
const noBoot = "absolute"

func (win) HostIdentity() (hostIdentity, error) {
	host, err := os.Hostname()
	if err != nil {
		return hostIdentity{}, fmt.Errorf("the host's name cannot be read: %w", err)
	}
	machine, err := machineID()
	return hostIdentity{Host: host, Machine: machine, Boot: noBoot}, err
}

func machineID() (id string, err error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`,
		registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return "", fmt.Errorf("the machine's ID cannot be read: %w", err)
	}
	defer func() { err = errors.Join(err, key.Close()) }()
	guid, _, err := key.GetStringValue("MachineGuid")
	if err != nil {
		return "", fmt.Errorf("the machine's ID cannot be read: %w", err)
	}
	sum := sha256.Sum256([]byte("vmctl process identity " + guid))
	return hex.EncodeToString(sum[:8]), nil
}

// open fails with errNone where there is no such process.
func open(pid int, access uint32) (windows.Handle, error) {
	// Pids are multiples of four, and the kernel rounds others down.
	if pid%4 != 0 {
		return 0, errNone
	}
	process, err := windows.OpenProcess(access, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, errNone
	}
	return process, err
}

const looking = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE

func (win) Look(pid int) (s processFacts, err error) {
	process, err := open(pid, looking)
	if err != nil {
		return processFacts{}, err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(process)) }()
	if s.Start, err = created(process); err != nil {
		return processFacts{}, err
	}
	if s.Ended, err = hasEnded(process, 0); err != nil || s.Ended {
		return s, err
	}
	s.UID = -1
	s.Exe, s.ExeErr = executable(process)
	s.Argv, s.ArgvErr = arguments(process)
	// What was read of a process that ended meanwhile means nothing.
	s.Ended, err = hasEnded(process, 0)
	return s, err
}

// created is hundreds of nanoseconds since 1601.
func created(process windows.Handle) (uint64, error) {
	var creation, exit, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &creation, &exit, &kernel, &user); err != nil {
		return 0, err
	}
	return uint64(creation.HighDateTime)<<32 | uint64(creation.LowDateTime), nil
}

// hasEnded waits for at most so many milliseconds. A process that has ended can
// be looked at as long as anybody holds a handle of it.
func hasEnded(process windows.Handle, milliseconds uint32) (bool, error) {
	event, err := windows.WaitForSingleObject(process, milliseconds)
	return event == windows.WAIT_OBJECT_0 && err == nil, err
}

func executable(process windows.Handle) (string, error) {
	path := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(path))
	if err := windows.QueryFullProcessImageName(process, 0, &path[0], &size); err != nil {
		return "", err
	}
	return windows.UTF16ToString(path[:size]), nil
}

func arguments(process windows.Handle) ([]string, error) {
	// The longest command line has 32767 characters; a header comes before it.
	line := make([]uint64, 1<<13+1<<4)
	size := uint32(len(line) * 8)
	err := windows.NtQueryInformationProcess(process, windows.ProcessCommandLineInformation,
		unsafe.Pointer(&line[0]), size, &size)
	if err != nil {
		return nil, err
	}
	text := (*windows.NTUnicodeString)(unsafe.Pointer(&line[0])).String()
	if text == "" {
		return nil, nil
	}
	return windows.DecomposeCommandLine(text)
}

func (win) PIDs() ([]int, error) {
	parents, err := parents()
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(parents))
	for pid := range parents {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

// parents has the parent of each process, as it was given when the child began.
func parents() (all map[int]int, err error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(snapshot)) }()
	all = map[int]int{}
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		all[int(entry.ProcessID)] = int(entry.ParentProcessID)
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, err
	}
	return all, nil
}

func (win) Tree(pid int) ([]int, error) {
	parents, err := parents()
	if err != nil {
		return nil, err
	}
	return descendants(pid, parents, started), nil
}

func started(pid int) (start uint64, err error) {
	process, err := open(pid, looking)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(process)) }()
	return created(process)
}
