#!/bin/sh
# The benchmark measures everything on a tiny size: every row is there with its runs, and nothing is left behind. What
# the values are is not looked at, for that is the machine's business.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-bench-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

mkdir "$work/disk"
"$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 2 --json "$work/result.json" >"$work/out" 2>"$work/err" ||
	complain "the benchmark failed: $(cat "$work/err")"
[ -z "$(ls -A "$work/disk")" ] || complain "left behind: $(ls -A "$work/disk")"

rows='load planned-runs cpu save interleaved mixed-load mixed-load-worst mixed-save mixed-save-worst mixed-long mixed-shared mixed-shared-worst memory lookup key-bytes open match capacity churn full shared-load daemon-start shared-match shared-match-p99 matches clients trace-read trace-segments trace-written'
command -v fio >/dev/null && has_fio=1 || has_fio=0
# The file has one key a line; an array's numbers stand alone on theirs.
awk -v has_fio=$has_fio -v wanted="$rows" '
	function check_row() {
		is_trace = name ~ /^trace-/
		needs_fio = name ~ /^(load|save|interleaved)$/
		has_value = !is_trace && (has_fio || !needs_fio)
		if ((value != "null") != has_value || (pass != "null") != has_value)
			complain("value " value ", pass " pass)
		if (runs != (is_trace ? 0 : name ~ /^(capacity|churn)$/ ? 1 : 2))
			complain(runs " runs")
		if (peer_runs != (needs_fio || name ~ /^(cpu|memory|full|lookup|open|match|shared-load|daemon-start|shared-match|shared-match-p99|matches|mixed-.*)$/ ? 2 : 0))
			complain(peer_runs " runs of the peer")
		if (keys != " name value unit goal target pass runs_unit runs peer_runs note")
			complain("keys are" keys)
		names = names (names == "" ? "" : " ") name
	}
	function complain(what) { print name ": " what; failed = 1 }
	/^    "/ {
		split($0, parts, "\"")
		key = parts[2]
		text = $0
		sub(/^[^:]*: */, "", text)
		sub(/,$/, "", text)
		if (key == "name") { name = parts[4]; keys = ""; runs = peer_runs = 0 }
		if (key == "value") value = text
		if (key == "pass") pass = text
		keys = keys " " key
	}
	/^      -?[0-9]/ { if (key == "runs") runs++; else peer_runs++ }
	/^  }/ { check_row() }
	END {
		if (names != wanted) { print "rows are: " names; failed = 1 }
		exit failed
	}' "$work/result.json" || complain "the result is not as promised"
for row in $rows; do
	grep -q "^$row " "$work/out" || complain "no row $row in the table"
done

"$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 1 --only memory,lookup --json - >"$work/out" 2>"$work/err" ||
	complain "--only failed: $(cat "$work/err")"
[ "$(grep -c '"name"' "$work/out")" = 3 ] || complain "--only memory,lookup gave: $(cat "$work/out")"

# What cannot be measured is named, with what to do about it.
PATH=$work "$FLATCAKE" bench --dir "$work/disk" --size 1MiB --runs 1 --only load >"$work/out" 2>"$work/err" ||
	complain "without fio: $(cat "$work/err")"
grep -q '^load .* n/a .*apt-get install fio$' "$work/out" || complain "says not how to get fio: $(cat "$work/out")"
grep -q '^not measured, .*: load$' "$work/out" || complain "hides that the load was held against nothing: $(cat "$work/out")"

"$FLATCAKE" bench --dir "$work/disk" --only memory,looking >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || complain "an unknown measurement was accepted"
grep -q 'unknown measurement "looking"; there are: load, save' "$work/err" || complain "said: $(cat "$work/err")"

"$FLATCAKE" bench --dir "$work/none" --only memory >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || complain "a folder that is not there was accepted"
grep -q "$work/none" "$work/err" || complain "said: $(cat "$work/err")"
exit $failed
