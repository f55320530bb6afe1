#!/usr/bin/env bash
# make install, then what somebody does with it outside of the source tree: compile
# examples/embed/app.c, a program with a stage kind of its own, against it, and a new plug-in. And what the
# shared library and the command show: the symbols of the public headers and no others.
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/limit.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*" >&2; }
check() { if "${@:2}" > "$tmp/log" 2>&1; then ok; else bad "$1"; cat "$tmp/log" >&2; fi; }

# a dry run runs nothing; what two goals need is made once (./gpipe is a link to it until 'make install')
got=$(env MAKEFLAGS= timeout 60 ${MAKE:-make} -n check-all B="$tmp/dry" 2>&1)
[ $? = 0 ] && [[ $got == *tests/install.sh* && $got != *' passed, '* ]] && ok || bad "make -n check-all: '${got: -500}'"
printf '#!/bin/sh\nfor a; do [ "$o" != -o ] || { echo "$a" >>"$0.log"; : >"$a"; }; o=$a; done\n' >"$tmp/none"
chmod +x "$tmp/none"
env MAKEFLAGS= ${MAKE:-make} -sj2 all check T=err CUDA=0 MPICC= CC="$tmp/none" CXX="$tmp/none" B="$tmp/twice" >/dev/null 2>&1
got=$(sort "$tmp/none.log" | uniq -d)
[ -z "$got" ] && grep -q run-some "$tmp/none.log" && ok || bad "make -j2 all check: twice: '$got'"

to=$tmp/usr
check 'make install' ${MAKE:-make} install PREFIX="$to"
for f in bin/gpipe include/gpipe/gpipe.h include/gpipe/stage.h lib/libgpipe.a lib/libgpipe.so \
         $(command -v mpicc >/dev/null && echo lib/gpipe/gpipe-mpi.so) lib/pkgconfig/gpipe.pc share/gpipe/lua/gpipe.lua share/man/man1/gpipe.1 \
         share/bash-completion/completions/gpipe share/zsh/site-functions/_gpipe share/fish/vendor_completions.d/gpipe.fish; do
    [ -e "$to/$f" ] && ok || bad "$f was not installed"
done
if command -v groff >/dev/null; then
    got=$(groff -man -Tutf8 -ww "$to/share/man/man1/gpipe.1" 2>&1 >/dev/null)
    [ -z "$got" ] && ok || bad "man page: $got"
fi
got=$(sed -n 's/^\.SH "\(.*\)"$/\1/p' "$to/share/man/man1/gpipe.1" | tr '\n' ,)
[[ $got == *,'gpipe run',*,'TOPIC yaml',*,'TOPIC lua',*,'STAGE write', ]] && ok || bad "man page: its sections: $got"

# on a machine without libraries, tools or both: what is missing, before a compiler runs
bare() { local want=$1; shift
    got=$(env MAKEFLAGS= "$@" ${MAKE:-make} B="$tmp/bare" 2>&1)
    [ $? = 2 ] && [[ $got == *"there is no:$want"*"'make deps' installs"* && $got != *' cc	'* ]] && ok || bad "bare: '$got'"; }
bare ' yaml-0.1 lua5.4 libdeflate libjpeg zlib libmicrohttpd jansson' PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH= LUA=lua5.4
bare ' no-such-cc' CC=no-such-cc CXX=c++
mkdir "$tmp/tools"
for t in sh make gcc g++ cc c++ git sed cmp mv rm mkdir ln nproc cat ar; do
    ln -s "$(command -v $t)" "$tmp/tools/$t"; done
bare ' pkg-config' PATH="$tmp/tools" CC=cc CXX=c++ CUDA=0

# with other flags than last time what was compiled is compiled again, kernels for GPUs too
if ${NVCC:-nvcc} --version >/dev/null 2>&1; then
    made() { ${MAKE:-make} -s B="$tmp/flags" CUDA=1 ARCHS="$1" "$tmp/flags/kernels/db.fatbin" 2>&1 | grep -c nvcc; }
    [ "$(made 75) $(made 75) $(made 90)" = '1 0 1' ] && ok || bad 'a fatbin of other flags'
fi

cp -r examples/embed/*.c examples/data/raccoon.png examples/plugins "$tmp/"
sed -n '/^```c$/,/^```$/{//!p}' engine/cli/topics/embed.md > "$tmp/double.c"
photo=$tmp/raccoon.png
cd "$tmp" || exit 1
export PKG_CONFIG_PATH=$to/lib/pkgconfig LD_LIBRARY_PATH=$to/lib

# each header by itself
for h in "$to"/include/gpipe/*.h; do
    echo "#include <gpipe/$(basename "$h")>" > one.c
    check "$(basename "$h") alone" ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only one.c \
        -I"$to/include"
    check "$(basename "$h") as C++" ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -x c++ -fsyntax-only one.c \
        -I"$to/include"
done

# what the command says of the same pixels
cat > edges.yaml <<'Y'
stages:
  - {use: read, path: raccoon.png}
  - {use: gray}
  - {use: sobel}
  - {use: cast, dtype: u8}
  - {use: write, path: stdout, format: raw}
Y
want="frames: 1, bytes that are not 0: $("$to/bin/gpipe" run -q edges.yaml | tr -d '\0' | wc -c)"

warn='-std=c11 -Wall -Wextra -Werror'
check 'the shared library' ${CC:-cc} $warn app.c -o shared $(pkg-config --cflags --libs gpipe)
check 'the static library' ${CC:-cc} $warn app.c -o static $(pkg-config --cflags gpipe) "$to/lib/libgpipe.a" \
    $(pkg-config --static --libs gpipe | sed 's/-lgpipe//')
for app in shared static; do
    got=$(./$app "$photo" 2>&1)
    [ "$got" = "$want" ] && ok || bad "$app: '$got', not '$want'"
done
got=$(./shared none.png 2>&1)
[ $? = 3 ] && [[ $got == 'app.yaml:3:'*"none.png"* ]] && ok || bad "a photo that is not there: '$got'"
[[ $(ldd shared) == *libgpipe.so* && $(ldd static) != *libgpipe.so* ]] && ok || bad 'what is linked'

# programs that push and pull, and that of the topic
check "the topic's program" ${CC:-cc} $warn double.c -o double $(pkg-config --cflags --libs gpipe)
got=$(./double) && [ "$got" = $'frame 0: 0\nframe 1: 2\nframe 2: 4' ] && ok || bad "the topic's program: '$got'"
for app in camera loop; do
    check "$app.c" ${CC:-cc} $warn $app.c -o $app $(pkg-config --cflags --libs gpipe) -pthread -lm
done
got=$(./camera) && [[ $(wc -l <<< "$got") = 100 && $got == *$'\n'frame\ 99:\ * ]] && ok || bad "camera: '$got'"
got=$(./loop) && [[ $got =~ ([0-9]+)\ of\ 50\ frames\ were\ lost$ ]] \
    && [ $(($(wc -l <<< "$got") + BASH_REMATCH[1])) = 51 ] && ok || bad "loop: '$got'"

# of the functions that headers declare all are there, and nothing else is
grep -hvE '^(static|typedef)' "$to"/include/gpipe/*.h | sed -n 's/^[a-z].*[ *]\(gp_[a-z_0-9]*\)(.*/\1/p' | sort -u > declared
nm -D --defined-only "$to/lib/libgpipe.so" | awk '{ print $3 }' | sort -u > shown
[ -s declared ] && diff declared shown > differ && ok || { bad 'symbols (< declared, > shown)'; cat differ >&2; }
nm -D --defined-only "$to/bin/gpipe" | awk '$3 ~ /^gp_/ { print $3 }' | sort -u > shown
diff declared shown > differ && ok || { bad 'symbols of the command (< declared, > shown)'; cat differ >&2; }

# a new plug-in: its tests, a run, and in the folder of the installation
export XDG_DATA_HOME=$tmp/data
check 'a new plug-in' "$to/bin/gpipe" new plugin thermal
check 'a new plug-in: make' env MAKEFLAGS= ${MAKE:-make} -C thermal test run CFLAGS='-O2 -Werror -Wpedantic'
grep -qx 100 log && ! grep -q FAILED log && ok || { bad 'a new plug-in: what it makes'; cat log >&2; }
plugins=$(pkg-config --variable=plugindir gpipe)
check 'a new plug-in: install' env MAKEFLAGS= ${MAKE:-make} -C thermal install PLUGINS="$plugins"
check 'a new plug-in: is found' "$to/bin/gpipe" help thermal_gain
grep -qx "plug-in: thermal 0.1, $plugins/thermal.so" log && ok || { bad 'a new plug-in: where it is from'; cat log >&2; }
check 'examples/plugins' env MAKEFLAGS= ${MAKE:-make} -C plugins CFLAGS='-O2 -Werror -Wpedantic'
for kind in shm_read v4l2 bilateral $(pkg-config --exists hdf5 && echo hdf5_read); do
    check "examples/plugins: $kind" env GPIPE_PLUGINS=plugins "$to/bin/gpipe" help $kind
done
# ... the new one in a program that opened the library for itself alone
cat > alone.py <<'P'
import ctypes
lib, errs = ctypes.CDLL("libgpipe.so"), ctypes.create_string_buffer(1 << 16)
lib.gp_registry_create.restype = lib.gp_kind_find.restype = ctypes.c_void_p
kinds = ctypes.c_void_p(lib.gp_registry_create())
assert lib.gp_plugin_load(kinds, b"thermal/thermal.so", errs) & 255, errs.raw
assert lib.gp_kind_find(kinds, b"thermal_gain")
P
check 'a new plug-in: in Python' python3 alone.py

echo "install: $passed passed, $failed failed"
[ $failed = 0 ]
