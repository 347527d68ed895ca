#!/bin/sh
# How the program answers to being called: exit status, the stream it speaks on, and what the sentence names.
# 0 done, 1 the command failed, 2 the call was wrong.
set -u
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-calls-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# expect STATUS STREAM TEXT ARGUMENT...: STREAM is out or err; the other one must stay empty.
expect() {
	want_status=$1 stream=$2 text=$3
	shift 3
	"$FLATCAKE" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	other=err
	[ "$stream" = err ] && other=out
	if [ $status -ne "$want_status" ] || ! grep -qF -- "$text" "$work/$stream" || [ -s "$work/$other" ]; then
		echo "flatcake $*: status $status (wanted $want_status), wanted on std$stream alone: $text"
		sed 's/^/  out: /' "$work/out"
		sed 's/^/  err: /' "$work/err"
		failed=1
	fi
}

version=$(awk '/^#define FC_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' "$FC_SOURCE_DIR/include/flatcake.h")

expect 2 err 'usage: flatcake COMMAND'
expect 0 out 'usage: flatcake COMMAND' help
expect 0 out 'usage: flatcake COMMAND' --help
expect 0 out "flatcake $version" --version
expect 0 out 'usage: flatcake doctor [options]' help doctor
expect 0 out 'usage: flatcake doctor [options]' doctor --help
expect 0 out 'usage: flatcake doctor [options]' doctor --dir . -h
expect 0 out '.TH FLATCAKE 1' help manual
expect 0 out 'mooncake.staging: ' help policies
expect 0 out '[1280MiB]' help policies
expect 2 err 'unknown command "dance"; commands: ' dance
expect 2 err 'unknown command "dance"; commands: ' help dance
expect 2 err 'unknown option "--dri" (did you mean --dir?)' doctor --dri .
expect 2 err '  --dir, --json' doctor --dri .
expect 2 err 'unexpected argument "extra"' doctor extra
expect 2 err '--once: "maybe" does not fit; allowed: on or off' top --once=maybe
printf 'memory: 1G\nssd: 5X\n' >"$work/conf.yaml"
expect 2 err 'conf.yaml:2: ssd: "5X" does not fit; allowed: 0 to 256TiB' doctor --config "$work/conf.yaml"
expect 1 err 'cannot read the settings file' doctor --config "$work/none.yaml"
FLATCAKE_MEMRY=1 expect 2 err 'unknown variable "FLATCAKE_MEMRY" (did you mean FLATCAKE_MEMORY?)' doctor

if [ -w /dev/full ] && "$FLATCAKE" help >/dev/full 2>"$work/err"; then
	echo "output that could not be written was taken for a success"
	failed=1
fi
exit $failed
