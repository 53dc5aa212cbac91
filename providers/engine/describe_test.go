package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
)

// facts returns what an engine tells of its only object, in words.
func facts(t *testing.T, f *fake) string {
	t.Helper()
	p := f.open()
	describer, is := providers.Ability[providers.Describer](p)
	if !is {
		t.Fatal("it tells nothing")
	}
	all := describer.Describe(t.Context(), []providers.Object{only(t, p)})
	if len(all) != 1 {
		t.Fatalf("of one object it tells %d times", len(all))
	}
	if all[0] == nil {
		return "nothing"
	}
	size := "unknown"
	if all[0].Size != nil {
		size = fmt.Sprint(*all[0].Size)
	}
	o := *all[0]
	o.Size = nil
	return strings.ReplaceAll(fmt.Sprintf("%+v", o), "Size:<nil>", "Size:"+size)
}

// What an engine tells of an object is read part by part: garbage in one leaves the others.
func TestDescribe(t *testing.T) {
	const path = "GET /containers/" + cid + "/json"
	for _, test := range []struct {
		name   string
		answer answer
		want   string
	}{
		{
			"a container",
			answer{body: `{"Id":"` + cid + `","Name":"/theirs","Image":"sha256:1","Path":"sleep","Args":["pass"],"Created":"2026-01-02T03:04:05.5+01:00",
			"Platform":"linux","SizeRw":12,"State":{"StartedAt":"2026-01-02T03:05:00Z","FinishedAt":"0001-01-01T00:00:00Z"},
			"Config":{"Image":"box:1","Labels":{"a":"b"},"Env":["X=secret"]},"NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"8080"}],"9/udp":null}}}`},
			"{Names:[theirs] Image:box:1 Path:sleep Ports:[127.0.0.1:8080/tcp] Created:2026-01-02T02:04:05Z Started:2026-01-02T03:05:00Z Ended: Digests:[] Platform:linux Size:12 Labels:map[a:b]}",
		},
		{
			"garbage in parts",
			answer{body: `{"Name":7,"Path":"sleep","Created":"soon","SizeRw":"x","State":[],"Config":null,"NetworkSettings":{"Ports":1}}`},
			"{Names:[] Image: Path:sleep Ports:[] Created: Started: Ended: Digests:[] Platform: Size:unknown Labels:map[]}",
		},
		{"garbage", answer{body: `[1]`}, "nothing"},
		{"nothing", answer{body: `null`}, "nothing"},
		{"a part of an answer", answer{body: `{"Name":`, cut: true}, "nothing"},
		{"it is gone", answer{status: http.StatusNotFound, body: `{"message":"No such container"}`}, "nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("theirs", "exited", nil)
			f.set(path, test.answer)
			if diff := cmp.Diff(test.want, facts(t, f)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// The objects of each other kind.
func TestDescribeOtherKinds(t *testing.T) {
	id := "sha256:" + strings.Repeat("a", 64)
	for _, test := range []struct{ name, list, items, path, answer, want string }{
		{
			"an image", "GET /images/json", `[{"Id":"` + id + `","RepoTags":["box:1"]}]`, "GET /images/" + id + "/json",
			`{"Id":"` + id + `","RepoTags":["box:1","box:2"],"RepoDigests":["box@sha256:3"],"Created":"2026-01-02T03:04:05Z","Os":"linux","Architecture":"arm","Variant":"v7","Size":5,"Config":{"Labels":{"l":"1"}}}`,
			"{Names:[box:1 box:2] Image:" + id + " Path: Ports:[] Created:2026-01-02T03:04:05Z Started: Ended: Digests:[box@sha256:3] Platform:linux/arm/v7 Size:5 Labels:map[l:1]}",
		},
		{
			"a volume", "GET /volumes", `{"Volumes":[{"Name":"data","Driver":"local"}]}`, "GET /volumes/data",
			`{"Name":"data","Mountpoint":"/d/volumes/data","CreatedAt":"2026-01-02T03:04:05Z","Labels":null}`,
			"{Names:[data] Image: Path:/d/volumes/data Ports:[] Created:2026-01-02T03:04:05Z Started: Ended: Digests:[] Platform: Size:unknown Labels:map[]}",
		},
		{
			"a network", "GET /networks", `[{"Id":"n1","Name":"back","Driver":"bridge"}]`, "GET /networks/back",
			`{"Name":"back","Created":"2026-01-02T03:04:05Z","Labels":{"x":"y"}}`,
			"{Names:[back] Image: Path: Ports:[] Created:2026-01-02T03:04:05Z Started: Ended: Digests:[] Platform: Size:unknown Labels:map[x:y]}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.set(test.list, answer{body: test.items})
			f.set(test.path, answer{body: test.answer})
			if diff := cmp.Diff(test.want, facts(t, f)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}
