#!/bin/sh
# Two namespaces share a flatcaked that has room for neither: a replay in one of them is told what was reclaimed of its own, for
# its quota or for the other's saves, so that it can tell a loss from a fault; and it is told nothing of the other.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-namespaces-XXXXXX") || exit 1
daemon_pid=
trap '[ -z "$daemon_pid" ] || kill -9 "$daemon_pid" 2>/dev/null; rm -rf "$work"' EXIT
. "$FC_SOURCE_DIR/tests/lib/await"
failed=0
complain() { echo "$*"; failed=1; }

cat >"$work/flatcaked.yaml" <<END_OF_SETTINGS
model: deepseek-v4-flash
scale: 256
memory: 0
ssd: 8MiB
ssd_path: $work/ssd.arena
socket: $work/sock
lock_path: $work/clients.lock
log_format: text
window: 8MiB
reserved_share: 1
namespaces:
  - name: roomy
  - name: narrow
    quota: 4MiB
END_OF_SETTINGS
"$FC_BUILD_DIR/flatcaked" --config "$work/flatcaked.yaml" 2>"$work/log" &
daemon_pid=$!
listens_or_is_gone() { [ -S "$work/sock" ] || ! kill -0 "$daemon_pid" 2>/dev/null; }
await listens_or_is_gone
"$FLATCAKE" gen --seed 1 --sessions 30 --turns 6 --length 0.2 --output "$work/trace.tar" >/dev/null || exit 1

number() { # NAME: of the last replay's report
	sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/json" | head -1
}
replay_in() { # NAMESPACE
	"$FLATCAKE" replay "$work/trace.tar" --daemon "$work/sock" --namespace "$1" --scale 256 --window 8MiB \
		--json "$work/json" >"$work/out" 2>&1 || complain "$1: $(cat "$work/out")"
	[ "$(number unexplained_blocks)" = 0 ] || complain "$1: $(number unexplained_blocks) blocks that no reclaim explains"
	[ "$(number mismatches)" = 0 ] || complain "$1: $(number mismatches) slices are wrong"
	short_loads=$((short_loads + $(number short_loads)))
	[ "$(number reclaimed_sessions)" -gt 0 ] || complain "$1: it is not told what was reclaimed of its own"
}
short_loads=0
replay_in roomy
replay_in narrow
[ $short_loads -gt 0 ] || complain "nothing was missing anywhere: the test is too small"
exit $failed
