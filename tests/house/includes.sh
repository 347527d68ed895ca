#!/bin/sh
# Imports run one way. For each folder of src/: the folders and single headers that its files may include, and whether it
# may use headers of the operating system. A folder that is missing here is an error, so that nobody forgets to decide.
set -u
cd "$FC_SOURCE_DIR/src" || exit 1

rules() {
	cat <<-'END'
	base     pure   base
	format   pure   base format
	catalog  pure   base format catalog clock/clock.h media/media.h device/device.h
	cio      pure   base format catalog cio sched clock/clock.h media/media.h device/device.h
	sched    pure   base sched clock/clock.h media/media.h
	clock    system base clock
	host     system base host
	media    system base format host media clock/clock.h
	device   system base format host device clock/clock.h
	core     pure   base format catalog cio sched core clock/clock.h media/media.h device/device.h
	store    system base format host catalog cio sched core media device clock wire client store
	wire     pure   base format catalog wire
	client   pure   base format catalog core/directory.h clock/clock.h wire client
	server   pure   base format catalog core clock/clock.h media/media.h device/device.h wire server
	daemon   system base format host clock media device catalog cio sched core wire server store config daemon
	trace    system base trace
	analyze  system base trace analyze
	sim      system base format catalog cio sched core clock/clock.h media/media.h device/device.h wire client server sim
	config   system base config
	report   system base host report trace
	replay   system base format host clock catalog cio sched core media device store trace config report replay cli/table.h cli/progress.h cli/json_file.h
	bench    system base format host clock media device/host.h catalog daemon bench
	cli      system base format host clock media device catalog cio sched store trace analyze sim config report replay bench cli
	END
}

check_file() { # FILE FOLDER KIND ALLOWED...
	awk -v file="$1" -v folder="$2" -v kind="$3" -v allowed="$4" '
	BEGIN {
		split(allowed, words, " ")
		for (i in words)
			is_allowed[words[i]] = 1
		split("assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdbool.h stddef.h stdint.h stdio.h string.h strings.h sodium.h xxhash.h", pure, " ")
		for (i in pure)
			is_pure[pure[i]] = 1
	}
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, parts, "\"")
		header = parts[2]
		split(header, path, "/")
		if (header != "flatcake.h" && !(header in is_allowed) && !(path[1] in is_allowed)) {
			printf "src/%s:%d: %s may not include %s\n", file, FNR, folder, header
			failed = 1
		}
	}
	/^[ \t]*#[ \t]*include[ \t]*</ {
		split($0, parts, /[<>]/)
		if (kind == "pure" && !(parts[2] in is_pure) && parts[2] !~ /intrin\.h$/) {
			printf "src/%s:%d: the pure folder %s may not include <%s>\n", file, FNR, folder, parts[2]
			failed = 1
		}
	}
	END { exit failed }' "$1"
}

failed=0
count=0
for folder in *; do
	rule=$(rules | awk -v folder="$folder" '$1 == folder { print }')
	files=$(find "$folder" -name '*.[ch]')
	[ -n "$files" ] || continue
	if [ -z "$rule" ]; then
		echo "src/$folder: what it may include is not decided; add it to tests/house/includes.sh"
		failed=1
		continue
	fi
	kind=$(printf '%s\n' "$rule" | awk '{ print $2 }')
	allowed=$(printf '%s\n' "$rule" | awk '{ $1 = $2 = ""; print }')
	for file in $files; do
		count=$((count + 1))
		check_file "$file" "$folder" "$kind" "$allowed" || failed=1
	done
done
[ $count -gt 0 ] || { echo "no source file found"; exit 1; }
[ $failed -eq 0 ] && echo "$count files include only what they may"
exit $failed
