#!/bin/sh
# A real engine goes on bit for bit after a restore, and refuses what could not be exact: integrations/llama.cpp/tests.
. "$FC_SOURCE_DIR/tests/llama/prepare"
for seed in 1 2; do
	"$out/flatcake-llama-make-model" --layers 3 --embd 128 --heads 2 --kv-heads 1 --vocab 1000 --seed $seed "$work/$seed.gguf"
done
cmp -s "$work/1.gguf" "$work/2.gguf" && { echo "two seeds, one model"; exit 1; }
TMPDIR="$work" "$out/tests/exactness" "$work/1.gguf" "$work/2.gguf"
TMPDIR="$work" "$out/tests/dangers" "$work/1.gguf" "$work/2.gguf"
