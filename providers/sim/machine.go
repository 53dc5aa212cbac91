package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"vmctl/internal/process"
)

// orders is what a VM's process reads from its standard input when it starts.
type orders struct {
	Socket string `json:"socket"`
	With   config `json:"with"`
}

// report is the one line that it writes to its standard output once it listens,
// or knows why it cannot.
type report struct {
	Ports []heldPort `json:"ports,omitempty"`
	Taken string     `json:"taken,omitempty"` // the address of a port that it could not get
	Error string     `json:"error,omitempty"`
}

// question is one line to the socket of a VM, and answer the one line back.
type question struct {
	Ask   string  `json:"ask"`             // ready, deaf, late, die
	Delay float64 `json:"delay,omitempty"` // late: in seconds
}

type answer struct {
	OK    bool       `json:"ok"`
	Ports []heldPort `json:"ports,omitempty"`
}

// What a VM can be asked for over its socket.
const (
	askReady = "ready" // whether it is up
	askDeaf  = "deaf"  // to ignore requests from now on
	askLate  = "late"  // to end so long after a request
	askDie   = "die"   // to end at once, and leave all as it is
)

// errDied is how a VM ends that was asked to die.
var errDied = errors.New("the VM died, as it was asked to")

// Run is the process of one VM. It returns when the VM has ended: nil if it was
// requested to, or ctx has ended.
func Run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	// The program may have its own idea of signals, and who started this may be
	// gone before it reads the report.
	signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	requested, cancel, err := process.Requested(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var o orders
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	m := &machine{orders: o, end: make(chan error, 1)}
	err = m.listen(ctx)
	r := report{Ports: m.ports}
	if err != nil {
		r = report{Error: err.Error(), Taken: m.taken}
	}
	// Nobody may be left to read it.
	_ = json.NewEncoder(stdout).Encode(r) //nolint:errcheck // see above
	if err == nil {
		err = m.live(requested)
	}
	return errors.Join(err, m.close(err))
}

// machine is a VM that runs.
type machine struct {
	orders
	ports  []heldPort
	taken  string
	closes []io.Closer
	socket net.Listener
	serves sync.WaitGroup
	end    chan error

	mu    sync.Mutex
	deaf  bool
	delay time.Duration
}

func (m *machine) listen(ctx context.Context) error {
	var config net.ListenConfig
	for _, f := range m.With.Forwards {
		got, closer, err := hold(ctx, &config, f)
		if err != nil {
			m.taken = f.address()
			return err
		}
		m.closes = append(m.closes, closer)
		m.ports = append(m.ports, heldPort{forward: f, Got: got})
	}
	socket, err := config.Listen(ctx, "unix", m.Socket)
	if err != nil {
		return err
	}
	m.socket = socket
	m.serves.Go(m.serve)
	return nil
}

// hold listens on the host's side of a forward. Nobody is on the other side.
func hold(ctx context.Context, config *net.ListenConfig, f forward) (uint16, io.Closer, error) {
	if f.Protocol == "udp" {
		c, err := config.ListenPacket(ctx, "udp", f.address())
		if err != nil {
			return 0, nil, err
		}
		return uint16(c.LocalAddr().(*net.UDPAddr).Port), c, nil
	}
	l, err := config.Listen(ctx, "tcp", f.address())
	if err != nil {
		return 0, nil, err
	}
	return uint16(l.Addr().(*net.TCPAddr).Port), l, nil
}

// live returns when the VM ends.
func (m *machine) live(requested context.Context) error {
	select {
	case err := <-m.end:
		return err
	case <-requested.Done():
	}
	m.mu.Lock()
	deaf, delay := m.deaf, m.delay
	m.mu.Unlock()
	if deaf {
		return <-m.end
	}
	select {
	case err := <-m.end:
		return err
	case <-time.After(delay):
		return nil
	}
}

// close frees what the VM holds. One that died leaves its socket.
func (m *machine) close(err error) error {
	if m.socket == nil {
		return nil
	}
	if unix, ok := m.socket.(*net.UnixListener); ok && errors.Is(err, errDied) {
		unix.SetUnlinkOnClose(false)
	}
	errs := []error{m.socket.Close()}
	for _, c := range m.closes {
		errs = append(errs, c.Close())
	}
	m.serves.Wait()
	return errors.Join(errs...)
}

func (m *machine) serve() {
	for {
		c, err := m.socket.Accept()
		if err != nil {
			return
		}
		m.reply(c)
	}
}

// reply answers one question. Whoever asks and goes away has no answer.
func (m *machine) reply(c net.Conn) {
	defer c.Close() //nolint:errcheck // it was answered, or nobody listens
	var q question
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return
	}
	if err := json.NewDecoder(bufio.NewReader(c)).Decode(&q); err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := answer{OK: true, Ports: m.ports}
	switch q.Ask {
	case askReady, askDie:
	case askDeaf:
		m.deaf = true
	case askLate:
		m.delay = time.Duration(q.Delay * float64(time.Second))
	default:
		a.OK = false
	}
	if err := json.NewEncoder(c).Encode(a); err != nil {
		return
	}
	if q.Ask == askDie {
		m.end <- errDied
	}
}

// ask asks a VM over its socket.
func ask(ctx context.Context, socket string, q question) (a answer, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return a, err
	}
	defer c.Close() //nolint:errcheck // it was read
	stop := context.AfterFunc(ctx, func() {
		_ = c.Close() //nolint:errcheck // to end the wait below
	})
	defer stop()
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return a, err
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return a, err
	}
	if !a.OK {
		return a, fmt.Errorf("it does not know what %q is", q.Ask)
	}
	return a, nil
}
