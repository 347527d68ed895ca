#!/bin/sh
# The kill campaign (test_kill.c) on an ext4 of 24 MiB that fills up. It is mounted in a mount namespace of its own, so that
# nothing stays mounted, whatever kills this script. Needs root and a loop device.
set -u
if [ "${FC_IN_NAMESPACE:-}" = '' ]; then
	for tool in unshare mkfs.ext4 losetup; do
		command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
	done
	[ "$(id -u)" -eq 0 ] || { echo 'skipped: needs root, to mount'; exit 77; }
	unshare -m true 2>/dev/null || { echo 'skipped: no mount namespace may be made here'; exit 77; }
	work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-small-XXXXXX") || exit 1
	trap 'rm -rf "$work"' EXIT
	FC_IN_NAMESPACE=$work unshare -m --propagation private "$0" && exit 0
	exit $?
fi
work=$FC_IN_NAMESPACE
mkdir "$work/disk" && truncate -s 24M "$work/image" && mkfs.ext4 -q -m 0 "$work/image" || exit 1
mount -o loop "$work/image" "$work/disk" 2>"$work/why" || { echo "skipped: no loop mount: $(cat "$work/why")"; exit 77; }
FC_SMALL=1 TMPDIR=$work/disk "$FC_BUILD_DIR/tests/real/test_kill" || exit 1
left=$(find "$work/disk" -mindepth 1 ! -name lost+found)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
