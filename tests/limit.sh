# limit.sh - for a script to source: where it has not ended after half an hour, all that it waits for is ended, and it fails.
trap 'echo "FAILED: $0 has not ended in half an hour; it is at: $BASH_COMMAND" >&2; exit 1' ALRM
below() { local p; for p in $(cat "/proc/$1/task/$1/children"); do echo "$p"; below "$p"; done; }
( for ((i = 0; i < 1800; i++)); do sleep 1; kill -0 $$ || exit; done; trap '' TERM; kill -ALRM $$; kill $(below $$) ) >/dev/null 2>&1 &
