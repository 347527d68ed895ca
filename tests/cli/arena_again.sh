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

exit $failed
