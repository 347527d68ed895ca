#!/bin/sh
# verify, stat and sessions look at a store that nobody uses, change nothing in it, and find what is damaged.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-closed-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
store="$work/store"
arena="$store/ssd.arena"
failed=0
complain() { echo "$*"; failed=1; }

"$FLATCAKE" verify --dir "$store" 2>"$work/err" && complain "a store that is not there was verified"
grep -qF "$arena: no such arena" "$work/err" || complain "no reason given: $(cat "$work/err")"

"$FLATCAKE" gen --seed 5 --sessions 4 --turns 6 --length 0.1 --output "$work/trace.tar.gz" >/dev/null || exit 1
"$FLATCAKE" replay "$work/trace.tar.gz" --dir "$store" --memory 0 --ssd 64MiB --scale 256 >/dev/null || exit 1
cp "$arena" "$work/before"

for command in verify stat sessions; do
	"$FLATCAKE" $command --dir "$store" --json "$work/$command.json" >"$work/$command.txt" || complain "$command failed"
	[ -s "$work/$command.txt" ] || complain "$command printed nothing"
	"$FLATCAKE" $command --dir "$store" --json - >"$work/out" || complain "$command --json - failed"
	cmp -s "$work/out" "$work/$command.json" || complain "$command: standard output is not the JSON alone"
	cmp -s "$arena" "$work/before" || complain "$command changed the arena"
done
grep -q '"whole": true' "$work/verify.json" || complain "a whole store is not called so"
counted=$(sed -n 's/.*"bytes_used_counted": \([0-9]*\).*/\1/p' "$work/verify.json")
scanned=$(sed -n 's/.*"bytes_used_scanned": \([0-9]*\).*/\1/p' "$work/verify.json")
{ [ -n "$counted" ] && [ "$counted" = "$scanned" ]; } || complain "counted $counted bytes, scanned $scanned"
grep -q "\"bytes_used\": $counted" "$work/stat.json" || complain "stat and verify disagree on the bytes used"
sessions=$(grep -c '"session"' "$work/sessions.json")
grep -q "\"sessions\": $sessions" "$work/stat.json" || complain "stat and sessions disagree on the number of sessions"

# A byte inside what is used: in the middle of the last chunk that is not empty.
last=$(od -A d -v -t x8 -w4096 "$arena" | awk '{ for (i = 2; i <= NF; i++) if ($i != "0000000000000000") { at = $1 + (i - 2) * 8; break } } END { print at }')
printf '\125\252\125\252' | dd of="$arena" bs=1 seek=$((last + 4)) conv=notrunc 2>/dev/null
cmp -s "$arena" "$work/before" && complain "the test damaged nothing"
cp "$arena" "$work/damaged"
"$FLATCAKE" verify --dir "$store" --json "$work/bad.json" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || complain "a damaged store was called whole"
grep -q 'damaged: ssd session [0-9a-f]\{32\} turn [0-9]* group [0-9]* layer [0-9]* block [0-9]*' "$work/out" ||
	complain "the damage is not named: $(cat "$work/out")"
grep -q 'slices are damaged' "$work/err" || complain "no reason given: $(cat "$work/err")"
grep -q '"whole": false' "$work/bad.json" || complain "a damaged store is called whole in the JSON"
cmp -s "$arena" "$work/damaged" || complain "verify changed a damaged arena"
exit $failed
