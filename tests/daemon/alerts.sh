#!/bin/sh
# What the alert rules and the dashboard name is what /metrics emits; the metrics are well-formed; the rules are right and
# fire when they should. The last two need promtool (Debian's prometheus).
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-alerts-XXXXXX") || exit 1
server_pid=
trap '[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null; rm -rf "$work"' EXIT
. "$FC_SOURCE_DIR/tests/daemon/serve"
rules="$FC_SOURCE_DIR/packaging/prometheus/flatcake.rules.yml"
dashboard="$FC_SOURCE_DIR/packaging/grafana/flatcake.json"
failed=0
complain() { echo "$*"; failed=1; }

serve "$work"
"$FC_BUILD_DIR/tests/daemon/test_http" get "${url}metrics" >"$work/metrics" || complain "no metrics"
sed -n 's/^\(flatcake_[a-z0-9_]*\).*/\1/p' "$work/metrics" | sort -u >"$work/emitted"
[ "$(wc -l <"$work/emitted")" -gt 40 ] || complain "hardly a metric: $(cat "$work/emitted")"
for file in "$rules" "$dashboard" "$FC_SOURCE_DIR/docs/operations.md"; do
	grep -o 'flatcake_[a-z][a-z0-9_]*' "$file" | sort -u >"$work/named"
	[ -s "$work/named" ] || complain "$file names no metric"
	for name in $(comm -23 "$work/named" "$work/emitted"); do
		complain "$file names $name, which /metrics does not have"
	done
done
# Rates that rules record, and that the dashboard shows.
sed -n 's/.*record: \(.*\)/\1/p' "$rules" | sort -u >"$work/recorded"
for name in $(grep -o 'flatcake:[a-z0-9_:]*' "$dashboard" | sort -u | comm -23 - "$work/recorded"); do
	complain "the dashboard shows $name, which no rule records"
done
for alert in $(sed -n 's/.*alert: \(.*\)/\1/p' "$rules"); do
	grep -q "\`$alert\`" "$FC_SOURCE_DIR/docs/operations.md" || complain "docs/operations.md says nothing of $alert"
done

# Counters do not fall between two looks at a daemon that works.
sleep 1.2
"$FC_BUILD_DIR/tests/daemon/test_http" get "${url}metrics" >"$work/later" || complain "no metrics"
awk 'FNR == NR { if ($1 ~ /_total[{ ]|_total$|_bucket\{|_count$|_sum$/) before[$1] = $2; next }
	$1 in before && $2 + 0 < before[$1] + 0 { print $1 " falls from " before[$1] " to " $2; bad = 1 }
	END { exit bad }' "$work/metrics" "$work/later" || failed=1
grep -Ei '(nan|inf|-[0-9.]+)$' "$work/metrics" && complain "a value is none"

command -v promtool >/dev/null || { [ $failed -eq 0 ] || exit 1; echo "skipped: the rules, for want of promtool"; exit 77; }
promtool check metrics <"$work/metrics" >"$work/out" 2>&1 || complain "metrics: $(cat "$work/out")"
cp "$rules" "$FC_SOURCE_DIR/tests/daemon/alerts.test.yml" "$work"
promtool check rules "$work/flatcake.rules.yml" >"$work/out" 2>&1 || complain "rules: $(cat "$work/out")"
promtool test rules "$work/alerts.test.yml" >"$work/out" 2>&1 || complain "alerts: $(cat "$work/out")"
exit $failed
