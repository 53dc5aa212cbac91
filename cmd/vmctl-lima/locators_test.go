package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A template from the network names nothing of this host: neither by a path or a URL, nor by a text that Lima reads in
// another way than it looks. What it names on the network, relative to its own URL or in full, is in it.
func TestTemplateOfTheNetworkNamesNoFileOfTheHost(t *testing.T) {
	templates := builtInTemplates(t)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	for name, text := range map[string]string{"secret": "the secret\n", "s.yaml": "env: {A: the secret}\n", "own.sh": "echo own\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const ofHost = "a file of this host"
	script := func(file string) string { return "provision:\n- mode: user\n  file: " + file + "\n" }
	for name, c := range map[string]struct {
		page, template string // of the network, and the user's; "": the page alone
		want, failure  string
	}{
		"relative":                {page: "base: more/common.yaml\n" + script("setup.sh"), want: "echo of the net, common"},
		"in full":                 {page: script("SERVER/setup.sh"), want: "echo of the net"},
		"Lima's own":              {page: "base: template:_default/mounts\n", want: "mounts ~"},
		"file of the user beside": {page: script("setup.sh"), template: "base: SERVER/page.yaml\n" + script("own.sh"), want: "echo of the net, echo own"},
		"absolute path":           {page: script(secret), failure: ofHost},
		"path in the home":        {page: script("~/secret"), failure: ofHost},
		"file URL":                {page: script("file://" + secret), failure: ofHost},
		"file URL as a base":      {page: "base: [{url: 'FILE://" + dir + "/s.yaml'}]\n", failure: ofHost},
		"probe":                   {page: "probes: [{script: '', file: {url: " + secret + "}}]\n", failure: ofHost},
		"path out of its folder":  {page: script("../../secret"), failure: "must not contain '..'"},
		"base of a base":          {page: "base: more/bad.yaml\n", failure: "more/bad.yaml comes from the network and names " + secret},
		"beneath the user's":      {page: script(secret), template: "base: SERVER/page.yaml\n", failure: ofHost},
		"in base64":               {page: script("!!binary " + base64.StdEncoding.EncodeToString([]byte(secret))), failure: ofHost},
		"tag":                     {page: script("!x " + secret), failure: "it has the YAML tag !x"},
		"alias":                   {page: "env: {A: &a " + secret + "}\nprovision: [{mode: user, file: *a}]\n", failure: "it has the YAML anchor &a"},
		"second document":         {page: "env: {}\n---\n" + script(secret), template: "base: SERVER/page.yaml\n", failure: "more than one YAML document"},
		"expression in a script":  {page: script("yq.sh"), template: "base: SERVER/page.yaml\n", failure: "Lima would evaluate an expression"},
		"another answer later":    {page: "base: SERVER/changing.yaml\n", want: "env first"},
		"scheme":                  {page: "base: foo:x\n", failure: `foo:x has the unknown scheme "foo:"`},
		"scheme of the user's":    {template: "base: foo:x\n", failure: `foo:x has the unknown scheme "foo:"`},
		"scheme of a script":      {template: script("foo:x"), failure: `foo:x has the unknown scheme "foo:"`},
		"scheme of the template":  {template: "foo:x", failure: `foo:x has the unknown scheme "foo:"`},
		"file of the user":        {template: "base: " + dir + "/s.yaml\n" + script("~/own.sh"), want: "echo own, the secret"},
	} {
		t.Run(name, func(t *testing.T) {
			server := pagesOf(t, map[string]string{
				"/page.yaml": c.page, "/setup.sh": "echo of the net\n", "/more/common.yaml": "env: {B: common}\n", "/more/bad.yaml": script(secret),
				"/yq.sh": `echo \\(.provision[0].file = "` + secret + `")` + "\n",
			}, script(secret))
			h := newHome(t)
			ran := filepath.Join(t.TempDir(), "ran")
			bin := filepath.Dir(ran)
			if err := os.WriteFile(filepath.Join(bin, "limactl-url-foo"), []byte("#!/bin/sh\n: >"+ran+"\necho "+secret+"\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			h.env = append(h.env, "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH"))
			template := c.template
			if template == "" {
				template = "SERVER/page.yaml"
			}
			got, failed := h.try(strings.ReplaceAll(template, "SERVER", server), "embed", "--templates="+templates, dir)
			contains(t, failed, c.failure)
			if c.failure == "" {
				text, _ := got["template"].(string)
				if described := describe(t, text); !inOrder(described, c.want) || failed != "" {
					t.Errorf("template %s, want %s; failed: %s", described, c.want, failed)
				}
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("limactl-url-foo was run")
			}
		})
	}
}

// pagesOf returns the URL of a server with some pages, and one whose text becomes another one after the first request.
func pagesOf(t *testing.T, pages map[string]string, later string) string {
	t.Helper()
	var server *httptest.Server
	var asked atomic.Int32
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := pages[r.URL.Path]
		if r.URL.Path == "/changing.yaml" {
			if text, found = "env: {A: first}\n", true; asked.Add(1) > 1 {
				text = later
			}
		}
		if !found {
			http.NotFound(w, r)
			return
		}
		if _, err := w.Write([]byte(strings.ReplaceAll(text, "SERVER", server.URL))); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
