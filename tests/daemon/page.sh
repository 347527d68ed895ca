#!/bin/sh
# The status page through a browser, see page.py. Skipped without chromium or python3.
set -u
command -v chromium >/dev/null || { echo "skipped: no chromium"; exit 77; }
[ -x /usr/bin/python3 ] || { echo "skipped: no python3"; exit 77; }
[ -z "${FC_SANITIZE:-}" ] || { echo "skipped: it tests the page, and a sanitized server is slow"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-page-XXXXXX") || exit 1
server_pid=
trap '[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null; rm -rf "$work"' EXIT
. "$FC_SOURCE_DIR/tests/daemon/serve"
checker="$FC_SOURCE_DIR/tests/daemon/page.py"
failed=0

serve "$work"
/usr/bin/python3 "$checker" ${FC_SHOTS:+--shots "$FC_SHOTS"} "$url" || failed=1
/usr/bin/python3 "$checker" --gone "$url" "$server_pid" || failed=1
wait "$server_pid" 2>/dev/null
serve "$work" big
/usr/bin/python3 "$checker" --segments-min 100000 --view desktop "$url" || failed=1
exit $failed
