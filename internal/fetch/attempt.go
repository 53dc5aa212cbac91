package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
)

// source identifies a version of a file: its address, its digest if known, and the
// ETag, date and size that the server gave.
type source struct {
	URL          string `json:"url"`
	SHA256       string `json:"sha256,omitempty"` // of the whole file, where that is known
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	Total        int64  `json:"total"` // bytes; -1: the server did not say
}

// validator returns the value by which the server can tell whether its file is
// unchanged: a strong ETag, else the date. "": the server gave neither.
func (s source) validator() string {
	if s.ETag != "" && !strings.HasPrefix(s.ETag, "W/") {
		return s.ETag
	}
	return s.LastModified
}

// attempt makes one request, and continues the part that an earlier one left.
func (j *job) attempt(ctx context.Context, have File) (File, error) {
	began, done := j.resumablePart()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.request.URL, nil)
	if err != nil {
		return File{}, &Error{Code: "bad_url", Err: j.errorf("%w", err)}
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "vmctl")
	switch {
	case done > 0:
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", done))
		if v := began.validator(); v != "" {
			request.Header.Set("If-Range", v)
		}
	case have.Path != "":
		j.askForNewer(request, have)
	}
	return j.transfer(request, have, began, done)
}

// resumablePart returns the source and the size in bytes of a part that can be continued; 0:
// there is none. A part with neither a validator nor a wanted digest cannot be
// continued: nobody could tell whether both halves belong to one file.
func (j *job) resumablePart() (source, int64) {
	var s source
	text, err := atomicfile.Read(j.path(sourceName))
	if err != nil || json.Unmarshal(text, &s) != nil || s.URL != j.request.URL || s.validator() == "" && j.request.SHA256 == "" {
		return source{}, 0
	}
	info, err := os.Stat(j.path(partName))
	if err != nil || s.Total >= 0 && info.Size() > s.Total {
		return source{}, 0
	}
	return s, info.Size()
}

// askForNewer makes the server send its file only if that differs from the cached
// one.
func (j *job) askForNewer(r *http.Request, have File) {
	var s source
	text, err := atomicfile.Read(j.path(originName))
	if err != nil || json.Unmarshal(text, &s) != nil || s.URL != j.request.URL || s.SHA256 != have.SHA256 {
		return
	}
	if s.ETag != "" {
		r.Header.Set("If-None-Match", s.ETag)
	}
	if s.LastModified != "" {
		r.Header.Set("If-Modified-Since", s.LastModified)
	}
}

func (j *job) transfer(request *http.Request, have File, began source, done int64) (File, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	defer cancel(nil)
	watchdog := time.AfterFunc(j.cache.stall(), func() { cancel(errStalled) })
	defer watchdog.Stop()

	client, closeIdle := client()
	defer closeIdle()
	answer, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return File{}, j.noAnswerError(orCause(ctx, err))
	}
	defer closeQuietly(answer.Body)
	if err := j.statusError(answer); err != nil {
		return File{}, err
	}
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return File{}, &Error{Code: "bad_answer", Err: j.errorf("the server packs it (%s), though it was asked not to", encoding)}
	}
	part := partialFile{from: source{
		URL: j.request.URL, ETag: answer.Header.Get("ETag"), LastModified: answer.Header.Get("Last-Modified"), Total: answer.ContentLength,
	}}
	switch answer.StatusCode {
	case http.StatusNotModified:
		if have.Path == "" {
			return File{}, &Error{Code: "bad_answer", Err: j.errorf("the server answers %s to somebody who has nothing", answer.Status)}
		}
		j.say("the server still has the file that is in the cache: %s", have.Path)
		return have, nil
	case http.StatusPartialContent:
		if part.from.Total, err = j.continues(answer, began, done); err != nil {
			return File{}, err
		}
		part.done = done
		j.say("going on after %d bytes", done)
	case http.StatusRequestedRangeNotSatisfiable:
		return File{}, j.restart("the server has no more of it than the %d bytes that are there", done)
	default:
		if done > 0 {
			j.say("the server has another file by now, or cannot go on: starting anew")
		}
	}
	return j.receive(ctx, part, func(b []byte) (int, error) {
		n, err := answer.Body.Read(b)
		if n > 0 {
			watchdog.Reset(j.cache.stall())
		}
		return n, orCause(ctx, err)
	})
}

// orCause returns the cause of the end of ctx if ctx has ended and err is a failure,
// else err. io.EOF is no failure.
func orCause(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// restart removes the part, and returns an error after which the next attempt downloads the file
// from its beginning.
func (j *job) restart(format string, args ...any) error {
	if err := j.removePart(); err != nil {
		return j.localError(err)
	}
	return &Error{Code: "bad_answer", Err: j.errorf(format+": starting anew", args...), temporary: true}
}

// continues checks that an answer continues the part at its end, and with the same
// file, and returns the size of the file in bytes.
func (j *job) continues(answer *http.Response, began source, done int64) (total int64, err error) {
	said := answer.Header.Get("Content-Range")
	span, size, _ := strings.Cut(strings.TrimPrefix(said, "bytes "), "/")
	first, last, _ := strings.Cut(span, "-")
	from, fromErr := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(last, 10, 64)
	total, totalErr := strconv.ParseInt(size, 10, 64)
	if totalErr != nil {
		total, totalErr = -1, nil
		if size != "*" {
			totalErr = errors.New(size)
		}
	}
	if err := errors.Join(fromErr, toErr, totalErr); err != nil || from != done || done == 0 || total >= 0 && to != total-1 {
		return 0, j.restart("the server was asked for bytes %d-, and answers with %q", done, said)
	}
	if total < 0 {
		total = to + 1
	}
	if began.Total >= 0 && total != began.Total {
		return 0, j.restart("it had %d bytes, and has %d now", began.Total, total)
	}
	if v := began.validator(); v != "" && (source{ETag: answer.Header.Get("ETag"), LastModified: answer.Header.Get("Last-Modified")}).differs(began) {
		return 0, j.restart("the server goes on with another file than it began with")
	}
	return total, nil
}

// differs reports whether the server gave two files different ETags or different
// dates. A missing ETag or date is no difference.
func (s source) differs(other source) bool {
	return s.ETag != "" && other.ETag != "" && s.ETag != other.ETag ||
		s.LastModified != "" && other.LastModified != "" && s.LastModified != other.LastModified
}

// partialFile is a file of which a part has arrived.
type partialFile struct {
	from source
	done int64 // bytes in the part
}

type readFunc func([]byte) (int, error)

func (r readFunc) Read(b []byte) (int, error) { return r(b) }

// receive appends the body to the part. It makes the part a file of the cache once the
// part is complete and has the wanted digest.
func (j *job) receive(ctx context.Context, a partialFile, body readFunc) (File, error) {
	resumed := a.done > 0
	file, sum, err := j.open(&a)
	if err != nil {
		return File{}, j.localError(err)
	}
	done, err := j.copy(ctx, io.MultiWriter(file, sum), body, a)
	// The part is worth keeping even if the rest does not arrive.
	closed := errors.Join(file.Sync(), file.Close())
	if err != nil {
		return File{}, err
	}
	if closed != nil {
		return File{}, j.localError(closed)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if want := strings.ToLower(j.request.SHA256); want != "" && got != want {
		if resumed {
			return File{}, j.restart("what was there and what came do not make the file that is wanted")
		}
		return File{}, errors.Join(j.digestError(got), j.removePart())
	}
	f := File{Path: j.path(wholeStem + got), SHA256: got, Size: done}
	if err := j.publish(a.from, f); err != nil {
		return File{}, j.localError(err)
	}
	return f, nil
}

// open opens the part at its end, and hashes its content.
func (j *job) open(a *partialFile) (*os.File, hash.Hash, error) {
	sum := sha256.New()
	flags := os.O_RDWR | os.O_CREATE
	if a.done == 0 {
		if err := remove(j.path(partName)); err != nil {
			return nil, nil, err
		}
		text, err := json.Marshal(a.from)
		if err != nil {
			return nil, nil, err
		}
		// The source is on disk before the first byte of the part.
		if err := atomicfile.Write(j.path(sourceName), text, 0o600); err != nil {
			return nil, nil, err
		}
	}
	file, err := os.OpenFile(j.path(partName), flags, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.CopyN(sum, file, a.done); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, sum, nil
}

// copy copies the body to its end, reports the progress, and returns the size of the
// part in bytes.
func (j *job) copy(ctx context.Context, to io.Writer, body readFunc, a partialFile) (done int64, err error) {
	done = a.done
	step := max(a.from.Total/20, 1)
	if a.from.Total < 0 {
		step = 16 << 20
	}
	told := done
	buffer := make([]byte, 256<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return done, j.localError(err)
			}
			done += int64(n)
			if done-told >= step || done == a.from.Total {
				told = done
				j.request.Watch(Progress{Done: done, Total: a.from.Total})
			}
		}
		switch {
		case errors.Is(err, io.EOF) && (a.from.Total < 0 || done == a.from.Total):
			return done, nil
		case errors.Is(err, io.EOF):
			return done, j.truncatedError(io.ErrUnexpectedEOF, done, a.from.Total)
		case err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStalled):
			return done, context.Cause(ctx)
		case err != nil:
			return done, j.truncatedError(err, done, a.from.Total)
		}
	}
}

// publish writes the origin of a file first, and then puts the file in place. If it is
// cut short in between, the file is only downloaded again.
func (j *job) publish(from source, f File) error {
	from.SHA256, from.Total = f.SHA256, f.Size
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(j.path(originName), text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(j.path(partName), f.Path); err != nil {
		return err
	}
	return errors.Join(j.removeWholeFiles(filepath.Base(f.Path)), remove(j.path(sourceName)), atomicfile.SyncDir(j.folder))
}

func closeQuietly(c io.Closer) {
	_ = c.Close() //nolint:errcheck // it was only read
}
