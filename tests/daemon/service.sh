#!/bin/sh
# The systemd unit, as systemd itself judges it. Skipped without systemd-analyze.
set -u
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-service-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unit="$work/flatcaked.service"
failed=0
complain() { echo "$*"; failed=1; }

# The program and its manual page need not be installed for this.
sed -e "s|^ExecStart=[^ ]*|ExecStart=/bin/true|" -e '/^Documentation=/d' "$FC_BUILD_DIR/flatcaked.service" >"$unit"
grep -q '^ExecStart=/bin/true --config .*/etc/flatcake/flatcaked.yaml$' "$unit" || complain "no program is started"
systemd-analyze verify "$unit" >"$work/out" 2>&1 || complain "verify fails"
grep -v 'flatcaked.service: Failed to resolve user\|Failed to connect' "$work/out" | grep 'flatcaked' && complain "verify has something to say"

# Of 10 (no protection) at most 2.5; and what a lesser unit would get, so that the measure is known to work.
limit=2.5
systemd-analyze security --offline=true --no-pager "$unit" >"$work/security" 2>&1
level=$(sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p' "$work/security")
[ -n "$level" ] || { echo "skipped: systemd-analyze does not judge files here"; [ $failed -eq 0 ] && exit 77; exit 1; }
awk "BEGIN { exit !($level <= $limit) }" || { cat "$work/security"; complain "exposed by $level, allowed $limit"; }
grep -v '^SystemCallFilter\|^Protect\|^Capability' "$unit" >"$work/lesser.service"
lesser=$(systemd-analyze security --offline=true --no-pager "$work/lesser.service" 2>&1 | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
awk "BEGIN { exit !($lesser > $limit) }" || complain "a unit without its protection is judged $lesser"
[ $failed -eq 0 ] && echo "exposure $level of 10"
exit $failed
