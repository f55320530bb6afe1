#!/usr/bin/env bash
# suites.sh [plain|inject|model|memcheck|racecheck]... - the GPU tests, each suite in a process of its own, several side by side,
# and at the end one by one those that take all memory of a GPU for a moment, or compare clocks: as they are; driver calls
# that fail; random pipelines (tests/model.py), with NumPy; under compute-sanitizer, where suites that fault on purpose
# stay out. All of it, if nothing is named. A line for each suite; exit 1 if one failed or did not end, or the sanitizer found something.
#   RUN         the test program (build/.../tests/gpu/run), with `inject` beside it
#   SANITIZER   compute-sanitizer
#   SUITES      in place of all, names with commas between
#   LIMIT       seconds for each (280, under compute-sanitizer 480)
#   JOBS        how many at a time (8)
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${RUN:=$(ls -t "$here"/../../build/*/tests/gpu/run 2>/dev/null | head -1)}" "${JOBS:=8}" "${SUITES:=}"
: "${SANITIZER:=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}"

# one TOOL SUITE: its line, and what is wrong. GPIPE_SANITIZED: no test asks how long things take, or needs two kernels at
# a time. GPIPE_THIN: of cases that are made by chance one in so many.
one() {
    local tool=$1 suite=$2 start=$SECONDS rc what bad= word=passed limit=${LIMIT:-480} log
    log=$(mktemp)
    case $tool in
    plain)     timeout -k 5 "${LIMIT:-280}" env CK_RUN_SUITE="$suite" "$RUN" >"$log" 2>&1 ;;
    inject)    timeout -k 5 "${LIMIT:-280}" "$(dirname "$RUN")/inject" 1 20 >"$log" 2>&1 ;;
    model)     timeout -k 5 "${LIMIT:-280}" env GPIPE_DEVICES="${GPIPE_DEVICES:-cuda}" python3 "$here/../model.py" "$GPIPE" "${GPIPE_SEED:-1}" 200 >"$log" 2>&1 ;;
    memcheck)  CK_RUN_SUITE=$suite GPIPE_THIN=199 GPIPE_SANITIZED=1 timeout -k 5 "$limit" "$SANITIZER" --tool memcheck \
                   --error-exitcode 9 --target-processes application-only --report-api-errors no --leak-check no \
                   "$RUN" >"$log" 2>&1 ;;
    racecheck) CK_RUN_SUITE=$suite GPIPE_THIN=499 GPIPE_SANITIZED=1 timeout -k 5 "$limit" "$SANITIZER" --tool racecheck \
                   --error-exitcode 9 --target-processes application-only --racecheck-report all "$RUN" >"$log" 2>&1 ;;
    esac
    rc=$?
    what=$(grep -aE 'Checks: |SUMMARY: |^inject: [0-9]+ tries|^model: ' "$log" | sed 's/^=* *//' | tr '\n' ' ')
    if grep -q 'Checks: 0,' <<<"$what"; then
        what=$(grep -a "SKIPPED: ${suite%% *}:\|SKIPPED: no usable GPU" "$log" | tail -1)
        [ -n "$what" ] && word=skipped || bad="no test has run"
    elif [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
        bad="did not end"
    elif [ $rc -ne 0 ]; then
        bad="exit $rc"
    elif [ "${tool#*check}" != "$tool" ] && ! grep -qE 'SUMMARY: 0 errors|SUMMARY: 0 hazards' <<<"$what"; then
        bad="no summary of $tool"
    fi
    {
        echo "$tool: $suite: ${what:-nothing said} ($((SECONDS - start)) s)${bad:+ FAILED: $bad}"
        [ -z "$bad" ] || { grep -aE ':[FE]:|^=========' "$log" | grep -vE 'COMPUTE-SANITIZER|SUMMARY' || tail -5 "$log"; } | head -40
    } >"$log.said"
    cat "$log.said"
    rm -f "$log" "$log.said"
    [ -z "$bad" ] || word=failed
    echo $word >>"$COUNTS"
    [ -z "$bad" ]
}

if [ "${1:-}" = --one ]; then
    one "$2" "$3"
    exit
fi
[ -x "$RUN" ] || { echo "suites: no test program: make gpu-tests, or set RUN"; exit 2; }
[ $# -gt 0 ] || set -- plain inject $(python3 -c 'import numpy' 2>/dev/null && echo model) memcheck racecheck
for tool in "$@"; do
    case $tool in
    plain | inject | model) ;;
    memcheck | racecheck) [ -x "$SANITIZER" ] || { echo "suites: no compute-sanitizer: set SANITIZER"; exit 2; } ;;
    *) echo "suites: no tool '$tool': plain, inject, model, memcheck, racecheck"; exit 2 ;;
    esac
done
COUNTS=$(mktemp)
trap 'rm -f "$COUNTS"' EXIT
export RUN SANITIZER LIMIT COUNTS GPIPE="${GPIPE:-$(dirname "$RUN")/../../gpipe}"
[ -n "$SUITES" ] && all=$(tr , '\n' <<<"$SUITES") \
    || all=$(sed -n 's/.*suite_create("\([^"]*\)").*/\1/p; s/^\(GPU\|CASES\)_SUITE(\([a-z_]*\),.*/\2 on cuda/p' "$here"/test_*.c "$here"/../lib/*_cases.c)
takes_all='^((inject|model) all|[a-z]+ (faults|backend|backend_order|backend_fault|managed on cuda|report on cuda))$'
list=$(for tool in "$@"; do
    case $tool in
    inject | model) echo "$tool all" ;;
    plain)  sed "s/^/plain /" <<<"$all" ;;
    *)      grep -vxE 'faults|backend_fault' <<<"$all" | sed "s/^/$tool /" ;;
    esac
done | tac)
run() { xargs -P "$1" -d '\n' -I{} bash -c 'read -r tool suite <<<"$2"; "$1" --one "$tool" "$suite"' - "$here/suites.sh" {}; }
rc=0
grep -vE "$takes_all" <<<"$list" | run "$JOBS" || rc=1
grep -E "$takes_all" <<<"$list" | run 1 || rc=1
echo "suites: $(grep -c passed "$COUNTS") passed, $(grep -c failed "$COUNTS") failed, $(grep -c skipped "$COUNTS") skipped"
[ -s "$COUNTS" ] || { echo "suites: there is no such suite"; exit 2; }
[ $rc -eq 0 ]
