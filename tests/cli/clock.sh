#!/bin/sh
# The clock of a trace: with --speed, requests come when the trace says; without, the result says that it does not count
# and which blocks no cache could deliver. And no more is delivered than the full blocks of an input.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-clock-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
complain() {
	echo "$1"
	sed 's/^/  /' out err
	failed=1
}

live() { # OPTION...: on a store that is new each time
	rm -rf store
	"$FLATCAKE" replay hour.jsonl --dir store --ssd 64MiB --memory 0 --model llama-3.1-8b --scale 4096 "$@" >out 2>err
}
simulated() { # OPTION...
	"$FLATCAKE" replay hour.jsonl --simulate --ssd 64GiB --memory 0 --model llama-3.1-8b "$@" >out 2>err
}
says() { # NAME KEY:VALUE...: the JSON in out
	name=$1
	shift
	for wanted in "$@"; do
		grep -qF -- "\"${wanted%%:*}\": ${wanted#*:}" out || complain "$name: not $wanted"
	done
}

# Two equal requests, an hour apart; 33 tokens are two full blocks of 16.
printf '{"timestamp":%s,"input_length":33,"output_length":1,"hash_ids":[10,20,99]}\n' 0 3600000 >hour.jsonl
for run in 1 2 3; do
	live --block-tokens 16 --speed 3600 --json - || complain "live, run $run: refused"
	says "live, run $run" blocks:4 prefix_blocks:2 delivered_blocks:2 under_way_blocks:0 trace_times_count:true
done
live --block-tokens 16 --speed 3600 || complain 'live, as a table: refused'
! grep -q 'times do not count' out || complain 'live: the times are said not to count'
simulated --block-tokens 16 --speed 1 --json - || complain 'simulated: refused'
says simulated blocks:4 delivered_blocks:2 under_way_blocks:0 'rate_per_s:"trace"'

# Without the clock both are under way at once: how many of the blocks that is, is a matter of who is faster.
live --block-tokens 16 || complain 'live without the clock: refused'
grep -q "^The trace's times do not count: requests start as fast as others end" out || complain 'live: the clock is not spoken of'
live --block-tokens 16 --json - || complain 'live without the clock: refused'
says 'live without the clock' trace_times_count:false
grep -qE '"under_way_blocks": (0|2),' out || complain 'live: neither none nor both blocks under way'
simulated --block-tokens 16 || complain 'simulated without the clock: refused'
grep -q "^The trace's times do not count: .* as others end" out || complain 'simulated: the clock is not spoken of'
grep -q 'nothing could deliver them: 2' out || complain 'simulated: other blocks under way'
simulated --block-tokens 16 --json - || complain 'simulated without the clock: refused'
says 'simulated without the clock' delivered_blocks:0 under_way_blocks:2 'rate_per_s:"max"'

refused() { # WORDS OPTION...
	words=$1
	shift
	"$FLATCAKE" replay hour.jsonl "$@" >out 2>err && complain "accepted: $*"
	grep -qF -- "$words" err || complain "$*: no \"$words\""
}
refused '--rate: not with --speed' --speed 1 --rate 2
refused '--rates: not with --speed' --simulate --speed 1 --rates 2,3
refused '--speed: not with --mix' --simulate --speed 1 --mix 1
exit $failed
