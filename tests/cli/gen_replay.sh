#!/bin/sh
# `flatcake gen` and `flatcake replay` as they are called: a trace made, replayed from a file and from standard input,
# and a replay that is interrupted and still says what it has.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-gen-replay-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
	echo "$1"
	sed 's/^/  out: /' "$work/out"
	sed 's/^/  err: /' "$work/err"
	failed=1
}

# expect STATUS STREAM TEXT ARGUMENT...
expect() {
	want_status=$1 stream=$2 text=$3
	shift 3
	"$FLATCAKE" "$@" >"$work/out" 2>"$work/err"
	status=$?
	if [ $status -ne "$want_status" ] || ! grep -qE -- "$text" "$work/$stream"; then
		complain "flatcake $*: status $status (wanted $want_status), wanted on std$stream: $text"
	fi
}

store="--dir $work/store --scale 512 --ssd 64MiB --memory 16MiB"
expect 2 err 'gen: --output is missing' gen
expect 2 err 'replay: an argument is missing' replay
"$FLATCAKE" gen --sessions 3 --turns 6 --length 0.1 --output "$work/trace.tar.gz" || complain "gen to an archive"
# shellcheck disable=SC2086 # one word an option
expect 0 out '^mismatches +0 ' replay "$work/trace.tar.gz" $store
grep -qE '^  delivered prefix +[1-9]' "$work/out" || complain "nothing was delivered"
grep -q 'cold start' "$work/out" || complain "the first start was not cold"
# shellcheck disable=SC2086
expect 0 out '"mismatches": 0' replay "$work/trace.tar.gz" $store --json -
[ "$(head -c 1 "$work/out")" = '{' ] || complain "--json - printed more than JSON"

"$FLATCAKE" gen --sessions 3 --turns 6 --length 0.1 --output - >"$work/trace.jsonl" || complain "gen to standard output"
# shellcheck disable=SC2086
expect 0 out 'warm start' replay - $store <"$work/trace.jsonl"

# One request in a hundred seconds: it is still waiting when the signal comes.
# shellcheck disable=SC2086
"$FLATCAKE" replay "$work/trace.jsonl" $store --rate 0.01 >"$work/out" 2>"$work/err" &
replay=$!
. "$FC_SOURCE_DIR/tests/lib/await"
catches_or_is_gone() { # SIGINT and SIGTERM
	grep -q 'SigBlk:.*4002$' "/proc/$replay/status" 2>/dev/null || ! kill -0 $replay 2>/dev/null
}
await catches_or_is_gone
kill -TERM $replay
wait $replay
status=$?
if [ $status -ne 0 ] || ! grep -q '^requests .*interrupted' "$work/out"; then
	complain "interrupted: status $status"
fi
exit $failed
