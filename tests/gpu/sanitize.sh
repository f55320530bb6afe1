#!/usr/bin/env bash
# sanitize.sh [TOOL...] - the GPU tests under compute-sanitizer: memcheck over the
# back end, the stages and the executor; racecheck, which is slow, over the
# same with less of the executor. One line for each tool; exit 1 when one found
# something. Suites that fault on purpose stay out.
#   RUN         the test program (build/.../tests/gpu/run)
#   SANITIZER   compute-sanitizer
#   SUITES      in place of a tool's suites, names with commas between
#   LIMIT       seconds for each suite (170)
set -u
cd "$(dirname "$0")/../.."
: "${RUN:=$(ls -t build/*/tests/gpu/run 2>/dev/null | head -1)}" "${LIMIT:=170}"
: "${SANITIZER:=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}"
[ -x "$RUN" ] || { echo "sanitize: no test program; make gpu-tests, or set RUN"; exit 2; }
[ -x "$SANITIZER" ] || { echo "sanitize: no compute-sanitizer; set SANITIZER"; exit 2; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# tool NAME THIN 'SUITE,SUITE' OPTION... : a run for each suite. GPIPE_SANITIZED: no
# test asks how long things take, or needs two kernels at a time.
tool() {
    local name=$1 thin=$2 suites=$3 found=0 failed=0 checks=0 start=$SECONDS rc suite n; shift 3
    while IFS= read -r suite; do
        timeout -k 5 "$LIMIT" env CK_RUN_SUITE="$suite" GPIPE_THIN="$thin" GPIPE_SANITIZED=1 \
            "$SANITIZER" --tool "$name" --error-exitcode 9 --target-processes application-only \
            "$@" "$RUN" >"$log" 2>&1
        rc=$?
        n=$(sed -n 's/.*Checks: \([0-9]*\).*/\1/p' "$log" | head -1)
        checks=$((checks + ${n:-0}))
        # no test or no summary: the tool did not do its work
        if ! grep -qE 'SUMMARY: ' "$log" || [ "${n:-0}" -eq 0 ]; then
            found=$((found + 1))
            echo "sanitize: $name, $suite: did not run to its end (exit $rc)"; tail -15 "$log"
        elif [ $rc -eq 9 ] || ! grep -qE 'SUMMARY: 0 (errors|hazards)' "$log"; then
            found=$((found + 1))
            echo "sanitize: $name, $suite:"; grep -E '^=========' "$log" | head -40
        elif [ $rc -ne 0 ]; then
            grep -E ':[FE]:' "$log" | head -5
            failed=$((failed + 1))
        fi
    done < <(tr , '\n' <<<"${SUITES:-$suites}")
    echo "sanitize: $name: $checks tests, findings in $found suites, $failed suites failed" \
         "($((SECONDS - start)) s)"
    [ $((found + failed)) -eq 0 ]
}

rc=0
[ $# -gt 0 ] || set -- memcheck racecheck
for t in "$@"; do
    case $t in
    memcheck)  tool memcheck 199 'backend,backend_order,stages,exec on cuda,regroup on cuda,carry on cuda,loop on cuda,knobs on cuda,paused on cuda,varies on cuda,expr on cuda,fuse on cuda,prologue on cuda' --report-api-errors no \
                   --leak-check no || rc=1 ;;
    racecheck) tool racecheck 499 'backend,backend_order,stages,exec on cuda,regroup on cuda,carry on cuda,loop on cuda,knobs on cuda,paused on cuda,varies on cuda,expr on cuda,fuse on cuda,prologue on cuda' --racecheck-report all || rc=1 ;;
    *)         tool "$t" 199 'stages,exec on cuda' || rc=1 ;;
    esac
done
exit $rc
