#!/bin/sh
# Odd and bad traces through the program, for every command that reads one: what is refused, where and with which exit
# status, what --lenient leaves out, and what makes no difference. docs/traces.md has the rules.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-bad-traces-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

complain() {
	echo "$1"
	sed 's/^/  out: /' out | head -40
	sed 's/^/  err: /' err
	failed=1
}

commands='analyze replay simulate'

# run COMMAND FILE OPTION...: replay on a store that is new each time, and also simulated
run() {
	run_command=$1 run_file=$2
	shift 2
	rm -rf store
	if [ "$run_command" = replay ]; then
		"$FLATCAKE" replay "$run_file" --dir store --ssd 16MiB --memory 4MiB --scale "${scale:-4096}" "$@" >out 2>err
	elif [ "$run_command" = simulate ]; then
		"$FLATCAKE" replay "$run_file" --simulate --policy flat --ssd 16MiB --memory 4MiB --scale "${scale:-4096}" "$@" >out 2>err
	else
		"$FLATCAKE" "$run_command" "$run_file" "$@" >out 2>err
	fi
	run_status=$?
	echo $run_status >status
	return $run_status
}

request() { # TIME INPUT IDS
	printf '{"timestamp":%s,"input_length":%s,"output_length":7,"hash_ids":[%s]}' "$1" "$2" "$3"
}

good_lines() {
	request 1000 1024 4,5
	echo
	request 2500 1536 4,5,9
	echo
}

# bad NAME TEXT PLACE: the text stands behind two good lines; refused at PLACE, left out with --lenient
bad() {
	{ good_lines && printf '%b\n' "$2"; } >bad.jsonl
	for command in $commands; do
		run $command bad.jsonl
		status=$?
		if [ $status -ne 2 ] || ! grep -qF -- "flatcake: bad.jsonl:3: $3" err; then
			complain "$command, $1: status $status, wanted 2 and: bad.jsonl:3: $3"
		fi
		run $command bad.jsonl --lenient
		status=$?
		if [ $status -ne 0 ] || ! grep -qF -- "damaged records left out: 1; the first: bad.jsonl:3: $3" out; then
			complain "$command --lenient, $1: status $status"
		fi
	done
}

ids="allowed: an integer from 0 to 18446744073709551615"
number="allowed: an integer from 0 to 9223372036854775807"
bad 'an id of 2^64' "$(request 1 1000 1,18446744073709551616)" "hash_ids[1]: 18446744073709551616; $ids"
bad 'an id of -1' "$(request 1 1000 -1)" "hash_ids[0]: -1; $ids"
bad 'an id of 1.5' "$(request 1 1000 1,1.5)" "hash_ids[1]: 1.5; $ids"
bad 'an id of 1e3' "$(request 1 1000 1e3)" "hash_ids[0]: 1e3; $ids"
bad 'an id that is text' "$(request 1 1000 '"x"')" "hash_ids[0]: \"x\"; $ids"
bad 'an id that is null' "$(request 1 1000 null)" "hash_ids[0]: null; $ids"
bad 'an object that breaks off' '{"timestamp":1,"input_length":10' 'input_length: not JSON'
bad 'a list that breaks off' '{"timestamp":1,"input_length":1000,"output_length":7,"hash_ids":[1,2' 'hash_ids[1]: not JSON'
bad 'a NUL byte' '{"timestamp":1\000,"input_length":10}' 'timestamp: a NUL byte'
bad 'a field that is missing' '{"timestamp":1,"output_length":7,"hash_ids":[]}' "input_length: missing; needed: an"
bad 'no ids' '{"timestamp":1,"input_length":1,"output_length":7}' "hash_ids: missing; needed: an array of integers"
bad 'text for a number' "$(request 1 '"1000"' 1)" "input_length: \"1000\"; $number"
bad 'text for a time' "$(request '"0"' 10 1)" "timestamp: \"0\"; allowed: a number from 0"
bad 'a negative time' "$(request -1 10 1)" "timestamp: -1; allowed: a number from 0"
bad 'a time beyond all doubles' "$(request 1e999 10 1)" "timestamp: 1e999; allowed: a number"
bad 'more ids than blocks' "$(request 1 1024 1,2,3)" "hash_ids: [1,2,3]; allowed: at most 2 ids (there are 3)"
bad 'a number as record' '7' '(whole record): '
bad 'no JSON' 'timestamp,input_length' '(whole record): not JSON'

# bad_turn NAME REQUEST PLACE: the same in a session, whose second turn it is
bad_turn() {
	{
		printf '{"id":"s","block_size":64,"hash_id_scope":"local","tool_tokens":0,"system_tokens":0,"requests":[\n'
		printf '{"t":0,"type":"s","in":130,"out":64,"hash_ids":[1,2]},\n%s,\n' "$2"
		printf '{"t":2.5,"type":"n","in":200,"out":64,"hash_ids":[1,2,3]}]}\n'
	} >bad.json
	for command in $commands; do
		run $command bad.json
		status=$?
		if [ $status -ne 2 ] || ! grep -qF -- "flatcake: bad.json:3: requests[1]$3" err; then
			complain "$command, $1 in a turn: status $status, wanted 2 and: bad.json:3: requests[1]$3"
		fi
		run $command bad.json --lenient
		status=$?
		if [ $status -ne 0 ] || ! grep -qF -- "damaged records left out: 1; the first: bad.json:3: requests[1]$3" out; then
			complain "$command --lenient, $1 in a turn: status $status"
		fi
	done
}

turn='"type":"s","out":1'
bad_turn 'an id of -1' "{\"t\":1,$turn,\"in\":64,\"hash_ids\":[-1]}" ".hash_ids[0]: -1; $ids"
bad_turn 'an id of 1.5' "{\"t\":1,$turn,\"in\":64,\"hash_ids\":[1.5]}" ".hash_ids[0]: 1.5; $ids"
bad_turn 'an id that is text' "{\"t\":1,$turn,\"in\":64,\"hash_ids\":[\"x\"]}" ".hash_ids[0]: \"x\"; $ids"
bad_turn 'a missing input' "{\"t\":1,$turn,\"hash_ids\":[]}" '.in: missing; needed: an integer'
bad_turn 'text for a time' "{\"t\":\"1\",$turn,\"in\":64,\"hash_ids\":[1]}" '.t: "1"; allowed: a number from 0'
bad_turn 'more ids than blocks' "{\"t\":1,$turn,\"in\":64,\"hash_ids\":[1,2]}" '.hash_ids: [1,2]; allowed: at most 1 ids'
bad_turn 'an unknown type' '{"t":1,"type":"q"}' '.type: "q"; allowed: '

# refused NAME FILE TEXT: an error, also with --lenient
refused() {
	for command in $commands; do
		for option in --seed=1 --lenient; do
			run $command "$2" $option
			status=$?
			if [ $status -eq 0 ] || ! grep -qF -- "$3" err; then
				complain "$command $option, $1: status $status, wanted: $3"
			fi
		done
	done
}

good_lines >good.jsonl
: >empty.jsonl
refused 'an empty file' empty.jsonl 'empty.jsonl: holds no request'
printf '\r\n \n' >blank.jsonl
refused 'a blank file' blank.jsonl 'blank.jsonl: holds no request'
printf '[]' >none.json
refused 'an empty array' none.json 'none.json: holds no request'
gzip -c good.jsonl | head -c 60 >cut.jsonl.gz
refused 'a gz that is cut' cut.jsonl.gz 'cut.jsonl.gz: cannot be read: '
{ gzip -c good.jsonl && gzip -c good.jsonl | head -c 5; } >half.jsonl.gz
refused 'a gz whose second member is cut' half.jsonl.gz 'half.jsonl.gz: cannot be read: from byte '
{ gzip -c good.jsonl && echo more; } >more.jsonl.gz
refused 'a gz with something behind it' more.jsonl.gz ' on, it is no gzip text'
truncate -s 100M zeros.jsonl
refused 'zeros without end' zeros.jsonl 'zeros.jsonl: cannot be read: begins with more than 64 MiB of zero bytes'
refused 'a file that is not there' missing.jsonl 'missing.jsonl: No such file'

# same NAME FILE: reads like good.jsonl
run analyze good.jsonl --json - && cp out good.analysis
same() {
	run analyze "$2" --json - || complain "$1: refused"
	cmp -s out good.analysis || complain "$1: reads unlike good.jsonl"
	run replay "$2" || complain "replay, $1: refused"
	grep -qE '^input blocks +5$' out || complain "replay, $1: not five blocks"
	run simulate "$2" --json - || complain "simulate, $1: refused"
	[ -f good.simulation ] || cp out good.simulation
	cmp -s out good.simulation || complain "simulate, $1: another result"
}
same 'the file itself' good.jsonl
sed 's/$/\r/' good.jsonl >crlf.jsonl
same 'CRLF' crlf.jsonl
printf '\357\273\277' | cat - good.jsonl >bom.jsonl
same 'a byte-order mark' bom.jsonl
sed 's/^/\n \t\n/' good.jsonl >blanks.jsonl
same 'blank lines' blanks.jsonl
printf '%s' "$(cat good.jsonl)" >no-newline.jsonl
same 'no final newline' no-newline.jsonl
sed '1s/^/[/; 1s/$/,/; 2s/$/]/' good.jsonl >array.json
same 'an array' array.json
{ head -c 40 good.jsonl | gzip -c && tail -c +41 good.jsonl | gzip -c; } >members.jsonl.gz
same 'two gz members' members.jsonl.gz
head -n 1 good.jsonl >a.jsonl
tail -n 1 good.jsonl >b.jsonl
{ tar -cf - a.jsonl && tar -cf - b.jsonl; } >two.tar
same 'tars one after the other' two.tar
{ tar -czf - a.jsonl && tar -czf - b.jsonl; } >two.tar.gz
same 'packed tars one after the other' two.tar.gz
{ tail -n 1 good.jsonl && head -n 1 good.jsonl; } >unordered.jsonl
same 'times out of order' unordered.jsonl

# counts NAME WANTED: what an analysis of test.jsonl finds
counts() {
	run analyze test.jsonl --json - || complain "$1: refused"
	found=$(tr -d ' \n' <out)
	case $found in
	*"$2"*) ;;
	*) complain "$1: wanted $2" ;;
	esac
	if grep -qiE 'nan|inf[^e]' out; then complain "$1: a number that is none"; fi
	run analyze test.jsonl || complain "$1: refused"
	if grep -qiwE -- '-?nan|-?inf' out; then complain "$1: a number that is none"; fi
	run replay test.jsonl || complain "replay, $1: refused"
	if grep -qiwE -- '-?nan|-?inf' out; then complain "replay, $1: a number that is none"; fi
	run simulate test.jsonl || complain "simulate, $1: refused"
	if grep -qiwE -- '-?nan|-?inf' out; then complain "simulate, $1: a number that is none"; fi
}
printf '%s\n%s\n' "$(request 0 512 1)" "$(request 1 512 4294967297)" >test.jsonl
counts 'ids that are equal in 32 bits' '"references":2,"unique":2,'
printf '%s\n%s\n' "$(request 0 512 9007199254740992)" "$(request 1 512 9007199254740993)" >test.jsonl
counts 'ids that are equal as doubles' '"references":2,"unique":2,'
printf '%s\n%s\n' "$(request 0 512 18446744073709551615)" "$(request 1 512 9223372036854775807)" >test.jsonl
counts 'the largest ids' '"references":2,"unique":2,'
printf '%s\n%s\n' "$(request 0 9 9)" "$(request 0 9 9)" >test.jsonl
counts 'requests without a full block' '"references":0,"unique":0,"used_once":0,"used_once_share":null,'
printf '%s\n%s\n%s\n' "$(request 0 0 '')" "$(request 0 9 9)" "$(request 0 0 '')" >test.jsonl
counts 'requests without input' '"requests_without_input":2,"requests":{"count":1,'
for command in $commands; do
	run "$command" test.jsonl || complain "$command: requests without input are refused"
	grep -qx 'requests without input left out: 2' out || complain "$command: requests without input are not counted"
	run "$command" test.jsonl --json - || complain "$command: requests without input are refused"
	grep -q '"requests_without_input": 2' out || complain "$command: requests without input are not in the JSON"
done
printf '%s\n%s\n' "$(request 0 0 '')" "$(request 0 0 '')" >test.jsonl
run analyze test.jsonl && complain 'a trace without any input is accepted'
grep -qF 'nothing is left of a trace of 2 sessions or requests; requests without input: 2' err || complain 'a trace without any input'
printf '%s\n' "$(request 0 1000 '')" >test.jsonl
counts 'a request whose blocks are not named' '"references":0,"unique":0,'
printf '%s\n%s\n' "$(request 0 2000 3,3,3)" "$(request 0 2000 3,3,3)" >test.jsonl
counts 'an id three times in a request' '"references":6,"unique":3,"used_once":0,'
printf '%s\n%s\n%s\n' "$(request 5 512 1)" "$(request 5 512 1)" "$(request 5 512 2)" >test.jsonl
counts 'equal times' '"references":3,"unique":2,'

# Traces of other origin: blocks of another size, sessions by name, chats that go on with one another.
printf '%s\n' "$(request 0 128 1,2)" "$(request 1 192 1,2,3)" >test.jsonl
run analyze test.jsonl && complain 'three blocks of 512 in 192 tokens are accepted'
for command in $commands; do
	run "$command" test.jsonl --block-tokens 64 || complain "$command: blocks of 64 are refused"
done
run analyze test.jsonl --block-tokens 64 --json -
tr -d ' \n' <out | grep -q '"tokens":64,.*"references":5,"unique":3,' || complain 'blocks of 64 are counted wrongly'
sed 's/}$/,"session_id":"s"}/' good.jsonl >test.jsonl
{
	printf '{"chat_id":7,"parent_chat_id":-1,"timestamp":1.5,"input_length":32,"output_length":16,"hash_ids":[4,5]}\n'
	printf '{"chat_id":8,"parent_chat_id":7,"timestamp":61.5,"input_length":64,"output_length":16,"hash_ids":[4,5,6,7]}\n'
} >chats.jsonl
for trace in test chats; do
	run analyze $trace.jsonl || complain "analyze, $trace: refused"
	grep -qx '2 requests in 1 session, as the trace gives them' out || complain "$trace: not one session"
	! grep -q 'does not say when' out || complain "$trace: arranges sessions that have times"
	run replay $trace.jsonl || complain "replay, $trace: refused"
	grep -q '^1 session, 2 requests' out || complain "replay, $trace: not one session"
	run simulate $trace.jsonl || complain "simulate, $trace: refused"
	grep -q '^1 session, 2 requests' out || complain "simulate, $trace: not one session"
done
run analyze chats.jsonl
grep -q '^60.0 s from first to last' out || complain 'chats: not a minute apart'
grep -q '^best possible hit rate  *50.0 %   of references; 33.3 % if replies are not stored' out || complain 'chats: the reply is not stored'
"$FLATCAKE" replay chats.jsonl --simulate --nodes 2 >out 2>err && complain 'a fleet of sessions that have times'
grep -q -- '--nodes: ' err || complain 'a fleet of sessions that have times: no reason'

# Tables: their times, and what is refused in them.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:18:04.0319569,3180,8\r\n' >azure.csv
printf '"Request tokens",Model, Timestamp ,Response tokens\n4808,"a b",5,10\n\n3180,,65.0519969,8' >burst.csv
for table in azure burst; do
	run analyze $table.csv --json - || complain "$table: refused"
	tr -d ' \n' <out | grep -q '"count":2,"minute_max":1,"span_ns":60051996900,' || complain "$table: other times"
	tr -d ' \n' <out | grep -q '"input_tokens":{"count":2,"mean":3994' || complain "$table: other lengths"
	for command in replay simulate; do
		run "$command" $table.csv || complain "$command, $table: refused"
	done
done
bad_line() { # LINE PLACE
	printf 'time,input_tokens,output_tokens\n0,1,1\n%b\n1,1,1\n' "$1" >bad.csv
	run analyze bad.csv && complain "$1: accepted"
	grep -qF -- "flatcake: bad.csv:3: $2" err || complain "$1: wanted bad.csv:3: $2"
	run analyze bad.csv --lenient
	grep -qF -- "damaged records left out: 1; the first: bad.csv:3: $2" out || complain "$1 --lenient"
}
bad_line '1,2' '(number of columns): 2; allowed: 3, as the first line'
bad_line '1,2,3,4' '(number of columns): 4; allowed: 3, as the first line'
bad_line '-1,2,3' 'time: -1; allowed: seconds'
bad_line 'nan,2,3' 'time: nan; allowed: seconds'
bad_line '1e3,2,3' 'time: 1e3; allowed: seconds'
bad_line '99999999999999999999,2,3' 'time: 99999999999999999999; allowed: seconds'
bad_line '2023-13-16 00:00:00,2,3' 'time: 2023-13-16 00:00:00; allowed: seconds'
bad_line '2023-11-16 00:00:00+01:00,2,3' 'time: 2023-11-16 00:00:00+01:00; allowed: seconds'
bad_line '2023-11-16 00:00:00,2,3' 'time: 2023-11-16 00:00:00; allowed: at most three years from'
bad_line '1,-2,3' 'input tokens: -2; allowed: an integer'
bad_line '1,,3' 'input tokens: ; allowed: an integer'
bad_line '1,2,9223372036854775808' 'output tokens: 9223372036854775808; allowed: an integer'
zeros=$(printf '%070d' 0)
bad_line "1,${zeros}5,3" 'input tokens: 000'
bad_line "2023-11-16 00:00:00.${zeros}x,2,3" 'time: 2023-11-16 00:00:00.000'
bad_line '1,2\0000,3' '(whole line): a NUL byte; allowed: text'
printf 'time,input_tokens,output_tokens\n' >none.csv
refused 'a table without requests' none.csv 'none.csv: holds no request'

for option in --seed=1 --lenient; do
	printf 'time,input_tokens\n1,2\n' >missing.csv
	run analyze missing.csv $option && complain "a table without output tokens $option: accepted"
	grep -qF 'flatcake: missing.csv:1: output tokens: missing; needed: a column GeneratedTokens, output_length, ' err || complain 'a table without output tokens'
done

# endless NAME PLACE START FILL: two gibibytes, of which no more is read than is allowed, in memory of a fraction
endless() {
	for command in $commands; do
		# shellcheck disable=SC3045 # the shells of Debian have it
		(
			[ -n "${FC_SANITIZE:-}" ] || ulimit -v 524288
			{ printf "$3" && yes "$4" | tr -d '\n' | head -c 2147483648; } | run "$command" -
			exit "$(cat status)"
		)
		found=$?
		if [ $found -ne 2 ] || ! grep -qF -- "flatcake: (standard input):$2" err; then
			complain "$command, $1: status $found, wanted 2 and $2"
		fi
	done
}
long='of more than 67108864 bytes; allowed: at most that many'
endless 'a first line without end' "1: a line $long" '{"timestamp":0,"a":"' '0123456789012345678901234567890123456789'
endless 'a third line without end' "3: a line $long" "$(good_lines | head -n 1)\\n\\n" '{"a":0},{"a":0},{"a":0},{"a":0},{"a":0}'
endless 'a line of a table without end' "2: a line $long" 'time,input_tokens,output_tokens\n' '1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16'
{ printf '[' && yes "$(request 0 512 1)," | head -c 80000000; } >document.json
refused 'a document that is too long' document.json "document.json:1: a document $long"
{ printf '[' && yes '{},{},{},{},{},{},{},{},{},{}' | head -c 20000000; } | tr '\n' ',' | gzip -1 >values.gz
run analyze values.gz && complain 'a line of seven million values is accepted'
grep -qF 'values.gz:1: more than 4194304 values besides whole lists of ids' err || complain 'a line of seven million values'

# A million ids in one request, twice, within a gigabyte of address space.
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf i ? ",%d" : "%d", i }' >million
for time in 0 1; do
	printf '{"timestamp":%d,"input_length":512000000,"output_length":7,"hash_ids":[' $time
	cat million
	echo ']}'
done >million.jsonl
# shellcheck disable=SC3045 # the shells of Debian have it
[ -n "${FC_SANITIZE:-}" ] || ulimit -v 1048576
scale=1 run replay million.jsonl
grep -q 'the largest request has 1000000 blocks and needs .*: raise --scale' err || complain 'replay, a million ids'
run analyze million.jsonl --json - || complain "a million ids: refused"
tr -d ' \n' <out | grep -q '"references":2000000,"unique":1000000,' || complain 'a million ids: counted wrongly'
exit $failed
