#!/bin/sh
# `flatcake analyze` as it is called: what it prints, for people and machines, that two of the numbers agree with what a
# trace was made to be, and that neither the number of cores nor the way the trace comes in changes a byte.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-analyze-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

complain() {
	echo "$1"
	sed 's/^/  out: /' out
	sed 's/^/  err: /' err
	failed=1
}

# expect STATUS STREAM TEXT ARGUMENT...
expect() {
	want_status=$1 stream=$2 text=$3
	shift 3
	"$FLATCAKE" analyze "$@" >out 2>err
	status=$?
	if [ $status -ne "$want_status" ] || ! grep -qE -- "$text" "$stream"; then
		complain "flatcake analyze $*: status $status (wanted $want_status), wanted on std$stream: $text"
	fi
}

expect 2 err 'analyze: an argument is missing'
expect 2 err 'unknown option "--ssd"|--ssd' trace.tar.zst --ssd 1GiB
"$FLATCAKE" gen --seed 5 --sessions 12 --turns 12 --length 0.5 --output trace.tar.zst || complain 'gen'
expect 2 err '--model: .*deepseek-v3' trace.tar.zst --model gpt-0

expect 0 out '^[0-9,]+ requests in 12 sessions, as the trace gives them$' trace.tar.zst --memory 256MiB
for wanted in '^input tokens +[1-9]' '^KV of a session +[1-9].* MiB' '^  distinct bytes +[1-9]' '^best possible hit rate +[1-9]' \
	'^tiered, 256.0 MiB of DRAM +[0-9.]+ %' '^ +[0-9.]+ [KMG]iB +[0-9.]+ %   #*\.*$' '^This is agent traffic: ' \
	'^At this load, tiering would do from '; do
	grep -qE -- "$wanted" out || complain "the text has no line like: $wanted"
done

# An agent's working set does not fit into next to nothing, and fits into what holds everything.
expect 0 out '^Tiering would not do: ' trace.tar.zst --memory 1MiB
expect 0 out '^DRAM is enough: ' trace.tar.zst --memory 1TiB
expect 0 out '^  hits that come from SSD +0.0 % ' trace.tar.zst --memory 1TiB
# Bytes follow the model; 70 / 4 times those of the default.
expect 0 out '^blocks of 64 tokens; llama-3.1-70b / 1: 20.0 MiB a block' trace.tar.zst --model llama-3.1-70b

expect 0 out '"tiering": "tiering_would_not_do"' trace.tar.zst --memory 1MiB --json -
[ "$(head -c 1 out)" = '{' ] || complain '--json - printed more than JSON'
expect 0 out '^best possible' trace.tar.zst --memory 1MiB --json result.json
"$FLATCAKE" analyze trace.tar.zst --memory 1MiB --json - >printed || complain 'analyze --json -'
cmp -s printed result.json || complain 'the JSON of a file and of standard output differ'

# The same trace by another way, and on one core.
"$FLATCAKE" gen --seed 5 --sessions 12 --turns 12 --length 0.5 --output plain.tar && tar -xf plain.tar || complain 'tar'
for session in generated/*.json; do
	cat "$session"
	echo
done >trace.jsonl
"$FLATCAKE" analyze - --memory 1MiB --json - <trace.jsonl >other 2>err || complain 'analyze from standard input'
cmp -s printed other || complain 'another way in gives another result'
taskset -c 0 "$FLATCAKE" analyze trace.tar.zst --memory 1MiB --json - >other 2>err || complain 'analyze on one core'
cmp -s printed other || complain 'one core gives another result'
exit $failed
