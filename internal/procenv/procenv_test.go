package procenv_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/procenv"
)

func TestWithoutProxies(t *testing.T) {
	environ := []string{
		"A=1", "http_proxy=a", "HTTP_PROXY=a", "https_proxy=a", "HTTPS_PROXY=a", "No_Proxy=a", "all_proxy=a", "FTP_PROXY=a", "MY_HTTP_PROXY=b", "EMPTY=", "odd",
	}
	want := []string{"A=1", "MY_HTTP_PROXY=b", "EMPTY=", "odd"}
	if diff := cmp.Diff(want, procenv.WithoutProxies(environ)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if environ[1] != "http_proxy=a" {
		t.Errorf("the environment itself is %q now", environ)
	}
}

func TestNamed(t *testing.T) {
	environ := []string{"LANG=C", "LANGUAGE=de", "ANTHROPIC_MODEL=m", "ANTHROPIC_API_KEY=k", "anthropic_x=1", "OTHER=1", "VMCTL_DATA_DIR=d", "VMCTL_VAR_key=secret"}
	for name, c := range map[string]struct{ names, want []string }{
		"a name is that alone":                  {[]string{"LANG"}, []string{"LANG=C"}},
		"a prefix is all":                       {[]string{"ANTHROPIC_*", "NONE"}, []string{"ANTHROPIC_MODEL=m", "ANTHROPIC_API_KEY=k"}},
		"no prefix is nothing":                  {[]string{"*"}, nil},
		"a star inside is no star":              {[]string{"ANTHROPIC_*_KEY"}, nil},
		"none":                                  {nil, nil},
		"a variable of a spec is in no pattern": {[]string{"VMCTL_*", "VMCTL_VAR_*", "VMCTL_VAR_ke*", "V*"}, []string{"VMCTL_DATA_DIR=d"}},
		"a variable of a spec has its own name": {[]string{"VMCTL_VAR_key"}, []string{"VMCTL_VAR_key=secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, procenv.Named(environ, c.names)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
