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
	"slices"
	"sync"
	"syscall"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// orders is the message that a VM's process reads from its standard input when it starts.
type orders struct {
	Socket string       `json:"socket"`
	Locks  []string     `json:"locks,omitempty"` // of its disks
	VM     providers.ID `json:"vm,omitempty"`
	With   config       `json:"with"`
	Hang   bool         `json:"hang,omitempty"`   // never come to listening
	Boot   float64      `json:"boot,omitempty"`   // in seconds, until it is up
	Driver *launch      `json:"driver,omitempty"` // of a host agent: the process that it starts
}

// report is the one line that the process writes to its standard output once it listens, or
// knows that it cannot.
type report struct {
	Ports []heldPort `json:"ports,omitempty"`
	Taken string     `json:"taken,omitempty"` // the address of a port that it could not get
	Error string     `json:"error,omitempty"`

	Process *process.Identity `json:"process,omitempty"` // of a host agent: its driver
}

// question is one line to the socket of a VM, and answer the one line back.
type question struct {
	Ask   string  `json:"ask"`             // one of ask…
	Delay float64 `json:"delay,omitempty"` // askLate: in seconds
	Lock  string  `json:"lock,omitempty"`  // askAttach: of the disk
}

type answer struct {
	OK bool `json:"ok"`
	Up bool `json:"up,omitempty"` // it has come up

	PID int `json:"pid,omitempty"` // of the process that answers

	Error string `json:"error,omitempty"` // the reason why it could not do it
}

// The questions to a VM over its socket.
const (
	askReady = "ready" // whether it is up
	askDeaf  = "deaf"  // to ignore requests from now on
	askLate  = "late"  // to end so long after a request
	askDie   = "die"   // to end at once, and leave all as it is
	askBoot  = "boot"  // to be up from now on
	askEnd   = "end"   // to end, as a request does

	askAttach = "attach" // to use one disk more
)

// errDied is the error of a VM that ended because it was asked to die.
var errDied = errors.New("the VM died, as it was asked to")

// Run runs one VM, or its host agent, in this process, which logs to stderr. It returns when the
// VM has ended: nil if it was requested to, or ctx has ended.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	// The program may handle signals in its own way, and the process that started this one
	// may be gone before it reads the report.
	signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	requested, cancel, err := process.Requested(ctx)
	if err != nil {
		return err
	}
	var o orders
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		cancel()
		return fmt.Errorf("read what to run: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &vmProcess{orders: o, end: make(chan error, 1), asked: make(chan struct{}, 1), stop: stop, log: stderr, up: time.Now().Add(time.Duration(o.Boot * float64(time.Second)))}
	if o.Hang {
		m.say("hangs, as it was told to")
		m.deaf = true
		return m.live(ctx, requested, cancel)
	}
	r, err := m.begin(ctx, requested)
	if err != nil {
		r = report{Error: err.Error(), Taken: m.taken}
	}
	// The reader may be gone.
	_ = json.NewEncoder(stdout).Encode(r) //nolint:errcheck // see above
	if err == nil {
		m.say("runs")
		err = m.live(ctx, requested, cancel)
	} else {
		cancel()
	}
	return errors.Join(err, m.close(err))
}

// begin listens, and starts the driver of a host agent. It returns the report.
func (m *vmProcess) begin(ctx, requested context.Context) (report, error) {
	if err := m.listen(ctx); err != nil || m.Driver == nil {
		return report{Ports: m.ports}, err
	}
	return m.startDriver(ctx, requested)
}

// vmProcess is a VM that runs, or its host agent.
type vmProcess struct {
	orders
	host   process.Host
	log    io.Writer
	ports  []heldPort
	taken  string
	closes []io.Closer
	socket net.Listener
	serves sync.WaitGroup
	end    chan error
	asked  chan struct{}
	driver chan error // of a host agent: gets the end of its driver; nil: it has none
	stop   context.CancelFunc
	me     holder

	mu    sync.Mutex
	locks []string  // the locks that it holds
	up    time.Time // the time when it has come up
	deaf  bool
	delay time.Duration
}

func (m *vmProcess) say(what string) {
	who := "VM"
	if m.Driver != nil {
		who = "host agent"
	}
	fmt.Fprintf(m.log, "%s pid %d: the %s %s\n", time.Now().UTC().Format(time.RFC3339), os.Getpid(), who, what)
}

func (m *vmProcess) listen(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	var config net.ListenConfig
	for _, f := range m.With.Forwards {
		got, closer, err := hold(ctx, &config, f)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				m.taken = f.Listens()
			}
			return err
		}
		m.closes = append(m.closes, closer)
		m.ports = append(m.ports, heldPort{Forward: f, Got: got})
	}
	socket, err := config.Listen(ctx, "unix", m.Socket)
	if err != nil {
		return err
	}
	m.socket = socket
	m.serves.Go(func() { m.serve(ctx) })
	return nil
}

// lock takes the disks, which nobody else uses while the VM runs.
func (m *vmProcess) lock(ctx context.Context) error {
	if len(m.Locks) == 0 {
		return nil
	}
	me, err := process.Host{}.Capture(ctx, os.Getpid())
	if err != nil {
		return err
	}
	m.me = holder{VM: m.VM, Process: me}
	for _, path := range m.Locks {
		if err := m.attach(path); err != nil {
			return err
		}
	}
	return nil
}

// attach takes one more disk. It succeeds at once if the VM has the disk already.
func (m *vmProcess) attach(lock string) error {
	if slices.Contains(m.locks, lock) {
		return nil
	}
	if err := m.me.take(lock); err != nil {
		return err
	}
	m.locks = append(m.locks, lock)
	return nil
}

// hold listens on the host port of a forward. No guest is behind it.
func hold(ctx context.Context, config *net.ListenConfig, f machine.Forward) (uint16, io.Closer, error) {
	if f.Protocol == "udp" {
		c, err := config.ListenPacket(ctx, "udp", f.Listens())
		if err != nil {
			return 0, nil, err
		}
		return uint16(c.LocalAddr().(*net.UDPAddr).Port), c, nil
	}
	l, err := config.Listen(ctx, "tcp", f.Listens())
	if err != nil {
		return 0, nil, err
	}
	return uint16(l.Addr().(*net.TCPAddr).Port), l, nil
}

// live returns when the VM ends. A stop request before the VM is up is lost, as it is in a
// guest without a running operating system.
func (m *vmProcess) live(ctx, requested context.Context, cancel context.CancelFunc) error {
	for {
		heard := "was requested to end"
		select {
		case err := <-m.end:
			cancel()
			return err
		case err := <-m.driver:
			if err == nil {
				cancel()
				m.say("ends: its driver has ended")
				return nil
			}
			m.driver = nil
			m.say("has lost its driver: " + err.Error())
			continue
		case <-m.asked:
			heard = "was asked over its socket to end"
		case <-requested.Done():
		}
		m.mu.Lock()
		deaf, delay := m.deaf || time.Now().Before(m.up), m.delay
		m.mu.Unlock()
		switch {
		case m.driver != nil && ctx.Err() == nil:
			m.say(heard)
			m.pass(ctx)
		case deaf && ctx.Err() == nil:
			m.say("does not hear that it is requested to end")
		default:
			m.say(heard)
			defer cancel()
			return m.later(delay)
		}
		next, cancelNext, err := process.Requested(ctx)
		cancel()
		if err != nil {
			return err
		}
		requested, cancel = next, cancelNext
	}
}

// later returns after the delay, or earlier if the VM ends.
func (m *vmProcess) later(delay time.Duration) error {
	select {
	case err := <-m.end:
		return err
	case <-time.After(delay):
		return nil
	}
}

// close frees the VM's resources. A VM that died leaves its socket and its lock.
func (m *vmProcess) close(err error) error {
	died := errors.Is(err, errDied)
	var errs []error
	if m.socket != nil {
		if unix, ok := m.socket.(*net.UnixListener); ok && died {
			unix.SetUnlinkOnClose(false)
		}
		errs = append(errs, m.socket.Close())
	}
	for _, c := range m.closes {
		errs = append(errs, c.Close())
	}
	m.stop()
	m.serves.Wait()
	for _, path := range m.locks {
		if h, err := readLock(path); !died && err == nil && h == m.me { // else it is another's by now
			errs = append(errs, atomicfile.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// serve answers the clients side by side: one that is silent delays no other.
func (m *vmProcess) serve(ctx context.Context) {
	for {
		c, err := m.socket.Accept()
		if err != nil {
			return
		}
		m.serves.Go(func() { m.reply(ctx, c) })
	}
}

// reply answers one question. A client that goes away gets no answer, nor does one that has not
// asked when the VM ends.
func (m *vmProcess) reply(ctx context.Context, c net.Conn) {
	defer c.Close() //nolint:errcheck // it was answered, or nobody listens
	var q question
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return
	}
	heard := context.AfterFunc(ctx, func() { _ = c.Close() }) //nolint:errcheck // to end the wait below
	if err := json.NewDecoder(bufio.NewReader(c)).Decode(&q); err != nil || !heard() {
		return
	}
	if err := json.NewEncoder(c).Encode(m.answer(q)); err == nil && q.Ask == askDie {
		select {
		case m.end <- errDied:
		default: // it dies already
		}
	}
}

// answer does what a question asks for.
func (m *vmProcess) answer(q question) answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := answer{OK: true, PID: os.Getpid()}
	switch q.Ask {
	case askReady, askDie:
	case askEnd:
		select {
		case m.asked <- struct{}{}:
		default: // it has not heard the last one yet
		}
	case askAttach:
		if err := m.attach(q.Lock); err != nil {
			a.OK, a.Error = false, err.Error()
		}
	case askBoot:
		m.up = time.Now()
	case askDeaf:
		m.deaf = true
	case askLate:
		m.delay = time.Duration(q.Delay * float64(time.Second))
	default:
		a.OK = false
	}
	a.Up = !time.Now().Before(m.up)
	return a
}

// ask puts a question to a VM over its socket.
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
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	if !a.OK {
		return a, fmt.Errorf("it does not know what %q is", q.Ask)
	}
	return a, nil
}
