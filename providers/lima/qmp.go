package lima

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// qmpLimit is the time that QEMU's monitor has for an answer. It serves one client at a time: while
// the host agent shuts the guest down, nobody else gets an answer.
const qmpLimit = 2 * time.Second

// growLimit is the time that a disk has to grow: unlike a look, it is not tried again soon.
const growLimit = time.Minute

// errBusy says that a monitor gave no answer in time.
var errBusy = errors.New("QEMU's monitor gave no answer")

// monitor is a connection to QEMU's monitor.
type monitor struct {
	conn net.Conn
	said *json.Decoder
}

// openMonitor connects to QEMU's monitor at a socket, for limit at most. Call close when it is over.
func openMonitor(ctx context.Context, socket string, limit time.Duration) (m *monitor, closed func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		cancel()
		return nil, nil, busy(err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // it ends the reading below, where that can be ended
	})
	closed = func() {
		stop()
		cancel()
		_ = conn.Close() //nolint:errcheck // the answers were read, or not
	}
	m = &monitor{conn: conn, said: json.NewDecoder(conn)}
	var greeting map[string]any
	if err = m.said.Decode(&greeting); err == nil {
		_, err = m.do("qmp_capabilities", nil)
	}
	if err != nil {
		closed()
		return nil, nil, busy(err)
	}
	return m, closed, nil
}

// do sends a command, and returns its answer.
func (m *monitor) do(command string, arguments map[string]any) (json.RawMessage, error) {
	line, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return nil, err
	}
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		return nil, busy(err)
	}
	for {
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
			Event string `json:"event"`
		}
		if err := m.said.Decode(&answer); err != nil {
			return nil, busy(err)
		}
		switch {
		case answer.Error != nil:
			return nil, fmt.Errorf("QEMU's monitor refused %s: %s", command, answer.Error.Desc)
		case answer.Event == "": // else something happened meanwhile
			return answer.Return, nil
		}
	}
}

// qmp sends one command to QEMU's monitor at a socket, and returns its answer.
func qmp(ctx context.Context, socket, command string) (json.RawMessage, error) {
	m, closed, err := openMonitor(ctx, socket, qmpLimit)
	if err != nil {
		return nil, err
	}
	defer closed()
	return m.do(command, nil)
}

// guestState returns QEMU's word for the state of its guest (RunState of its QMP reference).
func guestState(ctx context.Context, socket string) (string, error) {
	text, err := qmp(ctx, socket, "query-status")
	var answer struct {
		Status string `json:"status"`
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer.Status, err
}

// powerDown asks the guest to shut down, as its power button would.
func powerDown(ctx context.Context, socket string) error {
	_, err := qmp(ctx, socket, "system_powerdown")
	return err
}

// growAttached makes a disk larger, of which QEMU has the file open.
func growAttached(ctx context.Context, socket, file string, size uint64) error {
	m, closed, err := openMonitor(ctx, socket, growLimit)
	if err != nil {
		return err
	}
	defer closed()
	text, err := m.do("query-block", nil)
	if err != nil {
		return err
	}
	var blocks []struct {
		Device   string `json:"device"`
		Inserted struct {
			File string `json:"file"`
		} `json:"inserted"`
	}
	if err := json.Unmarshal(text, &blocks); err != nil {
		return err
	}
	for _, b := range blocks {
		if isSameFile(b.Inserted.File, file) {
			_, err := m.do("block_resize", map[string]any{"device": b.Device, "size": size})
			return err
		}
	}
	return fmt.Errorf("QEMU does not have %s open", file)
}

// isSameFile reports whether two paths are of one file. Lima resolves the links in the path of its home.
func isSameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(first, second)
}

// busy returns errBusy for an answer that did not come in time, and for a socket at which others wait
// already (EAGAIN, which counts as a timeout).
func busy(err error) error {
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return errBusy
	}
	return err
}
