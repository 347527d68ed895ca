#!/bin/sh
# bench/validate/run compares a live with a simulated replay of tiny traces, and its result is one that a simulation's page
# takes. Times are not looked at.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-validate-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

run() { VALIDATE_PROGRAM=$FC_BUILD_DIR/flatcake-validate "$FC_SOURCE_DIR/bench/validate/run" --dir "$work/dir" "$@"; }

"$FLATCAKE" gen --sessions 2 --turns 3 --length 0.02 --seed 3 --output "$work/recorded.tar" >/dev/null || complain "no trace"
run --small --runs 1 --json "$work/result.json" "$work/recorded.tar" >"$work/out" 2>"$work/err" ||
	complain "failed: $(cat "$work/err")"
for workload in agent chat long busy recorded.tar; do
	for what in 'delivered hit rate' 'read commands' 'mean TTFT' 'p99 TTFT'; do
		grep -q "^$workload: .* $what  *[0-9]" "$work/out" || complain "no row $workload, $what"
	done
done
[ "$(grep -c '"workload"' "$work/result.json")" = 25 ] || complain "rows: $(grep -c '"workload"' "$work/result.json")"
# What the order of events decides is equal where that order is determined; the rest is the machine's business.
for workload in agent chat long; do
	grep -q "^$workload: .* delivered hit rate .* met" "$work/out" || complain "$workload: another hit rate: $(cat "$work/out")"
done
find "$work/dir" -name '*.arena' | grep . && complain "a store is left"

"$FLATCAKE" replay --simulate --hardware this-machine --report "$work/page.html" --validation "$work/result.json" \
	"$work/recorded.tar" >/dev/null 2>"$work/err" || complain "the page failed: $(cat "$work/err")"
grep -q 'Is the simulator right?' "$work/page.html" || complain "no section in the page"
grep -q 'processors (' "$work/page.html" || complain "no machine in the page"

# The profile may be given, and workloads chosen.
run --small --runs 1 --only long --hardware this-machine >"$work/out" 2>"$work/err" || complain "failed: $(cat "$work/err")"
grep -q '^long: ' "$work/out" || complain "no workload long"
grep -q '^agent: ' "$work/out" && complain "--only left agent in"

refused() { # what is said, then arguments
	said=$1
	shift
	run "$@" >"$work/out" 2>"$work/err"
	[ $? -eq 2 ] || complain "accepted: $*"
	grep -qe "$said" "$work/err" || complain "$* said: $(cat "$work/err")"
}
refused '--runs: "0" does not fit' --small --runs 0
refused 'there is no workload "agnet"' --small --only agnet
refused 'unknown option --quick' --small --quick 1
refused '--json: a value is missing' --small --json
refused 'none.tar: No such file' --small "$work/none.tar"
exit $failed
