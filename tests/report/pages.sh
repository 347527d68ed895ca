#!/bin/sh
# What --report writes, seen through a browser: on a phone, on a desktop in the light and in the dark, and on paper. See
# pages.py for what is checked; that it finds what is wrong is checked first. Skipped without chromium or python3.
set -u
checker="$FC_SOURCE_DIR/tests/report/pages.py"
command -v chromium >/dev/null || { echo "skipped: no chromium"; exit 77; }
[ -x /usr/bin/python3 ] || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-pages-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

# ---- the checks themselves

"$FLATCAKE" gen --seed 1 --sessions 12 --turns 8 --length 0.3 --output "$work/trace.tar" >/dev/null || complain "no trace"
"$FLATCAKE" analyze "$work/trace.tar" --report "$work/analysis.html" >/dev/null || complain "no page of an analysis"
/usr/bin/python3 "$checker" "$work/analysis.html" >"$work/out" 2>&1 || complain "a good page: $(cat "$work/out")"

expect() { # WHAT SED-COMMAND COMPLAINT
	sed "$2" "$work/analysis.html" >"$work/bad.html"
	/usr/bin/python3 "$checker" "$work/bad.html" >"$work/out" 2>&1
	[ $? -eq 1 ] || complain "$1 passes: $(cat "$work/out")"
	grep -q "$3" "$work/out" || complain "$1: no word of it: $(cat "$work/out")"
}
expect 'what is no number' 's/<circle class="point c1" cx="[0-9.]*"/<circle cx="nan"/' 'cx is nan'
expect 'a wide page' 's/<footer>/<div style="width:2000px">wide<\/div><footer>/' 'the screen 390'
expect 'pale text' 's/--quiet:#[0-9a-f]*/--quiet:#888888/g' 'contrast'
expect 'a message' 's/<footer>/<script>console.log(1)<\/script><footer>/' 'console'
expect 'a request' 's/<footer>/<img src="elsewhere.png"><footer>/' 'fetches'
expect 'labels of one place' 's/<text class="y" x="[0-9.]*" y="[0-9.]*"/<text class="y" x="84" y="50"/g' 'overlap'
expect 'an empty picture' 's/<path class="line[^>]*>//g' 'an empty picture'
expect 'one colour for both' 's/prefers-color-scheme:dark/prefers-color-scheme:none/' 'dark: the background'

# ---- the pages

simulate() { # PAGE OPTION...
	page=$1
	shift
	"$FLATCAKE" replay "$work/trace.tar" --simulate --report "$work/$page.html" "$@" >"$work/out" 2>&1 ||
		complain "$page: $(cat "$work/out")"
}
simulate lines --policy all --rates 0.5,2,8 --memories 1GiB,64MiB,8MiB --ssd 512MiB
simulate bars --policy flat,mooncake,recompute --memory 8MiB --ssd 128MiB
simulate alone --policy flat
simulate nothing --policy recompute,hicache --ssd 0
printf '{"timestamp":%d,"input_length":5000,"output_length":9,"hash_ids":[]}\n' 0 1000 2000 >"$work/unnamed.jsonl"
"$FLATCAKE" replay "$work/unnamed.jsonl" --simulate --policy flat,recompute --rates 1,2 --report "$work/unnamed.html" >"$work/out" 2>&1 ||
	complain "unnamed: $(cat "$work/out")"
/usr/bin/python3 "$checker" ${FC_SHOTS:+--shots "$FC_SHOTS"} "$work/lines.html" "$work/bars.html" "$work/alone.html" "$work/nothing.html" "$work/unnamed.html" \
	>"$work/out" 2>&1 || complain "pages: $(cat "$work/out")"
set -- "$FC_SOURCE_DIR"/docs/results/*.html
[ ! -f "$1" ] || /usr/bin/python3 "$checker" "$@" >"$work/out" 2>&1 || complain "results: $(cat "$work/out")"
exit $failed
