#!/bin/sh
# The simulator finds every planted bug (src/base/plant.h) within the number of seeds that stands here, and says nothing of
# a core without one. A bug that only shows when certain faults meet is looked for where they do.
set -u
sim="$FC_BUILD_DIR/flatcake-sim-planted"
[ -z "${FC_SANITIZE:-}" ] || { echo "planted bugs are for the plain build"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-plants-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
count=0

plants() { # NAME SEEDS OPTIONS...
	cat <<-'END'
	skip-checksum     100
	header-first      300 --no-faults --fault power=0.05 --fault reordered=1 --fault torn=1
	no-final-sync     200
	short-header      300
	free-at-once      300 --no-faults --fault power=0.05 --fault reordered=1 --fault torn=1
	no-revive         200
	kept-lease        50
	lost-request      50
	half-session      50
	reclaim-leased    200
	no-cut            100
	swap-layers       100
	swap-blocks       50
	short-read        300
	early-layer       50
	busy-slot         50
	half-key          50
	no-resume-rule    50
	short-window      50
	ready-at-tail     50
	prepare-in-order  100
	no-pin            1500 --no-faults --fault power=0.05 --fault reordered=1 --fault torn=1
	no-backup         100
	chunk-count       50
	unchecked-header  100
	any-geometry      50
	name-once         3000 --no-faults
	durable-twice     50
	endless-wait      200
	wake-in-past      100
	endless-spill     150 --no-faults --fault sticky-error=0.004
	foreign-quota     100
	leak              50
	no-fence          200 --wired
	dead-lease        50 --wired
	early-orphan      100 --wired
	forget-crossed    50 --wired
	durable-unheard   50 --wired
	trusted-report    100 --wired
	common-salt       100 --wired
	any-version       600 --wired --fault stranger=0.5
	silent-abort      50 --wired
	commit-of-the-lost 200 --wired
	early-unlock      200 --wired
	numbers-anew      100 --wired
	not-asked-again   50 --wired
	any-name          50
	reclaim-saved     50
	late-memory       100
	drop-copies       100
	read-outlasts-deadline 50
	left-copy         300 --no-faults
	endless-sync      50
	cut-on-error      100 --no-faults --fault read-error=0.02
	unchecked-sync    100 --no-faults --fault removed=0.01
	late-twice        50 --no-faults --fault late=0.02
	gate-in-order     100
	save-before-load  50
	full-beside       600
	long-express      50
	wake-for-nothing  100 --wired --fault stranger=0.1
	no-share          300 --wired
	any-progress      300 --wired --fault mute=0.05
	kept-part         50
	END
}

{ "$sim" --seeds 1..20 && "$sim" --wired --seeds 1..20; } >"$work/out" 2>&1 || { cat "$work/out"; echo "something broke without a planted bug"; failed=1; }

plants >"$work/plants"
while read -r name seeds options; do
	count=$((count + 1))
	# shellcheck disable=SC2086 # options are words
	"$sim" --plant "$name" --seeds "1..$seeds" $options >"$work/out" 2>&1
	status=$?
	line=$(sed -n 's/^BROKEN: //p' "$work/out")
	if [ $status -eq 1 ] && [ -n "$line" ]; then
		printf '%-19s %s\n' "$name" "$line"
	else
		echo "$name was not found in $seeds seeds"
		failed=1
	fi
done <"$work/plants"

"$sim" --list-plants | sort >"$work/known"
awk '{ print $1 }' "$work/plants" | sort | diff - "$work/known" || { echo "the list above is not that of the program"; failed=1; }
[ $count -ge 20 ] || failed=1
exit $failed
