#!/bin/sh
# --concurrency-per-rate: every rate of --rates has sessions in proportion, as a run of its own with that --concurrency.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-rates-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --seed 1 --sessions 24 --turns 6 --length 0.2 --output "$work/trace.tar" >/dev/null || complain "no trace"
simulate() { # NAME OPTION...
	name=$1
	shift
	"$FLATCAKE" replay "$work/trace.tar" --simulate --policy flat,hicache --memory 32MiB --json "$work/$name.json" "$@" >"$work/$name" 2>&1 ||
		complain "$name: $(cat "$work/$name")"
}
figures() { # NAME RATE: what both runs at this rate delivered and how long it took, without the time of the machine
	awk -v rate="$2" '$4 == rate { $NF = $(NF - 1) = ""; print }' "$work/$1"
}
simulate both --rates 0.2,2 --concurrency-per-rate 8
simulate low --rate 0.2 --concurrency 2
simulate high --rate 2 --concurrency 16
for pair in low:0.2 high:2; do
	figures both "${pair#*:}" >"$work/a"
	figures "${pair%:*}" "${pair#*:}" >"$work/b"
	[ -s "$work/a" ] && cmp -s "$work/a" "$work/b" || complain "$pair differs: $(cat "$work/a") and alone $(cat "$work/b")"
done
simulate fixed --rate 2 --concurrency 2
figures fixed 2 >"$work/a"
! cmp -s "$work/a" "$work/b" || complain "the number of sessions changes nothing in this trace: the test proves nothing"

refused() { # WORDS OPTION...
	words=$1
	shift
	"$FLATCAKE" replay "$work/trace.tar" "$@" >"$work/out" 2>&1 && complain "accepted: $*"
	grep -qF -- "$words" "$work/out" || complain "$*: no \"$words\" in: $(cat "$work/out")"
}
refused 'without a rate' --simulate --concurrency-per-rate 8
refused '--rates: 1.0 stands twice' --simulate --rates 1,2,1.0
refused '--rates: max stands twice' --simulate --rates max,1,max
refused '--memories: 1024MiB stands twice' --simulate --memories 1GiB,1024MiB
refused 'not with --nodes' --simulate --rate 1 --concurrency-per-rate 8 --nodes 2
refused 'not with --mix' --simulate --rate 1 --concurrency-per-rate 8 --mix 1
refused 'not with --concurrency' --simulate --rate 1 --concurrency-per-rate 8 --concurrency 2
refused 'add --simulate' --concurrency-per-rate 8 --dir "$work/store"
exit $failed
