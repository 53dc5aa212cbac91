package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
)

// Folder is a Backend in a data directory. Its lease is a lock that the kernel frees when the
// process ends. Files are 0600; the first Lock makes the folder, 0700. If state.json or its backup
// is a symbolic link, the file to which it leads is replaced, and the link stays.
type Folder struct {
	Dir string           // absolute
	Now func() time.Time // dates of locks; required by Lock
}

var _ Backend = Folder{}

// Where returns the folder.
func (f Folder) Where() string { return f.Dir }

// Path returns the path of a document's file.
func (f Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// List returns the names of all files. A folder that does not exist has none.
func (f Folder) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the data directory: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// unfitError reports that something else than a file has the name of a document.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }

func (e *unfitError) Unwrap() error { return e.cause }

// Get reads a file. It never waits, as for a pipe, and it does not take a symbolic link that leads
// to nothing for a document that does not exist.
func (f Folder) Get(ctx context.Context, name string) ([]byte, error) {
	path := f.Path(name)
	data, err := atomicfile.Read(path)
	if err == nil {
		return data, nil
	}
	info, lstatErr := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(lstatErr, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && lstatErr == nil && info.Mode()&fs.ModeSymlink == 0:
		// It was made between the two looks.
		return f.Get(ctx, name)
	case lstatErr == nil && info.IsDir():
		return nil, &unfitError{errors.New("it is a folder")}
	case errors.Is(err, atomicfile.ErrNotRegular):
		return nil, &unfitError{atomicfile.ErrNotRegular}
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New(err.Error())
	}
	return nil, &advised{err, "make that file readable, or choose another data directory with --data-dir"}
}

// Holder returns the holder of the run lock.
func (f Folder) Holder(ctx context.Context) (*Holder, error) {
	owner, held, err := lockfile.Holder(ctx, f.lockPath())
	if err != nil || !held {
		return nil, err
	}
	h := Holder(owner)
	return &h, nil
}

func (f Folder) lockPath() string { return f.Path("lock") }

// Lock takes the run lock, and removes the temporary files that killed writers left behind.
func (f Folder) Lock(ctx context.Context, o Owner) (Lease, error) {
	lock, err := f.lock(ctx, o)
	if o.FreeSpace != nil && IsFull(err) {
		if freed, failed := o.FreeSpace(); freed || failed != nil {
			if lock, err = nil, failed; err == nil {
				lock, err = f.lock(ctx, o)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := f.clean(); err != nil {
		return nil, errors.Join(withAdvice(err), lock.Release())
	}
	return &folderLease{folder: f, lock: lock, freeSpace: o.FreeSpace}, nil
}

func (f Folder) lock(ctx context.Context, o Owner) (*lockfile.Lock, error) {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", withAdvice(err))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("take the run lock: %w", err)
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{
		Path:  f.lockPath(),
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: o.Command, Since: f.Now().UTC()},
		Wait:  o.Wait,
		Waiting: func(owner lockfile.Owner) {
			if o.Waiting != nil {
				o.Waiting(Holder(owner))
			}
		},
	})
	var held *lockfile.HeldError
	if errors.As(err, &held) && ctx.Err() == nil {
		return nil, &LockedError{Where: f.Dir, Holder: Holder(held.Owner), Replaced: held.Replaced, Self: held.Self}
	}
	if err != nil {
		return nil, fmt.Errorf("take the run lock: %w", withAdvice(err))
	}
	return lock, nil
}

// clean removes the temporary files that killed writers left behind.
func (f Folder) clean() error {
	for _, name := range []string{snapshotName, backupName, digestKeyFile} {
		target, err := resolveLink(f.Path(name))
		if err != nil && name == snapshotName {
			continue // reading the snapshot reports this error
		}
		if err != nil {
			return err
		}
		if err := atomicfile.Clean(target); err != nil {
			return err
		}
	}
	return nil
}

// folderLease is a held run lock. Each write first checks that the lock still excludes others: a
// process that took the lock meanwhile has read the journal up to that moment, and would lose later
// entries.
type folderLease struct {
	folder  Folder
	lock    *lockfile.Lock
	journal *os.File // the file of the last Append; nil: none
	// freeSpace frees space on a full disk, and reports whether it did. nil: it cannot.
	freeSpace func() (bool, error)
}

// again does a write, and does it once more if the disk was full and space could be freed.
func (l *folderLease) again(write func() error) error {
	err := write()
	if l.freeSpace == nil || !IsFull(err) || errors.Is(err, ErrUncertain) {
		return err
	}
	if freed, failed := l.freeSpace(); !freed || failed != nil {
		return errors.Join(err, failed)
	}
	return write()
}

func (l *folderLease) check() error {
	err := l.lock.Check()
	var lost *lockfile.LostError
	if errors.As(err, &lost) {
		return &LostLockError{Cause: lost.Path + " was moved, removed or replaced meanwhile", Holder: Holder(lost.Owner)}
	}
	return err
}

// Put replaces a file.
func (l *folderLease) Put(name string, data []byte) error {
	return l.again(func() error { return l.put(name, data) })
}

func (l *folderLease) put(name string, data []byte) error {
	if err := l.check(); err != nil {
		return err
	}
	target, err := resolveLink(l.folder.Path(name))
	if err != nil {
		return err
	}
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Clean(target); err != nil {
			return err
		}
	}
	err = atomicfile.Write(target, data, 0o600)
	if errors.Is(err, atomicfile.ErrNotSynced) {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

// Append writes text to the end of a file, with one fsync.
func (l *folderLease) Append(name string, size int64, text []byte) error {
	return l.again(func() error { return l.append(name, size, text) })
}

func (l *folderLease) append(name string, size int64, text []byte) error {
	if err := l.check(); err != nil {
		return err
	}
	if err := l.open(name, size); err != nil {
		return err
	}
	_, err := l.journal.WriteAt(text, size)
	if err == nil {
		if err = l.journal.Sync(); err == nil {
			return nil
		}
		// What is durable after a failed fsync cannot be known any more.
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return errors.Join(err, l.undo(name, size))
}

// open opens the file for an Append, or makes it.
func (l *folderLease) open(name string, size int64) error {
	path := l.folder.Path(name)
	if l.journal != nil && l.journal.Name() == path {
		return nil
	}
	if err := l.close(); err != nil {
		return err
	}
	flag := os.O_WRONLY
	if size == 0 {
		flag |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return err
	}
	if size == 0 {
		if err := atomicfile.SyncDir(l.folder.Dir); err != nil {
			return errors.Join(err, file.Close(), os.Remove(path))
		}
	}
	l.journal = file
	return nil
}

// undo removes what a failed Append may have written. Half a line at the end is dropped by readers;
// in the middle it is not.
func (l *folderLease) undo(name string, size int64) error {
	var err error
	if size > 0 {
		err = l.journal.Truncate(size)
	} else {
		err = errors.Join(l.close(), os.Remove(l.folder.Path(name)))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return nil
}

func (l *folderLease) close() error {
	if l.journal == nil {
		return nil
	}
	err := l.journal.Close()
	l.journal = nil
	return err
}

// Rename renames a file.
func (l *folderLease) Rename(from, to string) error {
	return l.change(func() error { return os.Rename(l.folder.Path(from), l.folder.Path(to)) })
}

// Remove removes a file.
func (l *folderLease) Remove(name string) error {
	return l.change(func() error {
		err := os.Remove(l.folder.Path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// change changes the names in the folder.
func (l *folderLease) change(do func() error) error {
	if err := errors.Join(l.check(), l.close()); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(l.folder.Dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return nil
}

// Release frees the run lock.
func (l *folderLease) Release() error { return errors.Join(l.close(), l.lock.Release()) }

// resolveLink returns the file to which a symbolic link leads in the end, or path itself if it is
// no link.
func resolveLink(path string) (string, error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("follow the symbolic link %s: it leads to nothing; nothing was changed: remove it, or bring back what it led to", path)
	}
	if err != nil {
		return "", fmt.Errorf("follow the symbolic link %s: %w", path, err)
	}
	return target, nil
}

// reserveFile is the name of a file without content of use: it reserves disk space. vmctl frees
// the space when the disk is full and the user stops or destroys something, since that needs room
// for locks and a journal.
const reserveFile = "reserve"

// reserveBytes is the size of the reserved space: enough for the journal of some hundred steps and
// for the snapshot into which it is folded.
const reserveBytes = 256 << 10

// Reserve reserves the disk space if it is not reserved yet. A disk that is too full for it is no
// error.
func (f Folder) Reserve() error {
	path := filepath.Join(f.Dir, reserveFile)
	if info, err := os.Stat(path); err == nil && info.Size() >= reserveBytes {
		return nil
	}
	content := make([]byte, reserveBytes)
	// A file system may leave out zeros, or pack what repeats itself.
	if _, err := rand.NewChaCha8([32]byte{}).Read(content); err != nil {
		return fmt.Errorf("reserve room in the data directory: %w", err)
	}
	if err := errors.Join(atomicfile.Clean(path), atomicfile.Write(path, content, 0o600)); !IsFull(err) {
		return err
	}
	return atomicfile.Clean(path)
}

// FreeReserve frees the reserved space, and reports whether there was any.
func (f Folder) FreeReserve() (bool, error) {
	err := os.Remove(filepath.Join(f.Dir, reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
