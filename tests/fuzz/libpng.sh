#!/usr/bin/env bash
# libpng.sh LIBRARY COMPILER... - libpng as this Debian has it, compiled with these flags, so
# that a fuzzer sees its branches and a sanitizer its memory. The source comes through apt-get,
# which checks its signature. Where it cannot be had an empty library is made, and the system's
# is used, which is said.
set -euo pipefail
library=$1; shift
here=$(dirname "$library")/libpng
rm -rf "$here" "$library"
mkdir -p "$here/lists/partial" "$here/source"

fetch() {
    local suite key=/usr/share/keyrings/debian-archive-keyring.gpg
    suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian $suite main" >"$here/sources.list"
    local apt=(-qq -o Dir::Etc::SourceList="$PWD/$here/sources.list" -o Dir::Etc::SourceParts=/dev/null
               -o Dir::State::Lists="$PWD/$here/lists" -o APT::Sandbox::User=)
    apt-get "${apt[@]}" update && cd "$here/source" && apt-get "${apt[@]}" source libpng1.6
}

if ! (fetch) >"$here/log" 2>&1; then
    tail -3 "$here/log" >&2
    echo "fuzz: SKIPPED: libpng is not instrumented: its source cannot be had; see $here/log" >&2
    ar rcs "$library"
    exit 0
fi
cd "$here/source"/libpng*/
for f in png*.c; do
    [ "$f" = pngtest.c ] || "$@" -w -DPNG_INTEL_SSE_OPT=0 -DPNG_ARM_NEON_OPT=0 \
        -I/usr/include/libpng16 -I. -c "$f" -o "${f%.c}.o"
done
ar rcs ../../../"$(basename "$library")" png*.o
