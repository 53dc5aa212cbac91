package job

import "vmctl/internal/gitx"

// guestCopies is the folder of the copies of jobs in a VM, in the home of the user there. Each is in a folder of its own by the ID of its
// job: the tree that the job works in ("tree"), what remembers how that was ("repository"), what made repositories of folders of the
// tree ("repositories"), and the folder of the workspace ("of", one line), by which that knows of its copies.
const guestCopies = ".vmctl/copies"

// The programs that work on the copy of a job inside a VM, as those of guestStart.
const (
	// guestCopyBegin makes the folder of a copy, and prints it: guestCopyBegin ID TOP WORKSPACE.
	guestCopyBegin = gitx.Scrub + `
set -e
umask 077
command -v git >/dev/null || { echo 'git is not installed' >&2; exit 127; }
c=$HOME/` + guestCopies + `/$1
mkdir -p "$HOME/` + guestCopies + `"
mkdir "$c" "$c/tree"
printf '%s\n' "$3" >"$c/of"
cd "$2"
format=
[ "$(git rev-parse --show-object-format 2>/dev/null)" != sha256 ] || format=--object-format=sha256
git init -q --bare --template= $format "$c/repository"
mkdir -p "$c/repository/info"
echo '` + copyAttributes + `' >"$c/repository/info/attributes"
rules=$(git rev-parse --git-path info/exclude)
[ ! -f "$rules" ] || cat "$rules" >"$c/repository/info/exclude"
cd -P "$c"
pwd -P`

	// guestCopyObjects brings the objects on the standard input, one a line, from the workspace to a copy: guestCopyObjects ID TOP.
	guestCopyObjects = gitx.Scrub + `
set -e
cd "$2"
git pack-objects -q --stdout | git --git-dir="$HOME/` + guestCopies + `/$1/repository" index-pack --stdin >/dev/null`

	// guestCopyDisk adds files of the workspace, as they are on the disk, to the index of a copy: those on the standard input, each with
	// a zero byte after it. One that is gone is left out, and so is one behind a symbolic link: what that leads to may be ignored.
	// guestCopyDisk ID TOP.
	guestCopyDisk = gitx.Scrub + `
set -e
c=$HOME/` + guestCopies + `/$1
cd "$2"
xargs -0 sh -c '
for f do
  p=$f
  while case $p in */*) ;; *) false ;; esac; do
    p=${p%/*}
    [ ! -L "$p" ] || continue 2
  done
  if [ -L "$f" ] || [ -f "$f" ]; then printf "%s\0" "$f"; fi
done' sh >"$c/files"
git -c core.autocrlf=false -c core.fileMode=true -c core.symlinks=true -c core.bare=false -c core.protectNTFS=false -c core.protectHFS=false --git-dir="$c/repository" --work-tree="$2" \
  update-index -z --add --remove --stdin <"$c/files"
rm "$c/files"`

	// guestCopyWhere prints the folder of a copy, and then the mounts of the VM; nothing but a line end: it is gone.
	guestCopyWhere = `
c=$HOME/` + guestCopies + `/$1
if [ ! -e "$c" ] && [ ! -L "$c" ]; then echo; exit; fi
if [ -L "$c" ] || ! cd -P "$c"; then echo "$c is no folder any more: its job replaced it" >&2; exit 1; fi
pwd -P
cat /proc/self/mountinfo 2>/dev/null || :`

	// guestCopySettle makes a copy ready for git, as workCopy.settle does, and prints what made repositories of folders in it, each with a
	// zero byte after it.
	guestCopySettle = `
set -e
c=$HOME/` + guestCopies + `/$1
for d in "$c" "$c/tree" "$c/repository" "$c/repository/objects" "$c/repository/info"; do
  if [ -L "$d" ] || [ ! -d "$d" ]; then echo "$d is no folder any more: its job replaced it" >&2; exit 1; fi
done
if [ -n "$(find "$c/repository" \( -type l -o -name commondir \) -print)" ]; then
  echo "$c/repository leads elsewhere: its job made it" >&2; exit 1
fi
mkdir -p "$c/repositories"
cd "$c/tree"
find . -type d ! -perm -700 -exec chmod u+rwx {} \;
find . -type f ! -perm -400 -exec chmod u+r {} \;
find . -type p \( -name .gitignore -o -name .gitattributes \) -exec rm -f {} \;
find . -name .git -prune -exec sh -c 'mkdir -p "$1/${2%/*}" && mv "$2" "$1/$2"' sh "$c/repositories" {} \;
cd "$c/repositories"
find . -name .git -prune -print0`

	// guestCopyRemove removes a copy in which nothing is mounted.
	guestCopyRemove = `
c=$HOME/` + guestCopies + `/$1
if ! rm -rf "$c" 2>/dev/null; then
  find "$c" -type d ! -perm -700 -exec chmod u+rwx {} \;
  rm -rf "$c" || exit 1
fi
rmdir "$HOME/` + guestCopies + `" "$HOME/.vmctl" 2>/dev/null || :`

	// guestEndCopiers ends what still works on the copy of a job for a worker that is gone: it would make again what is removed.
	guestEndCopiers = `
i=0
while left=$(grep -ls "VMCTL_JOB_COPIER=$1" /proc/[0-9]*/environ); [ -n "$left" ]; do
  [ "$i" -lt 100 ] || { echo "what makes its copy does not end:" $left >&2; exit 1; }
  for p in $left; do
    p=${p#/proc/}
    kill -KILL "${p%/environ}" 2>/dev/null || :
  done
  i=$((i + 1))
  sleep 0.1
done`

	// guestStates prints a line for each of the files on the standard input, each with a zero byte after it: what a write to it changes.
	// guestStates ID TOP.
	guestStates = `
set -e
command -v stat >/dev/null || { echo 'stat is not installed' >&2; exit 127; }
cd "$2"
xargs -0 sh -c '
for f do
  stat -c "%f %s %i %y %Z" "./$f" 2>/dev/null || echo gone
done' sh`

	// guestLives prints the processes of a job, with its supervisor.
	guestLives = `
for p in $(grep -ls "VMCTL_JOB[_A-Z]*=$1" /proc/[0-9]*/environ); do
  p=${p#/proc/}
  echo "${p%/environ}"
done`
)
