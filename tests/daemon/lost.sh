#!/bin/sh
# An arena's file is removed, replaced, cut or renamed under a flatcaked: it says so, is no longer ready, keeps nothing, and a
# second daemon may take the place; put back and started anew, what was there is there. The same of its socket, which is used
# again as soon as it is back, and of which nothing goes that is another's.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-lost-XXXXXX") || exit 1
shm=$(mktemp -d "/dev/shm/flatcake-lost-XXXXXX" 2>/dev/null) || { echo "skipped: no /dev/shm"; exit 77; }
daemons=
trap 'for pid in $daemons; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work" "$shm"' EXIT
failed=0
complain() { echo "$*"; failed=1; }
get() { "$FC_BUILD_DIR/tests/daemon/test_http" get "http://127.0.0.1:$port$1"; }

start() { # NAME: sets pid and port once it is ready
	"$FC_BUILD_DIR/flatcaked" --model deepseek-v4-flash --scale 256 --memory 16MiB --memory-path "$shm/memory.arena" --ssd 64MiB \
		--ssd-path "$work/ssd.arena" --socket "$work/$1.sock" --lock-path "$work/$1.lock" --http-listen 127.0.0.1:0 \
		--log-format text --window 8MiB --drain-timeout 1s 2>"$work/$1.log" &
	pid=$!
	daemons="$daemons $pid"
	port=
	for _ in $(seq 600); do
		port=$(sed -n 's/.* port \([0-9]*\)$/\1/p' "$work/$1.log")
		[ -n "$port" ] && get /readyz 2>/dev/null | grep -q '"ready":true' && return
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	echo "it does not become ready: $(cat "$work/$1.log")"
	exit 1
}

stop() {
	kill "$pid"
	wait "$pid" || complain "it ends with $?: $(tail -3 "$work/$1.log")"
}

expect_lost() { # NAME FILE WORDS
	for _ in $(seq 600); do
		get /readyz >"$work/ready"
		grep -q '"ready":false' "$work/ready" && break
		sleep 0.1
	done
	grep -q "$2: .*$3" "$work/ready" || complain "after $3: $(cat "$work/ready")"
	get /metrics | grep -q '^flatcake_ready 0$' || complain "after $3: the metric says it is ready"
	[ "$(get /metrics | grep -c '^flatcake_arena_lost{.*} 1$')" = 1 ] || complain "after $3: not one arena is lost"
	for _ in $(seq 100); do
		grep -q "arena-lost.*$3" "$work/$1.log" && break
		sleep 0.1
	done
	grep -q "arena-lost.*$3" "$work/$1.log" || complain "after $3: the log is silent"
	get /healthz | grep -q '"alive":true' || complain "after $3: it is not alive"
}

expect_socket() { # NAME LOST WORDS: /readyz and the metric as said, and the log in these words
	for _ in $(seq 600); do
		get /metrics | grep -q "^flatcake_socket_lost $2\$" && break
		sleep 0.1
	done
	get /metrics | grep -q "^flatcake_socket_lost $2\$" || complain "$3: the metric does not say $2"
	get /metrics | grep -q "^flatcake_ready $((1 - $2))\$" || complain "$3: it is as ready as before"
	get /readyz >"$work/ready"
	[ "$2" = 0 ] || grep -q "$work/$1.sock: .*$3" "$work/ready" || complain "$3: $(cat "$work/ready")"
	grep -q "$3" "$work/$1.log" || complain "the log does not say: $3"
}

for seed in 1 2; do
	"$FLATCAKE" gen --seed $seed --sessions 4 --turns 4 --length 0.1 --output "$work/$seed.tar" >/dev/null || exit 1
done
replay() { # NAME SEED
	"$FLATCAKE" replay "$work/$2.tar" --daemon "$work/$1.sock" --scale 256 --window 8MiB >"$work/out" 2>&1
}

start renamed
replay renamed 1 || complain "replay: $(cat "$work/out")"
mv "$work/ssd.arena" "$work/elsewhere"
expect_lost renamed "$work/ssd.arena" "lost its name"
# The lock is the file's, so nobody keeps a second daemon from the place; what is saved to the first is refused.
rm "$shm/memory.arena"
first_port=$port first_pid=$pid
start second
port=$first_port
replay renamed 2 && complain "a replay through a daemon that keeps nothing succeeds: $(cat "$work/out")"
grep -q "not_durable.*lost its name" "$work/renamed.log" || complain "the log does not say what could not be kept"
kill "$pid"
wait "$pid"
pid=$first_pid
stop renamed
mv "$work/elsewhere" "$work/ssd.arena"
start again
replay again 2 || complain "replay: $(cat "$work/out")"
rm "$work/ssd.arena"
expect_lost again "$work/ssd.arena" "was removed"
stop again
start cut
truncate -s 1M "$work/ssd.arena"
expect_lost cut "$work/ssd.arena" "made shorter"
stop cut
rm "$work/ssd.arena"
start memory
rm "$shm/memory.arena"
expect_lost memory "$shm/memory.arena" "was removed"
stop memory
start socket
mv "$work/socket.sock" "$work/elsewhere"
expect_socket socket 1 "removed or renamed"
replay socket 1 && complain "a replay through a socket that is not there"
mv "$work/elsewhere" "$work/socket.sock"
expect_socket socket 0 socket-back
replay socket 1 || complain "replay: $(cat "$work/out")"
rm "$work/socket.sock"
echo another >"$work/socket.sock"
expect_socket socket 1 "replaced by another"
stop socket
[ "$(cat "$work/socket.sock")" = another ] || complain "it has removed what is not its own"
rm "$work/socket.sock"
start socket
stop socket
[ ! -e "$work/socket.sock" ] || complain "its own socket stays"
exit $failed
