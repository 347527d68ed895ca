#!/bin/sh
# `flatcake top` of a made-up daemon: one screen for scripts, screens on a pipe, and what is said when there is nobody.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-top-XXXXXX") || exit 1
server_pid=
trap '[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null; rm -rf "$work"' EXIT
. "$FC_SOURCE_DIR/tests/daemon/serve"
failed=0
complain() { echo "$*"; failed=1; }

serve "$work"
"$FLATCAKE" top --once --url "$url" >"$work/once" 2>"$work/err" || complain "top --once: $(cat "$work/err")"
for words in '^flatcaked [0-9.]*  ready  up ' 'hit rate   n/a now, 9[0-9.]* % since the start$' '^from SSD .* x read of wanted$' \
	'^times      load p50 ' '^queues     [0-9]* ready' '^memory ' '^ssd ' '^vllm worker 0 .* team-a ' '^sglang scheduler '; do
	grep -q "$words" "$work/once" || complain "the screen lacks \"$words\""
done
grep -q "$(printf '\033')" "$work/once" && complain "there are terminal codes in a pipe"
grep -Eq 'nan|inf|null' "$work/once" && complain "a number is none"
awk '/^waits for SSD/ { on = 1; next } on && NF { count++; if (last != "" && $NF > last) exit 1; last = $NF } END { exit count > 8 }' \
	"$work/once" || complain "waiters are too many, or not in order of priority"
[ $failed -eq 0 ] || cat "$work/once"

# Two screens: the second knows what happens now.
timeout 1800 "$FLATCAKE" top --interval 1500ms --url "$url" | awk '{ print } /^flatcaked / && ++count == 3 { exit }' >"$work/many"
grep -q '^hit rate   [0-9.]* % now' "$work/many" || complain "no screen knows the hit rate of now: $(cat "$work/many")"
grep -q '^from SSD   .*/s (.* of 6.3 GiB/s)' "$work/many" || complain "no screen knows the bandwidth"

for bad in localhost:1 http:// http://host:port https://localhost 'http://localhost:9117/path'; do
	"$FLATCAKE" top --once --url "$bad" >"$work/out" 2>"$work/err"
	[ $? -eq 2 ] && grep -q -- '--url: ' "$work/err" || complain "$bad: $(cat "$work/err")"
done
# A daemon that goes does not end a top that runs.
timeout 1800 "$FLATCAKE" top --interval 200ms --url "$url" >"$work/lasting" 2>"$work/gap" &
top_pid=$!
has_shown_or_ended() { grep -q '^flatcaked ' "$work/lasting" || ! kill -0 "$top_pid" 2>/dev/null; }
await has_shown_or_ended
kill "$server_pid"
wait "$server_pid" 2>/dev/null
has_tried_twice_or_ended() { [ "$(grep -c 'trying again' "$work/gap")" -ge 2 ] || ! kill -0 "$top_pid" 2>/dev/null; }
await has_tried_twice_or_ended
[ "$(grep -c 'trying again' "$work/gap")" -ge 2 ] || complain "top ends with its daemon: $(cat "$work/gap")"
kill "$top_pid"
wait "$top_pid" 2>/dev/null
"$FLATCAKE" top --once --url "$url" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || complain "nobody was there, and it went well"
grep -q 'refused; is flatcaked there' "$work/err" || complain "no reason given: $(cat "$work/err")"
exit $failed
