#!/bin/sh
# The layout of the code is clang-format's, of the version that Debian 12 has (others differ in details). `make style`
# applies it.
set -u
cd "$FC_SOURCE_DIR" || exit 1
command -v clang-format >/dev/null || { echo "clang-format is not installed"; exit 77; }
case $(clang-format --version) in
*'version 14.'*) ;;
*) echo "another clang-format than 14: $(clang-format --version)"; exit 77 ;;
esac
# shellcheck disable=SC2046 # no source's name has a space
clang-format --dry-run -Werror $(find src include examples tests bench integrations -name '*.[ch]' 2>/dev/null)
