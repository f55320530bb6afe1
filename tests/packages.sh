#!/usr/bin/env bash
# tests/packages.sh SOURCES.tar.gz PACKAGE.deb...: in fresh Debians or Ubuntus (debootstrap) the sources are built and
# installed by the lines of engine/packages/Containerfile; the packages are installed, used, linked with and removed, and
# leave nothing. By hand, by `make check-packages`: it takes root, a network and some ten minutes.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
sources=$(realpath "$1") debs=$(realpath "${@:2}")
version=$(sed -n 's/^.define GP_VERSION "\(.*\)"/\1/p' "$here/engine/include/gpipe/gpipe.h")
[ "$(id -u)" = 0 ] && command -v debootstrap lintian unshare >/dev/null \
    || { echo "packages: not tried: this takes root, debootstrap and lintian" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
check() { if "${@:2}" >"$tmp/log" 2>&1; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "FAILED: $1" >&2; tail -30 "$tmp/log" >&2; fi; }
# Runs a script in a root of its own, with processes of its own.
inside() { unshare -mpf sh -ec 'mount -t proc proc "$0/proc"; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$0" sh -ec "$1"' "$tmp/$1" "$2"; }
# What a stage of the Containerfile runs; what it copies is put there before.
stage() { awk -v n="$1" '$1 == "FROM" { at++ } at == n && $1 == "WORKDIR" { print "cd " $2 } at == n && sub(/^RUN /, "")' \
    "$here/engine/packages/Containerfile"; }
files() { (cd "$tmp/use" && find . -xdev \( -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log \
    -o -path ./tmp -o -path ./etc/ld.so.cache \) -prune -o -print | sort); }

. /etc/os-release
check 'no errors by lintian' lintian --allow-root --fail-on error $debs
for f in $debs; do
    check "the version of $f" [ "$(dpkg-deb -f "$f" Version)" = "$version" ]
done
check 'debootstrap' debootstrap --variant=minbase "$VERSION_CODENAME" "$tmp/base"
cp /etc/resolv.conf "$tmp/base/etc/"
[ $failed = 0 ] || exit 1

# the sources, without git, by the Containerfile; what it makes, in its other stage
cp -a "$tmp/base" "$tmp/build" && mkdir "$tmp/build/src" && tar -xzf "$sources" -C "$tmp/build/src" --strip-components=1
check 'the stage that builds' inside build "$(stage 1)"
cp -a "$tmp/base" "$tmp/run" && mkdir "$tmp/run/work" && cp "$tmp"/build/src/build/deb/gpipe_*.deb "$tmp/run/tmp/"
check 'the stage that runs' inside run "$(stage 2)"
check 'gpipe in the container' inside run "cd /work; gpipe --version | grep -F 'gpipe $version'
    gpipe new first; gpipe run first.yaml; ls out | grep png; [ -z \"\$(find /tmp /var/lib/apt/lists -type f)\" ]"
rm -rf "$tmp/build" "$tmp/run"

# the packages that were given
mv "$tmp/base" "$tmp/use"
check 'tools' inside use 'apt-get update; apt-get install -y --no-install-recommends gcc g++ libc6-dev make pkg-config openmpi-bin'
files >"$tmp/before"
cp $debs "$here/examples/embed/app.c" "$here/examples/data/raccoon.png" "$tmp/use/tmp/"
check 'apt-get install' inside use 'apt-get install -y --no-install-recommends /tmp/*.deb'
check 'what it is' inside use "gpipe --version | grep -F 'gpipe $version'; pkg-config --modversion gpipe | grep -Fx '$version'
    test -e /usr/share/man/man1/gpipe.1.gz"
check 'a pipeline' inside use 'cd /tmp; gpipe new first; gpipe run first.yaml; test -s out/00023.png'
check 'a plug-in' inside use 'cd /tmp; gpipe new plugin thermal; make -C thermal test run'
check 'a program' inside use 'cd /tmp; cc app.c -o app $(pkg-config --cflags --libs gpipe); ldd app | grep -F libgpipe.so
    ./app raccoon.png'
check 'two ranks' inside use 'cd /tmp; rm -r out; mpirun --allow-run-as-root --oversubscribe -n 2 gpipe run first.yaml
    test -s out/00023.png'
check 'apt-get purge' inside use "apt-get purge -y --auto-remove $(for f in $debs; do dpkg-deb -f "$f" Package; done | tr '\n' ' ')"
files >"$tmp/after"
check 'nothing is left' diff "$tmp/before" "$tmp/after"

echo "packages: $passed passed, $failed failed"
[ $failed = 0 ]
