#!/bin/sh
# libflatcake.so exports what include/flatcake.h declares, no less and no more; and cmake/flatcake.map lists the same.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-exports-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# Declared: names before a parenthesis on lines that start a declaration, without the inline ones.
awk '/^(static |#|\t| |\/|typedef)/ { next } match($0, /fc_[a-z_]+\(/) { print substr($0, RSTART, RLENGTH - 1) }' \
	"$FC_SOURCE_DIR/include/flatcake.h" | sort -u >"$work/declared"
awk '/^\tfc_/ { sub(/;/, ""); print $1 }' "$FC_SOURCE_DIR/cmake/flatcake.map" | sort -u >"$work/listed"
nm --dynamic --defined-only "$FC_BUILD_DIR/libflatcake.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/exported"

[ "$(wc -l <"$work/declared")" -gt 20 ] || { echo "hardly a function found in flatcake.h"; exit 1; }
failed=0
diff -u --label flatcake.h --label cmake/flatcake.map "$work/declared" "$work/listed" || failed=1
diff -u --label flatcake.h --label libflatcake.so "$work/declared" "$work/exported" || failed=1
exit $failed
