#!/bin/sh
# --nodes simulates a fleet: the same bytes of JSON from any number of processes, and bad requests are refused by name.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-fleet-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 2 --sessions 6 --turns 3 --length 0.1 --output "$work/trace.tar" >/dev/null || complain "no trace"
for jobs in 1 2 5; do
	"$FLATCAKE" replay --simulate "$work/trace.tar" --nodes 4 --requests 80 --route all --policy flat,hicache --ssd 1GiB --rate 2 \
		--memory 16MiB --jobs $jobs --json "$work/$jobs.json" >"$work/$jobs.out" 2>&1 || complain "$jobs: $(cat "$work/$jobs.out")"
	cmp -s "$work/1.json" "$work/$jobs.json" || complain "$jobs processes find something else than one"
done
grep -q '^4 nodes, 80 requests of ' "$work/1.out" || complain "no head: $(cat "$work/1.out")"
[ "$(grep -c '"route": "round-robin"' "$work/1.json")" -eq 2 ] || complain "not two policies behind each router"
[ "$(grep -c '"ttft_mean_ms": ' "$work/1.json")" -eq 32 ] || complain "not 4 nodes in each of 8 runs"
"$FLATCAKE" replay --simulate "$work/trace.tar" --nodes 4 --requests 80 --route all --policy flat,hicache --ssd 1GiB --rate 2 --memory 16MiB --seed 2 \
	--json "$work/seed.json" >/dev/null 2>&1
cmp -s "$work/1.json" "$work/seed.json" && complain "another seed is another fleet"

refused() { # WORDS ARGUMENTS...
	words=$1
	shift
	"$FLATCAKE" replay "$@" >"$work/out" 2>&1 && complain "accepted: $*"
	grep -qF -- "$words" "$work/out" || complain "$*: no \"$words\" in: $(cat "$work/out")"
}
refused '--route: there is no "sticky"; there are session, least' --simulate "$work/trace.tar" --nodes 2 --route sticky
refused '--rates: not with --nodes' --simulate "$work/trace.tar" --nodes 2 --rates 1,2
refused '--memories: not with --nodes' --simulate "$work/trace.tar" --nodes 2 --memories 1MiB,2MiB
refused '--report: not with --nodes' --simulate "$work/trace.tar" --nodes 2 --report "$work/page.html"
refused 'there is no "lru"' --simulate "$work/trace.tar" --nodes 2 --policy lru
printf '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n' >"$work/chat.jsonl"
refused 'a trace of whole sessions' --simulate "$work/chat.jsonl" --nodes 2
refused '--concurrency' --simulate "$work/trace.tar" --nodes 100000 --concurrency 1000
refused '--nodes: has no effect alone; add --simulate' "$work/trace.tar" --dir "$work/store" --nodes 2
refused '--route: has no effect alone; add --nodes' --simulate "$work/trace.tar" --route least
refused 'add --nodes' --simulate "$work/trace.tar" --requests 10
exit $failed
