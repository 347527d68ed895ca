#!/bin/sh
# What a program finds where an arena lies already: another model, another size, the rest of an interrupted format, a mode
# that lets others in. What is of no use is refused by name and left alone, what can be put right is, and is said.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-again-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
store="$work/store"
arena="$store/ssd.arena"
failed=0
complain() { echo "$*"; failed=1; }
replay() { "$FLATCAKE" replay "$work/trace" --dir "$store" --memory 0 "$@" >"$work/out" 2>"$work/err"; }

"$FLATCAKE" gen --seed 5 --sessions 2 --turns 3 --length 0.1 --output "$work/trace" >/dev/null || exit 1
replay --model llama-3.1-70b --scale 1280 --ssd 64MiB || complain "no store was made: $(cat "$work/err")"

# Sizes are equal: half the bytes a value, half the scale.
cp "$arena" "$work/before"
replay --model llama-3.1-70b-fp8 --scale 640 --ssd 64MiB && complain "another model of equal sizes was taken"
grep -q 'the arena has geometry llama-3.1-70b: .* wanted llama-3.1-70b-fp8: ' "$work/err" || complain "not named: $(cat "$work/err")"
replay --model llama-3.1-70b-fp8 --scale 640 --ssd 128MiB && complain "another model was taken with another size"
cmp -s "$arena" "$work/before" || complain "an arena of another model was changed"

# Eight times as large and no larger, and no byte of the disk that could not be used.
replay --model llama-3.1-70b --scale 1280 --ssd 4GiB || complain "an arena did not grow: $(cat "$work/err")"
grep -q 'and not 4294967296: its chunk table' "$work/err" || complain "not told that it cannot grow so far: $(cat "$work/err")"
"$FLATCAKE" stat --dir "$store" --json "$work/stat.json" >/dev/null || complain "stat failed"
usable=$(sed -n 's/^ *"bytes": \([0-9]*\),*$/\1/p' "$work/stat.json")
taken=$(($(stat -c %s "$arena") - usable))
{ [ "$usable" -ge 536870912 ] && [ "$taken" -lt 2097152 ]; } || complain "$usable bytes are usable, $taken are not"
grep -q "\"bytes_max\": $(stat -c %s "$arena")" "$work/stat.json" || complain "stat does not say how far an arena can grow"

# Whoever can read an arena can read what people wrote.
chmod 666 "$arena"
replay --model llama-3.1-70b --scale 1280 --ssd 64MiB || complain "an arena of mode 0666 was refused: $(cat "$work/err")"
grep -q 'ssd.arena: had mode 0666' "$work/err" || complain "a mode was changed without a word: $(cat "$work/err")"
[ "$(stat -c %a "$arena")" = 600 ] || complain "others can still read the arena"

# A format that was interrupted after its first write: magic, byte order mark, version.
rm "$arena"
truncate -s 64M "$arena"
printf 'FLTCAKE1\010\007\006\005\004\003\002\001\0\0\0\0\0\0\0\0\001\0\0\0' | dd of="$arena" conv=notrunc 2>/dev/null
"$FLATCAKE" stat --dir "$store" >/dev/null 2>"$work/err" && complain "an interrupted format has content"
grep -q 'nothing was ever stored in it' "$work/err" || complain "an interrupted format is called: $(cat "$work/err")"
replay --model llama-3.1-70b --scale 1280 --ssd 128MiB || complain "a format was not begun again: $(cat "$work/err")"

exit $failed
