#!/bin/sh
# What `make install` lays down is enough for another project: a program is built against it in three ways (pkg-config, and
# CMake's shared and static targets) and runs.
set -eu
[ -z "${FC_SANITIZE:-}" ] || { echo "a sanitized library wants its users sanitized"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"

cmake --install "$FC_BUILD_DIR" --prefix "$prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for file in bin/flatcake include/flatcake.h share/man/man1/flatcake.1 share/doc/flatcake/LICENSE; do
	[ -f "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
"$prefix/bin/flatcake" --version

cat >"$work/user.c" <<'END'
#include <flatcake.h>
#include <stdio.h>
int main(void)
{
	return puts(fc_code_text(FC_EFULL)) < 0;
}
END
expect_no_room() { # PROGRAM
	answer=$("$1")
	[ "$answer" = "no room" ] || { echo "$1 said: $answer"; exit 1; }
}

folder=$(dirname "$(find "$prefix" -name flatcake.pc)")
library=$(dirname "$folder")
# The description names the prefix that was configured; here it moved.
flags=$(PKG_CONFIG_PATH="$folder" pkg-config --define-variable=prefix="$prefix" --cflags --libs flatcake)
# shellcheck disable=SC2086 # one word a flag
cc "$work/user.c" -o "$work/by-pkg-config" $flags
LD_LIBRARY_PATH="$library" expect_no_room "$work/by-pkg-config"

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(flatcake 0.1 REQUIRED)
add_executable(shared user.c)
target_link_libraries(shared flatcake::flatcake)
add_executable(static user.c)
target_link_libraries(static flatcake::static)
END
{ cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/build"; } >"$work/log" 2>&1 ||
	{ cat "$work/log"; exit 1; }
expect_no_room "$work/build/shared"
expect_no_room "$work/build/static"
