#!/usr/bin/env bash
# codec.sh libdeflate|libjpeg LIBRARY COMPILER... - libdeflate or libjpeg-turbo as this Debian has it,
# compiled with these flags, the latter without SIMD, so that a fuzzer sees its branches and a sanitizer its
# memory. The source comes through apt-get, which checks its signature. Where it cannot be had an
# empty library is made, and the system's is used, which is said.
set -euo pipefail
name=$1 library=$2; shift 2
here=$(dirname "$library")/$name
rm -rf "$here" "$library"
mkdir -p "$here/lists/partial" "$here/source"
case $name in libdeflate) package=libdeflate ;; libjpeg) package=libjpeg-turbo ;; esac

fetch() {
    local suite key=/usr/share/keyrings/debian-archive-keyring.gpg
    suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian $suite main" >"$here/sources.list"
    local apt=(-qq -o Dir::Etc::SourceList="$PWD/$here/sources.list" -o Dir::Etc::SourceParts=/dev/null
               -o Dir::State::Lists="$PWD/$here/lists" -o APT::Sandbox::User=)
    apt-get "${apt[@]}" update && cd "$here/source" && apt-get "${apt[@]}" source "$package"
}

if ! (fetch) >"$here/log" 2>&1; then
    tail -3 "$here/log" >&2
    echo "fuzz: SKIPPED: $name is not instrumented: its source cannot be had; see $here/log" >&2
    ar rcs "$library"
    exit 0
fi
cd "$here/source/$package"*/
if [ $name = libdeflate ]; then
    files=$(ls lib/*.c lib/*/*.c)
else
    # What its CMake would find out; jconfig.h is the system's. The rest are parts of other files and programs.
    printf '#define %s\n' 'BUILD "fuzz"' 'PACKAGE_NAME "libjpeg-turbo"' 'VERSION "fuzz"' 'INLINE inline' \
        'THREAD_LOCAL __thread' 'SIZEOF_SIZE_T __SIZEOF_SIZE_T__' 'HAVE_BUILTIN_CTZL 1' FALLTHROUGH >jconfigint.h
    sed 's/@COPYRIGHT_YEAR@//' jversion.h.in >jversion.h
    files=$(ls j*.c | grep -vE '^(jccolext|jcstest|jdcol565|jdcolext|jdmrg565|jdmrgext|jpegtran|jstdhuff|jdata(src|dst)-tj)\.c')
fi
for f in $files; do
    "$@" -w -I. -c "$f" -o "${f%.c}.o"
done
ar qcs ../../../"$(basename "$library")" $(printf '%s\n' "$files" | sed 's/c$/o/')
