#!/bin/sh
# A function fits on a screen (70 lines) and a file can be read in one go (900 lines). Functions are found by the layout that
# clang-format gives them: an opening brace alone in the first column, and a closing one.
set -u
cd "$FC_SOURCE_DIR" || exit 1
failed=0
count=0
for file in $(find src include examples tests bench integrations -name '*.[ch]' 2>/dev/null); do
	count=$((count + 1))
	awk -v file="$file" '
	/^\{/ { start = FNR }
	/^\}/ && start > 0 {
		if (FNR - start - 1 > 70) {
			printf "%s:%d: a function of %d lines; at most 70\n", file, start, FNR - start - 1
			failed = 1
		}
		start = 0
	}
	END {
		if (FNR > 900) {
			printf "%s: %d lines; at most 900\n", file, FNR
			failed = 1
		}
		exit failed
	}' "$file" || failed=1
done
[ $count -gt 0 ] || { echo "no source file found"; exit 1; }
[ $failed -eq 0 ] && echo "$count files are short enough"
exit $failed
