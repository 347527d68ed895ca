#!/bin/sh
# tune finds settings that replay takes, the same ones on any number of cores, and keeps to a limit of writes.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-tune-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 3 --sessions 8 --turns 2 --length 0.1 --output "$work/trace.tar" >/dev/null || complain "no trace"
budgets='--memory 256MiB --ssd 32GiB --rate 2'
number() { # FILE OBJECT MEMBER
	sed -n "/\"$2\": {/,/}/s/.*\"$3\": \([0-9.eE+-]*\).*/\1/p" "$1" | head -n 1
}

# What is found is taken by replay, and the budgets are smaller than what was given.
"$FLATCAKE" tune "$work/trace.tar" $budgets --output "$work/tuned.yaml" --json "$work/one.json" --jobs 1 >"$work/out" 2>&1 ||
	complain "tune failed: $(cat "$work/out")"
grep -q '^ssd: [0-9]*MiB$' "$work/tuned.yaml" || complain "32 GiB of SSD are not too many: $(cat "$work/tuned.yaml")"
"$FLATCAKE" replay --simulate "$work/trace.tar" --rate 2 --config "$work/tuned.yaml" --json "$work/replay.json" >"$work/out" 2>&1 ||
	complain "replay refuses what tune found: $(cat "$work/out")"


# The file is whole: what was given and what the profile gave are in it, and a daemon can be started with it.
"$FLATCAKE" tune "$work/trace.tar" $budgets --agent-context 7777 --tolerance 1 --window 32MiB --streams 3 --output "$work/whole.yaml" >"$work/out" 2>&1 ||
	complain "tune failed: $(cat "$work/out")"
for line in 'model: deepseek-v4-flash' 'agent_context: 7777' 'window: 32MiB' 'high_watermark: 0.95' 'reclaim_order: lru'; do
	grep -qx "$line" "$work/whole.yaml" || complain "no \"$line\" in: $(cat "$work/whole.yaml")"
done
grep -q '^# flatcake tune trace.tar .*--streams 3' "$work/whole.yaml" || complain "no command in: $(cat "$work/whole.yaml")"
for file in tuned whole; do
	"$FLATCAKED" --check-config --config "$work/$file.yaml" >"$work/out" 2>&1 || complain "flatcaked refuses $file.yaml: $(cat "$work/out")"
done
# A replay with the file is the run that the search ended with.
"$FLATCAKE" tune "$work/trace.tar" $budgets --output "$work/again.yaml" --hold-out 0.5 --json "$work/again.json" >/dev/null 2>&1
"$FLATCAKE" replay --simulate "$work/trace.tar" --rate 2 --sessions 4 --config "$work/again.yaml" --json "$work/replay.json" >/dev/null 2>&1
mean=$(number "$work/again.json" training_tuned ttft_mean_s)
replayed=$(number "$work/replay.json" ttft_ms mean)
[ -n "$mean" ] && awk "BEGIN { exit !($mean * 1000 - $replayed < 0.001 && $replayed - $mean * 1000 < 0.001) }" || complain "replay with the file: not a mean of $mean s"

"$FLATCAKE" tune "$work/trace.tar" $budgets --json "$work/two.json" --jobs 2 >/dev/null 2>&1
cmp -s "$work/one.json" "$work/two.json" || complain "one job and two find different settings"

# A limit of fewer writes is kept where it can be, and else it is said.
given=$(number "$work/one.json" training_given ssd_bytes_written_per_day)
limit=$(awk "BEGIN { printf \"%.0f\", $given * 0.8 }")
"$FLATCAKE" tune "$work/trace.tar" $budgets --writes-per-day "$limit" --json "$work/fewer.json" >/dev/null 2>&1 ||
	complain "no settings for a limit of writes"
tuned=$(number "$work/fewer.json" training_tuned ssd_bytes_written_per_day)
awk "BEGIN { exit !($tuned <= $limit) }" || complain "$tuned bytes a day, allowed are $limit"
"$FLATCAKE" tune "$work/trace.tar" $budgets --writes-per-day 1KiB >"$work/out" 2>&1
grep -q 'comes nearest' "$work/out" || complain "an impossible limit is not called so: $(cat "$work/out")"

for wrong in '--writes-per-day 1GiB' '--objective ssd-writes'; do
	"$FLATCAKE" tune "$work/trace.tar" --memory 256MiB --ssd 32GiB $wrong >"$work/out" 2>&1 && complain "$wrong is accepted without a rate"
	grep -q 'add --rate' "$work/out" || complain "$wrong: no reason: $(cat "$work/out")"
done

# Parts of a trace.
"$FLATCAKE" analyze "$work/trace.tar" --skip 3 --json "$work/part.json" >/dev/null 2>&1 || complain "--skip failed"
grep -A 1 '"sessions": {' "$work/part.json" | grep -q '"count": 5,' || complain "8 sessions less 3 are not 5"
for wrong in "--skip 8" "--hold-out 0.05" "--objective speed" "--tolerance -1"; do
	"$FLATCAKE" tune "$work/trace.tar" $budgets $wrong >"$work/out" 2>&1 && complain "$wrong is accepted"
done
"$FLATCAKE" tune - $budgets <"$work/trace.tar" >"$work/out" 2>&1 && complain "a trace from standard input is accepted"
grep -q 'three times' "$work/out" || complain "no reason: $(cat "$work/out")"
exit $failed
