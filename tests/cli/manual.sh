#!/bin/sh
# packaging/flatcake.1 is what `flatcake help manual` prints, and names every option that any command's help shows.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-manual-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
page="$FC_SOURCE_DIR/packaging/flatcake.1"

"$FLATCAKE" help manual >"$work/printed" || exit 1
if ! diff -u "$page" "$work/printed"; then
	echo "packaging/flatcake.1 is out of date; run: make man"
	exit 1
fi
failed=0
commands=$("$FLATCAKE" help | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
[ -n "$commands" ] || { echo "the help names no command"; exit 1; }
for command in $commands; do
	options=$("$FLATCAKE" help "$command" | awk '/^  --/ { print $1 }')
	[ -n "$options" ] || { echo "the help of $command names no option"; failed=1; }
	for option in $options; do
		escaped=$(printf '%s' "$option" | sed 's/-/\\-/g')
		grep -qF -- "\\fB$escaped\\fR" "$page" || { echo "$option of $command is not in the manual page"; failed=1; }
	done
done
exit $failed
