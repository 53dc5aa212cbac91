package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"vmctl/providers"
)

// inFlight is the number of requests to an engine at a time.
const inFlight = 8

// connection speaks the API of one engine.
type connection struct {
	*client.Client

	http   *http.Client
	mu     sync.Mutex
	up     bool      // its version was asked for
	asking *question // whose answer is not there yet; nil: there is none

	way       sync.Mutex
	undialled error // of the last attempt to connect
}

// newConnection returns the connection to an engine that dial leads to. It does not dial yet. name is the
// engine in errors.
func newConnection(name string, dial func(context.Context) (net.Conn, error)) (*connection, error) {
	n := &connection{}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := dial(ctx)
		n.dialled(err)
		return c, err
	}
	t := &http.Transport{
		DialContext:         connect,
		MaxIdleConnsPerHost: inFlight, MaxConnsPerHost: inFlight, DisableCompression: true, IdleConnTimeout: time.Minute,
	}
	h := &http.Client{Transport: t, CheckRedirect: client.CheckRedirect}
	c, err := client.New(client.WithHTTPClient(h), client.WithHost("unix:///"+name), client.WithDialContext(connect))
	if err != nil {
		return nil, fmt.Errorf("speak to the engine: %w", err)
	}
	n.Client, n.http = c, h
	return n, nil
}

// dialled notes how an attempt to connect ended; nil: well.
func (c *connection) dialled(err error) {
	c.way.Lock()
	defer c.way.Unlock()
	c.undialled = err
}

// notDialled returns why the last attempt to connect failed; nil: it did not.
func (c *connection) notDialled() error {
	c.way.Lock()
	defer c.way.Unlock()
	return c.undialled
}

// question is the question for the version of an engine. Its answer goes to all who wait for it.
type question struct {
	over chan struct{} // closed once there is an answer
	err  error         // nil: the engine answered
	cut  bool          // whoever asked has given up
}

// ready asks the engine for its version, once. A hang is no answer, and all who wait for it get that answer together.
func (c *connection) ready(ctx context.Context) error {
	for {
		q, mine := c.question()
		switch {
		case q == nil:
			return nil
		case mine:
			return c.askVersion(ctx, q)
		}
		select {
		case <-ctx.Done():
			return noAnswer(ctx.Err())
		case <-q.over:
			if !q.cut {
				return q.err
			}
		}
	}
}

// question returns the question that waits for its answer, and whether the caller has to ask it. nil: the engine answered before.
func (c *connection) question() (q *question, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up {
		return nil, false
	}
	if mine = c.asking == nil; mine {
		c.asking = &question{over: make(chan struct{})}
	}
	return c.asking, mine
}

// askVersion asks a question, and gives the answer to all who wait for it.
func (c *connection) askVersion(ctx context.Context, q *question) error {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.up, c.asking = q.err == nil, nil
		close(q.over)
	}()
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c.dialled(nil)
	if _, err := c.Ping(limited, client.PingOptions{NegotiateAPIVersion: true, ForceNegotiate: true}); err != nil {
		q.err, q.cut = unreachable(err), ctx.Err() != nil
		if why := c.notDialled(); why != nil { // the client tells the name that it has for the engine, and no reason
			q.err = noAnswer(why)
		}
	}
	return q.err
}

// unreachable returns the problem of a request to which an engine gives no answer.
func unreachable(err error) error {
	var of *url.Error // it names a host that only this connection knows
	if errors.As(err, &of) {
		err = of.Err
	}
	return noAnswer(err)
}

// noAnswer returns the problem of an engine that gives no answer.
func noAnswer(err error) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "engine_unreachable",
		Next: providers.Say("see whether the engine runs, and whether its socket is the one in `host`"),
		Err:  fmt.Errorf("the engine gives no answer: %w", err),
	}
}

// close ends the idle connections.
func (c *connection) close() { c.http.CloseIdleConnections() }

// statusError is an answer of the engine that is no success.
type statusError struct {
	status  int
	message string // "": the answer is not the engine's own
}

// Error returns the engine's message.
func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("HTTP status %d", e.status)
	}
	return e.message
}

// isAbsent reports whether the engine itself says that an object does not exist.
func isAbsent(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status == http.StatusNotFound && isNoSuch(s.message)
}

func isNoSuch(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "no such") || strings.Contains(message, "not found")
}

// answerLimit is the size of the longest answer that is read.
const answerLimit = 256 << 20

// get reads a path of the API. The client's own decoding loses a whole listing to one bad item.
func (c *connection) get(ctx context.Context, path string) ([]byte, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v"+c.ClientVersion()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, unreachable(err)
	}
	defer func() { _ = answer.Body.Close() }() //nolint:errcheck // it was read to its end, or is given up
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil {
		return nil, unreachable(fmt.Errorf("its answer was cut: %w", err))
	}
	if answer.StatusCode != http.StatusOK {
		var said struct{ Message string }
		_ = json.Unmarshal(body, &said) //nolint:errcheck // then it is not the engine's own answer
		return nil, &statusError{answer.StatusCode, said.Message}
	}
	return body, nil
}

// getInto reads an object. It fails if the answer is not one whole JSON object.
func (c *connection) getInto(ctx context.Context, path string, into any) error {
	body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '{' {
		return fmt.Errorf("the engine's answer is no object: %.60q", body)
	}
	return json.Unmarshal(body, into)
}

// getItems reads a list, item by item. null is no list.
func (c *connection) getItems(ctx context.Context, path string) ([]json.RawMessage, error) {
	body, err := c.get(ctx, path)
	if err != nil {
		return nil, err
	}
	return items(body)
}

func items(body []byte) ([]json.RawMessage, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("the engine's list cannot be read: %w", err)
	}
	if all == nil {
		return nil, errors.New("the engine gave no list")
	}
	return all, nil
}
