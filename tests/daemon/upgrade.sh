#!/bin/bash
# From one version of the daemon to the next, under a client that keeps its store open: the old one drains and stops, the
# new one takes over arenas, memory included, and the client goes on. Nothing that was stored is computed again, and no
# request of the client fails. (The next version is this one under another name: what differs between versions is agreed
# on in HELLO, which tests/server looks at.)
set -u
[ -x "$FLATCAKED" ] || { echo "no flatcaked was built: skipped"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-upgrade-XXXXXX") || exit 1
shm=$(mktemp -d "/dev/shm/flatcake-upgrade-XXXXXX" 2>/dev/null) || { rm -rf "$work"; echo "no /dev/shm: skipped"; exit 77; }
daemon= replay=
. "$FC_SOURCE_DIR/tests/lib/await"
trap 'kill -KILL $daemon $replay 2>/dev/null; wait 2>/dev/null; rm -rf "$work" "$shm"' EXIT
fail() {
	echo "$*"
	cat "$work/daemon.log" "$work/replay.err" 2>/dev/null | tail -n 30
	exit 1
}
is_listening_or_gone() {
	grep -q "listening" "$work/daemon.log" || ! kill -0 $daemon 2>/dev/null
}
start() { # PROGRAM
	"$1" --socket "$work/s" --ssd-path "$work/ssd.arena" --memory-path "$shm/memory.arena" --ssd 128MiB --memory 16MiB \
		--lock-path "$work/lock" --scale 64 --window 8MiB --http-listen 127.0.0.1:0 --log-format json >>"$work/daemon.log" 2>&1 &
	daemon=$!
	await is_listening_or_gone
	grep -q "listening" "$work/daemon.log" || fail "$1 does not start"
}

cp "$FLATCAKED" "$work/flatcaked-next" || exit 1
"$FLATCAKE" gen --seed 21 --sessions 5 --turns 12 --length 0.2 --output "$work/trace.tar" >/dev/null || exit 1
start "$FLATCAKED"
"$FLATCAKE" replay "$work/trace.tar" --daemon "$work/s" --scale 64 --window 8MiB --rate 12 --json "$work/result.json" \
	>"$work/replay.out" 2>"$work/replay.err" &
replay=$!
# In the middle of it: when some turns are committed, and the replay, 60 turns at 12 a second, still goes on. It holds its
# breath until the daemon has been told to stop.
port=$(sed -n 's/.*"kind":"http".* port \([0-9]*\)".*/\1/p' "$work/daemon.log")
commits() {
	"$FC_BUILD_DIR/tests/daemon/test_http" get "http://127.0.0.1:$port/metrics" | awk '$1 == "flatcake_commits_total" { print $2 }'
}
has_begun_or_ended() {
	committed=$(commits)
	[ "${committed:-0}" -ge 5 ] || ! kill -0 $replay 2>/dev/null
}
await has_begun_or_ended
kill -STOP $replay 2>/dev/null || fail "the replay was over before the daemon was"
kill -TERM $daemon
kill -CONT $replay
wait $daemon || fail "the old daemon ended with $?"
: >"$work/daemon.log"
start "$work/flatcaked-next"
wait $replay || fail "the replay ended with $?"
value() { sed -n 's/^ *"'"$1"'": \([0-9]*\),*/\1/p' "$work/result.json" | head -n 1; }
[ "$(value mismatches)" = 0 ] || fail "mismatches: $(value mismatches)"
grep -E "possible prefix|delivered prefix|short loads|errors" "$work/replay.out"
possible=$(sed -n 's/^ *possible prefix *\([0-9,]*\) .*/\1/p' "$work/replay.out")
delivered=$(sed -n 's/^ *delivered prefix *\([0-9,]*\) .*/\1/p' "$work/replay.out")
[ -n "$possible" ] && [ "$possible" = "$delivered" ] || fail "possible $possible, delivered $delivered"
kill -TERM $daemon
wait $daemon || fail "the new daemon ended with $?"
