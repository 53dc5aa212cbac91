package job

// The programs that run a job inside a VM, as arguments of a POSIX shell. Each has the job's ID as its first argument.
// A job has a folder of its own in the home of the user there, until its worker has read how it ended.
//
// Every process of a job has the variable VMCTL_JOB=ID, its supervisor VMCTL_JOB_SUPERVISOR=ID.
const (
	guestStart = `
set -e
id=$1 dir=$2
shift 2
d=$HOME/.vmctl/jobs/$id
old=$(umask)
umask 077
mkdir -p "$HOME/.vmctl/jobs"
mkdir "$d"
mkdir "$d/tmp"
cat >"$d/prompt"
: >"$d/stdout"
: >"$d/stderr"
umask "$old"
export TMPDIR="$d/tmp"
alone=setsid
command -v setsid >/dev/null || alone=
$alone sh -c "$supervise" supervise "$d" "$dir" "$id" "$@" </dev/null >/dev/null 2>&1 &
i=0
while [ ! -e "$d/begun" ]; do
  i=$((i + 1))
  [ "$i" -lt 300 ] || { echo 'its supervisor has not said that it began' >&2; exit 1; }
  sleep 0.1
done
cat "$d/begun"`

	guestSupervise = `
d=$1 dir=$2 id=$3
shift 3
gentle=$unforced
unset VMCTL_JOB_SUPERVISOR supervise unforced
trap '' HUP TERM INT
exec 3<"$d/prompt"
rm -f "$d/prompt"
(
  trap - HUP TERM INT
  export VMCTL_JOB="$id"
  cd "$dir" || exit 126
  case $1 in -*) "$@"; exit;; esac
  exec "$@"
) <&3 >"$d/stdout" 2>"$d/stderr" 3<&- &
pid=$!
exec 3<&-
echo "$pid" >"$d/.begun"
mv "$d/.begun" "$d/begun"
wait "$pid"
status=$?
i=0
n=0
asked=" "
while [ -n "$gentle" ] || [ "$i" -lt 20 ]; do
  left=$(grep -ls "VMCTL_JOB=$id" /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  lives=" "
  for p in $left; do
    p=${p#/proc/}
    p=${p%/environ}
    if [ -n "$gentle" ]; then
      lives="$lives$p "
      case $asked in *" $p "*) continue ;; esac
      kill -TERM "$p" 2>/dev/null
      n=$((n + 1))
      [ "$n" -gt 1000 ] || echo "pid $p" >>"$d/left"
      continue
    fi
    [ "$i" -gt 0 ] || echo "pid $p" >>"$d/left"
    kill -KILL "$p" 2>/dev/null
  done
  asked=$lives
  i=$((i + 1))
  sleep 0.1
done
rm -rf "$d/tmp"
echo "$status" >"$d/.exit"
mv "$d/.exit" "$d/exit"`

	// guestLook prints how the job is ("none -", "runs -", "runs left" if its command has ended and left processes behind, "ended STATUS",
	// "lost -"), and then the sizes of its outputs.
	guestLook = `
d=$HOME/.vmctl/jobs/$1
if [ ! -d "$d" ]; then echo 'none - 0 0'; exit; fi
lives=$(grep -ls "VMCTL_JOB[_A-Z]*=$1" /proc/[0-9]*/environ)
if [ -e "$d/exit" ]; then how="ended $(cat "$d/exit")"; elif [ -n "$lives" ] || [ ! -r /proc/self/environ ]; then how='runs -'; else how='lost -'; fi
if [ "$how" = 'runs -' ] && [ -e "$d/left" ]; then how='runs left'; fi
echo "$how $(wc -c <"$d/stdout") $(wc -c <"$d/stderr")"`

	// guestRead prints an output from a byte on, counted from 1: guestRead ID NAME BYTE.
	guestRead = `exec tail -c "+$3" "$HOME/.vmctl/jobs/$1/$2"`

	// guestLeft prints what the job left behind, and was ended.
	guestLeft = `cat "$HOME/.vmctl/jobs/$1/left" 2>/dev/null || :`

	// guestEnd ends the processes of the job: guestEnd ID SIGNAL.
	guestEnd = `
for p in $(grep -ls "VMCTL_JOB=$1" /proc/[0-9]*/environ); do
  p=${p#/proc/}
  kill "-$2" "${p%/environ}" 2>/dev/null || :
done`

	guestRemove = `rm -rf "$HOME/.vmctl/jobs/$1"
rmdir "$HOME/.vmctl/jobs" "$HOME/.vmctl" 2>/dev/null || :`
)
