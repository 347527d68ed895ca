#!/bin/sh
# A real flatcaked on a folder of its own: what operators see of it while a trace is replayed through it, and what they may
# do to it over HTTP.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-live-XXXXXX") || exit 1
shm=$(mktemp -d "/dev/shm/flatcake-live-XXXXXX" 2>/dev/null) || { echo "skipped: no /dev/shm"; exit 77; }
daemon_pid=
trap '[ -z "$daemon_pid" ] || kill -9 "$daemon_pid" 2>/dev/null; rm -rf "$work" "$shm"' EXIT
. "$FC_SOURCE_DIR/tests/lib/await"
failed=0
complain() { echo "$*"; failed=1; }
get() { "$FC_BUILD_DIR/tests/daemon/test_http" get "http://127.0.0.1:$port$1"; }
metric() { get /metrics | awk -v name="$1" '$1 == name { print $2 }'; }

umask 077
echo 0123456789abcdef-token >"$work/token"
cat >"$work/flatcaked.yaml" <<END_OF_SETTINGS
model: deepseek-v4-flash
scale: 256
memory: 16MiB
memory_path: $shm/memory.arena
ssd: 64MiB
ssd_path: $work/ssd.arena
socket: $work/sock
lock_path: $work/clients.lock
http_listen: 127.0.0.1:0
http_token_file: $work/token
ssd_read_limit: 1GiB
log_format: json
window: 8MiB
END_OF_SETTINGS
"$FC_BUILD_DIR/flatcaked" --config "$work/flatcaked.yaml" 2>"$work/log" &
daemon_pid=$!
port=
is_ready_or_gone() {
	kill -0 "$daemon_pid" 2>/dev/null || return 0
	port=$(sed -n 's/.*"kind":"http".* port \([0-9]*\)".*/\1/p' "$work/log")
	[ -n "$port" ] && get /readyz >"$work/ready" 2>/dev/null
}
await is_ready_or_gone
grep -q '"ready":true' "$work/ready" || { echo "it does not become ready: $(cat "$work/log")"; exit 1; }
[ "$(metric flatcake_ready)" = 1 ] || complain "the metric says otherwise"

# What a client did since its last report comes with its leaving.
"$FLATCAKE" gen --seed 5 --sessions 6 --turns 6 --length 0.1 --output "$work/trace.tar" >/dev/null || exit 1
"$FLATCAKE" replay "$work/trace.tar" --daemon "$work/sock" --scale 256 --window 8MiB >"$work/out" 2>&1 || complain "replay: $(cat "$work/out")"
# What it wrote is not in the daemon's own counters.
awk '$1 == "write" && $2 == "amplification" { found = 1; exit !($3 >= 1) } END { if (!found) exit 1 }' "$work/out" ||
	complain "a replay writes less than what is new: $(grep -A3 '^saves' "$work/out")"
for name in flatcake_connections_total flatcake_matches_total flatcake_reservations_total flatcake_commits_total \
	flatcake_index_blocks 'flatcake_arena_used_bytes{medium="ssd"}' 'flatcake_arena_largest_free_bytes{medium="ssd"}' \
	flatcake_loads_total flatcake_prefix_blocks_delivered_total flatcake_match_seconds_count; do
	value=$(metric "$name")
	[ "${value:-0}" -gt 0 ] || complain "$name is ${value:-missing} after a replay"
done
[ "$(metric 'flatcake_namespace_used_bytes{namespace=""}')" -gt 0 ] || complain "the default namespace's bytes are not counted"
[ "$(metric flatcake_clients)" = 0 ] || complain "clients that are gone are counted"
"$FLATCAKE" top --once --url "http://127.0.0.1:$port" >"$work/top" || complain "top fails"
grep -q '^flatcaked .* ready ' "$work/top" && grep -q '^ssd ' "$work/top" || complain "top shows: $(cat "$work/top")"

# What the map shows is what is used; and a session goes when it is told to.
used() { get /v1/status | sed 's/.*"medium":"ssd"[^}]*"bytes_used":\([0-9]*\).*/\1/'; }
session=$(get '/v1/sessions?limit=1' | sed -n 's/.*"session":"\([0-9a-f]*\)".*/\1/p')
[ "${#session}" -eq 32 ] || complain "no session is listed"
before=$(used)
"$FC_BUILD_DIR/tests/daemon/test_http" change DELETE "http://127.0.0.1:$port/v1/sessions/$session" nonsense-of-a-token >"$work/out"
grep -q no_token "$work/out" || complain "evicted without the token: $(cat "$work/out")"
"$FC_BUILD_DIR/tests/daemon/test_http" change DELETE "http://127.0.0.1:$port/v1/sessions/$session" "$(cat "$work/token")" >"$work/out"
grep -q '"evicted"' "$work/out" || complain "not evicted: $(cat "$work/out")"
is_evicted() { ! get '/v1/sessions?limit=1000' | grep -q "$session"; }
await is_evicted || complain "an evicted session is listed"
[ "$(used)" -le "$before" ] || complain "$before bytes before the eviction, $(used) behind it"

"$FC_BUILD_DIR/tests/daemon/test_http" change POST "http://127.0.0.1:$port/v1/drain" "$(cat "$work/token")" >"$work/out"
grep -q '"draining"' "$work/out" || complain "no drain: $(cat "$work/out")"
wait "$daemon_pid" || complain "it ends with $?: $(cat "$work/log")"
daemon_pid=
grep -q '0123456789abcdef' "$work/log" && complain "the token is in the log"
jq --version >/dev/null 2>&1 && { jq -e . <"$work/log" >/dev/null || complain "a line of the log is no JSON"; }
exit $failed
