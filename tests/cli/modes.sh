#!/bin/sh
# Every option that has no effect beside the others is refused by its name; and what is written is looked at before the
# work begins.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-modes-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
complain() {
	echo "$1"
	sed 's/^/  /' out err
	failed=1
}

# refused WORDS ARGUMENT...: with exit status 2, before a store, folder or file is made
refused() {
	words=$1
	shift
	"$FLATCAKE" "$@" >out 2>err
	status=$?
	[ $status -eq 2 ] && grep -qF -- "flatcake: $words" err || complain "$*: status $status, wanted 2 and: $words"
	[ ! -e flatcake-store ] || complain "$*: a store was made"
}

printf '{"timestamp":%s,"input_length":512,"output_length":1,"hash_ids":[1]}\n' 0 1000 >t.jsonl
for option in '--policy flat' '--hardware x' '--set flat.granules=off' '--memories 1GiB,2GiB' '--rates 1,2' \
	'--concurrency-per-rate 2' '--mix 1' '--nodes 2' '--jobs 1' '--report page.html' '--validation x'; do
	# shellcheck disable=SC2086 # the option and its value
	refused "${option%% *}: has no effect alone; add --simulate" replay t.jsonl $option
done
for option in '--dir x' '--daemon x' '--ssd-path x' '--memory-path x' '--io-timeout 5s' '--check off'; do
	# shellcheck disable=SC2086
	refused "${option%% *}: not with --simulate, where it has no effect" replay t.jsonl --simulate $option
done
for option in '--dir x' '--ssd-path x' '--memory-path x' '--memory 1GiB' '--ssd 1GiB' '--chunk 1MiB' '--agent-context 1' \
	'--long-reply 1' '--high-watermark 0.9' '--low-watermark 0.5' '--reclaim-order created' '--memory-reclaim drop' \
	'--consolidate 2'; do
	# shellcheck disable=SC2086
	refused "${option%% *}: not with --daemon, where it has no effect" replay t.jsonl --daemon none $option
done
refused '--namespace: has no effect alone; add --daemon' replay t.jsonl --namespace a
refused '--ssd-path: has no effect alone; add --ssd' replay t.jsonl --ssd 0 --ssd-path x
refused '--memory-path: has no effect alone; add --memory' replay t.jsonl --memory 0 --memory-path x
refused '--validation: has no effect alone; add --report' replay t.jsonl --simulate --validation x
refused '--requests: has no effect alone; add --nodes' replay t.jsonl --simulate --requests 9
refused '--route: has no effect alone; add --nodes' replay t.jsonl --simulate --route least
refused '--memory: not with --memories' replay t.jsonl --simulate --memory 1GiB --memories 1GiB,2GiB
refused '--rate: not with --rates' replay t.jsonl --simulate --rate 1 --rates 1,2
for command in 'replay t.jsonl --simulate --policy flat,mooncake' 'tune t.jsonl'; do
	# shellcheck disable=SC2086
	refused '--set hicache.overlap: has no effect alone; add policy hicache' $command --set flat.granules=off,hicache.overlap=off
done
refused '--force: has no effect alone; add --output' tune t.jsonl --force
refused '--force: has no effect alone; add --profile' bench --force
refused '--scale: has no effect alone; add --trace' bench --scale 2
refused '--memory: has no effect alone; add --trace or --profile' bench --memory 1GiB
refused '--trace: has no effect alone; add --only with trace among them' bench --only lookup --trace t.jsonl
refused '--json: has no effect with --profile alone' bench --profile p.yaml --json out.json
refused '--streams belongs to other commands' bench --streams 2
refused '--interval: not with --once' top --once --interval 2s
[ ! -e p.yaml ] && [ ! -e page.html ] || complain 'a file was left behind'

# A file and the environment serve several commands and modes.
printf 'policy: flat\nhardware: x\nsimulate: off\n' >all.yaml
FLATCAKE_JOBS=2 "$FLATCAKE" replay t.jsonl --config all.yaml --dir store --ssd 16MiB --memory 0 --scale 4096 >out 2>err ||
	complain 'settings of another mode in a file are refused'
rm -rf store

# blocked WORDS ARGUMENT...: with exit status 1, and before the work, which would fail for want of the trace
blocked() {
	words=$1
	shift
	"$FLATCAKE" "$@" >out 2>err
	status=$?
	[ $status -eq 1 ] && grep -qF -- "flatcake: $words" err || complain "$*: status $status, wanted 1 and: $words"
}
blocked '--report: cannot create no/page.html' replay none.jsonl --simulate --report no/page.html
blocked '--report: cannot create no/page.html' analyze none.jsonl --report no/page.html
blocked '--output: cannot create no/tuned.yaml' tune none.jsonl --output no/tuned.yaml
blocked '--profile: cannot create no/here.yaml' bench --dir none --profile no/here.yaml
for command in 'replay none.jsonl' 'replay none.jsonl --simulate' 'analyze none.jsonl' 'tune none.jsonl' 'bench --dir none' \
	'doctor --dir none' 'verify --dir none' 'stat --dir none' 'sessions --dir none'; do
	# shellcheck disable=SC2086
	blocked '--json: cannot create no/out.json' $command --json no/out.json
	# shellcheck disable=SC2086
	blocked '--json: cannot open .: Is a directory' $command --json .
done
refused '--report: same is what --json names; allowed: another file' analyze none.jsonl --json same --report same

# What a run reports is replaced; what later runs read is not, unless that is asked for.
echo mine >there
for option in --json --report; do
	"$FLATCAKE" analyze t.jsonl $option there >out 2>err || complain "$option: a file that is there is not replaced"
	! grep -q mine there || complain "$option: a file that is there is kept"
done
for there in tar tar.gz tar.zst jsonl; do
	echo mine >there.$there
	refused "there.$there: is there already; allowed: another name, or --force to replace it" gen --sessions 1 --output there.$there
	grep -q mine there.$there || complain "gen: $there was replaced"
	"$FLATCAKE" gen --sessions 1 --turns 2 --force --output there.$there >out 2>err || complain "gen --force: $there"
	"$FLATCAKE" analyze there.$there >out 2>err || complain "gen --force: $there is no trace"
done
echo mine >there.yaml
refused '--output: there.yaml is there already; allowed: another name, or --force' tune none.jsonl --output there.yaml
refused '--profile: there.yaml is there already; allowed: another name, or --force' bench --dir none --profile there.yaml
grep -q mine there.yaml || complain 'settings or a profile were replaced'
"$FLATCAKE" tune none.jsonl --force --output there.yaml >out 2>err
grep -q 'none.jsonl: No such file' err || complain 'tune --force: refused'
refused 'a.json: an extension that is not written; allowed: .tar, .tar.gz, .tar.zst, .jsonl' gen --sessions 1 --output a.json
[ ! -e a.json ] || complain 'gen made a.json'
"$FLATCAKE" gen --sessions 1 --turns 2 --output a.jsonl >out 2>err || complain 'gen to .jsonl'
[ -f a.jsonl ] || complain 'gen to .jsonl makes no file'
leftover=$(find . -name '*.??????' ! -name '*.tar.gz' | head -n 3)
[ -z "$leftover" ] || complain "left behind: $leftover"
exit $failed
