#!/bin/sh
# --mix draws requests of several traces in shares and reports each trace for itself; bench/open/run answers its questions
# from generated traces alone.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-mix-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 1 --sessions 6 --turns 3 --length 0.1 --output "$work/agents.tar" >/dev/null || complain "no trace"
i=0
while [ $i -lt 60 ]; do
	echo "{\"timestamp\": $((i * 1000)), \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, $((i / 2 + 1)), $((i + 1000))]}"
	i=$((i + 1))
done >"$work/chats.jsonl"
"$FLATCAKE" replay --simulate "$work/agents.tar" "$work/chats.jsonl" --mix 1,3 --policy flat,hicache --rate 2 --memory 16MiB \
	--json "$work/mix.json" >"$work/out" 2>&1 || complain "no mix: $(cat "$work/out")"
[ "$(grep -c "chats.jsonl" "$work/out")" -eq 2 ] || complain "chats are not reported for themselves: $(cat "$work/out")"
[ "$(grep -c '"waited_ms"' "$work/mix.json")" -eq 4 ] || complain "not two traces in each of two runs"

refused() { # WORDS ARGUMENTS...
	words=$1
	shift
	"$FLATCAKE" replay "$@" >"$work/out" 2>&1 && complain "accepted: $*"
	grep -qF -- "$words" "$work/out" || complain "$*: no \"$words\" in: $(cat "$work/out")"
}
refused '--mix: 3 shares for 2 traces' --simulate "$work/agents.tar" "$work/chats.jsonl" --mix 1,2,3
refused '--mix' --simulate "$work/agents.tar" "$work/chats.jsonl" --mix 1,none
refused '--mix' --simulate "$work/agents.tar" "$work/chats.jsonl" --mix 1,0
refused '--mix: not with --nodes' --simulate "$work/agents.tar" "$work/chats.jsonl" --mix 1,1 --nodes 2
refused 'add --simulate' "$work/agents.tar" --dir "$work/store" --mix 1

FLATCAKE_OPEN="$FC_BUILD_DIR/flatcake-open" "$FC_SOURCE_DIR/bench/open/run" --sessions 4 --json "$work/open.json" >"$work/out" 2>&1 ||
	complain "bench/open/run: $(cat "$work/out")"
for section in 'beside the alternatives' 'over the DRAM budget' 'short chats' 'agents and chats on one node' 'with two queues'; do
	grep -q "$section" "$work/out" || complain "bench/open/run does not tell of: $section"
done
! grep -qi 'nan' "$work/out" "$work/open.json" || complain "bench/open/run divides by zero"
exit $failed
