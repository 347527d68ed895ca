#!/bin/sh
# The doctor examines a folder, leaves nothing in it, and fails only where FlatCake cannot work.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-doctor-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

mkdir "$work/disk"
"$FLATCAKE" doctor --dir "$work/disk" --json "$work/result.json" >"$work/out" || complain "the doctor failed: $(cat "$work/out")"
for finding in kernel memory io_uring 'huge pages' 'disk space' 'direct I/O' 'disk write' 'disk read' GPU RDMA 'NVMe over Fabrics' fio; do
	grep -qF "$finding" "$work/out" || complain "no finding \"$finding\" in the table"
	grep -qF "\"name\": \"$finding\"" "$work/result.json" || complain "no finding \"$finding\" in the JSON"
done
grep -q '"usable": true' "$work/result.json" || complain "a usable machine is not called so"
[ -z "$(ls -A "$work/disk")" ] || complain "left behind: $(ls -A "$work/disk")"

PATH=$work "$FLATCAKE" doctor --dir "$work/disk" >"$work/out" || complain "the doctor failed without fio"
grep -q -- '-> apt-get install fio' "$work/out" || complain "says not how to get fio: $(cat "$work/out")"

"$FLATCAKE" doctor --dir "$work/disk" --json - >"$work/out" || complain "the doctor failed with --json -"
[ "$(head -c 1 "$work/out")" = '{' ] || complain "standard output is not JSON alone"

"$FLATCAKE" doctor --dir "$work/none" --json "$work/bad.json" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || complain "a folder that is not there was accepted"
grep -q 'cannot work here' "$work/err" || complain "no reason given: $(cat "$work/err")"
grep -q -- '-> .*--dir' "$work/out" || complain "no advice given: $(cat "$work/out")"
grep -q '"usable": false' "$work/bad.json" || complain "an unusable folder is called usable"
exit $failed
