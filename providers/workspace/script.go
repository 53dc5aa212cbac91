package workspace

import "vmctl/internal/gitx"

// home is the folder with all workspaces of one place, in the home of the user there: a folder of its own for each,
// by its ID, with its record ("mark", one line) and, in a VM, its git directory ("git"). It lies outside of the folder
// in which the branch is checked out.
const home = ".vmctl/workspaces"

// The reasons why a workspace is only half there whose branches are as they were.
const (
	folderGone = "its folder is gone"
	folderHalf = "its folder was not completed"
	partlyBack = "its saved work is not all back"
)

// The programs that work on workspaces, as arguments of a POSIX shell in the home of the user there.
const (
	// list prints, for each workspace: its record (W), its folder (N), where its files are without symbolic links (V) and the mounts
	// that may be in there (M) if there are any, how its hooks ended (K) and the save that is to be brought back into it (B); then, unless it is only half there (P), the commit that is
	// checked out (H), the tips of its branches, tags and stash (R), what git status has to say (D), and what git status
	// leaves out: changes of files with a mark that hides them (F), repositories inside (I), and operations of git that are
	// not completed (O). X is what could not be read. C is the job of a copy of it, which has what that job changed.
	list = gitx.Scrub + hidden + `
[ -d ` + home + ` ] || { [ ! -e ` + home + ` ]; exit; }
cd ` + home + ` || { [ ! -e ` + home + ` ]; exit; } # the last workspace was removed meanwhile
here=$PWD
for d in */; do
  d=${d%/}
  cd "$here" || { [ ! -e "$here" ]; exit; }
  [ -f "$d/mark" ] || continue
  { IFS= read -r line; IFS= read -r path; IFS= read -r tree; } <"$d/mark" || { [ -e "$d/mark" ] || continue; exit 1; }
  printf 'W %s\nN %s\n' "$line" "$d"
  if at=$(cd -P "$path" 2>/dev/null && pwd -P) && text=$(grep -F -e " $at/" -e " $at " /proc/self/mountinfo 2>/dev/null); then
    printf '%s\n' "$at" | sed 's/^/V /'
    printf '%s\n' "$text" | sed 's/^/M /'
  fi
  if [ -f "$d/hooks" ] && IFS= read -r line <"$d/hooks"; then
    printf 'K %s\n' "$line"
  fi
  if [ -f "$d/restoring" ] && IFS= read -r line <"$d/restoring"; then
    printf 'B %s\n' "$line"
    echo 'P ` + partlyBack + `'
  fi
  for c in ../copies/*/of; do
    [ ! -f "$c" ] || [ "$(cat "$c")" != "$path" ] || { c=${c%/of}; printf 'C %s\n' "${c##*/}"; }
  done
  if [ -e "$d/ends" ]; then echo 'P its removal was cut short'; continue; fi
  if [ ! -e "$d/made" ]; then echo 'P it was not completed'; continue; fi
  if ! command -v git >/dev/null; then echo 'X git is not installed'; continue; fi
  if [ "$tree" = shared ]; then set -- -C "$path"; else set -- --git-dir="$here/$d/git" --work-tree="$path"; fi
  set -- -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotePath=true "$@"
  [ ! -e "$d/mends" ] || echo 'P ` + folderHalf + `'
  if [ ! -d "$path" ]; then
    echo 'P ` + folderGone + `'
    [ "$tree" = shared ] && continue
    set -- --git-dir="$here/$d/git"
  elif text=$(git "$@" status --porcelain=v2 --untracked-files=normal --ignore-submodules=none 2>&1); then
    [ -z "$text" ] || printf '%s\n' "$text" | sed 's/^/D /'
    hidden "$@" || echo 'X the files that git status leaves out'
  else
    printf '%s\n' "$text" | sed 's/^/X /'
  fi
  if text=$(git "$@" rev-parse --verify -q HEAD); then echo "H $text"; fi
  [ "$tree" = shared ] && continue
  if text=$(git "$@" for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags refs/stash refs/notes refs/vmctl/host 2>&1); then
    [ -z "$text" ] || printf '%s\n' "$text" | sed 's/^/R /'
  else
    printf '%s\n' "$text" | sed 's/^/X /'
  fi
  if text=$(git "$@" reflog show --format=%H refs/stash -- 2>/dev/null); then
    [ -z "$text" ] || printf '%s\n' "$text" | sed 's/^/S /'
  fi
done`
	// begin makes the folder of a workspace, with its record from the standard input: begin ID PATH SAVE. A removal that was cut
	// short is taken back: what it left of a whole git directory stays. "mends" says that files may be missing until checkOut
	// has ended, "restoring" that SAVE, unless it is empty, is to be brought back.
	begin = gitx.Scrub + `
set -e
umask 077
d=` + home + `/$1
if [ ! -f "$d/mark" ] && [ -d "$2" ] && [ -n "$(ls -A "$2")" ]; then echo "$2 exists and is not empty" >&2; exit 3; fi
if [ -e "$2" ] && [ ! -d "$2" ]; then echo "$2 exists and is no folder" >&2; exit 3; fi
command -v git >/dev/null || { echo 'git is not installed' >&2; exit 127; }
n=0
until mkdir -p "$d" 2>/dev/null; do # each removal of another workspace may take the empty folder of all away once
  n=$((n + 1))
  [ "$n" -lt 100 ] || exec mkdir -p "$d"
done
if [ -e "$d/made" ] && [ -d "$d/git" ]; then
  if [ -e "$d/ends" ] || [ ! -d "$2" ]; then : >"$d/mends"; fi
elif [ -e "$d/ends" ]; then
  if [ -d "$2" ] && [ -n "$(ls -A "$2")" ]; then echo "$2 exists and is not empty" >&2; exit 3; fi
  rm -rf "$d/git" "$d/gone" "$d/made"
fi
rm -f "$d/ends" "$d/hooks"
[ -z "$3" ] || echo "$3" >"$d/restoring"
cat >"$d/.mark"
mv "$d/.mark" "$d/mark"`
	// receive makes the git directory of a workspace, and adds the pack on the standard input to it: receive ID PATH.
	receive = gitx.Scrub + `
set -e
d=$PWD/` + home + `/$1
rm -f "$d/git/index.lock"
umask 022
mkdir -p "$2"
git init -q --template= --separate-git-dir="$d/git" "$2"
exec git --git-dir="$d/git" -c transfer.fsckObjects=false index-pack --stdin --fix-thin >/dev/null`
	// checkOut checks a branch out, for the first time: checkOut ID PATH BRANCH COMMIT NAME EMAIL.
	checkOut = gitx.Scrub + `
set -e
d=$PWD/` + home + `/$1
git() { command git -c core.hooksPath=/dev/null --git-dir="$d/git" --work-tree="$p" "$@"; }
p=$2
umask 022
if [ -e "$d/made" ]; then # the folder went: the branch, what is checked out and what is staged stay as they are
  cd "$p"
  git ls-files -z --deleted >"$d/missing"
  git checkout-index -q -z --stdin <"$d/missing"
  rm -f "$d/missing" "$d/mends"
  exit
fi
command git --git-dir="$d/git" symbolic-ref HEAD "refs/heads/$3"
git update-ref "refs/heads/$3" "$4"
git update-ref "refs/vmctl/host/heads/$3" "$4"
[ -z "$5" ] || git config user.name "$5"
[ -z "$6" ] || git config user.email "$6"
cd "$p"
git reset -q --hard
: >"$d/made"`
	// finish says that a workspace is complete: finish ID.
	finish = `: >"` + home + `/$1/made"`
	// settle says that nothing is to be brought back any more: settle ID.
	settle = `rm -f "` + home + `/$1/restoring"`
	// write writes the record of a workspace from the standard input: write ID.
	write = `
set -e
umask 077
cat >"` + home + `/$1/.mark"
mv "` + home + `/$1/.mark" "` + home + `/$1/mark"`
	// noteHooks writes the notes about hooks, the first line of the standard input, and the output of one, all that follows:
	// noteHooks ID LOG.
	noteHooks = `
set -e
umask 077
d=` + home + `/$1
IFS= read -r line
cat >"$d/$2"
printf '%s\n' "$line" >"$d/.hooks"
mv "$d/.hooks" "$d/hooks"`
	// mounts prints a folder without symbolic links, and then the mounts of the place; nothing: there is no such folder: mounts PATH.
	mounts = `
cd -P "$1" 2>/dev/null || exit 0
pwd -P
cat /proc/self/mountinfo 2>/dev/null || :`
	// remove removes a workspace with all that is in it: remove ID PATH. A folder that has become another one's stays.
	remove = `
set -e
d=$PWD/` + home + `/$1
[ -e "$d" ] || exit 0
: >"$d/ends"
if [ -f "$2/.git" ] && [ "$(cat "$2/.git")" = "gitdir: $d/git" ]; then chmod -R u+rwX "$2"; rm -rf "$2"; fi
chmod -R u+rwX "$d"
rm -rf "$d/gone"
[ ! -d "$d/git" ] || mv "$d/git" "$d/gone" # it is whole, or it is not there
rm -rf "$d/gone"
rm -f "$d/made"
rm -rf "$d"
rmdir ` + home + ` .vmctl 2>/dev/null || true`
	// drop removes the record of a workspace: drop ID.
	drop = `
set -e
rm -rf "` + home + `/$1"
rmdir ` + home + ` .vmctl 2>/dev/null || true`
	// have prints the commit of a branch of a workspace: have ID BRANCH.
	have = gitx.Scrub + `
exec git --git-dir="$PWD/` + home + `/$1/git" rev-parse --verify "refs/heads/$2^{commit}"`
	// take adds the pack on the standard input to a workspace: take ID.
	take = gitx.Scrub + `
exec git --git-dir="$PWD/` + home + `/$1/git" index-pack --stdin --fix-thin >/dev/null`
	// forward moves a branch of a workspace to a later commit, with the files where it is checked out: forward ID PATH
	// BRANCH COMMIT.
	forward = gitx.Scrub + `
set -e
d=$PWD/` + home + `/$1
cd "$2"
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false --git-dir="$d/git" --work-tree="$PWD" "$@"; }
was=$(git rev-parse --verify "refs/heads/$3^{commit}")
git merge-base --is-ancestor "$was" "$4" || { echo "its branch $3 has commits that this host lacks" >&2; exit 3; }
if [ "$(git symbolic-ref -q HEAD)" = "refs/heads/$3" ]; then git merge -q --ff-only --no-overwrite-ignore --no-squash --no-autostash "$4"; else git update-ref "refs/heads/$3" "$4" "$was"; fi
git update-ref "refs/vmctl/host/heads/$3" "$4"`
	// send prints a pack of commits and of what they need, by the revisions on the standard input: send ID.
	send = gitx.Scrub + `
exec git --git-dir="$PWD/` + home + `/$1/git" pack-objects --revs --stdout --thin -q`
	// contains prints "yes" if a commit of a workspace has another one among its ancestors: contains ID COMMIT ANCESTOR.
	contains = gitx.Scrub + `
g="$PWD/` + home + `/$1/git"
git --git-dir="$g" cat-file -e "$3^{commit}" 2>/dev/null || exit 0
if git --git-dir="$g" merge-base --is-ancestor "$3" "$2"; then echo yes; else [ $? = 1 ]; fi`
	// sent notes the commit of a branch that this host has: sent ID BRANCH COMMIT.
	sent = gitx.Scrub + `
exec git --git-dir="$PWD/` + home + `/$1/git" update-ref "refs/vmctl/host/heads/$2" "$3"`
)
