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
expect 0 out '^All KV of this trace, .* fits into 1.0 TiB, so ' trace.tar.zst --memory 1TiB
! "$FLATCAKE" analyze trace.tar.zst --memory 1MiB | grep -q '^All KV of this trace' || complain 'all KV fits into 1 MiB'

# Traffic that a few requests make: what is said of each kind, and what is not said where it would mean nothing.
requests() { # PROMPTS: one request a second of each list of ids
	time=0
	for ids; do
		printf '{"timestamp":%d,"input_length":%d,"output_length":9,"hash_ids":[%s]}\n' $time \
			$(($(echo "$ids" | tr , '\n' | grep -c .) * 512)) "$ids"
		time=$((time + 1000))
	done
}
says() { # TEXT...: as the sentences of small.jsonl, whole
	"$FLATCAKE" analyze small.jsonl >out 2>err || complain 'small.jsonl is refused'
	tr '\n' ' ' <out >sentences
	for text; do
		grep -qF -- "$text" sentences || complain "small.jsonl: not said: $text"
	done
	! sed -n '/^Th/,$p' out | grep -q 'n/a' || complain 'small.jsonl: a sentence about nothing'
	! sed -n '/^Th/,$p' out | grep -qE '^(%|[KMG]iB)|[0-9]$' || complain 'small.jsonl: a line breaks between a number and what it counts'
}
requests 1,2 >small.jsonl
says '1 request in 1 session, inferred' 'This is one-shot traffic: ' 'No cache pays: '
! grep -q 'median sessions' sentences || complain 'one request: sessions that DRAM holds'
requests 1,2,3 1,2,4 1,2,5 1,2,6 1,2,7 1,2,8 >small.jsonl
says 'one-shot traffic' 'DRAM is enough: ' 'would be enough alone. '
requests 1,2,3 1,2,3,4,5 7,8 >small.jsonl
says '3 requests in 2 sessions' 'This is chat traffic: ' 'is 5.6 MiB for each active session' \
	'An LRU cache of 3.8 MiB would serve half of the reuse, one of 5.6 MiB nine tenths.'
grep -qE '^requests of a session +1.5 ' out || complain 'a mean of 1.5 is rounded'
printf '{"timestamp":0,"input_length":5000,"output_length":9,"hash_ids":[]}\n' >small.jsonl
says 'The trace names no blocks, so what a cache would do for it cannot be told.'
expect 0 out '"tiering": "unknown"' small.jsonl --json -

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
