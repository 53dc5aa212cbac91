package workspace

// hidden is a function of the program list. It prints what git status leaves out of the workspace $d with the folder $path;
// its arguments are those that come before a command of git. A mark that hides changes (assume-unchanged, skip-worktree) is
// taken off in a copy of the index; that of a file that is not there stays, as a sparse checkout has it.
const hidden = `
hidden() {
  if [ "$tree" = shared ]; then
    IFS= read -r g <"$path/.git" || return 1
    g=${g#gitdir: }
    case $g in /*) ;; *) g=$path/$g ;; esac
  else
    g=$here/$d/git
  fi
  for o in MERGE_HEAD:merge CHERRY_PICK_HEAD:cherry-pick REVERT_HEAD:revert sequencer:'cherry-pick or revert' \
    rebase-merge:rebase rebase-apply:'rebase or am' BISECT_LOG:bisect; do
    [ ! -e "$g/${o%%:*}" ] || echo "O ${o#*:}"
  done
  odd=$(git "$@" ls-files -s -v) || return 1
  odd=$(printf '%s\n' "$odd" | sed -n '/^[a-zS] /p; /^. 160000 /p') || return 1
  [ -n "$odd" ] || return 0
  (
    cd "$path" || exit 1
    copy=$here/$d/look.$$
    trap 'rm -f "$copy" "$copy.all" "$copy.names"' EXIT
    marked=
    while IFS='	' read -r how name; do
      case $how in
      ?' 160000 '*)
        case $name in '"'*) ;; *) [ -n "$(ls -A "./$name" 2>/dev/null)" ] || continue ;; esac
        printf 'I %s\n' "$name"
        ;;
      *) marked=yes ;;
      esac
    done <<END
$odd
END
    [ -n "$marked" ] || exit 0
    cp -p "$g/index" "$copy" || exit 1 # by its time, git tells the files that it must read
    git "$@" ls-files -v -z >"$copy.all" || exit 1
    xargs -0 sh -c 'for e do case $e in [a-z]\ *) printf "%s\0" "${e#? }" || exit 1 ;; esac; done' sh <"$copy.all" >"$copy.names" || exit 1
    GIT_INDEX_FILE=$copy git "$@" update-index -z --no-assume-unchanged --stdin <"$copy.names" || exit 1
    xargs -0 sh -c 'for e do case $e in [sS]\ *) e=${e#? }; if [ -e "$e" ] || [ -L "$e" ]; then printf "%s\0" "$e" || exit 1; fi ;; esac; done' sh <"$copy.all" >"$copy.names" || exit 1
    GIT_INDEX_FILE=$copy git "$@" update-index -z --no-skip-worktree --stdin <"$copy.names" || exit 1
    text=$(GIT_INDEX_FILE=$copy git "$@" status --porcelain=v2 --untracked-files=no --ignore-submodules=none) || exit 1
    [ -z "$text" ] || printf '%s\n' "$text" | sed 's/^/F /'
  )
}
`
