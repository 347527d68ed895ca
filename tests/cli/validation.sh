#!/bin/sh
# A page shows what bench/validate found; a file that is none is refused with the place, the value and what is allowed.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-validation-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" gen --sessions 2 --turns 2 --length 0.05 --output "$work/trace.tar" >/dev/null || complain "no trace"
page() { "$FLATCAKE" replay --simulate --report "$work/page.html" "$@" "$work/trace.tar" >"$work/out" 2>"$work/err"; }

row() { # live, simulated, allowed
	echo "{\"workload\": \"w\", \"what\": \"<hit> rate\", \"unit\": \"%\", \"live\": $1, \"simulated\": $2, \"difference_unit\": \"points\", \"live_spread\": ${4:-0.25}, \"allowed\": $3}"
}
file() { echo "{\"date\": \"2026-01-31\", \"machine\": \"2 processors\", \"runs\": ${2:-3}, \"rows\": [$1]}" >"$work/v.json"; }

file "$(row 90 90.4 0.5), $(row 90 90.6 0.5 null), $(row 1 2 null 1.75)"
page --validation "$work/v.json" || complain "refused: $(cat "$work/err")"
for text in 'Is the simulator right?' '2026-01-31; 2 processors' 'medians of 3 runs' '+0.40 points' '+0.60 points' '>0.25 points<' '>1.75 points<' '&lt;hit&gt; rate'; do
	grep -qF -e "$text" "$work/page.html" || complain "the page has no \"$text\""
done
[ "$(grep -o '>met<' "$work/page.html" | wc -l)" = 1 ] || complain "not one row is met"
[ "$(grep -o '>missed<' "$work/page.html" | wc -l)" = 1 ] || complain "not one row is missed"

refused() { # what is said
	rm -f "$work/page.html"
	page --validation "$work/v.json" && complain "accepted: $(cat "$work/v.json")"
	grep -qF -e "$1" "$work/err" || complain "\"$1\" is not in: $(cat "$work/err")"
	[ ! -e "$work/page.html" ] || complain "a page was written"
}
file "$(row '"x"' 1 1)"
refused 'v.json: rows[0].live is "x"; a number from 0 is allowed'
file "$(row 1 1 1), $(row 1 -2 1)"
refused 'rows[1].simulated is -2; a number from 0 is allowed'
file "$(row 1 1 '"all"')"
refused 'rows[0].allowed is "all"; a number from 0 is allowed'
file "$(row 1 1 1 -1)"
refused 'rows[0].live_spread is -1; a number from 0 is allowed'
file "$(row 1 1 1 | sed 's/points/pints/')"
refused 'rows[0].difference_unit is "pints"; "points" or "%" is allowed'
file "$(row 1 1 1 | sed 's/"unit": "%", //')"
refused 'rows[0].unit is missing; a text of 0 to 255 bytes is allowed'
file ""
refused 'rows: a list of 1 to 128 rows is allowed, not 0'
file "$(row 1 1 1)" 0
refused 'runs is 0; a whole number from 1 to 1000 is allowed'
file "$(row 1 1 1)" 2.5
refused 'runs is 2.5; a whole number from 1 to 1000 is allowed'
echo '{"date": ' >"$work/v.json"
refused 'v.json:'
echo '[]' >"$work/v.json"
refused 'date is missing'
rm "$work/v.json"
refused 'v.json: No such file'

file "$(row 1 1 1)"
"$FLATCAKE" replay --simulate --validation "$work/v.json" "$work/trace.tar" >"$work/out" 2>"$work/err" && complain "shown nowhere"
grep -q -e '--validation: .* add --report' "$work/err" || complain "said: $(cat "$work/err")"
"$FLATCAKE" replay --validation "$work/v.json" --dir "$work/store" "$work/trace.tar" >"$work/out" 2>"$work/err" && complain "shown nowhere"
grep -q -e '--validation: .* add --simulate' "$work/err" || complain "said: $(cat "$work/err")"
exit $failed
