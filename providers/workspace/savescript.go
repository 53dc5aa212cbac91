package workspace

import "vmctl/internal/gitx"

// look is the beginning of a program that reads a workspace whole: ID PATH TREE FORCE (-f: with the files that git
// ignores). It leaves the state in files of the folder $s, a digest of it in $digest, and the trees of the index and of the
// files in $it and $wt. The tree of the files is made in an empty git directory of its own, with the workspace's objects:
// no setting or attribute of the repository changes their content, and no filter of it runs. What cannot be saved ends
// the program with status 3.
const look = gitx.Scrub + `
set -e
umask 077
fail() { printf '%s\n' "$1" >&2; exit 3; }
command -v git >/dev/null || fail 'git is not installed'
d=$PWD/` + home + `/$1
cd "$2"
if [ "$3" = shared ]; then
  real() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
else
  real() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false --git-dir="$d/git" --work-tree="$PWD" "$@"; }
fi
g=$(real rev-parse --absolute-git-dir)
for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply sequencer; do
  [ ! -e "$g/$f" ] || fail "a merge, rebase, cherry-pick or revert is not completed in it ($f): complete or abort it there"
done
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
for left in "$d"/save.*; do # a save or a restore that was killed left its folder
  [ -d "$left" ] || continue
  pid=${left##*/save.}
  pid=${pid%%.*}
  at=
  if [ -f "$left/started" ]; then IFS= read -r at <"$left/started" || at=; fi
  case $pid in *[!0-9]*) ;; *) if kill -0 "$pid" 2>/dev/null && { [ -z "$at" ] || [ "$(started "$pid")" = "$at" ]; }; then continue; fi ;; esac
  if [ -f "$left/index" ] && cmp -s "$left/index" "$g/index.lock"; then rm -f "$g/index.lock"; fi
  rm -rf "$left"
done
s=$(mktemp -d "$d/save.$$.XXXXXX")
trap 'rm -rf "$s"' EXIT
started "$$" >"$s/started"
if [ -f "$g/index" ]; then cp "$g/index" "$s/index"; fi
indexed() { ( GIT_INDEX_FILE=$s/index; export GIT_INDEX_FILE; real "$@" ); }
objects=$(real rev-parse --git-path objects)
case $objects in /*) ;; *) objects=$PWD/$objects ;; esac
excludes=$(real config --path --get core.excludesFile) || excludes=
scratch() { (
  GIT_OBJECT_DIRECTORY=$objects
  export GIT_OBJECT_DIRECTORY
  [ -z "$excludes" ] || set -- -c core.excludesFile="$excludes" "$@"
  exec git --git-dir="$s/git" --work-tree="$PWD" -c core.bare=false -c core.hooksPath=/dev/null -c core.fsmonitor=false \
    -c core.autocrlf=false -c core.safecrlf=false -c core.symlinks=true -c core.fileMode=true -c core.ignoreCase=false \
    -c core.precomposeUnicode=false -c core.splitIndex=false -c index.sparse=false -c core.sparseCheckout=false \
    -c advice.addEmbeddedRepo=false "$@"
); }
indexed ls-files -u -z >"$s/unmerged"
[ ! -s "$s/unmerged" ] || fail 'files are unmerged in it: resolve them there, and git add them'
indexed ls-files -s -z >"$s/stage"
indexed ls-files -v -z >"$s/flags"
indexed ls-files -o --exclude-standard -z >"$s/untracked"
indexed ls-files -o -i --exclude-standard -z >"$s/ignored"
it=$(indexed write-tree)
: >"$s/refs"
: >"$s/stashes"
if [ "$3" != shared ]; then
  real for-each-ref --format='%(objectname) %(objecttype) %(refname)' refs/heads refs/tags refs/notes >"$s/refs"
  if stash=$(real rev-parse --verify -q refs/stash); then
    real reflog show --format='%H %gs' refs/stash -- >"$s/stashes"
    [ -s "$s/stashes" ] || echo "$stash stash" >"$s/stashes"
  fi
fi
head=$(real rev-parse --verify -q 'HEAD^{commit}') || head=
headref=$(real symbolic-ref -q HEAD) || headref=
git init -q --bare --template= "$s/git"
mkdir -p "$s/git/info"
echo '* -text !eol -ident -filter !working-tree-encoding' >"$s/git/info/attributes"
exclude=$(real rev-parse --git-path info/exclude)
if [ -f "$exclude" ]; then cp "$exclude" "$s/git/info/exclude"; fi
: >"$s/links"
links() {
  S=$s xargs -0 sh -c 'for e do case $e in "160000 "*) p=${e#*	}; if [ -n "$(ls -A "./$p" 2>/dev/null)" ]; then printf "%s\n" "$p" >>"$S/links"; fi ;; esac; done' sh <"$1"
  [ ! -s "$s/links" ] || fail "it has submodules or repositories in it, which are not saved: $(cat "$s/links")"
}
links "$s/stage"
scratch update-index -z --index-info <"$s/stage"
scratch add -A $4 2>"$s/said" || fail "$(cat "$s/said")"
scratch ls-files -s -z >"$s/now"
links "$s/now"
wt=$(scratch write-tree)
printf '%s\n' "$head" "$headref" "$it" "$wt" >"$s/info"
digest=$(cat "$s/info" "$s/stage" "$s/flags" "$s/refs" "$s/stashes" "$s/untracked" "$s/ignored" | real hash-object --stdin)
echo "$digest" >>"$s/info"
`

// The programs that save and restore workspaces.
const (
	// snapshot prints the files that look made, each after its name and its length: snapshot ID PATH TREE FORCE.
	snapshot = look + `
for f in info stage flags untracked ignored refs stashes; do
  printf '%s %d\n' "$f" "$(wc -c <"$s/$f")"
  cat "$s/$f"
done`
	// putBack brings a save into a workspace whose digest is still the one that was seen: putBack ID PATH TREE FORCE DIGEST
	// SAVE BRANCH AGAIN. Until it ends, the file "restoring" names the save; with AGAIN, an earlier one was cut short, and what is
	// there now is in a save of its own. References move forward only, and in a repository of this host only BRANCH moves: a save may come from a
	// guest. What else is in it stays in the save, its stashes too.
	// In the end, files, index and branch are compared with the save; stashes and the marks of files are not.
	putBack = look + `
umask 022
[ "$digest" = "$5" ] || fail 'it was changed while it was looked at'
: >"$s/restores"
for other in "$d"/save.*/restores; do
  [ ! -f "$other" ] || [ "$other" = "$s/restores" ] || fail 'another restore is at work in it'
done
save=$6
for f in stage assumed skipped intended refs stashes head; do real cat-file blob "$save:$f" >"$s/saved-$f"; done
{ IFS= read -r head; IFS= read -r headref; } <"$s/saved-head"
moves() {
  was=$(real rev-parse --verify -q "$2") || was=
  [ -z "$was" ] || [ "$was" = "$1" ] || real merge-base --is-ancestor "$was" "$1" || fail "$2 has commits that the save lacks"
}
if [ "$3" = shared ]; then
  while IFS=' ' read -r sha type ref; do [ "$ref" != "refs/heads/$7" ] || echo "$sha $type $ref"; done <"$s/saved-refs" >"$s/own-refs"
  mv "$s/own-refs" "$s/saved-refs"
  : >"$s/saved-stashes"
  if [ -n "$head" ] && [ -n "$headref" ] && [ "$headref" != "refs/heads/$7" ]; then
    [ "$(real rev-parse --verify -q "$headref")" = "$head" ] || fail "the save had $headref checked out, which this repository has at another commit"
  fi
fi
while IFS=' ' read -r sha type ref; do moves "$sha" "$ref"; done <"$s/saved-refs"
if [ -n "$head" ] && [ -n "$headref" ]; then moves "$head" "$headref"; fi
how=-m
[ -z "$8" ] || how=--reset
scratch read-tree -n $how -u "$wt" "$save:worktree" 2>"$s/said" || fail "$(cat "$s/said")"
echo "$save" >"$d/.restoring"
mv "$d/.restoring" "$d/restoring"
scratch read-tree $how -u "$wt" "$save:worktree" 2>"$s/said" || fail "$(cat "$s/said")"
# what git does not know may be meant for one user alone
scratch diff-tree -r -z --name-only --no-renames --diff-filter=A "$save:index" "$save:worktree" >"$s/private"
xargs -0 sh -c 'for e do [ -L "$e" ] || chmod go-rwx "./$e"; done' sh <"$s/private"
while IFS=' ' read -r sha type ref; do real update-ref -m 'vmctl: workspace restore' "$ref" "$sha"; done <"$s/saved-refs"
if [ -n "$headref" ]; then
  [ -z "$head" ] || real update-ref -m 'vmctl: workspace restore' "$headref" "$head"
  real symbolic-ref -m 'vmctl: workspace restore' HEAD "$headref"
else
  real update-ref --no-deref -m 'vmctl: workspace restore' HEAD "$head"
fi
rm -f "$s/index"
indexed read-tree --empty
indexed update-index -z --index-info <"$s/saved-stage"
if [ -s "$s/saved-intended" ]; then indexed add -f -N --pathspec-from-file="$s/saved-intended" --pathspec-file-nul; fi
indexed update-index -q --refresh >/dev/null || true
indexed update-index -z --assume-unchanged --stdin <"$s/saved-assumed"
indexed update-index -z --skip-worktree --stdin <"$s/saved-skipped"
rm -f "$g/index.vmctl" # one that was killed may have left it, as a second name of the index
cp "$s/index" "$g/index.vmctl" # whole, before the lock is there
ln "$g/index.vmctl" "$g/index.lock" || fail 'another git is at work in it'
mv "$g/index.lock" "$g/index"
rm -f "$g/index.vmctl"
if [ -n "$8" ] && [ "$3" != shared ] && real rev-parse --verify -q refs/stash >/dev/null; then real update-ref -d refs/stash; fi
while IFS=' ' read -r sha message; do real update-ref --create-reflog -m "$message" refs/stash "$sha"; done <"$s/saved-stashes"
differs() { rm -f "$d/restoring"; fail "it is not as it was saved in $save: $1"; }
while IFS=' ' read -r sha type ref; do [ "$(real rev-parse --verify -q "$ref")" = "$sha" ] || differs "$ref is at another commit"; done <"$s/saved-refs"
[ "$(real rev-parse --verify -q 'HEAD^{commit}')" = "$head" ] || differs 'another commit is checked out'
[ "$(real symbolic-ref -q HEAD)" = "$headref" ] || differs 'another branch is checked out'
[ "$(real write-tree)" = "$(real rev-parse "$save:index")" ] || differs 'other files are staged'
scratch add -A 2>"$s/said" || differs "$(cat "$s/said")"
scratch diff-index --cached --name-only "$save:worktree" >"$s/said"
[ ! -s "$s/said" ] || differs "$(cat "$s/said")"
rm -f "$d/restoring"
`
)
