#!/bin/sh
# A replay is killed at a random moment, again and again in one folder. Each time the store it leaves must verify, with
# exact accounting, and the last run must find nothing wrong in it. ROUNDS (5) says how often; `make crash` asks for 50.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-kill-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
rounds=${ROUNDS:-5}
replay() {
	exec "$FLATCAKE" replay "$work/trace.tar.gz" --dir "$work/store" --memory 1MiB --ssd 24MiB --scale 64 --streams 3
}
fraction() { # seconds from 0 to 2
	od -An -N2 -tu2 /dev/urandom | awk '{ printf "%.3f", $1 / 65536 * 2 }'
}

"$FLATCAKE" gen --seed 11 --sessions 20 --turns 12 --length 0.3 --output "$work/trace.tar.gz" >/dev/null || exit 1
round=1
while [ "$round" -le "$rounds" ]; do
	pause=$(fraction)
	replay >"$work/log" 2>&1 &
	child=$!
	sleep "$pause"
	kill -KILL "$child" 2>/dev/null
	wait "$child" 2>/dev/null
	round=$((round + 1))
	[ -s "$work/store/ssd.arena" ] || continue # killed before it began
	"$FLATCAKE" verify --dir "$work/store" --json "$work/verify.json" >"$work/out" 2>"$work/err" && continue
	# The very first moments: a file that nothing was written to yet.
	grep -q 'nothing was ever stored in it' "$work/err" && continue
	echo "round $((round - 1)), killed after $pause s: the store does not verify"
	cat "$work/out" "$work/err"
	exit 1
done
(replay) >"$work/log" 2>&1 || { echo "the last replay failed"; cat "$work/log"; exit 1; }
"$FLATCAKE" verify --dir "$work/store" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
cat "$work/out"
