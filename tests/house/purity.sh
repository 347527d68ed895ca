#!/bin/sh
# The pure folders (base, format, catalog, cio, sched, core, wire, client, server) have no time, randomness, threads, files or memory of their own:
# their objects refer to nothing but each other and the functions below. What is wanted from outside comes in through
# struct fc_alloc, fc_clock, fc_media and fc_device.
set -u
failed=0
found=0
allowed='
memcpy memmove memset memcmp memchr
strlen strnlen strcmp strncmp strchr strrchr strstr strspn strcspn strcasecmp
snprintf vsnprintf
crypto_generichash crypto_generichash_init crypto_generichash_update crypto_generichash_final
crypto_generichash_blake2b crypto_generichash_blake2b_init crypto_generichash_blake2b_update
crypto_generichash_blake2b_final crypto_generichash_blake2b_salt_personal
crypto_generichash_blake2b_init_salt_personal
sodium_memzero
__stack_chk_fail _GLOBAL_OFFSET_TABLE_
'
# What compilers put in: checked builds, -D_FORTIFY_SOURCE, arithmetic that the processor lacks.
allowed_patterns='^(XXH|__(memcpy|memmove|memset|snprintf|vsnprintf)_chk$|__asan_|__ubsan_|__tsan_|__sanitizer_|__[a-z]+[sdt]i[234]$)'

list=$(mktemp "${TMPDIR:-/tmp}/flatcake-purity-XXXXXX") || exit 1
trap 'rm -f "$list"' EXIT

check_object() { # FOLDER OBJECT
	for symbol in $(nm --undefined-only --format=posix "$2" | awk '{ print $1 }'); do
		case $symbol in
		fc_*) continue ;; # whose it may be is for tests/house/includes.sh to see
		stderr | fprintf | fwrite | __fprintf_chk)
			# the last words of a broken invariant
			[ "$1/$(basename "$2")" = base/check.c.o ] && continue ;;
		esac
		printf '%s\n' $allowed | grep -qxF -- "$symbol" && continue
		printf '%s\n' "$symbol" | grep -qE "$allowed_patterns" && continue
		echo "src/$1/$(basename "$2" .o) refers to $symbol"
		failed=1
	done
}

for folder in base format catalog cio sched core wire client server; do
	objects="$FC_BUILD_DIR/CMakeFiles/flatcake_$folder.dir"
	find "$objects" -name '*.o' >"$list" 2>/dev/null
	while IFS= read -r object; do
		source="$FC_SOURCE_DIR/${object#"$objects/"}"
		[ -f "${source%.o}" ] || continue # left over from an earlier build
		found=$((found + 1))
		check_object "$folder" "$object"
	done <"$list"
done
[ $found -gt 0 ] || { echo "no object of a pure folder found below $FC_BUILD_DIR"; exit 1; }
[ $failed -eq 0 ] && echo "$found objects are pure"
exit $failed
