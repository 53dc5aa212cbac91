package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// Error reports why a download failed. Code is stable: bad_url, no_server, bad_certificate,
// not_found, refused, server_error, stalled, cut_off, bad_answer, wrong_sha256, cache, disk_full.
type Error struct {
	Code string
	Seen []string // what was observed, a line each
	Next []string // what to type or do, a line each
	Err  error

	temporary bool // it may be over at the next attempt
}

// Error returns the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// failed wraps err with the action that was attempted.
func (j *job) failed(doing string, err error) error {
	return fmt.Errorf("download %s: %s: %w", redacted(j.request.URL), doing, err)
}

func (j *job) errorf(format string, args ...any) error {
	return fmt.Errorf("download %s: "+format, append([]any{redacted(j.request.URL)}, args...)...)
}

// noAnswerError returns the *Error for a request that got no answer.
func (j *job) noAnswerError(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // the address is in the message already
	}
	e := &Error{Code: "no_server", Err: j.errorf("no answer: %w", err), temporary: true}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var other x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		e.Code, e.temporary = "bad_certificate", false
		e.Err = j.errorf("its certificate is signed by an authority that this machine does not know: %w", err)
		e.Next = []string{"if it is your organization's, make it known: SSL_CERT_FILE=ca.pem, or the system's list of authorities"}
	case errors.As(err, &invalid), errors.As(err, &other):
		e.Code, e.temporary = "bad_certificate", false
		e.Err = j.errorf("its certificate is not valid: %w", err)
		e.Next = []string{"see that the address is right, and that this machine's clock is"}
	case errors.Is(err, errStalled):
		e.Code, e.Err = "stalled", j.errorf("the server said nothing for %s", j.cache.stall())
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Err, e.temporary = j.errorf("there is no server %s", dns.Name), false
		e.Next = []string{"see that the address is right, and that this machine can look names up"}
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err = j.errorf("nothing listens there")
		e.Next = []string{"see that the address is right and the server runs"}
	}
	return e
}

// statusError returns the *Error for an answer without the file; nil: the answer brings the file.
func (j *job) statusError(r *http.Response) error {
	from := ""
	if last := r.Request.URL.Redacted(); last != redacted(j.request.URL) {
		from = " (from " + last + ", where it leads)"
	}
	e := &Error{Err: j.errorf("the server answers %s%s", r.Status, from)}
	switch code := r.StatusCode; {
	case code == http.StatusOK || code == http.StatusPartialContent || code == http.StatusNotModified ||
		code == http.StatusRequestedRangeNotSatisfiable:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		e.Code, e.Next = "not_found", []string{"see that the address is right: the server has nothing there"}
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired:
		e.Code, e.Next = "refused", []string{"see that anybody may read it: vmctl logs in nowhere"}
	case code == http.StatusTooManyRequests || code >= 500:
		e.Code, e.temporary = "server_error", true
		e.Next = []string{"it may be over in a while: try again"}
	default:
		e.Code = "bad_answer"
	}
	return e
}

// truncatedError returns the *Error for a transfer that ended before the whole file had arrived.
func (j *job) truncatedError(err error, done, total int64) error {
	at := fmt.Sprintf("after %d bytes", done)
	if total >= 0 {
		at = fmt.Sprintf("after %d of %d bytes", done, total)
	}
	e := &Error{Code: "cut_off", Err: j.errorf("the connection broke %s: %w", at, err), temporary: true}
	switch {
	case errors.Is(err, errStalled):
		e.Code, e.Err = "stalled", j.errorf("nothing arrived for %s, %s", j.cache.stall(), at)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = j.errorf("the server ended it %s", at)
	}
	return e
}

// digestError returns the *Error for a file whose digest is not the wanted one.
func (j *job) digestError(got string) error {
	return &Error{
		Code: "wrong_sha256",
		Seen: []string{"wanted sha256 " + j.request.SHA256, "found sha256 " + got},
		Next: []string{
			"see with whoever offers it what the digest is: the file was changed, or somebody else answers",
			fmt.Sprintf("if the file is right, write sha256 = %q", got),
		},
		Err: j.errorf("checksum mismatch: its sha256 is %s, not %s", got, j.request.SHA256),
	}
}

var errStalled = errors.New("nothing arrived")

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
