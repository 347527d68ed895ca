#!/bin/sh
# Nothing breaks in a few hundred simulated runs of either kind, a seed says everything, and what the program is told wrong
# it refuses.
set -u
sim="$FC_BUILD_DIR/flatcake-sim"
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-sim-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
seeds=300
[ -z "${FC_SANITIZE:-}" ] || seeds=60
failed=0

"$sim" --seeds "1..$seeds" --jobs 2 || failed=1
"$sim" --wired --seeds "1..$seeds" --jobs 2 || failed=1

for run in "--seed 3" "--seed 8" "--wired --seed 8" "--wired --seed 9"; do
	# shellcheck disable=SC2086 # options are words
	"$sim" $run --log >"$work/first" && "$sim" $run --log >"$work/second" || failed=1
	# the last figure of the line of figures ends with a speed
	sed -i 's/; [0-9]* operations\/s$//' "$work/first" "$work/second"
	cmp "$work/first" "$work/second" || { echo "two runs of $run differ"; failed=1; }
	[ "$(wc -l <"$work/first")" -gt 500 ] || { echo "the log of $run is too short"; failed=1; }
done

refuses() { # ARGUMENTS...
	"$sim" "$@" >"$work/out" 2>&1
	[ $? -eq 2 ] && [ -s "$work/out" ] || { echo "not refused: $*"; failed=1; }
}
refuses --seed x
refuses --seeds 5..4
refuses --seeds 5
refuses --ops -1
refuses --fault no-such-fault=0.1
refuses --fault crash=2
refuses --fault crash
refuses --seeds 1..2 --log
refuses argument
exit $failed
