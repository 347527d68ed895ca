#!/bin/sh
# --report writes one page that holds what was found and needs nothing else, for a simulation and for an analysis.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-report-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 1 --sessions 4 --turns 4 --length 0.2 --output "$work/trace.tar" >/dev/null || complain "no trace"

check_page() { # FILE WORDS...
	page=$1
	shift
	for word; do
		grep -qF "$word" "$page" || complain "$page: no \"$word\""
	done
	for word in http src= href= '<script' nan "$work"; do
		! grep -qF "$word" "$page" || complain "$page: holds \"$word\""
	done
	[ "$(tail -n 1 "$page" | tail -c 15 | tr -d '\n')" = '</body></html>' ] || complain "$page: does not end"
}

"$FLATCAKE" replay "$work/trace.tar" --simulate --policy flat,recompute --rates 0.5,2 --memories 4MiB,1GiB --report "$work/lines.html" \
	>"$work/out" 2>&1 || complain "no page of lines: $(cat "$work/out")"
check_page "$work/lines.html" flat recompute 'at 2 requests/s with 1.0 GiB of DRAM' 'Over the load' 'Over the DRAM' 'SSD reads over time' 'LRU cache'
"$FLATCAKE" replay "$work/trace.tar" --simulate --policy flat --report "$work/bars.html" >"$work/out" 2>&1 ||
	complain "no page of bars: $(cat "$work/out")"
check_page "$work/bars.html" 'as fast as they are taken' 'Where the time to the first token went'
"$FLATCAKE" analyze "$work/trace.tar" --report "$work/analysis.html" >"$work/out" 2>&1 ||
	complain "no page of an analysis: $(cat "$work/out")"
check_page "$work/lines.html" '<b>Delivered in time.</b>' 'Where sessions lie on the SSD' 'flat, from nearby' \
	'flatcake replay trace.tar --simulate --policy flat,recompute --memories 4MiB,1GiB --rates 0.5,2</code>'
check_page "$work/analysis.html" 'best possible' 'tiering would do from' 'KV of a session'

! grep -q 'No other that ran' "$work/bars.html" || complain 'flat alone is compared with others'

# A trace that names no blocks, and one in which nothing comes back: nothing could be delivered, which is no share.
for time in 0 1000 2000; do
	printf '{"timestamp":%d,"input_length":5000,"output_length":9,"hash_ids":[]}\n' $time >>"$work/unnamed.jsonl"
	printf '{"timestamp":%d,"input_length":900,"output_length":9,"hash_ids":[%d,7]}\n' $time $time >>"$work/once.jsonl"
done
for trace in unnamed once; do
	"$FLATCAKE" replay "$work/$trace.jsonl" --simulate --policy flat,mooncake,recompute --rates 1,2 --memory 64MiB --ssd 1GiB \
		--report "$work/$trace.html" >"$work/out" 2>&1 || complain "no page of $trace: $(cat "$work/out")"
	check_page "$work/$trace.html" 'Nothing: no prompt begins with blocks that were there before.' '<td>n/a</td>'
	! grep -q 'delivered / possible' "$work/$trace.html" || complain "$trace: a plot of no shares"
done

"$FLATCAKE" replay "$work/trace.tar" --dir "$work/store" --report "$work/live.html" >"$work/out" 2>&1
[ $? -eq 2 ] || complain "a live replay accepts --report"
grep -q -- '--simulate' "$work/out" || complain "no advice: $(cat "$work/out")"
"$FLATCAKE" analyze "$work/trace.tar" --report "$work/none/page.html" >"$work/out" 2>&1
[ $? -eq 1 ] || complain "a folder that is not there is accepted"
grep -q -- '--report: cannot create' "$work/out" || complain "no reason: $(cat "$work/out")"
exit $failed
