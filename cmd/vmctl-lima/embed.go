package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/lima-vm/lima/v2/pkg/limatmpl"
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
			http.DefaultClient = fetching() // Lima takes a page that reports an error for a template
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
	template := &limatmpl.Template{Bytes: []byte(text), Locator: filepath.Join(dir, "template.yaml")}
	var locator string
	if yaml.Unmarshal([]byte(text), &locator) == nil && locator != "" {
		var err error
		if template, err = limatmpl.Read(ctx, "", locator); err != nil {
			return "", fmt.Errorf("read the template %s: %w", locator, err)
		}
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

// fetchLimit is the time that a template of another machine may take.
const fetchLimit = 20 * time.Second

// fetching returns a client to which any answer but 200 is an error.
func fetching() *http.Client {
	return &http.Client{Transport: onlyOK{}, Timeout: fetchLimit}
}

type onlyOK struct{}

// RoundTrip sends a request, and follows where a redirect leads.
func (onlyOK) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	return nil, errors.Join(fmt.Errorf("the server answers %s", response.Status), response.Body.Close())
}
