#!/bin/sh
# A program of one's own needs no more than what is installed, libflatcake-llama.a and two headers; the next process finds
# what the last one stored, and says the same.
[ -z "${FC_SANITIZE:-}" ] || { echo "a sanitized library wants its users sanitized"; exit 77; }
. "$FC_SOURCE_DIR/tests/llama/prepare"
prefix="$work/prefix"
cmake --install "$FC_BUILD_DIR" --prefix "$prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
description=$(dirname "$(find "$prefix" -name flatcake.pc)")
sed -i "s|^prefix=.*|prefix=$prefix|" "$description/flatcake.pc" # it names the prefix that was configured
export PKG_CONFIG_PATH="$description" LD_LIBRARY_PATH="${description%/pkgconfig}"
make -s -C "$here" LLAMA="$llama" OUT="$work/bin" library "$work/bin/example"

"$out/flatcake-llama-make-model" --layers 2 --embd 128 --heads 2 --kv-heads 1 --vocab 1000 "$work/model.gguf"
text=$(seq -s ' ' 1 200)
run() {
	"$work/bin/example" "$work/model.gguf" "$work/store" "$1" 1
}
run "$text" >"$work/first"
run "$text" >"$work/second"
run "$text and more" >"$work/third"
grep -q 'of which 0 need not' "$work/first" || { cat "$work/first"; exit 1; }
count=$(sed -n '1s/ tokens, of which.*//p' "$work/first")
[ "$count" -gt 256 ] || { echo "$count tokens"; exit 1; }
for run in second third; do
	restored=$(sed -n '1s/.*of which \([0-9]*\) need not.*/\1/p' "$work/$run")
	[ "$restored" -eq $((count / 64 * 64)) ] || { cat "$work/$run"; exit 1; }
done
[ "$(sed -n 2p "$work/first")" = "$(sed -n 2p "$work/second")" ] || { cat "$work/first" "$work/second"; exit 1; }
