#!/bin/sh
# What `make demo-llm` does, with a smaller model: every system that stores says what the one says that never forgets, in
# every bit, and nothing but the results is left.
. "$FC_SOURCE_DIR/tests/llama/prepare"
LLAMA="$llama" "$here/demo" "$FC_BUILD_DIR" "$work/demo" small

# system-of-the-result field: a number
number() {
	awk -v name="\"$1\":" -v field="\"$2\":" '$1 == name { is_it = 1 } is_it && $1 == field { print $2 + 0; exit }' "$work/demo/replay.json"
}
turns=$(number unlimited turns)
[ "$turns" -eq 16 ] || { echo "$turns turns, not 4 x 4"; exit 1; }
restored=$(number file restored_tokens)
for system in file file-cold memory ssd; do
	[ "$(number $system turns_with_equal_bits)" -eq "$turns" ] || { echo "$system: other logits"; exit 1; }
	[ "$(number $system turns_with_equal_reply)" -eq "$turns" ] || { echo "$system: other replies"; exit 1; }
	[ "$(number $system restored_tokens)" -ge "$restored" ] || { echo "$system: restored less than files"; exit 1; }
done
[ "$restored" -gt 0 ] || { echo "nothing was restored"; exit 1; }
[ "$(number recompute restored_tokens)" -eq 0 ] || { echo "recompute restored something"; exit 1; }
grep -q '</svg>' "$work/demo/worth.svg"

left=$(cd "$work/demo" && ls | tr '\n' ' ')
[ "$left" = 'bin model.gguf replay.json worth.json worth.svg ' ] || { echo "left: $left"; exit 1; }

# The user's own text, told turn by turn; and options that make no sense.
printf 'One day a cake was baked.\n\nIt was flat.\n\nWho ate it?\n' >"$work/cake.txt"
printf 'Another text.\n\nIt has a few paragraphs.\n\nThis is one.\n\nThis the last.\n' >"$work/other.txt"
replay="$work/demo/bin/flatcake-llama-replay --model $work/demo/model.gguf --dir $work"
$replay --text "$work/cake.txt" --text "$work/other.txt" --slots 1 --seed 3 --block 16 --type-k q8_0 --type-v q8_0 --json "$work/demo/replay.json"
[ "$(number ssd turns_with_equal_bits)" -eq 7 ] || { echo "texts: other logits"; exit 1; }
[ "$(number ssd restored_tokens)" -gt 0 ] || { echo "texts: nothing was restored"; exit 1; }
refused() { # TEXT OPTION...
	expected=$1
	shift
	! $replay "$@" >"$work/log" 2>&1 || { echo "$* was taken"; exit 1; }
	grep -q -e "$expected" "$work/log" || { cat "$work/log"; exit 1; }
}
refused 'a number from 1 to 255' --sessions 0
refused 'no such option' --frobnicate 1
refused 'are allowed' --systems ssd,floppy
refused 'cannot be given together' --trace x --text y
refused 'is not a model' --model "$work/cake.txt"
