#!/bin/bash
# One daemon, CLIENTS processes that replay traces through it without pause, and now and then one of them, or the daemon
# itself, is killed: KILLS times, or for SECONDS_OF_CHAOS. At the end no process has ever been given a byte that is not what
# was saved, the daemon holds nothing for anybody, it stops when it is told to, and its arena verifies with exact accounting.
#
# CLIENTS (4) and KILLS (16) say how much; `make chaos` asks for 8 clients and 600 seconds.
set -u
clients=${CLIENTS:-4}
kills=${KILLS:-16}
seconds=${SECONDS_OF_CHAOS:-0}
. "$FC_SOURCE_DIR/tests/lib/await"
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-chaos-XXXXXX") || exit 1
shm=$(mktemp -d "/dev/shm/flatcake-chaos-XXXXXX" 2>/dev/null) || { echo "no /dev/shm: skipped"; exit 77; }
[ -x "$FLATCAKED" ] || { echo "no flatcaked was built: skipped"; exit 77; }
socket=$work/flatcaked.sock
daemon=
declare -a children

cleanup() {
	touch "$work/stop"
	kill -KILL $daemon "${children[@]}" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$work" "$shm"
}
trap cleanup EXIT
fail() {
	echo "$*"
	tail -n 20 "$work/daemon.log"
	exit 1
}

start_daemon() {
	"$FLATCAKED" --socket "$socket" --ssd-path "$work/ssd.arena" --memory-path "$shm/memory.arena" \
		--lock-path "$work/clients.lock" --ssd 64MiB --memory 8MiB --memory-reclaim spill --scale 64 \
		--window 8MiB --http-listen 127.0.0.1:0 --log-format json --fence-timeout 20s >>"$work/daemon.log" 2>&1 &
	daemon=$!
}

answers() {
	[ -S "$socket" ] && "$FLATCAKE" replay "$work/short.tar" --daemon "$socket" --scale 64 --window 8MiB \
		>/dev/null 2>>"$work/await.log"
}
answers_or_is_gone() {
	answers || ! kill -0 $daemon 2>/dev/null
}
await_daemon() {
	await answers_or_is_gone && kill -0 $daemon 2>/dev/null
}

# Replays in turn a trace that others replay too, which is there after a while, and one that nobody has seen, so that there
# is always something to write, and room to be made for it. Leaves a line for every run: the exit status, and what was
# wrong with slices.
replay_for_ever() { # NUMBER
	local run=0 trace
	while [ ! -e "$work/stop" ]; do
		trace=$work/trace.$(($1 % 3)).tar
		if [ $((run % 2)) -eq 1 ]; then
			trace=$work/trace.own.$1.tar
			"$FLATCAKE" gen --seed "$1$run" --sessions 5 --turns 8 --length 0.3 --force --output "$trace" >/dev/null
		fi
		"$FLATCAKE" replay "$trace" --daemon "$socket" --scale 64 --window 8MiB --streams 2 \
			--json "$work/result.$1.json" >"$work/out.$1" 2>"$work/err.$1"
		status=$?
		wrong=$(sed -n 's/^ *"mismatches": \([0-9]*\),*/\1/p' "$work/result.$1.json" 2>/dev/null)
		echo "$status ${wrong:--} $(tail -n 1 "$work/err.$1")" >>"$work/runs.$1"
		rm -f "$work/result.$1.json"
		run=$((run + 1))
		[ $status -eq 0 ] || sleep 0.2
	done
}

metric() { # NAME, of the last daemon
	local port
	port=$(sed -n 's/.*"kind":"http".* port \([0-9]*\)".*/\1/p' "$work/daemon.log" | tail -n 1)
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return
	printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n\r\n' "$port" >&3
	tr -d '\r' <&3 | awk -v name="$1" '$1 == name { print $2 }'
	exec 3>&-
}

# With nobody there any more, nothing is held for anybody.
is_at_rest() {
	left=
	for name in flatcake_clients flatcake_leases flatcake_reservations_orphaned; do
		[ "$(metric $name)" = 0 ] || left="$left $name $(metric $name)"
	done
	[ -z "$left" ]
}
check_rest() {
	await is_at_rest || fail "at rest:$left"
}

random() { # BELOW
	echo $((($(od -An -N2 -tu2 /dev/urandom)) % $1))
}

for trace in 0 1 2; do
	"$FLATCAKE" gen --seed $((40 + trace)) --sessions 6 --turns 10 --length 0.2 --output "$work/trace.$trace.tar" \
		>/dev/null || exit 1
done
"$FLATCAKE" gen --seed 9 --sessions 1 --turns 2 --length 0.05 --output "$work/short.tar" >/dev/null || exit 1

start_daemon
await_daemon || fail "the daemon does not start"
for number in $(seq "$clients"); do
	replay_for_ever "$number" 2>/dev/null &
	children+=($!)
done

killed_clients=0
killed_daemons=0
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ] || { [ "$seconds" -eq 0 ] && [ $((killed_clients + killed_daemons)) -lt "$kills" ]; }; do
	sleep "$(random 2).$(random 10)$(random 10)"
	if [ "$(random 6)" -eq 0 ]; then
		kill -KILL $daemon 2>/dev/null
		wait $daemon 2>/dev/null
		killed_daemons=$((killed_daemons + 1))
		sleep "0.$(random 10)"
		start_daemon
	else
		victim=$(pgrep -f "replay $work/trace" | shuf -n 1)
		[ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null && killed_clients=$((killed_clients + 1))
	fi
done

# Nobody is killed any more: however slow this machine is, now replays come to a good end.
has_ended_well() { grep -qs '^0 ' "$work"/runs.*; }
await has_ended_well
touch "$work/stop"
wait "${children[@]}" 2>/dev/null
children=()
await_daemon || fail "the daemon does not answer after all of this"
check_rest
kill -TERM $daemon
has_stopped() { ! kill -0 $daemon 2>/dev/null; }
await has_stopped || fail "the daemon does not stop"
wait $daemon
status=$?
[ $status -eq 0 ] || fail "the daemon ended with $status"
pgrep -f "$work" >"$work/orphans" && fail "processes are left: $(cat "$work/orphans")"

runs=$(cat "$work"/runs.* | wc -l)
whole=$(cat "$work"/runs.* | awk '$2 != "-"' | wc -l)
clean=$(cat "$work"/runs.* | awk '$1 == 0' | wc -l)
wrong=$(cat "$work"/runs.* | awk '$2 != "-" { sum += $2 } END { print sum + 0 }')
"$FLATCAKE" verify --dir "$work" --memory-path "$shm/memory.arena" >"$work/verify" 2>&1 ||
	{ cat "$work/verify"; fail "the arenas do not verify"; }
cat "$work/verify"
echo "$clients clients, $SECONDS s: $killed_clients clients and $killed_daemons daemons killed; $runs replays, $whole to their end, $clean without any error; foreign bytes in $wrong slices"
[ "$wrong" -eq 0 ] || fail "bytes that were not saved were delivered"
[ "$clean" -gt 0 ] || fail "no replay ever ended well"
