#!/bin/sh
# The Debian package, made from this build: its files, its dependencies, its settings, and what lintian says. Skipped
# without dpkg-deb and dpkg-shlibdeps.
set -u
[ -z "${FC_SANITIZE:-}" ] || { echo "skipped: a sanitized build is not packaged"; exit 77; }
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || { echo "skipped: no dpkg-dev"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/flatcake-deb-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

cpack -G DEB --config "$FC_BUILD_DIR/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
deb=$(find "$work" -maxdepth 1 -name 'flatcake_*.deb')
[ -n "$deb" ] || { cat "$work/log"; echo "no package"; exit 1; }
dpkg-deb --contents "$deb" | awk '{ print $6 }' >"$work/files"
programs=flatcake
[ ! -f "$FC_SOURCE_DIR/src/daemon/main.c" ] || programs="flatcake flatcaked"
for program in $programs; do
	grep -qx "./usr/bin/$program" "$work/files" || complain "lacks /usr/bin/$program"
done
for file in etc/flatcake/flatcaked.yaml usr/include/flatcake.h usr/lib/systemd/system/flatcaked.service \
	usr/lib/sysusers.d/flatcake.conf usr/lib/tmpfiles.d/flatcake.conf usr/share/man/man1/flatcake.1.gz \
	usr/share/man/man8/flatcaked.8.gz usr/share/flatcake/flatcake.rules.yml usr/share/flatcake/flatcake.json \
	usr/share/flatcake/profiles/8xb200-deepseek-v4-flash.yaml usr/share/doc/flatcake/copyright; do
	grep -qx "./$file" "$work/files" || complain "lacks /$file"
done
grep -q 'libflatcake.so' "$work/files" || complain "lacks the library"
grep -q '/local/' "$work/files" && complain "has files in /usr/local"

dpkg-deb --field "$deb" Depends >"$work/depends"
libraries='libc6 liburing2 libsodium23 libxxhash0 libjansson4 libarchive13 libyaml-0-2'
[ "$programs" = flatcake ] || libraries="$libraries libuv1"
for library in $libraries; do
	grep -q "$library" "$work/depends" || complain "does not depend on $library: $(cat "$work/depends")"
done
dpkg-deb --control "$deb" "$work/control"
[ "$(cat "$work/control/conffiles")" = /etc/flatcake/flatcaked.yaml ] || complain "the settings are no conffile"
for script in postinst prerm postrm; do
	sh -n "$work/control/$script" || complain "$script is no shell"
	[ -x "$work/control/$script" ] || complain "$script cannot be executed"
done

# The memory of a removed package is given back, an upgraded one keeps it.
mkdir -p "$work/shm"
for act in upgrade remove; do
	echo cache >"$work/shm/memory.arena"
	sed "s|/dev/shm/flatcake|$work/shm|; s|/run/systemd/system|$work/nowhere|" "$work/control/postrm" >"$work/postrm"
	sh "$work/postrm" "$act" || complain "postrm $act fails"
	{ [ "$act" = remove ] && [ -e "$work/shm" ]; } && complain "remove leaves the memory arena"
	{ [ "$act" = upgrade ] && [ ! -e "$work/shm/memory.arena" ]; } && complain "an upgrade takes the memory arena away"
done

dpkg-deb --extract "$deb" "$work/root"
grep -qx 'ExecStart=/usr/bin/flatcaked --config /etc/flatcake/flatcaked.yaml' \
	"$work/root/usr/lib/systemd/system/flatcaked.service" || complain "the unit starts something else"
"$work/root/usr/bin/flatcake" --version >"$work/out" || complain "the packaged program does not run"
if [ -x "$work/root/usr/bin/flatcaked" ]; then
	"$work/root/usr/bin/flatcaked" --check-config --config "$work/root/etc/flatcake/flatcaked.yaml" >"$work/out" 2>&1 ||
		complain "the packaged settings: $(cat "$work/out")"
fi

if command -v lintian >/dev/null; then
	lintian --fail-on error --allow-root "$deb" >"$work/lintian" 2>&1 || { cat "$work/lintian"; complain "lintian finds errors"; }
else
	echo "without lintian"
fi
exit $failed
