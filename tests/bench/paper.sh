#!/bin/sh
# bench/paper/run gives every row of the published experiment, from a generated trace where there is no recorded one.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-paper-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 2 --sessions 3 --turns 3 --length 0.2 --output "$work/trace.tar" >/dev/null || complain "no trace"
FLATCAKE_PAPER=$FC_BUILD_DIR/flatcake-paper "$FC_SOURCE_DIR/bench/paper/run" --json "$work/rows.json" "$work/trace.tar" \
	>"$work/out" 2>&1 || complain "failed: $(cat "$work/out")"
for row in 'reusable prefix, upper bound' 'FlatCake, points below the bound at 1.0/s (published: at most)' \
	'Mooncake, delivered hit rate at 0.1/s' 'Mooncake, delivered hit rate at 0.5/s' 'DRAM only (HiCache) at 0.5/s' \
	'FlatCake, SSD read bandwidth of a load' 'FlatCake, SSD prefetch at 0.1/s' 'Mooncake, SSD prefetch at 1.0/s' \
	'SSD read amplification, Mooncake / FlatCake' 'one queue instead of two, mean TTFT' 'one queue instead of two, P99 TTFT' \
	'Llama-3.1-70B, 16K, mean TTFT, FlatCake' 'Llama-3.1-70B, 64K, mean TTFT, Mooncake-GDS' 'DRAM : SSD bandwidth'; do
	grep -qF "\"row\": \"$row\"" "$work/rows.json" || complain "no row \"$row\""
	grep -qF "$row" "$work/out" || complain "not printed: \"$row\""
done
grep -q '"published": 64.26' "$work/rows.json" || complain "no published figure"
grep -q 'DRAM 8 GiB .*mooncake, staging of the node' "$work/out" || complain "no sweep over what is not published"
exit $failed
