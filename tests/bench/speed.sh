#!/usr/bin/env bash
# speed.sh - builds hand.cu where there is none, and runs speed.py, which says how
# gpipe compares with it. Arguments go to speed.py: --cpu, --rounds 5, --set sync=spin;
# --build only builds.
#   GPIPE   the command (./gpipe)
#   HAND    the hand-written peer, built (build/bench/hand)
set -eu
cd "$(dirname "$0")/../.."
: "${GPIPE:=$PWD/gpipe}" "${HAND:=$PWD/build/bench/hand}"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

case " $* " in
*" --cpu "*) ;;
*)  if [ ! -x "$HAND" ] || { [ tests/bench/hand.cu -nt "$HAND" ] && [ -x "$nvcc" ]; }; then
        [ -x "$nvcc" ] || { echo "speed.sh: no nvcc to build hand.cu; set HAND"; exit 2; }
        mkdir -p "$(dirname "$HAND")"
        "$nvcc" -std=c++17 -O3 -gencode=arch=compute_80,code=sm_80 \
            -gencode=arch=compute_90,code='[sm_90,compute_90]' \
            -Xcompiler -static-libstdc++,-static-libgcc -o "$HAND" tests/bench/hand.cu
    fi ;;
esac
[ "${1:-}" = --build ] && exit 0
exec python3 tests/bench/speed.py --gpipe "$GPIPE" --hand "$HAND" "$@"
