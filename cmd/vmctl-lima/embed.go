package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/lima-vm/lima/v2/pkg/limatmpl"
	"github.com/lima-vm/lima/v2/pkg/plugins"
	"github.com/spf13/cobra"
)

// embedded is a template with all in it that it is based on.
type embedded struct {
	Template string `json:"template"`
}

func embedCommand() *cobra.Command {
	var templates string
	cmd := &cobra.Command{
		Use:   "embed DIR",
		Short: "Print the template that standard input has or names, with its bases and the files of its scripts in it; relative ones are in DIR",
		Args:  cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, cmd *cobra.Command, args []string) (any, error) {
			text, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			if err := useBuiltIn(templates); err != nil {
				return nil, err
			}
			http.DefaultClient = fetching()                                         // Lima takes a page that reports an error for a template
			plugins.Discover = func() ([]plugins.Plugin, error) { return nil, nil } // programs limactl-url-SCHEME
			all, err := embed(ctx, args[0], string(text))
			if err != nil {
				return nil, err
			}
			return embedded{Template: all}, nil
		}),
	}
	cmd.Flags().StringVar(&templates, "templates", "", "folder of Lima's templates, instead of the one that was installed with this program")
	return cmd
}

// embed returns a template, given as its YAML or by Lima's name for it, with its bases in it. Their relative paths
// begin in dir.
func embed(ctx context.Context, dir, text string) (string, error) {
	template, from := &limatmpl.Template{Bytes: []byte(text), Locator: filepath.Join(dir, "template.yaml")}, fromHost
	var locator string
	if yaml.Unmarshal([]byte(text), &locator) == nil && locator != "" {
		var err error
		if from, err = originOf(locator); err != nil {
			return "", fmt.Errorf("read the template: %w", err)
		}
		if template, err = limatmpl.Read(ctx, "", locator); err != nil {
			return "", fmt.Errorf("read the template %s: %w", locator, err)
		}
	}
	refs := references{seen: map[string]bool{}}
	if err := refs.check(ctx, template, from); err != nil {
		return "", fmt.Errorf("embed the bases of the template: %w", err)
	}
	if err := template.Embed(ctx, true, false); err != nil {
		return "", fmt.Errorf("embed the bases of the template: %w", err)
	}
	return string(template.Bytes), nil
}

// useBuiltIn lets Lima find its own templates in a folder, or beside this program if that is "", and none in a
// LIMA_HOME: a spec means the same on every machine.
func useBuiltIn(folder string) error {
	if folder == "" {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		folder = filepath.Join(filepath.Dir(program), "..", "share", "lima", "templates")
	}
	return os.Setenv("LIMA_TEMPLATES_PATH", folder)
}

const (
	fetchTime  = 20 * time.Second // what a template of another machine may take
	fetchBytes = 4 << 20          // Lima reads no more of a template
)

// fetching returns a client to which any answer but 200 is an error, and which asks for each page once: what was checked
// is what Lima embeds.
func fetching() *http.Client {
	return &http.Client{Transport: &pages{known: map[string]page{}}, Timeout: fetchTime}
}

// pages remembers the answers of servers.
type pages struct {
	mu    sync.Mutex
	known map[string]page
}

type page struct {
	response http.Response
	body     []byte
}

// RoundTrip returns the answer to a GET, and follows no redirect.
func (p *pages) RoundTrip(request *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := request.URL.String()
	known, ok := p.known[key]
	if !ok {
		var err error
		if known, err = get(request); err != nil {
			return nil, err
		}
		p.known[key] = known
	}
	response := known.response
	response.Header, response.Request = known.response.Header.Clone(), request
	response.Body = io.NopCloser(bytes.NewReader(known.body))
	return &response, nil
}

// get sends a request and reads the whole answer.
func get(request *http.Request) (page, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return page{}, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, fetchBytes+1))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return page{}, err
	}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		return page{}, fmt.Errorf("the server answers %s", response.Status)
	case len(body) > fetchBytes:
		return page{}, errors.New("the server answers more than 4 MiB")
	}
	return page{response: *response, body: body}, nil
}
