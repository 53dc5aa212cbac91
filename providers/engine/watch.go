package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/spec"
)

var _ providers.Watcher = (*Objects)(nil)

// The times of a watch.
const (
	watchPause = time.Second      // between two attempts to connect
	watchPing  = 30 * time.Second // between two questions whether a silent engine is still there
)

// Watch implements providers.Watcher. An engine keeps few events, and none over a restart: an event only says where to look,
// and after a lost connection everything is listed again.
func (p *Objects) Watch(ctx context.Context, tell func(providers.Notice) error) error {
	m := mirror{p: p, tell: tell, all: map[mirrored]seen{}}
	for {
		err := m.follow(ctx)
		var refused *tellError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused):
			return refused.err
		}
		if err := m.say(providers.Notice{Change: providers.NoticedLost, Reason: err.Error()}); err != nil {
			return refusedBy(err)
		}
		if clock.Sleep(ctx, watchPause) != nil {
			return context.Cause(ctx)
		}
	}
}

// tellError is the end of the one who is told.
type tellError struct{ err error }

// Error returns the text of the reason.
func (e *tellError) Error() string { return e.err.Error() }

func refusedBy(err error) error {
	var refused *tellError
	if errors.As(err, &refused) {
		return refused.err
	}
	return err
}

// mirrored names an object in a mirror.
type mirrored struct {
	kind spec.Kind
	id   string
}

// mirror holds the objects of an engine that is watched, as they were told last.
type mirror struct {
	p      *Objects
	tell   func(providers.Notice) error
	all    map[mirrored]seen
	listed bool // once
}

func (m *mirror) say(s providers.Notice) error {
	if err := m.tell(s); err != nil {
		return &tellError{err}
	}
	return nil
}

// event is the part of an engine's event that is needed.
type event struct {
	Type  string
	Actor struct{ ID string }
	flaw  error // nil: it could be read
}

// follow connects, lists everything, and looks at what the events name, until the connection is lost.
func (m *mirror) follow(ctx context.Context) error {
	c, err := newConnection(m.p.settings.Via.Address.String(), func(ctx context.Context) (net.Conn, error) {
		g, err := m.p.settings.Via.Enter(ctx)
		if err != nil {
			return nil, err
		}
		return g.Dial(ctx, "unix", "engine")
	})
	if err != nil {
		return err
	}
	defer c.close()
	anchor, err := c.clock(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.events(ctx, anchor)
	if err != nil {
		cancel()
		return err
	}
	heard, events, ended := make(chan event), make(chan event), make(chan error, 1)
	go func() { ended <- readEvents(ctx, stream, heard) }()
	go queue(heard, events)
	err = m.look(ctx, c, events, ended)
	cancel()           // it ends readEvents
	_ = stream.Close() //nolint:errcheck // it was only read
	for range events { // they do not count any more: all is listed again
	}
	return err
}

// look lists everything, and then looks at what each event names.
func (m *mirror) look(ctx context.Context, c *connection, events <-chan event, ended <-chan error) error {
	if err := m.list(ctx, spec.Image, spec.Volume, spec.Network, spec.Container); err != nil {
		return err
	}
	m.listed = true
	if err := m.say(providers.Notice{Change: providers.NoticedListed}); err != nil {
		return err
	}
	ping := time.NewTicker(watchPing)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ping.C:
			if _, err := c.clock(ctx); err != nil {
				return err
			}
		case e, ok := <-events:
			if !ok {
				return <-ended
			}
			if err := m.changed(ctx, e); err != nil {
				return err
			}
		}
	}
}

// changed looks at the object of an event.
func (m *mirror) changed(ctx context.Context, e event) error {
	switch {
	case e.flaw != nil: // nobody knows what it was about
		return m.list(ctx, spec.Image, spec.Volume, spec.Network, spec.Container)
	case e.Type == "container" && isID(e.Actor.ID):
		return m.container(ctx, e.Actor.ID)
	case e.Type == "image": // the image that loses a name has no event
		return m.list(ctx, spec.Image)
	case e.Type == "volume":
		return m.list(ctx, spec.Volume)
	case e.Type == "network":
		return m.list(ctx, spec.Network)
	}
	return nil
}

// container looks at one container.
func (m *mirror) container(ctx context.Context, id string) error {
	key := mirrored{spec.Container, id}
	s, err := m.p.inspect(ctx, id)
	switch {
	case isAbsent(err):
		return m.gone(key)
	case err != nil && s.flaw == nil: // there was no answer
		return err
	}
	if s.id != id {
		s.id, s.flaw = id, cmp.Or(s.flaw, fmt.Errorf("the engine answers with the ID %.70q", s.id))
	}
	return m.have(key, s)
}

// list lists kinds and tells each difference.
func (m *mirror) list(ctx context.Context, kinds ...spec.Kind) error {
	for _, kind := range kinds {
		raws, warned, err := m.p.raw(ctx, kind)
		if err != nil {
			return fmt.Errorf("list the %ss: %w", things[kind], err)
		}
		now, isWhole := map[mirrored]seen{}, warned == nil
		for _, raw := range raws {
			for _, s := range read(kind, raw) {
				if s.id == "" { // an image without a name; or nobody knows which one it is
					isWhole = isWhole && s.flaw == nil
					continue
				}
				now[mirrored{kind, s.id}] = s
			}
		}
		if kind == spec.Container {
			m.inspectAll(ctx, now)
		}
		if err := m.compare(kind, now, isWhole); err != nil {
			return err
		}
	}
	return nil
}

// inspectAll inspects the containers of a list.
func (m *mirror) inspectAll(ctx context.Context, all map[mirrored]seen) {
	keys := slices.SortedFunc(maps.Keys(all), compareKeys)
	whole := make([]seen, len(keys))
	gone := make([]bool, len(keys))
	parallel.Do(inFlight, len(keys), func(i int) {
		if whole[i] = all[keys[i]]; whole[i].flaw != nil {
			return
		}
		s, err := m.p.inspect(ctx, keys[i].id)
		if gone[i] = isAbsent(err); err == nil {
			whole[i] = s
		} else {
			whole[i].flaw = err
		}
	})
	for i, key := range keys {
		if all[key] = whole[i]; gone[i] {
			delete(all, key)
		}
	}
}

func compareKeys(a, b mirrored) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// compare tells the differences of a kind to what was known. Nothing is gone because a list has gaps.
func (m *mirror) compare(kind spec.Kind, now map[mirrored]seen, isWhole bool) error {
	if isWhole {
		for _, key := range slices.SortedFunc(maps.Keys(m.all), compareKeys) {
			if _, stays := now[key]; key.kind == kind && !stays {
				if err := m.gone(key); err != nil {
					return err
				}
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(now), compareKeys) {
		if err := m.have(key, now[key]); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirror) gone(key mirrored) error {
	before, known := m.all[key]
	if !known {
		return nil
	}
	delete(m.all, key)
	return m.say(providers.Notice{Change: providers.NoticedRemoved, Object: m.object(before)})
}

// have tells that an object is there, if it was not known to be as it is.
func (m *mirror) have(key mirrored, now seen) error {
	before, known := m.all[key]
	if now.state == stateRemoving { // whether a look falls into a removal is chance; its end is told
		return nil
	}
	if known && before.watched() == now.watched() {
		return nil
	}
	m.all[key] = now
	s := providers.Notice{Change: providers.NoticedAdded, Object: m.object(now)}
	switch {
	case now.flaw != nil:
		s.Change, s.Reason = providers.NoticedUnknown, now.flaw.Error()
	case !m.listed:
		s.Change = providers.NoticedPresent
	case known:
		s.Change = providers.NoticedChanged
	}
	return m.say(s)
}

func (m *mirror) object(s seen) providers.Object {
	if s.kind == spec.Image {
		return m.p.imageObject(s, providers.Known{})
	}
	return m.p.object(s, nil, false)
}

// watched returns a text that differs where a watch has something to tell.
func (s seen) watched() string {
	flaw := ""
	if s.flaw != nil {
		flaw = s.flaw.Error()
	}
	return fmt.Sprintln(s.fingerprint(), s.state, s.health, s.networks, s.bound, flaw)
}

// clock returns the time of the engine. Its own events count by it, whatever the time of this host is.
func (c *connection) clock(ctx context.Context) (time.Time, error) {
	if err := c.ready(ctx); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return time.Time{}, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return time.Time{}, unreachable(err)
	}
	_ = answer.Body.Close() //nolint:errcheck // only its head is needed
	at, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the engine's clock: %w", err)
	}
	return at, nil
}

// events opens the stream of the events since a time. It lasts as long as ctx.
func (c *connection) events(ctx context.Context, since time.Time) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(requestTimeout, cancel) // only the head has a deadline
	path := "/events?since=" + url.QueryEscape(strconv.FormatInt(since.Unix(), 10))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v"+c.ClientVersion()+path, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(&statusError{status: answer.StatusCode}, answer.Body.Close())
	}
	if !late.Stop() && err == nil {
		err = errors.Join(context.DeadlineExceeded, answer.Body.Close())
	}
	if err != nil {
		cancel()
		return nil, unreachable(err)
	}
	return stream{answer.Body, cancel}, nil
}

// stream is the body of an answer that does not end by itself.
type stream struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close ends the request.
func (s stream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}

// readEvents passes events on until their stream ends, and closes to. The error says why it ended.
func readEvents(ctx context.Context, from io.Reader, to chan<- event) error {
	defer close(to)
	d := json.NewDecoder(from)
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("the engine's events ended: %w", err)
		}
		var e event
		e.flaw = json.Unmarshal(raw, &e)
		select {
		case to <- e:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// queue takes events at once and passes them on in their order: an engine loses the events of a listener that is far behind.
// One that waits already says all that another one of the same object would.
func queue(from <-chan event, to chan<- event) {
	defer close(to)
	var waiting []event
	for from != nil || len(waiting) > 0 {
		var next event
		out := to
		if len(waiting) == 0 {
			out = nil
		} else {
			next = waiting[0]
		}
		select {
		case e, ok := <-from:
			if !ok {
				from = nil
			} else if !slices.Contains(waiting, e) {
				waiting = append(waiting, e)
			}
		case out <- next:
			waiting = waiting[1:]
		}
	}
}
