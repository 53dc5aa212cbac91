package fetch_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/fetch"
)

// The variables that make this test's binary download a file and end.
const (
	childURL = "VMCTL_TEST_FETCH_URL"
	childDir = "VMCTL_TEST_FETCH_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) == "" {
		os.Exit(m.Run())
	}
	os.Exit(child())
}

func child() int {
	c := &fetch.Cache{Dir: os.Getenv(childDir)}
	c.Owner.PID = os.Getpid()
	f, err := c.Get(context.Background(), fetch.Request{URL: os.Getenv(childURL), SHA256: digest(content(600))})
	if err != nil {
		fmt.Fprint(os.Stdout, err)
		return 1
	}
	fmt.Fprint(os.Stdout, f.Path)
	return 0
}

// Of several processes that want the same file one downloads it.
func TestConcurrentProcesses(t *testing.T) {
	s := serve(t, content(600))
	c := cache(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 4)
	var all sync.WaitGroup
	for i := range paths {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), childURL+"="+s.URL, childDir+"="+c.Dir)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			paths[i] = string(out)
		})
	}
	all.Wait()
	for _, path := range paths {
		if path != paths[0] || !strings.HasSuffix(path, digest(content(600))) {
			t.Errorf("paths = %q", paths)
		}
	}
	if n := len(s.asked); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}
