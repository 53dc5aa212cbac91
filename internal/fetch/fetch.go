// Package fetch downloads files over HTTP into a cache that holds only whole files. An interrupted
// download is resumed, unless the file has changed meanwhile. Every file is hashed. If several
// processes want the same file, one of them downloads it and the others wait.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/lockfile"
)

// Cache is a folder with one subfolder for each download. Its methods may be called from several
// goroutines and processes.
type Cache struct {
	Dir   string         // made on first use, 0700
	Owner lockfile.Owner // this process, for others that wait
	// Stall ends an attempt during which nothing arrives; 0: a minute.
	Stall time.Duration
	// Sleep waits between two attempts; nil: clock.Sleep.
	Sleep func(context.Context, time.Duration) error

	mu   sync.Mutex
	turn map[string]chan struct{} // of this process, by folder: full while one is at work
}

// Request describes one download.
type Request struct {
	URL    string // http or https
	SHA256 string // hex; "": whatever the server has now
	// Watch is called whenever another twentieth of the file has arrived, or 16 MiB
	// of one whose size is unknown, and at the turns of a download. It may be nil,
	// and never blocks for long.
	Watch func(Progress)
}

// Progress reports the bytes of a download that have arrived, or an event.
type Progress struct {
	Done, Total int64  // bytes; Total is -1 while it is unknown
	Note        string // the event, in words; "": bytes arrived
}

// File is a file of the cache. It stays as it is until somebody removes it.
type File struct {
	Path   string
	SHA256 string // hex
	Size   int64  // bytes
}

// The names in the folder of one download.
const (
	partName   = "part"          // the bytes that have arrived
	sourceName = "part.json"     // the source of the part
	wholeStem  = "sha256-"       // the whole file, named by its digest
	originName = "origin.json"   // the source of the whole file
	lockName   = "lock"          //
	digestSize = sha256.Size * 2 // hex
)

// Get returns the file at an address. It returns a cached file without a download if r
// names its digest, if the server says that the file is unchanged, or if the server
// cannot be asked.
//
// Its error is an *Error, or that of an ended ctx. Get keeps the bytes that have arrived
// for the next Get, unless the disk is full or they are not the wanted file.
func (c *Cache) Get(ctx context.Context, r Request) (File, error) {
	at, err := url.Parse(r.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return File{}, &Error{
			Code: "bad_url", Err: fmt.Errorf("download %s: not an http or https address", redacted(r.URL)),
		}
	}
	if r.Watch == nil {
		r.Watch = func(Progress) {}
	}
	j := &job{cache: c, request: r, folder: filepath.Join(c.Dir, keyOf(r))}
	if err := os.MkdirAll(j.folder, 0o700); err != nil {
		return File{}, j.localError(err)
	}
	unlock, err := j.lock(ctx)
	if err != nil {
		return File{}, err
	}
	f, err := j.get(ctx)
	if free := unlock(); free != nil {
		err = errors.Join(err, free)
	}
	return f, err
}

// keyOf names the folder of a download. Requests with different digests have different
// folders, whatever the server has.
func keyOf(r Request) string {
	sum := sha256.Sum256([]byte(r.URL + "\n" + strings.ToLower(r.SHA256)))
	return hex.EncodeToString(sum[:16])
}

// job is one call of Get.
type job struct {
	cache   *Cache
	request Request
	folder  string
}

func (j *job) path(name string) string { return filepath.Join(j.folder, name) }

func (j *job) say(format string, args ...any) {
	j.request.Watch(Progress{Total: -1, Note: fmt.Sprintf(format, args...)})
}

// cachedFile returns the file that is in the cache; its Path is "" if there is none. A
// killed process may leave two. Either will do: the server is asked.
func (j *job) cachedFile() (File, error) {
	all, err := j.wholeFiles()
	if err != nil || len(all) == 0 {
		return File{}, err
	}
	path := j.path(all[0])
	info, err := os.Stat(path)
	if err != nil {
		return File{}, j.localError(err)
	}
	return File{Path: path, SHA256: strings.TrimPrefix(all[0], wholeStem), Size: info.Size()}, nil
}

// wholeFiles lists the whole files of the folder. There is one at most, unless a process
// was killed.
func (j *job) wholeFiles() ([]string, error) {
	entries, err := os.ReadDir(j.folder)
	if err != nil {
		return nil, j.localError(err)
	}
	var all []string
	for _, e := range entries {
		if digest, ok := strings.CutPrefix(e.Name(), wholeStem); ok && len(digest) == digestSize && e.Type().IsRegular() {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

// removeWholeFiles removes the whole files but one.
func (j *job) removeWholeFiles(keep string) error {
	all, err := j.wholeFiles()
	for _, name := range all {
		if name != keep {
			err = errors.Join(err, remove(j.path(name)))
		}
	}
	return err
}

// removePart removes the part and its source.
func (j *job) removePart() error {
	return errors.Join(remove(j.path(partName)), remove(j.path(sourceName)))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// attempts is the greatest number of attempts in one Get.
const attempts = 4

func (j *job) get(ctx context.Context) (File, error) {
	have, err := j.cachedFile()
	if err != nil {
		return File{}, err
	}
	if have.Path != "" && j.request.SHA256 != "" {
		j.request.Watch(Progress{Done: have.Size, Total: have.Size, Note: "it is in the cache: " + have.Path})
		return have, nil
	}
	for n := 1; ; n++ {
		f, err := j.attempt(ctx, have)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return File{}, context.Cause(ctx)
		}
		var failed *Error
		if !errors.As(err, &failed) || !failed.temporary {
			return File{}, err
		}
		if have.Path != "" {
			j.say("%v: using the copy of it in the cache, %s", failed, have.Path)
			return have, nil
		}
		if n == attempts {
			return File{}, j.withPartSize(failed)
		}
		j.say("%v: trying again", failed)
		if err := j.cache.sleep(ctx, time.Duration(n)*time.Second); err != nil {
			return File{}, err
		}
	}
}

// withPartSize adds the size of the part to the advice of the error of a failed download.
func (j *job) withPartSize(e *Error) error {
	if info, err := os.Stat(j.path(partName)); err == nil && info.Size() > 0 {
		e.Next = append(e.Next, fmt.Sprintf("try again: it goes on after the %d bytes that are there", info.Size()))
	}
	return e
}

func (c *Cache) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

func (c *Cache) stall() time.Duration {
	if c.Stall > 0 {
		return c.Stall
	}
	return time.Minute
}

// client follows redirects, but not from https to http.
func client() (*http.Client, func()) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true}
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) >= 10 {
				return errors.New("it leads from one address to the next, ten times over")
			}
			if next.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
				return fmt.Errorf("it leads from https to %s, which anybody in between can change", next.URL.Redacted())
			}
			return nil
		},
	}, transport.CloseIdleConnections
}

// redacted returns an address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Sprintf("%q", address)
	}
	return u.Redacted()
}
