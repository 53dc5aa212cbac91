#!/bin/sh
# Runs a script of vmctl in a guest, apart from the connection that started it. Only POSIX and what
# busybox has is used. All files of a run are in .vmctl/provision/NAME.RUN below the home folder:
#
#   script  the script, until it has ended
#   digest  of the script and its variables, as vmctl knows it
#   limit   how long it may run, in seconds
#   step    the step of vmctl that started it
#   claim   the process that runs it: its ID, its start time and the boot; written once, before it runs
#   begun   the time at which it began
#   log     what it writes
#   ending  is there once it is to be ended by force
#   status  its exit status once it has ended; "ended" if that was by force
#
# The script gets the environment of the process that starts it, and nothing of that is in a file. So the
# names of all variables here begin with _vmctl_.
_vmctl_umask=$(umask) # of the user: scripts have it
umask 077

# born prints a process's identity: PID, start time, boot ID. It fails if the process does not run.
born() {
	if [ -r /proc/self/stat ]; then
		_vmctl_born_stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
		# shellcheck disable=SC2086 # the fields after the name: the state is the first, the start time the 20th
		set -- "$1" ${_vmctl_born_stat##*) }
		case $2 in Z | X) return 1 ;; esac
		echo "$1 ${21} $(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
	else
		_vmctl_born_at=$(ps -o lstart= -p "$1" 2>/dev/null) && [ -n "$_vmctl_born_at" ] && echo "$1 $_vmctl_born_at"
	fi
}

# alive reports whether the supervisor of run folder $1 is running.
alive() {
	[ -e "$1/claim" ] || return 1
	_vmctl_alive_is=$(cat "$1/claim")
	[ "$(born "${_vmctl_alive_is%% *}")" = "$_vmctl_alive_is" ]
}

# counts reports whether a finished run is still valid: a start-* run is valid only in the boot in which it
# ran. $1 is its folder, $2 its name.
counts() {
	case $2 in start-*) ;; *) return 0 ;; esac
	[ -r /proc/self/stat ] || return 0
	_vmctl_counts_is=$(born $$)
	_vmctl_counts_was=$(cat "$1/claim" 2>/dev/null)
	[ "${_vmctl_counts_was##* }" = "${_vmctl_counts_is##* }" ]
}

# now prints a time in seconds. Where it can, it takes a clock that nobody sets.
now() {
	if [ -r /proc/uptime ]; then
		cut -d . -f 1 /proc/uptime
	else
		date +%s
	fi
}

# age prints for how many seconds the script of folder $1 has run.
age() { echo $(($(now) - $(cat "$1/begun" 2>/dev/null || now))); }

# supervise runs the script of folder $1 with the umask $2, unless another process does or did.
supervise() {
	trap : TERM # end sends it to all processes of the run: this one waits for the script
	now >"$1/begun.$$" && born $$ >"$1/claim.$$" || exit 1
	ln "$1/claim.$$" "$1/claim" 2>/dev/null
	_vmctl_won=$?
	[ "$_vmctl_won" -ne 0 ] || mv "$1/begun.$$" "$1/begun"
	rm -f "$1/claim.$$" "$1/begun.$$"
	[ "$_vmctl_won" -eq 0 ] || exit 0
	(
		umask "$2"
		[ "$(head -c 2 "$1/script")" != "#!" ] || exec "$1/script"
		exec sh "$1/script"
	) >"$1/log" 2>&1 </dev/null
	_vmctl_status=$?
	[ ! -e "$1/ending" ] || _vmctl_status=ended
	echo "$_vmctl_status" >"$1/status.new"
	rm -f "$1/script"
	mv "$1/status.new" "$1/status"
}

# digest prints the digest of the script of folder $1.
digest() { cat "$1/digest" 2>/dev/null || echo unknown; }

# start runs the script on its standard input as run $2 of name $1: unless that run has ended well, or a run
# of this name goes on. $3 is the number of its bytes, $4 its digest, $5 its limit, $6 the step; $7 is
# "fresh" if an earlier run does not count. It prints one of
#
#   started                            by this step, perhaps earlier: it may have ended
#   running RUN SECONDS LIMIT DIGEST
#   ended DIGEST                       with status 0
start() {
	_vmctl_dir=$_vmctl_base/$1.$2
	if [ -e "$_vmctl_dir/claim" ] && [ "$(cat "$_vmctl_dir/step" 2>/dev/null)" = "$6" ]; then
		echo started
		return
	fi
	for _vmctl_other in "$_vmctl_base/$1".*; do
		if [ ! -e "$_vmctl_other/status" ] && alive "$_vmctl_other"; then
			echo "running ${_vmctl_other#"$_vmctl_base/$1."} $(age "$_vmctl_other") $(cat "$_vmctl_other/limit" 2>/dev/null || echo "$5") $(digest "$_vmctl_other")"
			return
		fi
	done
	if [ "$7" != fresh ] && [ "$(cat "$_vmctl_dir/status" 2>/dev/null)" = 0 ] && counts "$_vmctl_dir" "$2"; then
		echo "ended $(digest "$_vmctl_dir")"
		return
	fi
	rm -rf "$_vmctl_base/$1".*
	mkdir -p "$_vmctl_dir" && : >"$_vmctl_dir/log" && echo "$4" >"$_vmctl_dir/digest" || return 1
	echo "$5" >"$_vmctl_dir/limit" && echo "$6" >"$_vmctl_dir/step" && cat >"$_vmctl_dir/script.new" || return 1
	if [ "$(wc -c <"$_vmctl_dir/script.new")" -ne "$3" ]; then
		echo "the script did not come whole" >&2
		return 1
	fi
	chmod 700 "$_vmctl_dir/script.new" && mv "$_vmctl_dir/script.new" "$_vmctl_dir/script" || return 1
	if command -v setsid >/dev/null; then
		setsid sh -c "$_vmctl_self" vmctl-provision "$_vmctl_self" supervise "$_vmctl_dir" "$_vmctl_umask" </dev/null >/dev/null 2>&1 &
	else
		set -m
		(trap '' HUP && exec sh -c "$_vmctl_self" vmctl-provision "$_vmctl_self" supervise "$_vmctl_dir" "$_vmctl_umask") </dev/null >/dev/null 2>&1 &
	fi
	echo started
}

# follow prints the log of run $2 of name $1 from byte $3 on, until the script has ended. Its last line
# on standard error is "status N", or "lost" if the script did not come to its end.
follow() {
	_vmctl_dir=$_vmctl_base/$1.$2 _vmctl_from=$3 _vmctl_looks=0
	while :; do
		_vmctl_end=
		if [ -e "$_vmctl_dir/status" ]; then
			_vmctl_end="status $(cat "$_vmctl_dir/status")"
		elif [ -e "$_vmctl_dir/claim" ] || [ "$_vmctl_looks" -gt 20 ]; then # else it is about to be claimed
			alive "$_vmctl_dir" || [ -e "$_vmctl_dir/status" ] || _vmctl_end=lost
		fi
		_vmctl_size=$(wc -c <"$_vmctl_dir/log" 2>/dev/null || echo 0)
		if [ "$_vmctl_size" -gt "$_vmctl_from" ]; then
			tail -c "+$((_vmctl_from + 1))" "$_vmctl_dir/log" | head -c "$((_vmctl_size - _vmctl_from))"
			_vmctl_from=$_vmctl_size
		fi
		if [ -n "$_vmctl_end" ]; then
			echo "$_vmctl_end" >&2
			return
		fi
		_vmctl_looks=$((_vmctl_looks + 1))
		if [ "$_vmctl_looks" -gt 10 ] || ! sleep 0.2 2>/dev/null; then sleep 1; fi
	done
}

# end ends run $2 of name $1 with all of its processes. They have a few seconds after the request to end.
end() {
	_vmctl_dir=$_vmctl_base/$1.$2 _vmctl_looks=0
	alive "$_vmctl_dir" || return 0
	_vmctl_leader=$(cut -d ' ' -f 1 <"$_vmctl_dir/claim")
	: >"$_vmctl_dir/ending"
	kill -s TERM -- "-$_vmctl_leader" 2>/dev/null
	while [ "$_vmctl_looks" -lt 25 ] && kill -s 0 -- "-$_vmctl_leader" 2>/dev/null; do
		sleep 0.2 2>/dev/null || { sleep 1 && _vmctl_looks=$((_vmctl_looks + 4)); }
		_vmctl_looks=$((_vmctl_looks + 1))
	done
	kill -s KILL -- "-$_vmctl_leader" 2>/dev/null
	rm -f "$_vmctl_dir/script"
	[ -e "$_vmctl_dir/status" ] || echo ended >"$_vmctl_dir/status"
}

_vmctl_self=$1
_vmctl_base=.vmctl/provision
shift
case $1 in
start | follow | end) "$@" ;;
supervise) supervise "$2" "$3" ;;
esac
