#!/bin/sh
# A profile that the benchmark measures is one that a simulation takes, with every number's origin, and nothing else is
# left behind. What the numbers are is the machine's business.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-profile-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

mkdir "$work/disk"
"$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 2 --model llama-3.1-8b --memory 3MiB --ssd 64MiB \
	--profile "$work/here.yaml" >"$work/out" 2>"$work/err" || complain "failed: $(cat "$work/err")"
[ -z "$(ls -A "$work/disk")" ] || complain "left behind: $(ls -A "$work/disk")"
[ ! -s "$work/out" ] || complain "measured more than the profile: $(cat "$work/out")"
grep -v '^#' "$work/here.yaml" | grep -v ' # ' | grep . && complain "numbers without an origin"
for line in 'model: llama-3.1-8b ' 'memory_bytes: 3145728 ' 'ssd_bytes: 67108864 ' 'cpu_device: on ' 'batch_max: 1 ' 'ssd_count: 1 '; do
	grep -q "^$line" "$work/here.yaml" || complain "no line \"$line\""
done
for key in ssd_read_bytes_per_s ssd_write_bytes_per_s ssd_command_ns direct_command_ns link_up_bytes_per_s load_ns; do
	grep -q "^$key: [1-9].*# measured" "$work/here.yaml" || complain "$key is not measured"
done
grep -q '^ssd_joint_reports: o[nf]*  *# measured' "$work/here.yaml" || complain "how the disk reports is not measured"

"$FLATCAKE" gen --sessions 2 --turns 3 --length 0.1 --output "$work/trace.tar" >/dev/null || complain "no trace"
"$FLATCAKE" replay --simulate --hardware "$work/here.yaml" --json "$work/result.json" "$work/trace.tar" >/dev/null \
	2>"$work/err" || complain "a simulation does not take it: $(cat "$work/err")"
grep -q '"hardware": "here"' "$work/result.json" || complain "the simulation has no name for it"

# With --only, the measurements that it names run too.
"$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 1 --only lookup --profile - >"$work/out" 2>"$work/err" ||
	complain "failed: $(cat "$work/err")"
grep -q '^ssd_read_bytes_per_s: ' "$work/out" || complain "no profile on standard output"
grep -q '^lookup ' "$work/out" || complain "no measurement that --only names"

# A profile that cannot be written, or measured, leaves the one that was there.
cp "$work/here.yaml" "$work/before.yaml"
"$FLATCAKE" bench --dir "$work/none" --force --profile "$work/here.yaml" >"$work/out" 2>"$work/err" &&
	complain "a folder that is not there was accepted"
grep -q "$work/none" "$work/err" || complain "said: $(cat "$work/err")"
cmp -s "$work/before.yaml" "$work/here.yaml" || complain "the profile that was there is gone"
"$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 1 --profile "$work/none/here.yaml" >"$work/out" 2>"$work/err" &&
	complain "a path that is not there was accepted"
grep -q -e "--profile: .*$work/none" "$work/err" || complain "said: $(cat "$work/err")"
exit $failed
