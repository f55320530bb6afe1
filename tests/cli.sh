#!/usr/bin/env bash
# cli.sh - the command as a person uses it: exit codes, errors, signals, pipes,
# and every YAML that the project shows. GPIPE is the binary. Prints a total.
set -u
cd "$(dirname "$0")/.."
. tests/limit.sh
: "${GPIPE:=$PWD/gpipe}"
tmp=$(mktemp -d)
# a child that a signal ends before it has become another program has the trap, too
trap '[ $BASHPID != $$ ] || rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME="$tmp/cache" XDG_RUNTIME_DIR="$tmp" XDG_DATA_HOME="$tmp/data"
unset GPIPE_PLUGINS
passed=0 failed=0

# ONNX Runtime, as make check downloaded it. Without any no model is run, and nothing that has one is looked at.
: "${GPIPE_ONNXRUNTIME:=$(echo "$PWD"/build/onnxruntime/onnxruntime/capi/libonnxruntime.so.*)}"
[ -e "$GPIPE_ONNXRUNTIME" ] && export GPIPE_ONNXRUNTIME || unset GPIPE_ONNXRUNTIME
without=
[ -n "${GPIPE_ONNXRUNTIME:-}" ] || /sbin/ldconfig -p | grep -q 'libonnxruntime\.so' \
    || { without='use: onnx'; echo 'cli: SKIPPED: models, as there is no ONNX Runtime'; }
# those of some files that can be compiled here
usable() { if [ -n "$without" ]; then grep -L "$without" "$@"; else printf '%s\n' "$@"; fi; }

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $1"; [ -f "$tmp/stderr" ] && head -5 "$tmp/stderr"; }

# rarely LIST...: under GPIPE_TESTS=all all of it, in the quick tests one in four
rarely() { printf '%s\n' "$@" | if [ "${GPIPE_TESTS:-}" = all ]; then cat; else awk 'NR % 4 == 1'; fi; }

# expect NAME CODE 'pattern in stderr' COMMAND...
expect() {
    local name=$1 code=$2 pattern=$3; shift 3
    timeout 60 "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    local rc=$?
    if [ $rc -ne "$code" ]; then bad "$name: exit $rc, not $code"
    elif [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$tmp/stderr"; then bad "$name: stderr lacks '$pattern'"
    else ok; fi
}

# == bad input: the first line of each file is the error it must give =========
for f in tests/bad/*.yaml; do
    want=$(head -1 "$f" | sed -n 's/^# error: //p')
    code=$(sed -n '2s/^# exit: //p' "$f")
    timeout 60 "$GPIPE" check "$f" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    rc=$?
    got=$(grep -m1 -E 'error: ' "$tmp/stderr" | sed 's|^tests/bad/||')
    if [ -z "$want" ]; then bad "$f: its first line names no error"
    elif [ "$rc" -ne "${code:-3}" ]; then bad "$f: exit $rc, not ${code:-3}"
    elif [ "${got#"$want"}" = "$got" ]; then bad "$f: says '$got', not '$want'"
    else ok; fi
done

# == the command ==============================================================
expect 'no verb'         2 'usage|help' "$GPIPE"
expect 'unknown verb'    2 "did you mean 'run'" "$GPIPE" rnu x.yaml
expect 'missing file'    2 'no-such.yaml' "$GPIPE" run no-such.yaml
expect 'a directory'     2 'folder' "$GPIPE" run tests
expect 'unknown option'  2 "did you mean '--poison'" "$GPIPE" run --poisn pipelines/edges.yaml
expect 'a key, nearly'   2 "no option '--dept'; a key of the pipeline is changed with --set depth=8" "$GPIPE" run --dept 8 pipelines/edges.yaml
expect 'a key'           2 "no option '--depth'; a key of the pipeline is changed with --set depth=8" "$GPIPE" run --depth 8 pipelines/edges.yaml
expect 'a report twice'  2 "--report b.html: it is given twice, before as a.json" "$GPIPE" run --report a.json --report b.html pipelines/edges.yaml
expect 'a key, with ='   2 "is changed with --set streams=3" "$GPIPE" check --streams=3 pipelines/edges.yaml
expect 'help'            0 '' "$GPIPE" --help
for w in $(seq 0 6) 129 130 139 141 143; do
    sed -n '/^exit:/,$p' "$tmp/stdout" | grep -qw $w && ok || bad "help: nothing on exit code $w"
done
expect 'version as verb' 2 "no verb 'version'; 'gpipe --version' shows it" "$GPIPE" version
for v in run check plan bench simulate tune top view probe stages machine; do expect "help of $v" 0 '' "$GPIPE" $v --help; done
# a verb is one file: tests/verb.c
greet=$(dirname "$(realpath "$GPIPE")")/tests/verb
if [ -x "$greet" ]; then
    expect 'a verb more'          0 '' "$greet" greet you --as me
    grep -qx 'hello, me' "$tmp/stdout" && ok || bad 'a verb more: its option'
    expect 'a verb more: usage'   2 'no file given; write gpipe greet NAME' "$greet" greet
    expect 'a verb more: options' 2 'this verb has no option' "$greet" greet you --serial
    "$greet" help | grep -A1 '^  check ' | grep -q '^  greet  *NAME  *say hello$' && ok || bad 'a verb more: the list'
    "$greet" help greet | grep -q -- '--as NAME  *another name' && ok || bad 'a verb more: its help'
fi
# plug-ins: one that is kept, and the one that stage.h shows
if [ "$(uname -m)" = x86_64 ]; then
    mkdir -p "$tmp/data/gpipe/plugins" "$tmp/plugins"
    printf 'stages:\n  - {use: kept_ramp, frames: 2, start: 3, size: 1}\n  - {use: write, path: stdout, format: csv}\n' > "$tmp/kept.yaml"
    kept=tests/data/plugin/kept.so
    expect 'a plug-in'        0 '' "$GPIPE" run --plugin $kept "$tmp/kept.yaml"
    [ "$(tr '\n' ' ' < "$tmp/stdout")" = '3 4 ' ] && ok || bad 'a plug-in: what it makes'
    for v in check plan 'bench --rounds 1 --window 100ms'; do expect "a plug-in, $v" 0 '' "$GPIPE" $v --plugin $kept "$tmp/kept.yaml"; done
    expect 'a plug-in, report' 0 '' "$GPIPE" run --plugin $kept "$tmp/kept.yaml" --report "$tmp/kept.json"
    tr -d ' \n' < "$tmp/kept.json" | grep -q '"plugins":{"kept":"1.0"}' && ok || bad 'a plug-in: the report'
    expect 'no plug-in'       3 "no stage kind 'kept_ramp'" "$GPIPE" check "$tmp/kept.yaml"
    grep -q '^      plug-ins were looked for in ' "$tmp/stderr" && ok || bad 'no plug-in: where they are looked for'
    expect 'no plug-in, stages' 2 "no stage kind 'kept_ramp'; 'gpipe stages' lists them" "$GPIPE" stages kept_ramp
    grep -q '^      plug-ins were looked for in ' "$tmp/stderr" && ok || bad 'no plug-in, stages: where they are looked for'
    expect 'no plug-in, help' 2 "no help on 'kept_ramp'" "$GPIPE" help kept_ramp
    grep -q '^      plug-ins were looked for in .* is named by --plugin FILE.so, or in GPIPE_PLUGINS$' "$tmp/stderr" && ok || bad 'no plug-in, help: how'
    expect 'help of a plug-in' 0 '' "$GPIPE" help --plugin $kept kept_ramp
    expect '... by a variable' 0 '' env GPIPE_PLUGINS=$kept "$GPIPE" help kept_ramp
    expect 'a word that is near' 3 "did you mean 'scale'" "$GPIPE" check <(echo 'stages: [{use: scael}]')
    grep -q 'looked for' "$tmp/stderr" && bad 'a word that is near: where plug-ins are looked for' || ok
    expect 'another word'     3 'here it is \{use: kept_ramp\}' "$GPIPE" check --plugin $kept <(echo 'stages: [{use: sawtooth}]')
    cp $kept "$tmp/data/gpipe/plugins"
    echo no object > "$tmp/plugins/broken.so"
    export GPIPE_PLUGINS=$tmp/plugins
    expect 'a user'\''s'      0 "gpipe: warning: plug-in '.*/broken.so' cannot be opened: file too short" "$GPIPE" run "$tmp/kept.yaml"
    expect 'quietly'          0 '' "$GPIPE" run -q "$tmp/kept.yaml"
    [ -s "$tmp/stderr" ] && bad 'quietly: it warns' || ok
    expect 'kinds'            0 '' "$GPIPE" stages
    grep -q '^  kept_pick  *host  *the least or most of each frame \[plug-in kept 1.0\]$' "$tmp/stdout" && ok || bad 'kinds: of a plug-in'
    [ "$(tail -1 "$tmp/stdout")" = "$tmp/plugins/broken.so could not be loaded; plug-ins were looked for in $tmp/plugins, $tmp/data/gpipe/plugins; see 'gpipe help plugins'" ] \
        && ok || bad "kinds: where plug-ins are looked for: $(tail -1 "$tmp/stdout")"
    expect 'help of a kind'   0 '' "$GPIPE" help kept_ramp
    grep -q "^plug-in: kept 1.0, $tmp/data/gpipe/plugins/kept.so$" "$tmp/stdout" && ok || bad 'help of a kind: of which plug-in'
    "$GPIPE" schema 2>"$tmp/stderr" | grep -q '"kept_ramp"' && ok || bad 'schema: kinds of plug-ins'
    "$GPIPE" stages --json 2>"$tmp/stderr" | grep -q '"plugin": {"name": "kept", "version": "1.0", "file": "' && ok || bad 'stages --json: kinds of plug-ins'
    "$GPIPE" stages --markdown | grep -q kept_ramp && bad 'stages --markdown: those of this machine' || ok
    rm "$tmp/data/gpipe/plugins/kept.so"
    expect 'one is broken'    3 "broken.so could not be loaded; plug-ins were looked for in $tmp/plugins, $tmp/data/gpipe/plugins" "$GPIPE" check "$tmp/kept.yaml"
    expect 'a broken one'     2 "gpipe: error: plug-in '.*' cannot be opened: file too short" "$GPIPE" check --plugin "$tmp/plugins/broken.so" "$tmp/kept.yaml"
    unset GPIPE_PLUGINS
fi
{ echo 'static int read_adc(float *v) { static int n; for (int i = 0; i < 2048; i++) v[i] = 5; return n++ < 3; }'
  sed -n '/^#ifndef/q; s/^ \*   //p' engine/include/gpipe/stage.h | grep -v '^cc '; } > "$tmp/adc.c"
[ "$(sed -n '/^#ifndef/{=;q}' engine/include/gpipe/stage.h)" -le 41 ] && ok || bad 'stage.h: what all need is in its first forty lines'
for h in $(grep -oh '[a-z_/]*\.h\>' engine/include/gpipe/*.h | sort -u); do
    echo "#include <$h>" | ${CC:-cc} -E -Iengine/include -Iengine/include/gpipe - >/dev/null 2>"$tmp/stderr" && ok || bad "stage.h names $h, which is not installed"
done
expect 'the one of stage.h'   0 '' ${CC:-cc} -std=c11 -Wall -Werror -shared -fPIC -Iengine/include "$tmp/adc.c" -o "$tmp/adc.so"
printf 'stages:\n  - {use: adc, channels: 2}\n  - {use: write, path: stdout, format: raw}\n' > "$tmp/adc.yaml"
expect 'it runs'              0 '3 frames in, 3 out' "$GPIPE" run --plugin "$tmp/adc.so" "$tmp/adc.yaml"
[ "$(stat -c %s "$tmp/stdout")" = 24576 ] && ok || bad 'it runs: bytes'
expect 'its options'          2 "'adc' must be 1 to 16, not 17" "$GPIPE" check --plugin "$tmp/adc.so" "$tmp/adc.yaml" --set stages.adc.channels=17

# the last line of a run that ends by a fault of a plug-in names it, wherever that was
cat >"$tmp/faulty.c" <<'C'
#include <gpipe/stage.h>
#include <stdlib.h>
#include <string.h>
struct faulty { int how; };
static void *volatile nowhere;
static void (*volatile missing)(void);
static struct faulty last;
static int deep(int n) { volatile char big[100000]; big[0] = (char)n; return n < 0 ? 0 : deep(n + 1) + big[0]; }
static void __attribute__((destructor)) leave(void) { if (last.how == 7) *(char *)nowhere = 1; }
static int compare(const void *a, const void *b) { (void)b; return *(const char *)a - *(char *)nowhere; }
static bool run(gp_call *c, gp_frame *f, int n)
{
    char two[2] = "ba", *volatile p;
    (void)n;
    f->status = f->index ? GP_END : GP_OK;
    switch ((last = *(const struct faulty *)c->opts).how) {
    case 0: *(char *)nowhere = 1; break;
    case 1: *(int *)f->out[0].data = (int)strlen(nowhere); break;
    case 2: missing(); break;
    case 3: abort();
    case 4: qsort(two, 2, 1, compare); break;
    case 5: free(p = malloc(100)), free(p); break;
    case 6: return deep(0);
    case 10: exit(0);
    case 9: for (fclose(fopen(getenv("LOOPS"), "w")); ; ) two[0] = *(char *volatile)two;
    }
    return true;
}
static bool shape(gp_shape *s)
{
    if (((const struct faulty *)s->opts)->how == 8)
        *(char *)nowhere = 1;
    s->out[0] = (gp_type){ GP_I32, 1, { 1 } };
    return true;
}
static const gp_port out[] = { { .name = "out" }, { 0 } };
static const gp_opt opts[] = {
    { GP_ENUM(struct faulty, how), .choices = "here|library|missing|abort|called|free|deep|leave|shape|loops|exit", .required = true, .help = "how" },
    { 0 } };
static const gp_kind faulty = { GP_KIND("faulty"), .help = "faults", .out = out, .opts = opts,
                                .opts_size = sizeof(struct faulty), .shape = shape, .run = run };
GP_PLUGIN("faulty", "0.9", &faulty);
C
expect 'a faulty one'         0 '' ${CC:-cc} -std=c11 -O1 -fno-builtin -shared -fPIC -Iengine/include "$tmp/faulty.c" -o "$tmp/faulty.so"
printf 'stages:\n  - {use: faulty, how: here}\n  - {use: write, path: stdout, format: raw}\n' > "$tmp/faulty.yaml"
faults() { local how=$1 code=$2 says=$3; shift 3
    { timeout 60 "$@" --plugin "$tmp/faulty.so" "$tmp/faulty.yaml" --set stages.faulty.how="$how" >"$tmp/stdout" \
        2>"$tmp/stderr"; } 2>/dev/null
    [ $? = "$code" ] && tail -1 "$tmp/stderr" | grep -q "^gpipe: error: $says in plug-in 'faulty' 0.9 (.*/faulty.so) in the thread of '" \
        || grep -q Sanitizer "$tmp/stderr" && ok || bad "a fault in a plug-in: $how"; }
for how in here library missing called deep leave; do faults $how 139 'a segmentation fault' "$GPIPE" run; done
for how in abort free; do faults $how 134 'an abort' "$GPIPE" run; done
faults shape 139 'a segmentation fault' "$GPIPE" check
faults exit 1 'a call of exit(), which ends the run,' "$GPIPE" run
# ... before it has said its name, too
{ cat "$tmp/faulty.c"; echo '__attribute__((constructor)) static void early(void) { *(char *)nowhere = 1; }'; } > "$tmp/early.c"
expect 'a faulty constructor' 0 '' ${CC:-cc} -std=c11 -O1 -fno-builtin -shared -fPIC -Iengine/include "$tmp/early.c" -o "$tmp/early.so"
for v in 'stages --plugin' 'check pipelines/edges.yaml --plugin'; do
    { timeout 60 "$GPIPE" $v "$tmp/early.so" >"$tmp/stdout" 2>"$tmp/stderr"; } 2>/dev/null
    [ $? = 139 ] && grep -qx "gpipe: error: a segmentation fault in plug-in '.*/early.so', which was being opened, in the thread of 'gpipe'" \
        "$tmp/stderr" || grep -q Sanitizer "$tmp/stderr" && ok || bad "a faulty constructor: $v"
done

# the reference, offline: each key, function and stage that there is; the defaults are those
helps() {
    local topic=$1; shift
    expect "help $topic" 0 '' "$GPIPE" help "$topic"
    for w in "$@"; do
        grep -qwF -- "$w" "$tmp/stdout" && ok || bad "help $topic: nothing on $w"
    done
}
keys() { sed -n "/ $1\[\] = /,/^}/s/.*KEY(\"\([a-z_]*\)\".*/\1/p" engine/compile/keys.c; }
[ "$(keys gp_top_keys | wc -l)" -ge 16 ] && ok || bad 'the keys of a file are not found'
helps yaml $(keys gp_top_keys) $(keys gp_stage_keys) $(keys gp_buffer_keys | grep -vx 'carry\|init\|state\|save\|save_every')
helps frames carry init state save save_every
helps lua produce process init finish $(sed -n 's/.*\.name = "\([a-z]*\)".*/\1/p' stages/lua.c | head -1) script params
helps kernel source code args block grid
helps plugins GPIPE_PLUGINS --plugin
helps exit $(seq 0 6) $(seq 129 132) 134 135 136 139 141 143
"$GPIPE" help limits | grep -qE '[A-Z]+\.md|licen[cs]e' && bad 'help limits: what is no limit' || ok
helps run --progress
helps blur sigma
"$GPIPE" help read | grep -q '^  reopen .*one after another' && ok || bad 'help read: it does not say who may write to a FIFO'
for w in engine/cli/topics/*.md; do
    w=$(basename "$w" .md)
    "$GPIPE" help "$w" | sed "/^$w - /,\$d; /^    /d" >"$tmp/text"      # without a kind of that name, and without code
    grep -q '`\|\*\*\|](\|^```' "$tmp/text" && bad "help $w: marks of Markdown: $(grep -m1 '`\|\*\*\|](' "$tmp/text")" || ok
done
"$GPIPE" help --man | grep -q '](' && bad 'the man page has links of Markdown' || ok
"$GPIPE" help yaml | sed -n 's/^    \([a-z_]*\): *\([^ #][^ #]*\) *#.*/\1=\2/p' | grep -v '^pipeline' >"$tmp/defaults"
grep -q '^stall_timeout=30s$' "$tmp/defaults" && [ "$(wc -l <"$tmp/defaults")" -ge 8 ] && ok || bad 'help yaml: its defaults'
"$GPIPE" plan -q --json pipelines/edges.yaml --device cpu $(sed 's/^/--set /' "$tmp/defaults" | grep -v 'device\|depth') \
    >"$tmp/said" 2>"$tmp/stderr"
"$GPIPE" plan -q --json pipelines/edges.yaml --device cpu >"$tmp/unsaid"
cmp -s "$tmp/said" "$tmp/unsaid" && ok || bad 'help yaml: these are no defaults'
expect 'help: no topic'  2 "no help on 'yml'; did you mean 'yaml'" "$GPIPE" help yml
expect 'help: a word'     2 "no help on 'carry' by itself; these topics say something of it: frames" "$GPIPE" help carry
"$GPIPE" help expr | grep -A1 '^  i32, also' | grep -q '^        \[.* \*.*\] i32$' && ok || bad 'help: columns have no names'
"$GPIPE" help files | grep -q '^  *| ' && bad 'help: a table in a list' || ok
"$GPIPE" help files | sed -n 3,4p | tr '\n' ' ' | grep -q "^Sections.*help files WORD.*:   Recordings and tables; Files; .*; Zarr; " && ok || bad 'help: no list of sections'
"$GPIPE" help files zarr >"$tmp/text"
grep -q '^\* Zarr (' "$tmp/text" && [ "$(grep -c '^\* ' "$tmp/text")" = 1 ] && ok || bad 'help: a section'
"$GPIPE" help files save_every | grep -q '^\* Going on after' && ok || bad 'help: a section by its text'
expect 'help: no section' 2 "no section of topic 'files' is about 'xyzzy'" "$GPIPE" help files xyzzy
expect 'help: of a kind'  2 "'blur' is no topic" "$GPIPE" help blur xyzzy
expect 'help: no name'   2 "'gpipe help' lists verbs and topics" "$GPIPE" help xyzzy
expect 'help: all of one' 2 "leave out 'lua'" "$GPIPE" help --man lua
expect 'version'         0 '' "$GPIPE" --version
grep -q gpipe "$tmp/stdout" && grep -qE '^scripts: lua(5|jit)' "$tmp/stdout" && ok || bad 'version says nothing'
expect 'stages'          0 '' "$GPIPE" stages
awk 'length(substr($0, 37)) > 70 {exit 1}' "$tmp/stdout" && ok || bad 'stages: a line of help is too long'
expect 'one stage'       0 '' "$GPIPE" stages blur
grep -q sigma "$tmp/stdout" && ok || bad 'stages blur does not show sigma'
grep -q '^  shard ' "$tmp/stdout" && bad 'stages blur shows shard, which is for sources' || ok
"$GPIPE" stages read | grep -q '^  shard ' && ok || bad 'stages read does not show shard'
"$GPIPE" stages blur crop | grep -c '^blur - \|^crop - ' | grep -qx 2 && ok || bad 'two stages'
expect 'unknown stage'   2 "did you mean 'blur'" "$GPIPE" stages blr
expect 'set: a variable' 2 "'frames' is a variable: write vars.frames=2" "$GPIPE" check --set frames=2 pipelines/edges.yaml
expect 'set: no path'    2 'did you mean' "$GPIPE" check --set stages.blurr.sigma=2 pipelines/edges.yaml
expect 'set: bad value'  2 'sigma' "$GPIPE" check --set stages.blur.sigma=-1 pipelines/edges.yaml
for form in graph plan; do
    expect "plan --form $form" 0 '' "$GPIPE" plan --form $form pipelines/edges.yaml
    "$GPIPE" plan --form $form --json pipelines/edges.yaml 2>/dev/null | python3 -m json.tool >/dev/null 2>&1 \
        && ok || bad "plan --form $form --json is not JSON"
done
expect 'a wrong form'    2 "'--form' must be one of plan, graph, not 'grahp'; did you mean 'graph'" \
    "$GPIPE" plan --form grahp pipelines/edges.yaml
expect 'two forms'       2 "'--json' and '--dot' exclude each other" "$GPIPE" plan --dot --json pipelines/edges.yaml
expect 'two of stages'   2 "'--json' and '--markdown' exclude" "$GPIPE" stages --markdown --json
expect 'a table of one'  2 "leave out 'blur'" "$GPIPE" stages --markdown blur
expect 'plan --dot'      0 '' "$GPIPE" plan --dot pipelines/edges.yaml
expect 'plan of a grid'  0 '' sh -c '"$0" plan examples/own-kernel/own-kernel.yaml | grep -qF "gray -> oil, block [16, 16], grid [64, 48]"' "$GPIPE"
expect 'svg and dot'     2 "'--dot' and '--svg' exclude" "$GPIPE" plan --svg --dot pipelines/edges.yaml
echo '{"stages": [{"name": "x"}], "verdict": {}}' >"$tmp/report.json"
expect 'a foreign report' 2 "report.json: error: a report of another pipeline: there is no stage 'x'; make it anew" \
    "$GPIPE" plan -q --svg --with "$tmp/report.json" pipelines/edges.yaml
expect 'no report'       2 "edges.yaml: error: this is not a report; give a file that 'gpipe run --report" \
    "$GPIPE" plan -q --dot --with pipelines/edges.yaml pipelines/edges.yaml
expect 'no report there' 2 'none.json: error: there is no such file' "$GPIPE" plan -q --dot --with none.json pipelines/edges.yaml
expect 'with no drawing' 2 'add --svg or --dot' "$GPIPE" plan --with r.json pipelines/edges.yaml
expect 'no dot here'     2 "drawing needs the program 'dot'" env PATH=/nowhere "$GPIPE" plan -q --svg pipelines/edges.yaml
mkdir "$tmp/bin"
printf '#!/bin/sh\nexit 3\n' >"$tmp/bin/dot"
chmod +x "$tmp/bin/dot"
expect 'dot that fails'  4 "made no drawing: it failed" env PATH="$tmp/bin" "$GPIPE" plan -q --svg pipelines/edges.yaml
expect 'a page with it'  0 '' env PATH="$tmp/bin" "$GPIPE" run -q --report "$tmp/page.html" pipelines/blocks.yaml --set vars.out="$tmp/blocks"
grep -q 'made no drawing' "$tmp/page.html" && ok || bad 'the page does not say that dot failed'
expect 'no place of dot' 2 "drawing needs the program 'dot'" env PATH="$GPIPE" "$GPIPE" plan -q --svg pipelines/edges.yaml
expect 'a page without'  0 '' env PATH=/nowhere "$GPIPE" run -q --report "$tmp/page.html" pipelines/blocks.yaml --set vars.out="$tmp/blocks"
grep -q "<p>drawing needs the program 'dot'" "$tmp/page.html" && ok || bad 'a page without a plan does not say why'
expect 'no room to draw' 1 'cannot write to stdout' sh -c '"$0" plan --svg "$1" >/dev/full' "$GPIPE" pipelines/edges.yaml
cat > "$tmp/fan.yaml" <<'END'
pipeline: "<fan> & \"früh\""
depth: 12
buffers: {noise: {dtype: f32, shape: [480, 640]}}
stages:
  - {use: generate, frames: 20, out: noise}
  - {name: a, use: scale, a: 2, in: noise}
  - {name: b, use: scale, a: 3, in: noise}
  - {name: c, use: blur, sigma: 2, in: noise}
  - {name: d, use: sobel, in: c}
  - {name: all, use: reduce, op: max, in: d}
  - {name: one, use: compare, in: [a, b]}
  - {name: two, use: compare, in: [b, noise]}
  - {name: three, use: compare, in: [d, c]}
  - {use: write, in: all, path: out/all.npy, workers: 1}
  - {name: many, use: write, in: d, path: out/%05d.npy, workers: 3}
END
{ cat "$tmp/fan.yaml"; for i in $(seq 30); do echo "  - {use: scale, in: $([ $i = 1 ] && echo a || echo s$((i - 1))), out: s$i}"; done
  echo '  - {name: end, use: compare, in: [s30, a]}'; } > "$tmp/far.yaml"
python3 tests/picture.py "$GPIPE" $(rarely pipelines/*.yaml $(usable examples/*/*.yaml)) "$tmp/fan.yaml" "$tmp/far.yaml" \
    >"$tmp/stderr" 2>&1 && ok || bad 'plan --svg'
"$GPIPE" plan --device cuda --svg pipelines/edges.yaml >"$tmp/edges.svg" 2>"$tmp/stderr"
texts_of() { sed -n 's/.*<text[^>]*>\(.*\)<.text>.*/\1/p' "$1" | sort; }    # where they are is up to the version of Graphviz
! grep -q 'this is the plan for an H200' "$tmp/stderr" || [ "$(texts_of "$tmp/edges.svg")" = "$(texts_of examples/edges-plan.svg)" ] \
    && ok || bad 'examples/edges-plan.svg: gpipe plan -q --device cuda --svg pipelines/edges.yaml draws another'
cat >"$tmp/once.yaml" <<E
buffers: {x: {dtype: f32, shape: [4, 16]}, k: {const: $PWD/tests/golden/dark.npy}}
stages:
  - {use: generate, frames: 2, out: x}
  - {use: expr, in: k, out: twice, expr: 2 * k}
  - {use: scale, in: x, out: y}
  - {use: expr, in: [y, twice], out: z, expr: y - twice}
  - {use: discard}
E
expect 'what runs once'  0 '' "$GPIPE" plan --device cpu "$tmp/once.yaml"
grep -qE '^  expr +expr +once +k -> twice' "$tmp/stdout" && grep -qE 'scale[+]expr2 .*2 stages in one, without y' "$tmp/stdout" \
    && ok || bad 'plan: what runs once, what is fused'
expect 'drawn'           0 '' "$GPIPE" plan --device cpu --dot "$tmp/once.yaml"
grep -q '<b>twice</b>.*>expr, once<\|<b>expr</b>.*>once<' "$tmp/stdout" && ok || bad 'plan --dot: what runs once'
expect 'kept apart'      0 '2 frames in, 2 out' "$GPIPE" run --device cpu --isolate "$tmp/once.yaml"
# another machine: what 'gpipe machine' prints, or a person writes
expect 'this machine'    0 '' "$GPIPE" machine
cp "$tmp/stdout" "$tmp/here.json"
grep -q '"format": 1' "$tmp/here.json" && ok || bad "gpipe machine: $(head -3 "$tmp/here.json")"
expect 'plan for it'     0 '' "$GPIPE" plan --machine "$tmp/here.json" pipelines/edges.yaml
gpu='"compute_capability": 9.0, "memory": "80GB", "total_memory": "84GB"'
echo "{\"devices\": [{\"name\": \"A\", $gpu, \"free_memory\": \"2GB\"}, {\"name\": \"B\", $gpu, \"free_memory\": \"70GB\"}]}" >"$tmp/two.json"
expect 'plan for two'    0 '' "$GPIPE" plan --machine "$tmp/two.json" pipelines/edges.yaml
grep -q 'cuda:1 (auto: B; most free memory, 65.2 of 78.2 GiB; cuda:0 has 1.9)' "$tmp/stdout" \
    && ok || bad "auto: $(sed -n 2p "$tmp/stdout")"
expect 'two models'      2 "'cuda:0' is A and 'cuda:1' is B: frames can be shared out only among devices of one model" \
    "$GPIPE" plan --machine "$tmp/two.json" --device all pipelines/edges.yaml
launch='"launch": {"engine_us": 4, "engine_gb_s": 50, "mapped_us": 0, "mapped_gb_s": 25, "kernel_us": 9, "kernel_gb_s": 25}'
echo "{\"devices\": [{\"name\": \"A\", $gpu, $launch}]}" >"$tmp/measured.json"
printf 'buffers: {x: {dtype: f32, shape: [64]}}\nstages: [{use: generate, frames: 4, out: x}, {use: scale}, {use: discard}]\n' >"$tmp/few.yaml"
expect 'as measured'     0 '' "$GPIPE" plan --machine "$tmp/measured.json" "$tmp/few.yaml"
grep -q "up to 4.0 KiB of a launch by a kernel, up to 192.0 KiB mapped, as 'gpipe machine --measure' found" "$tmp/stdout" \
    && ok || bad "a plan as measured: $(grep copies: "$tmp/stdout")"
expect 'check for two'   0 '' "$GPIPE" check --machine "$tmp/two.json" --device cuda:1 pipelines/edges.yaml
expect 'not there'       4 "no device 'cuda:2'; this machine has 2" "$GPIPE" \
    check --machine "$tmp/two.json" --device cuda:2 pipelines/edges.yaml
head -c 60 "$tmp/two.json" >"$tmp/cut.json"
expect 'a cut machine'   2 'cut.json:1:[0-9]+: error: ' "$GPIPE" plan --machine "$tmp/cut.json" pipelines/edges.yaml
printf '{"gpipe": "9.0.0",\n "format": 2}' >"$tmp/later.json"
expect 'a later one'     2 'later.json:2:12: error: this file has format 2 of machines' \
    "$GPIPE" plan --machine "$tmp/later.json" pipelines/edges.yaml
expect 'no machine'      2 'no-such.json: error: there is no such file' \
    "$GPIPE" check --machine no-such.json pipelines/edges.yaml
expect 'srun, no MPI'    2 'srun started 4 tasks that MPI cannot join: write srun --mpi=pmix' \
    env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 "$GPIPE" check pipelines/edges.yaml
expect 'a batch script'  0 '' env SLURM_PROCID=0 SLURM_NTASKS=4 "$GPIPE" check pipelines/edges.yaml

expect 'plan for cuda'   0 '' "$GPIPE" plan --device cuda pipelines/edges.yaml
long() {
    printf 'buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, out: g, frames: 2}\n'
    yes '  - {use: threshold, level: 2}' | head "-$1"
    echo '  - {use: discard}'
}
long 5000 >"$tmp/long.yaml"
expect 'a long segment'  0 '2 frames in, 2 out' "$GPIPE" run --device cpu "$tmp/long.yaml"
starved() { (ulimit -c 0 -v "$1"; shift; exec "$@") >/dev/null 2>&1; }
if starved 200000 "$GPIPE" plan "$tmp/long.yaml"; then         # a sanitizer takes more
    rc=0
    for kib in $(rarely $(seq 4000 1000 24000)); do
        { starved "$kib" "$GPIPE" --version; } 2>/dev/null || continue         # not even its libraries fit
        starved "$kib" "$GPIPE" plan "$tmp/long.yaml"; got=$?
        case $got in 0|4) ;; *) rc=$got ;; esac
    done
    [ $rc -eq 0 ] && ok || bad "plan with little memory: exit $rc"
    rc=0
    for kib in $(rarely $(seq 90000 1000 125000)); do
        starved "$kib" "$GPIPE" run -q --device cpu --set depth=2 --set vars.out="$tmp/starved" \
            --report "$tmp/starved.json" --trace "$tmp/starved.trace" pipelines/edges.yaml; got=$?
        case $got in 0|4|127) ;; *) rc=$got; echo "with $kib KiB: exit $rc" ;; esac
    done
    [ $rc -eq 0 ] && ok || bad "run with little memory: exit $rc"
fi
# too few files may be open: exit 4 and the limit, or all is well; once it is well twice, more files change nothing
for file in blocks $(rarely contrast edges selftest ../examples/own-kernel/own-kernel); do
    rc=0 well=0
    for n in $(seq 4 40); do
        (ulimit -n "$n"; exec "$GPIPE" --version) >"$tmp/stdout" 2>&1 || continue
        (ulimit -n "$n"; exec "$GPIPE" run -q --device cpu --set vars.out="$tmp/few" "pipelines/$file.yaml") \
            >"$tmp/stdout" 2>"$tmp/stderr"; got=$?
        case $got in
            0) well=$((well + 1)); [ $well -lt 2 ] || break ;;
            4) grep -q "Too many open files ('ulimit -n' is $n)" "$tmp/stderr" || { rc=4; break; } ;;
            *) rc=$got; break ;;
        esac
    done
    [ $rc -eq 0 ] && ok || bad "$file, ulimit -n $n: exit $rc"
done
if "$GPIPE" --version | grep -q cuda; then
    long 0 >"$tmp/host.yaml"
    "$GPIPE" plan --json "$tmp/host.yaml" 2>/dev/null | grep -q 'no GPU was looked for' \
        && ok || bad 'a GPU is looked for that cannot be used'
fi
long 70000 >"$tmp/long.yaml"
expect 'one too long'    3 "long.yaml:4:11: error: .*put a host stage between, such as 'lua'" "$GPIPE" check --set fuse=none "$tmp/long.yaml"
if ! "$GPIPE" run --device cuda -q pipelines/edges.yaml --set vars.out="$tmp/gpu" --set vars.frames=1 >/dev/null 2>"$tmp/stderr"; then
    expect 'no GPU'      4 'cuda' "$GPIPE" run --device cuda pipelines/edges.yaml
fi

cat >"$tmp/lint.yaml" <<'Y'
batch: 1          # nolint: batch
streams: 8
depth: 6
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 2}
  - {use: scale, a: 2}
  - {use: discard}
Y
expect 'check: a lint'   0 'lint.yaml:2:10: warning: 8 streams, .* \(lint: streams\)$' "$GPIPE" check "$tmp/lint.yaml"
grep -q batch "$tmp/stderr" && bad 'check: nolint' || ok
for v in 'check -q' 'plan' 'run --device cpu'; do
    "$GPIPE" $v "$tmp/lint.yaml" 2>&1 | grep -q 'lint:' && bad "$v speaks of lints" || ok
done

# == what the project shows ====================================================
# valid, and nothing to warn of
expect_clean() {
    expect "check $1" 0 '' "$GPIPE" check "$1"
    grep -q warning "$tmp/stderr" && bad "check $1: a warning" || ok
}
for f in $(usable examples/*/*.yaml); do expect_clean "$f"; done
for f in pipelines/*.yaml; do
    expect_clean "$f"
    expect "run $f" 0 'out' "$GPIPE" run "$f" --set vars.out="$tmp/$(basename "$f" .yaml)"
done
n=$(ls "$tmp/edges" | wc -l)
[ "$n" -eq 24 ] && ok || bad "edges made $n files, not 24"
[ "$(wc -l <"$tmp/contrast/range.txt")" -eq 6 ] && ok || bad 'contrast did not print 6 lines'
cmp -s "$tmp/blocks/ecg.npy" examples/data/ecg.npy && ok || bad 'blocks did not join to the same file'
expect 'selftest finds a fault' 6 'is expected' "$GPIPE" run pipelines/selftest.yaml \
    --set vars.out="$tmp/faulty" --set stages.there.a=7
file=$(ls "$tmp/edges" | head -1)
[ "$(head -c 4 "$tmp/edges/$file" | od -An -tx1 | tr -d ' ')" = 89504e47 ] && ok || bad 'edges made no PNG'
# like NAME FOLDER: what the example left there, beside what others compute
like() { python3 tests/examples.py "$1" "$2" >"$tmp/stderr" 2>&1 && ok || bad "$1: what others compute"; }
expect 'heartbeat' 0 'out' "$GPIPE" run examples/heartbeat/heartbeat.yaml --set vars.out="$tmp/heartbeat/beats.jsonl"
like heartbeat "$tmp/heartbeat"
expect 'own kernel' 0 'out' "$GPIPE" run examples/own-kernel/own-kernel.yaml --set vars.out="$tmp/own"
[ "$(ls "$tmp/own" | wc -l)" -eq 4 ] && ok || bad 'own-kernel made no pictures'
expect 'triton' 0 '4 frames in' "$GPIPE" run examples/triton/softmax.yaml --set vars.out="$tmp/triton"
expect 'decode' 0 '96 frames in' "$GPIPE" run examples/decode/decode.yaml --set vars.out="$tmp/decode"
like decode "$tmp/decode"
for f in $(usable examples/digits/*.yaml); do
    expect "$f" 0 '6 out' "$GPIPE" run "$f" --set vars.out="$tmp/guesses.npy"
    cmp -s "$tmp/guesses.npy" examples/digits/guesses.npy && ok || bad "$f: NumPy takes them for others"
    rm -f "$tmp/guesses.npy"
done

expect 'video: made' 0 'out' "$GPIPE" run examples/video/make.yaml --set vars.out="$tmp/video"
cmp -s "$tmp/video/noisy.y4m" examples/video/noisy.y4m && ok || bad 'make.yaml did not make noisy.y4m'
expect 'video: denoised' 0 '16 out' "$GPIPE" run examples/video/denoise.yaml --set vars.out="$tmp/video"
head -1 "$tmp/video/clean.y4m" | grep -qx 'YUV4MPEG2 W96 H64 F25:1 Ip A1:1 C420jpeg' && ok || bad 'clean.y4m has another header'
expect 'photos: made' 0 '1 out' "$GPIPE" run examples/photos/make.yaml --set vars.out="$tmp/photos"
[ "$(cd "$tmp/photos/made" && ls | tr '\n' ' ')" = 'face.jpg gray.jpg raccoon.jpg small.png ' ] && ok || bad 'make.yaml made no photos'
expect 'photos' 0 '5 frames in, 4 out, 0 dropped, 1 failed' "$GPIPE" run examples/photos/photos.yaml --set vars.out="$tmp/thumbs"
[ "$(cd "$tmp/thumbs" && ls | tr '\n' ' ')" = 'face-edges.png face.jpg gray-edges.png gray.jpg raccoon-edges.png raccoon.jpg small-edges.png small.jpg ' ] \
    && ok || bad 'photos.yaml made other files'
for size in face:82:120 gray:100:72 raccoon:120:90 small:100:72; do
    IFS=: read -r name wide high <<<"$size"
    [ "$(od -An -tu1 -j16 -N8 "$tmp/thumbs/$name-edges.png" | tr -s ' ')" = " 0 0 0 $wide 0 0 0 $high" ] \
        && ok || bad "photos: the edges of $name have another size"
done
expect 'photos on two devices' 0 '4 out' "$GPIPE" run examples/photos/photos.yaml --set vars.out="$tmp/thumbs-2" --set device=cpu:0-1
diff -r "$tmp/thumbs" "$tmp/thumbs-2" && ok || bad 'photos: two devices make other files'
expect 'photos: their bounds' 0 '' sh -c '"$0" plan --set stages.read.workers=1 --set depth=4 examples/photos/photos.yaml \
    | grep -qE "^  read +281.2 KiB  depth 4 +host, 1.1 MiB in all"' "$GPIPE"
expect 'photos: one too many' 1 'torn.jpg. is cut off' "$GPIPE" run examples/photos/photos.yaml --set vars.out="$tmp/torn" \
    --set stages.read.max_dropped=0
expect 'photos: a choice by --set' 0 '5 frames in, 4 out' "$GPIPE" run examples/photos/photos.yaml --set vars.out="$tmp/thumbs-3" \
    --set 'vars.photos={photos,none}'
printf '%s\n' 'stages:' '  - {use: read, path: "nope/*.{png,jpg}", colors: rgb, out: x}' '  - {use: discard}' \
    'buffers: {x: {dtype: u8, shape: ["<=10", "<=10", 3]}}' >"$tmp/choice.yaml"
expect 'a choice of what is not there yet' 0 'warning: .*no file matches' "$GPIPE" check "$tmp/choice.yaml"
mkdir "$tmp/torn-many"
for i in $(seq 100 140); do cp examples/photos/photos/torn.jpg "$tmp/torn-many/$i.jpg"; done
cp examples/photos/photos/face.jpg "$tmp/torn-many/a.jpg"
printf 'stages:\n  - {use: read, path: torn-many/*, on_error: drop}\n  - {use: discard}\n' >"$tmp/torn-many.yaml"
expect 'many are left out' 0 'gpipe: [0-9]* more warnings are not shown' "$GPIPE" run "$tmp/torn-many.yaml"
[ -z "$("$GPIPE" run -q "$tmp/torn-many.yaml" 2>&1)" ] && ok || bad 'with -q something is said of those that are left out'
expect 'cells' 0 '4 frames in' "$GPIPE" run examples/cells/cells.yaml --set vars.out="$tmp/cells"
cmp -s "$tmp/cells/cells.csv" tests/ref/cells.csv && ok || bad 'cells.csv is not the table of SciPy'
[ "$(cd "$tmp/cells" && ls | tr '\n' ' ')" = 'cells.csv well-1.png well-2.png well-3.png well-4.png ' ] && ok || bad 'cells made other files'
expect 'heat' 0 '6 out' "$GPIPE" run examples/heat/heat.yaml --set vars.out="$tmp/heat"
like heat "$tmp/heat"
expect 'heat: too large a step' 6 'is expected' "$GPIPE" run examples/heat/heat.yaml --set vars.out="$tmp/unstable" --set vars.rate=0.26
expect 'spectrogram' 0 '8 out' "$GPIPE" run examples/spectrogram/spectrogram.yaml --set vars.out="$tmp/spectrogram"
like spectrogram "$tmp/spectrogram"
expect 'camera: calibrated' 0 '64 out' "$GPIPE" run examples/camera/calibrate.yaml --set vars.gpipe="$GPIPE" --set vars.out="$tmp/camera"
for f in dark flat; do cmp -s "$tmp/camera/$f.npy" examples/camera/$f.npy && ok || bad "calibrate.yaml made another $f.npy"; done
for n in 1 2; do
    expect 'camera' 0 '16 out' "$GPIPE" run examples/camera/camera.yaml --set vars.gpipe="$GPIPE" --set vars.out="$tmp/camera" --set vars.kind=npy
done
like camera "$tmp/camera"
[ -e "$tmp/camera/00031.npy" ] && [ -e "$tmp/camera/raw-003.npy" ] && ok || bad 'camera: the second run did not go on'
expect 'diffusion' 0 'read: 3 frames in, 3 out' "$GPIPE" run examples/diffusion/diffusion.yaml --set vars.out="$tmp/diffusion"
like diffusion "$tmp/diffusion"
for depth in 1 6; do
    expect 'replay' 0 'read: 120 frames in, 120 out' "$GPIPE" run examples/replay/replay.yaml --set vars.out="$tmp/replay" --set depth=$depth
    like replay "$tmp/replay"
done
small=(frames=60 carts=16 updates=2 size=32 keep=640 renew=25 explore=40 least=0.05 report=10)
for settings in depth=1 'depth=6 --set streams=3 --set batch=4'; do
    expect 'learn' 0 '60 frames in, 60 out' "$GPIPE" run examples/learn/learn.yaml --set vars.out="$tmp/learn" \
        ${small[@]/#/--set vars.} --set $settings
    like learn "$tmp/learn"
    cp "$tmp/learn/learn.csv" "$tmp/learn-${settings%% *}.csv"
done
cmp -s "$tmp/learn-depth=1.csv" "$tmp/learn-depth=6.csv" && ok || bad 'learn: what it learns depends on depth, streams, batch'
expect 'learn: a longer run' 0 '1000 frames in' "$GPIPE" run examples/learn/learn.yaml --set vars.out="$tmp/learn" --set vars.frames=1000
like learned "$tmp/learn"
for f in train after; do
    expect "train: $f" 0 'read: 300 frames in, 300 out' "$GPIPE" run examples/train/$f.yaml --set vars.out="$tmp/$f"
    like train "$tmp/$f"
done
expect 'train: descent' 0 '300 out' "$GPIPE" run examples/train/train.yaml --set vars.learn=descent --set vars.out="$tmp/descent"
like descent "$tmp/descent"
# through a pipe, and from what the command itself writes
cat >"$tmp/video.yaml" <<'Y'
buffers: {v: {dtype: u8, shape: [96, 96]}}
stages:
  - {use: read, path: stdin, format: y4m, out: v}
  - {use: write, path: stdout, format: y4m, frame_rate: 25}
Y
"$GPIPE" run -q "$tmp/video.yaml" <examples/video/noisy.y4m 2>"$tmp/stderr" | cmp -s - examples/video/noisy.y4m \
    && ok || bad 'y4m by stdin and stdout'
cat >"$tmp/itself.yaml" <<Y
buffers: {v: {dtype: u8, shape: [96, 96]}}
stages:
  - {use: read, command: [sh, -c, 'exec "$GPIPE" run -q video.yaml <"$PWD/examples/video/noisy.y4m"'], format: y4m, out: v}
  - {use: write, command: [cat], format: y4m, frame_rate: 25}
Y
"$GPIPE" run -q "$tmp/itself.yaml" 2>"$tmp/stderr" | cmp -s - examples/video/noisy.y4m && ok || bad 'y4m by processes'

# every YAML block of README.md and of the topics, in a folder with what they read; other code is
# called as its first line says
mkdir "$tmp/readme"
cp examples/data/* examples/heartbeat/bandpass.npy "$tmp/readme/"
cp tests/data/sound/f32.wav "$tmp/readme/speech.wav"
cp tests/data/jpeg/rgb4*.jpg "$tmp/readme/"
cp tests/ref/mm_x_f4.npy "$tmp/readme/vectors.npy"
cp tests/ref/mm_w_f4.npy "$tmp/readme/weights.npy"
cp tests/ref/mm_bias_f4.npy "$tmp/readme/bias.npy"
cp examples/digits/digits.{npy,onnx} "$tmp/readme/"
awk -v dir="$tmp/readme/" '
    /^```yaml/ {name = FILENAME; sub(/.*\//, "", name); file = dir "block-" name "-" FNR ".yaml"; first = 1; next}
    first && /^# [a-z]+\.yaml$/ {file = dir $2}          # a block that others include
    {first = 0}
    /^```(lua|cuda)/ {named = 1; next}
    /^```/ {file = ""}
    named {file = dir $2; named = 0}
    file {print > file}' README.md engine/cli/topics/*.md
[ "$(ls "$tmp"/readme/block-*.yaml | wc -l)" -ge 15 ] && ok || bad 'blocks of README.md and of the topics'
for f in $(usable "$tmp"/readme/block*.yaml); do
    [ -f "$f" ] || continue
    expect_clean "$f"
    expect "$(basename "$f")" 0 'out' "$GPIPE" run "$f"
done

"$GPIPE" stages --markdown | diff - stages/REFERENCE.md >"$tmp/stderr" \
    && ok || bad "stages/REFERENCE.md is not what 'gpipe stages --markdown' prints"
! grep -q '^## Other' stages/REFERENCE.md && ok || bad 'a kind of gpipe names no field'

# what the reference says is found where it says so: topics are listed, links lead to files
for f in engine/cli/topics/*.md; do
    topic=$(basename "$f" .md)
    grep -q "](engine/cli/topics/$topic.md)" README.md && ok || bad "README.md does not list the topic $topic"
    "$GPIPE" help | grep -qE "(^ *|, )$topic(,|\$)" && ok || bad "gpipe help does not list the topic $topic"
    "$GPIPE" help --man | grep -q "^.SH \"TOPIC $topic\"" && ok || bad "help --man: no topic $topic"
done
for f in README.md ARCHITECTURE.md CONTRIBUTING.md examples/README.md engine/cli/topics/*.md; do
    grep -oE '\]\([^) ]+' "$f" | sed 's/^](//; s/#.*//; /^https*:/d; /^$/d' | sort -u | while read -r to; do
        [ -e "$(dirname "$f")/$to" ] || echo "$f: a link to $to, which is not there"
    done
done >"$tmp/stderr"
[ ! -s "$tmp/stderr" ] && ok || bad 'links'

# == new, schema ===============================================================
mkdir "$tmp/new"
expect 'new: a list'      0 '' "$GPIPE" new
cp "$tmp/stdout" "$tmp/list"
cp examples/data/raccoon.png "$tmp/new/"
for f in engine/cli/starters/*.yaml; do
    from=$(basename "$f" .yaml)
    grep -q "^  $from " "$tmp/list" && ok || bad "new: $from is not listed"
    expect "new: $from"      0 "try: gpipe run $tmp/new/$from.yaml" "$GPIPE" new "$tmp/new/$from" --from "$from"
    grep -q ' FILE' "$tmp/new/$from.yaml" && bad "new: $from has no name in it" || ok
    expect_clean "$tmp/new/$from.yaml"
    expect "new: $from runs" 0 ' 0 failed' "$GPIPE" run --device cpu "$tmp/new/$from.yaml"
done
mkdir "$tmp/new/own"
expect 'new: its name'    0 "made '$tmp/new/own/pictures.yaml' from example 'pictures'" "$GPIPE" new "$tmp/new/own/pictures"
sed "s|$tmp/new/own/|$tmp/new/|" "$tmp/new/own/pictures.yaml" | cmp -s - "$tmp/new/pictures.yaml" && ok || bad 'new: not the example of its name'
expect 'new: another'     0 "from example 'first'" "$GPIPE" new "$tmp/new/own/mine"
cp "$tmp/new/first.yaml" "$tmp/new/as-it-was"
"$GPIPE" schema > "$tmp/new/own/gpipe.schema.json"
expect 'new: a schema beside it' 0 'try: gpipe run' "$GPIPE" new "$tmp/new/own/second"
expect_clean "$tmp/new/own/second.yaml"
[ "$(head -1 "$tmp/new/own/second.yaml")" = '# yaml-language-server: $schema=gpipe.schema.json' ] \
    && ! grep -q yaml-language-server "$tmp/new/own/mine.yaml" && ok || bad 'new: the line of the schema'
expect 'new: is there'    1 'it is there already' "$GPIPE" new "$tmp/new/first.yaml" --from kernel
cmp -s "$tmp/new/first.yaml" "$tmp/new/as-it-was" && ok || bad 'new: it wrote over a file'
expect 'new: no example'  2 "no example 'frst'; there are first" "$GPIPE" new "$tmp/new/x" --from frst
[ ! -e "$tmp/new/x.yaml" ] && ok || bad 'new: no example, but a file'
expect 'new: no name'     2 "'' is not the name of a file: write gpipe new NAME" "$GPIPE" new ""
expect 'new: no folder'   1 "cannot make '$tmp/none/x.yaml'" "$GPIPE" new "$tmp/none/x"
expect 'new: a plug-in'   0 "try: make -C $tmp/new/thermal test run" "$GPIPE" new plugin "$tmp/new/thermal"
[ "$(ls "$tmp/new/thermal" | tr '\n' ' ')" = 'Makefile test.c thermal.c thermal.yaml ' ] && ok || bad 'new: files of a plug-in'
grep -q NAME "$tmp/new/thermal"/* && bad 'new: a plug-in without its name' || ok
expect 'new: one is there' 1 'it is there already' "$GPIPE" new plugin "$tmp/new/thermal"
expect 'new: such a name' 2 "'a-b' is not the name of a plug-in" "$GPIPE" new plugin "$tmp/new/a-b"
for w in plugin 'a b' 'plugin a --from first'; do expect "new: $w" 2 'write gpipe new plugin NAME, or' "$GPIPE" new $w; done
expect 'schema'           0 '' "$GPIPE" schema
python3 -m json.tool <"$tmp/stdout" >/dev/null 2>&1 && ok || bad 'schema is not JSON'

# == pipes, disks, signals =====================================================
cat >"$tmp/endless.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [65536]}}
stages:
  - {use: generate, out: a}
  - {use: write, path: stdout, format: raw}
Y
cat >"$tmp/slow.yaml" <<'Y'
stall_timeout: 0
buffers: {a: {dtype: u8, shape: [64]}}
stages:
  - {use: generate, out: a, rate: 200}
  - {use: lua, script: copy.lua}
  - {use: write, path: "out/%05d.raw", format: raw}
Y
cat >"$tmp/loop.yaml" <<'Y'
stall_timeout: 0
buffers: {a: {dtype: u8, shape: [64], depth: 3}}
stages:
  - {use: generate, out: a}
  - {name: forever, use: lua, script: loop.lua}
  - {use: discard}
Y
cat >"$tmp/stuck.yaml" <<'Y'
stall_timeout: 500ms
buffers: {a: {dtype: u8, shape: [64], depth: 3}}
stages:
  - {use: generate, out: a}
  - {name: forever, use: lua, script: stuck.lua}
  - {use: discard}
Y
cat >"$tmp/cat.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [1000]}}
stages:
  - {use: read, path: stdin, format: raw, out: a}
  - {use: write, path: stdout, format: raw}
Y
echo 'function process(f, x, y) y:copy(x) end' >"$tmp/copy.lua"
echo 'function process(f, x, y) while f.index == 3 do end y:copy(x) end' >"$tmp/loop.lua"
echo 'function process(f, x, y) if f.index == 3 then io.popen("sleep 30"):read("a") end y:copy(x) end' >"$tmp/stuck.lua"

"$GPIPE" run "$tmp/endless.yaml" 2>"$tmp/stderr" | head -c 1000000 >/dev/null
rc=${PIPESTATUS[0]}
[ "$rc" -eq 141 ] && ! grep -q 'error' "$tmp/stderr" && ok || bad "a pipe closed early: exit $rc"
echo 'function process(f, x) end' >"$tmp/effects.lua"
# beside $1: is the early end of the standard output told of (1), or no matter (0)?
closed_beside() {
    { cat "$tmp/endless.yaml"; printf '%s\n' "$1"; } >"$tmp/beside.yaml"
    "$GPIPE" run "$tmp/beside.yaml" 2>"$tmp/stderr" | head -c 1000000 >/dev/null
    local rc=${PIPESTATUS[0]} told
    told=$(grep -c "error: .*'stdout' cannot be written: Broken pipe" "$tmp/stderr")
    [ "$told" -eq "$2" ] && [ "$rc" -eq "$3" ] && ok || bad "a pipe closed early beside $1: exit $rc"
}
closed_beside '  - {use: discard, in: a}' 0 141
closed_beside '  - {use: lua, in: a, out: [], script: effects.lua}' 1 1
closed_beside '  - {use: compare, in: [a, a]}' 1 1
closed_beside '  - {use: write, in: a, path: beside.raw}' 1 1
[ ! -e "$tmp/beside.raw" ] && ok || bad 'a pipe closed early: part of a file has its name'
if [ -w /dev/full ]; then
    "$GPIPE" run "$tmp/endless.yaml" >/dev/full 2>"$tmp/stderr"; rc=$?
    [ $rc -eq 1 ] && grep -qi 'space' "$tmp/stderr" && ok || bad "a full disk: exit $rc"
fi
head -c 12345 /dev/urandom >"$tmp/in.raw"
cat "$tmp/in.raw" | "$GPIPE" run "$tmp/cat.yaml" 2>/dev/null | cmp -s - "$tmp/in.raw" && ok || bad 'stdin to stdout'

cat >"$tmp/big.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [100000]}}
stages:
  - {use: generate, frames: 10, out: a}
  - {use: write, path: big/out.npy}
Y
expect 'file size limit' 1 "big.yaml:4:24: error: .*File too large" bash -c 'ulimit -f 100; "$0" run "$1"' "$GPIPE" "$tmp/big.yaml"
[ -z "$(ls -A "$tmp/big")" ] && ok || bad 'file size limit: something is left'

# what is closed stays closed: no file of the run takes its number
sed "s|path: stdin|path: in.raw|" "$tmp/cat.yaml" >"$tmp/file.yaml"
expect 'stdout closed'   1 "'stdout' cannot be written: Bad file" sh -c '"$0" run "$1" >&-' "$GPIPE" "$tmp/file.yaml"
expect 'stdin closed'    1 "'stdin' cannot be read: Bad file" sh -c '"$0" run "$1" <&-' "$GPIPE" "$tmp/cat.yaml"
expect 'stderr closed'   0 '' sh -c '"$0" run "$1" 2>&-' "$GPIPE" "$tmp/file.yaml"
cmp -s "$tmp/stdout" "$tmp/in.raw" && ok || bad 'stderr closed: other bytes'
expect 'stdin: a folder' 1 "'stdin' cannot be read: Is a dir" sh -c '"$0" run "$1" </' "$GPIPE" "$tmp/cat.yaml"
expect 'plan: no stdout' 1 'cannot write to stdout' sh -c '"$0" plan "$1" >&-' "$GPIPE" "$tmp/cat.yaml"

# a fault ends the run as ever; where it was is said, by a sanitizer if there is one
cat >"$tmp/far.cu" <<'C'
extern "C" __global__ void far(const float *in, float *out) { out[(long)in[0] - 10000000000] = 1; }
C
cat >"$tmp/far.yaml" <<'Y'
device: cpu
buffers: {a: {dtype: f32, shape: [4]}}
stages:
  - {use: generate, frames: 1, out: a}
  - {use: kernel, source: far.cu, threads: 4, args: [in, out]}
  - {use: discard}
Y
{ (ulimit -c 0; exec "$GPIPE" run "$tmp/far.yaml") >"$tmp/stdout" 2>"$tmp/stderr"; rc=$?; } 2>/dev/null
[ $rc -eq 139 ] && grep -q "^gpipe: error: a segmentation fault in kernel 'far'" "$tmp/stderr" \
    || { [ $rc -ne 0 ] && grep -q Sanitizer "$tmp/stderr"; } && ok || bad "a fault in a kernel: exit $rc"
grep -qE -- "--check-kernels|Sanitizer" "$tmp/stderr" && ok || bad 'a fault in a kernel: how to find it is not said'
expect 'a kernel that is checked' 1 "far.cu:1: error: kernel 'far' of stage 'kernel' writes memory that is near none of its arguments, in frame 0" \
    "$GPIPE" run --device cpu --check-kernels "$tmp/far.yaml"
grep -qE '^gpipe: 1 frames? in, 0 out' "$tmp/stderr" && ok || bad 'a kernel that is checked: no account'

# a kernel in the YAML: what is wrong with it is at lines of that
mkdir "$tmp/code"
cat >"$tmp/code/p.yaml" <<'Y'
device: cpu
buffers: {a: {dtype: f32, shape: [4]}}
stages:
  - {use: generate, frames: 1, out: a}
  - use: kernel
    code: |
      #include "by.h"
      extern "C" __global__ void k(const float *in, float *out, int n)
      {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) out[i] = BY * in[i + FAR];
      }
    args: [in, out, {i32: in.size}]
    threads: in.size
    define: {FAR: 9}
  - {use: write, path: out.raw}
Y
echo '#define BY 3' >"$tmp/code/by.h"
expect 'code'                    0 '' "$GPIPE" run "$tmp/code/p.yaml" --set stages.kernel.define.FAR=0
expect 'code: over its header'   2 "by.h' is read by|which stage 'kernel' reads" "$GPIPE" run "$tmp/code/p.yaml" --set stages.write.path=by.h --set stages.write.format=raw
expect 'code: --check-kernels'   1 "/code/p.yaml:11: error: kernel 'k' of stage 'kernel' reads in\[[0-9]+\]; 'in' has 4 elements, in frame 0" \
    "$GPIPE" run --check-kernels "$tmp/code/p.yaml"
sed -i 's/in\[i/inn[i/' "$tmp/code/p.yaml"
expect 'code: a compiler error'  3 "/code/p.yaml:11:36: error: .*'inn'" "$GPIPE" run "$tmp/code/p.yaml"
grep -q '^   11 |           if (i < n) out\[i\] = BY \* inn' "$tmp/stderr" && ok || bad 'code: its line is not shown'

# until_ PID COMMAND...: waits until the command succeeds or the process is gone, a minute at most
until_() {
    local pid=$1 end=$((SECONDS + 60)); shift
    while [ $SECONDS -lt $end ]; do
        if ! kill -0 "$pid" 2>/dev/null || "$@"; then return; fi
        sleep 0.1
    done
}
# frames move in process $1; it listens to SIGINT; its stderr has more than $1 bytes
runs() {
    [ -S "$tmp/gpipe/$1.sock" ] && timeout 5 "$GPIPE" top --json "$1" 2>/dev/null | grep -m1 -q '"stages": \[{'
}
# ... its script is at its fourth frame, all before are out, and there is no room for more
hangs() { timeout 5 "$GPIPE" top --json "$1" 2>/dev/null | grep -m1 -q '"in": 6, "done": 3,'; }
listens() {                            # not what is still bash, which has these signals caught, too
    [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$GPIPE")" ] && [ $((0x$(awk '/SigCgt/ {print $2}' "/proc/$1/status" 2>/dev/null || echo 0) & 2)) -ne 0 ]
}
said() { [ "$(stat -c %s "$tmp/stderr")" -gt "$1" ]; }

# signaled FILE SIGNALS...: one after the other, when the one before was heard; prints the exit code
signaled() {
    local file=$1; shift
    "$GPIPE" run "$file" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null &
    local pid=$! before
    until_ $pid "$(grep -q forever "$file" && echo hangs || echo runs)" $pid
    for s in "$@"; do
        if [ "$s" = LONG ]; then sleep 1.5; continue; fi
        before=$(stat -c %s "$tmp/stderr")
        kill -"$s" $pid 2>/dev/null
        until_ $pid said "$before"
        sleep 0.1                      # two at the same moment are one
    done
    until_ $pid false
    if kill -0 $pid 2>/dev/null; then kill -9 $pid; echo hang; fi
    wait $pid; echo $?
}
rc=$(signaled "$tmp/slow.yaml" INT);  [ "$rc" = 130 ] && ok || bad "one Ctrl-C: $rc"
grep -qE ' in, .* out' "$tmp/stderr" && ok || bad 'one Ctrl-C: no account'
rc=$(signaled "$tmp/slow.yaml" TERM); [ "$rc" = 143 ] && ok || bad "SIGTERM: $rc"
rc=$(signaled "$tmp/loop.yaml" INT INT); [ "$rc" = 130 ] && ok || bad "Ctrl-C twice with a loop: $rc"
grep -qi 'not drained' "$tmp/stderr" && ok || bad 'Ctrl-C twice: does not say "not drained"'
printf 'function process(f, x, y) while f.index == 3 do y[1] = x[1] end end\n' >"$tmp/loop.lua"
rc=$(signaled "$tmp/loop.yaml" INT INT); [ "$rc" = 130 ] && ok || bad "Ctrl-C twice with a loop over views: $rc"
grep -q 'error' "$tmp/stderr" && bad 'Ctrl-C twice: a loop over views is an error' || ok
sed 's/stall_timeout: 500ms/stall_timeout: 0/' "$tmp/stuck.yaml" >"$tmp/patient.yaml"
rc=$(signaled "$tmp/patient.yaml" INT INT INT); [ "$rc" = 130 ] && ok || bad "Ctrl-C thrice, stuck: $rc"
rc=$(signaled "$tmp/cat.yaml" INT); [ "$rc" = 130 ] || [ "$rc" = 0 ] && ok || bad "Ctrl-C at stdin: $rc"
cat >"$tmp/full.yaml" <<'Y'
stall_timeout: 500ms
buffers: {a: {dtype: u8, shape: [65536]}}
stages:
  - {use: generate, out: a}
  - {use: write, path: stdout, format: raw}
Y
rm -f "$tmp/rc"
{ "$GPIPE" run "$tmp/full.yaml" 2>"$tmp/stderr"; echo $? >"$tmp/rc"; } | until_ $$ test -s "$tmp/rc"
[ "$(cat "$tmp/rc")" -eq 5 ] && grep -qE "^.*full.yaml:5:11: error: .*'write' is busy with frame [0-9]+, writing to standard output, a full pipe" "$tmp/stderr" \
    && grep -qE "^      stage 'generate' has waited [0-9.]+ s to put frame" "$tmp/stderr" && ok || bad 'a pipe that nobody reads'
expect 'a stuck script' 5 "'forever' is busy with frame 3" "$GPIPE" run "$tmp/stuck.yaml"
# whatever a thread is at that does not come back, no part of a file stays
printf 'function process(f, x, y) while f.index == 3 do end y:copy(x) end' >"$tmp/loop.lua"
printf 'function process(f, x, y) if f.index == 3 then ("a"):rep(64):find(("a?"):rep(64) .. ("a"):rep(65)) end y:copy(x) end' >"$tmp/long.lua"
parts() { find "$tmp" -name '.*.gpipe-*' | grep . ; }
# beside FILE WITH: the pipeline FILE, whose last stage writes to a file
beside() { sed "s|{use: discard}|{use: write, path: parts/out.npy}|; s|loop.lua|$2|" "$tmp/$1" >"$tmp/parts.yaml"; }
# kept WHAT: of a joined file the three frames before the one that hangs, which the script has been given before
kept() {
    python3 - "$tmp/parts/out.npy.partial" <<'P' && [ "$(ls -A "$tmp/parts")" = out.npy.partial ] && ok || bad "kept: $1: $(ls -A "$tmp/parts")"
import ast, sys
data = open(sys.argv[1], "rb").read()
n = 10 + int.from_bytes(data[8:10], "little")
head = ast.literal_eval(data[10:n].decode())
sys.exit(head["shape"] != (192,) or data[n:] != bytes(range(192)))
P
    rm -f "$tmp"/parts/out.npy.partial*
}
for by in '130 loop.yaml loop.lua INT INT' '130 loop.yaml long.lua INT INT' '130 patient.yaml - INT INT' \
          '130 loop.yaml loop.lua INT INT INT' '130 loop.yaml long.lua INT INT INT' \
          '143 loop.yaml loop.lua TERM TERM'; do
    set -- $by
    want=$1; beside "$2" "$3"; shift 3
    rc=$(signaled "$tmp/parts.yaml" "$@")
    [ "$rc" = $want ] && ok || bad "parts of a file: $by: exit $rc"
    if [ $# = 2 ]; then
        grep -q "parts.yaml:[0-9]*:[0-9]*: warning: what was written is kept as '.*parts/out.npy.partial'" "$tmp/stderr" && ok || bad "kept: $by: not told"
    fi
    kept "$by"
done
# a script that hangs while it is opened
sed "s|loop.lua|opens.lua|" "$tmp/loop.yaml" >"$tmp/opens.yaml"
echo "io.open('$tmp/opened', 'w'):close() while true do end" >"$tmp/opens.lua"
"$GPIPE" run "$tmp/opens.yaml" 2>"$tmp/stderr" &
pid=$!
until_ $pid test -e "$tmp/opened"
kill -INT $pid; until_ $pid said 0; sleep 0.1; kill -INT $pid; wait $pid; rc=$?
[ $rc = 130 ] && grep -q "opens.yaml:5:[0-9]*: warning: stage 'forever' is still being opened, computing" "$tmp/stderr" \
    && ok || bad "who hangs while it is opened: exit $rc"
# who hangs is said: of one that comes back at the second signal, and of one that never does
for by in loop.lua long.lua; do
    beside loop.yaml $by
    rc=$(signaled "$tmp/parts.yaml" LONG INT INT)
    [ "$rc" = 130 ] && grep -qE "parts.yaml:5:12: warning: stage 'forever' has been busy with frame 3 for [0-9.]+ s" "$tmp/stderr" \
        && ok || bad "who hangs: $by: exit $rc: $(cat "$tmp/stderr")"
    rm -f "$tmp"/parts/*
done
# ... at the first one by who goes on, with its plug-in; the second ends the run
LOOPS=$tmp/loops "$GPIPE" run --plugin "$tmp/faulty.so" "$tmp/faulty.yaml" --set stages.faulty.how=loops 2>"$tmp/stderr" >"$tmp/stdout" &
pid=$!
until_ $pid test -e "$tmp/loops"
kill -INT $pid; until_ $pid grep -q 'waits for that' "$tmp/stderr"
grep -qE "faulty.yaml:2:11: warning: stage 'faulty' \(plug-in faulty 0.9\) has been busy with frame 0 for [0-9.]+ s, computing" "$tmp/stderr" \
    && grep -q '^      the end waits for that; Ctrl-C or SIGTERM again stops at once$' "$tmp/stderr" && ok || bad "who loops: $(cat "$tmp/stderr")"
kill -INT $pid; wait $pid; rc=$?
[ $rc = 130 ] && ok || bad "who loops: exit $rc"
beside stuck.yaml -
expect 'stalled, and a file' 5 'is busy with frame 3' "$GPIPE" run "$tmp/parts.yaml"
grep -q "warning: what was written is kept as '.*parts/out.npy.partial'" "$tmp/stderr" && ok || bad 'stalled: what is kept is not told'
kept stalled
sed "s|{use: discard}|{use: write, path: parts/out.npy}|" "$tmp/far.yaml" >"$tmp/parts.yaml"
{ (ulimit -c 0; exec "$GPIPE" run "$tmp/parts.yaml") 2>"$tmp/stderr"; } 2>/dev/null
parts && ! grep -q Sanitizer "$tmp/stderr" && bad 'a fault in a kernel: a part of a file stays' || ok
parts | xargs -r rm
mkfifo "$tmp/fifo"
sed "s|path: stdin|path: fifo|" "$tmp/cat.yaml" >"$tmp/fifo.yaml"
rc=$(signaled "$tmp/fifo.yaml" INT); [ "$rc" = 130 ] && ok || bad "Ctrl-C at a FIFO without a writer: $rc"
sed 's|path: stdout|path: good.raw|' "$tmp/fifo.yaml" >"$tmp/good.yaml"
printf 'of an earlier run' >"$tmp/good.raw"
rc=$(signaled "$tmp/good.yaml" INT)
[ "$rc" = 130 ] && [ "$(cat "$tmp/good.raw")" = 'of an earlier run' ] && grep -q "good.yaml:4:24: warning: '.*good.raw' is left as it is" "$tmp/stderr" \
    && ok || bad "Ctrl-C before the first frame: $rc"

# == bench ======================================================================
# the figures are not looked at, only what is said of them
cat >"$tmp/bench.yaml" <<'Y'
buffers: {a: {dtype: f32, shape: [4096]}}
stages:
  - {use: generate, frames: 10, out: a}
  - {use: scale, a: 2}
  - {use: discard}
Y
cat >"$tmp/files.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [4096]}}
stages:
  - {use: generate, frames: 2000, out: a}
  - {use: write, path: made/there.npy}
Y
sed 's/4096/8192/' "$tmp/bench.yaml" >"$tmp/bench2.yaml"
# bench with windows of $1, for the first of the times $2 in which it has frames enough: a machine may be slow, or in use
cat >"$tmp/bench" <<'S'
#!/bin/sh
window=$1 times=$2 && shift 2
for time in $times; do
    "$GPIPE" bench -q --window "$window" --max-time "$time" "$@" >"$0.out" 2>"$0.err"; rc=$?
    grep -q 'too few to be measured; give it time' "$0.err" || break
done
cat "$0.out" && cat "$0.err" >&2
exit $rc
S
chmod +x "$tmp/bench"
export GPIPE
quick=("$tmp/bench" 20ms '200ms 4s')

# json_has NAME 'condition on d, the parsed stdout'...
json_has() {
    if python3 -c 'import json, sys
d = json.load(open(sys.argv[1])); rows = d["rows"]
for what in sys.argv[3:]: assert eval(what), what' "$tmp/stdout" "$@" 2>"$tmp/stderr"; then ok; else bad "$1"; fi
}

expect 'bench: a table'     0 '' "${quick[@]}" --device cpu "$tmp/bench.yaml"
grep -q 'frames/s' "$tmp/stdout" && grep -qE '^cpu .*' "$tmp/stdout" && grep -qE '^gpipe .* 20[0-9-]+T' "$tmp/stdout" && ok || bad 'bench: its table'
expect 'bench: JSON'        0 '' "${quick[@]}" --json --sweep depth=3,5..6 --sweep batch=1,auto --serial --cached scale "$tmp/bench.yaml"
json_has 'bench: its JSON' '[r["settings"] for r in rows][:3] == ["depth=3 batch=1", "depth=3 batch=auto", "depth=5 batch=1"]' \
    'len(rows) == 8 and [r["settings"] for r in rows][6:] == ["serial", "cached scale"]' \
    'all(r["frames_per_s"] > 10 and 0 < r["latency_p50_us"] <= r["latency_p90_us"] <= r["latency_p95_us"] <= r["latency_p99_us"] <= r["latency_max_us"] for r in rows)' \
    'all(abs(r["gb_per_s"] / r["frames_per_s"] / 16384e-9 - 1) < 1e-6 for r in rows)' \
    'all(r["windows"] == 3 and r["spread_percent"] <= 5.01 for r in rows if r["state"] == "stable")' \
    '(lambda best: len(best) == 1 and all(r["within_noise"] and r["state"] != "stable" and best[0]["state"] == "stable" for r in rows[:7] if r["frames_per_s"] > best[0]["frames_per_s"]))([r for r in rows[:7] if r["best"]])' \
    'sum(r["within_noise"] for r in rows) == sum(r["frames_per_s"] > b["frames_per_s"] for r in rows[:7] for b in rows if b["best"])' \
    'all(k in d for k in ("cpu", "gpu", "driver", "toolkit", "gpipe", "date")) and d["window_s"] == 0.02'
printf 'stateless = true\nfunction process(f, x, y) if f.index > 0 then return "drop" end y:copy(x) end\n' >"$tmp/drop.lua"
sed 's/^  - {use: scale/  - {name: keep, use: lua, script: drop.lua}\n&/' "$tmp/bench.yaml" >"$tmp/drop.yaml"
expect 'bench: one frame out' 0 '' "${quick[@]}" --json "$tmp/drop.yaml"
json_has 'bench: of the source' 'rows[0]["frames_per_s"] > 10 and rows[0]["gb_per_s"] > 0'
# what bounds it is the verdict of its run: a source with a pace, whatever else the machine does
sed 's/{use: generate,/{use: generate, rate: 20Hz,/' "$tmp/bench.yaml" >"$tmp/paced.yaml"
expect 'bench: a pace'      0 '' "$tmp/bench" 200ms '2s 40s' --device cpu --json "$tmp/paced.yaml"
json_has 'bench: its bound' 'rows[0]["bound_by"] == "rate" and "generate" in rows[0]["verdict"]'
expect 'bench: two files'   0 '' "${quick[@]}" --rounds 2 --json "$tmp/bench.yaml" "$tmp/bench2.yaml"
json_has 'bench: a ratio'   'rows[0]["ratio"] is None and rows[1]["ratio_min"] <= rows[1]["ratio_max"] and len(rows[1]["rounds_frames_per_s"]) == 2'
json_has 'bench: pairs'     'abs(rows[1]["ratio_max"] - max(a / b for a, b in zip(*(r["rounds_frames_per_s"] for r in rows[::-1])))) < 1e-9'
# whole runs: nothing is written where the pipeline says, nothing is left
expect 'bench: whole runs'  0 '' "${quick[@]}" --json "$tmp/files.yaml"
json_has 'bench: whole'     'rows[0]["whole_runs"]'
# windows that --max-time leaves no room for are not said to disagree
few() { grep -qE "^too few: 1 window of [0-9.e-]+ s$1 in --max-time $2, and 3 in a row have to agree; give it [0-9]+m?s\$" "$tmp/stdout" \
    && ! grep -q unstable "$tmp/stdout" && ok || bad "$3: $(cat "$tmp/stdout")"; }
expect 'bench: one window'  0 '' "$GPIPE" bench -q --window 1200ms --max-time 1200ms --device cpu "$tmp/bench.yaml"
few '' 1.2s 'bench: why one window'
expect 'bench: one run'     0 '' "$GPIPE" bench -q --max-time 1ms --device cpu "$tmp/files.yaml"
few ' \(whole runs\)' 1ms 'bench: why one run'
expect 'bench: few in JSON' 0 '' "$GPIPE" bench -q --max-time 1ms --device cpu --json "$tmp/files.yaml"
json_has 'bench: too few'   'rows[0]["state"] == "too few" and rows[0]["windows"] == 1 and rows[0]["needed_max_time_s"] >= 4 * rows[0]["window_mean_s"]'
mkdir "$tmp/made"; echo mine >"$tmp/made/there.npy"
expect 'bench: keeps files' 0 '' "${quick[@]}" "$tmp/files.yaml"
[ "$(cat "$tmp/made/there.npy")" = mine ] && [ "$(ls -A "$tmp/made")" = there.npy ] \
    && ! find "$tmp" -name '.bench.gpipe-*' | grep -q . && ok || bad 'bench changed or left files'
"$GPIPE" bench -q --max-time 1h --device cpu "$tmp/files.yaml" >/dev/null 2>&1 &
pid=$!
measures() { find "$tmp/made" -path '*/.bench.gpipe-*/*' | grep -q .; }
until_ $pid measures
kill -KILL $pid; wait $pid 2>/dev/null
[ -n "$(find "$tmp/made" -name '.bench.gpipe-*')" ] && "$GPIPE" bench -q --max-time 1ms --device cpu "$tmp/files.yaml" >/dev/null \
    && [ "$(ls -A "$tmp/made")" = there.npy ] && ok || bad 'what a killed bench left'
if [ -w /dev/shm ]; then           # which has files, unlike the rest of /dev
    shm=$(mktemp -d /dev/shm/gpipe-XXXXXX)
    echo mine >"$shm/there.npy"
    expect 'bench: in memory'    0 '' "${quick[@]}" --json --set stages.write.path="$shm/there.npy" "$tmp/files.yaml"
    json_has 'bench: whole, too' 'rows[0]["whole_runs"]'
    [ "$(cat "$shm/there.npy")" = mine ] && [ "$(ls -A "$shm")" = there.npy ] && ok || bad 'bench changed or left files in /dev/shm'
    rm -r "$shm"
fi
expect 'bench: endless'     2 "'write' would fill the disk" "${quick[@]}" --set stages.generate.frames=0 "$tmp/files.yaml"
expect 'bench: to stdout'   0 '' "${quick[@]}" --json "$tmp/endless.yaml"
json_has 'bench: stdout'    'len(rows) == 1'
# frames that are done with at the end only are counted where they go in; what takes longer than anybody waits is said
sed 's/{use: scale, a: 2}/{use: mix, op: sum}/' "$tmp/bench.yaml" >"$tmp/all.yaml"
expect 'bench: none out'    0 '' "${quick[@]}" --json --device cpu "$tmp/all.yaml"
json_has 'bench: where they go in' 'rows[0]["counted"] == "in" and rows[0]["frames_per_s"] > 10 and rows[0]["latency_p50_us"] is None'
expect 'bench: none out, in words' 0 '' "${quick[@]}" --device cpu "$tmp/all.yaml"
grep -q '^frames are counted where they go in, as none is done with before the end' "$tmp/stdout" && ok || bad 'bench: says where it counts'
expect 'bench: those done with' 0 '' "${quick[@]}" --json --device cpu "$tmp/bench.yaml"
json_has 'bench: where they are done' 'rows[0]["counted"] == "done"'
sed 's/{use: generate,/{use: generate, rate: 100Hz,/; s/op: sum/op: sum, frames: 1000000/' "$tmp/all.yaml" >"$tmp/million.yaml"
expect 'bench: a million become one' 1 'went in in .* s, and 1000000 at a time are done with: too few to be measured; give it time with --max-time' \
    "$GPIPE" bench -q --window 20ms --max-time 200ms --device cpu "$tmp/million.yaml"

# what cannot be measured
expect 'bench: stdin'       2 "what 'read' reads can be read once" "${quick[@]}" "$tmp/cat.yaml"
expect 'bench: a mismatch'  6 'is expected' "${quick[@]}" --set stages.there.a=7 pipelines/selftest.yaml
[ -s "$tmp/stdout" ] && bad 'bench: figures of a wrong run' || ok
expect 'bench: a stall'     5 'is busy with frame 3' "${quick[@]}" "$tmp/stuck.yaml"
[ -s "$tmp/stdout" ] && bad 'bench: figures of a stalled run' || ok
expect 'bench: unknown key' 2 "^--sweep stremas=1: error: no key 'stremas'; did you mean 'streams'" "$GPIPE" bench --sweep stremas=1..3 "$tmp/bench.yaml"
expect 'bench: bad value'   2 '^--sweep depth=x: error' "$GPIPE" bench --sweep depth=2,x "$tmp/bench.yaml"
expect 'bench: bad range'   2 'a range goes up' "$GPIPE" bench --sweep depth=3..1 "$tmp/bench.yaml"
expect 'bench: no value'    2 'a value is missing' "$GPIPE" bench --sweep depth=1, "$tmp/bench.yaml"
expect 'bench: too many'    2 'more than 1000 rows' "$GPIPE" bench --sweep depth=1..40 --sweep streams=1..40 "$tmp/bench.yaml"
expect 'bench: cached'      2 "did you mean 'scale'" "$GPIPE" bench --cached scael "$tmp/bench.yaml"
expect 'bench: a unit'      2 'has no unit' "$GPIPE" bench --window 2 "$tmp/bench.yaml"
expect 'bench: rounds'      2 '1 to 1000' "$GPIPE" bench --rounds 0 "$tmp/bench.yaml"
expect 'bench: -'           2 'stdin can be read once' "$GPIPE" bench -
for s in INT TERM; do
    "$GPIPE" bench --sweep depth=1..8 "$tmp/bench.yaml" >"$tmp/stdout" 2>"$tmp/stderr" &
    pid=$!
    until_ $pid listens $pid
    kill -$s $pid; wait $pid; rc=$?
    [ $rc = $([ $s = INT ] && echo 130 || echo 143) ] && [ ! -s "$tmp/stdout" ] && ok || bad "bench: SIG$s: $rc"
done

# == reports and traces =========================================================
edges=pipelines/edges.yaml
run="$GPIPE run -q --device cpu"
expect 'report: a name'     2 'must end in .json or .html' $run --report x.txt $edges
expect 'report: no folder'  2 "^/proc/no/x.json: error: cannot be written: there is no folder '/proc/no/'" $run --report /proc/no/x.json $edges
for option in --report --trace; do     # what a typo would make
    expect "$option: no folder" 2 "typo/in/x.json: error: cannot be written: there is no folder '$tmp/typo/in/'" $run $option "$tmp/typo/in/x.json" $edges
    [ ! -e "$tmp/typo" ] && ok || { bad "$option: it made a folder"; rm -r "$tmp/typo"; }
done
expect 'trace: a page'      2 'a trace is JSON, for ui.perfetto.dev; --report t.html writes a page' $run --trace t.html $edges
expect 'trace: a folder'    2 'it is a folder' $run --trace "$tmp" $edges
expect 'trace: as report'   2 "r.json: error: is written by --report too: give each a path of its own" $run --report "$tmp/r.json" --trace "$tmp/r.json" $edges
cp "$tmp/slow.yaml" "$tmp/itself.json"
expect 'report: of itself'  2 'itself.json: error: is read by gpipe as the pipeline' $run --report "$tmp/itself.json" "$tmp/itself.json"
cmp -s "$tmp/slow.yaml" "$tmp/itself.json" && ok || bad 'report: the pipeline is gone'
cp examples/data/ecg.npy "$tmp/in.npy"; mkdir "$tmp/dir"; ln -s . "$tmp/dir/here"; ln -s ../in.npy "$tmp/dir/in.npy"
cat >"$tmp/dir/files.yaml" <<'Y'
stages:
  - {use: read, path: in.npy, out: a}
  - {use: write, path: out.json, format: raw, in: a}
  - {name: each, use: write, path: "%05d.json", format: raw, in: a}
buffers: {a: {shape: [1000]}}
Y
expect 'trace: an input'    2 "in.npy: error: is read by stage 'read'" $run --trace "$tmp/in.npy" "$tmp/dir/files.yaml"
cmp -s examples/data/ecg.npy "$tmp/in.npy" && ok || bad 'trace: the input is gone'
expect 'report: an output'  1 "files.yaml:3:24: error: '.*out.json' is written by --report too" $run --report "$tmp/dir/here/out.json" "$tmp/dir/files.yaml"
expect 'trace: one frame'   1 "frame 2: '.*00002.json' is written by --trace too" $run --trace "$tmp/dir/here/00002.json" "$tmp/dir/files.yaml"
expect 'trace: of nothing'  2 'is for --trace' $run --trace-last 3s $edges
expect 'trace: how'         2 "one of cheap, full" $run --trace "$tmp/t.json" --trace-gpu deep $edges
[ -w /dev/full ] && expect 'trace: full disk' 1 '^/dev/full: error: cannot be written: No space' $run --trace /dev/full $edges
cat >"$tmp/streams.yaml" <<'Y'
streams: 1
buffers: {a: {dtype: f32, shape: [256, 256]}}
stages: [{use: generate, frames: 40, fill: once, out: a}, {use: blur, sigma: 8}, {use: discard}]
Y
expect 'account of streams' 0 '^  blur +40 +1 stream +[1-9][0-9]* %' "$GPIPE" run -v --device cpu "$tmp/streams.yaml"
expect 'account' 0 "gpipe: overlap [0-9]+ %, latency p50" "$GPIPE" run -v --device cpu $edges
$run --report "$tmp/r.json" --trace "$tmp/t.json" "$tmp/slow.yaml" >/dev/null 2>"$tmp/stderr" &
pid=$!
until_ $pid runs $pid
kill -INT $pid; wait $pid; rc=$?
[ $rc -eq 130 ] && grep -q '"outcome": "drained"' "$tmp/r.json" && tail -1 "$tmp/t.json" | grep -q '^}' && ok || bad "report: stopped: exit $rc"
expect 'report: failed' 1 'there is nothing to report' $run --report "$tmp/none.json" --set stages.write.path=/proc/no/x "$tmp/slow.yaml"
[ ! -e "$tmp/none.json" ] && [ -z "$(find "$tmp" -name '.*.gpipe-*')" ] && ok || bad 'report: left behind'

# a run of which nothing is done with before its end says what goes in, and how fast
sed 's/frames: 10,/frames: 300, rate: 100Hz,/' "$tmp/all.yaml" >"$tmp/slow-all.yaml"
expect 'progress: none done yet' 0 '^gpipe: [0-9]+ frames in, none done yet, [1-9][0-9]* frames/s, [0-9]+ s$' \
    "$GPIPE" run --device cpu --progress plain "$tmp/slow-all.yaml"
expect 'progress: none done yet, JSON' 0 '"in": [1-9][0-9]*, "done": 0, "frames": 300, "left_s": [1-9.][0-9.]*, "frames_per_s": [1-9]' \
    "$GPIPE" run --device cpu --progress json "$tmp/slow-all.yaml"

# frames/s count the source's frames, done with in any way, of the source that made most
printf 'function process(f, x) if f.index %% 3 > 0 then return "drop" end end\n' >"$tmp/third.lua"
cat >"$tmp/most.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [4]}, b: {like: a}}
stages:
  - {use: generate, frames: 300, rate: 1kHz, out: a}
  - {name: half, use: generate, frames: 150, rate: 1kHz, out: b}
  - {use: lua, script: third.lua, in: a, out: []}
  - {use: discard, in: b}
  - {name: again, use: discard, in: a}
Y
for how in none json; do
    "$GPIPE" run --progress $how --report "$tmp/most.json" "$tmp/most.yaml" 2>"$tmp/$how"
    python3 - "$tmp/most.json" "$tmp/$how" >"$tmp/stderr" 2>&1 <<'P' && ok || bad "frames/s, --progress $how"
import json, re, sys
r = json.load(open(sys.argv[1]))
assert abs(r["frames_per_s"] * r["wall_s"] - 300) < 1e-3, (r["frames_per_s"], r["wall_s"])
said = open(sys.argv[2]).read().splitlines()
if said[0].startswith("{"):
    last = [o for o in map(json.loads, said) if "ended" in o][-1]
    assert last["done"] == last["frames"] == 300, last
else:
    for name, n in (("generate", 300), ("half", 150)):
        s, rate = re.search(rf"gpipe: {name}: {n} frames in, .* in ([\d.]+) s \(([\d.]+) frames/s\)", "\n".join(said)).groups()
        assert abs(float(s) * float(rate) - n) < 5, (name, s, rate)
P
done

printf 'stages: [{use: generate, frames: 1, out: x}, {use: discard}]\nbuffers: {x: {dtype: u8, shape: [4]}}\n' >"$tmp/one.yaml"
expect 'one frame'       0 '^gpipe: 1 frame in, 1 out' "$GPIPE" run "$tmp/one.yaml"
expect 'two frames'      0 '^gpipe: 2 frames in, 2 out' "$GPIPE" run --set stages.generate.frames=2 "$tmp/one.yaml"

cat > "$tmp/late.lua" <<'EOF'
function process(frame, x, y)
  if frame.index == 20 then error('broken') end
  y:copy(x)
end
EOF
cat > "$tmp/late.yaml" <<'EOF'
buffers: {x: {dtype: u8, shape: [4]}}
stages: [{use: generate, frames: 30, out: x}, {use: lua, script: late.lua}, {use: discard}]
EOF
expect 'an error and an account' 1 'late.lua:2.*broken' "$GPIPE" run -v "$tmp/late.yaml"
sed -n '/late.lua\|no input/p' "$tmp/stderr" | head -1 | grep -q broken && ok \
    || bad 'an error does not come before the account'

# == files of an earlier run ====================================================
expect 'replaces: first'    0 '' "$GPIPE" run --set stages.each.start=7 "$tmp/dir/files.yaml"
grep -q replaced "$tmp/stderr" && bad 'replaces: nothing was there' || ok
expect 'replaces: again'    0 "files.yaml:4:36: warning: stage 'each' replaced [0-9]+ files, the first '.*/00007.json'" "$GPIPE" run --set stages.each.start=7 "$tmp/dir/files.yaml"
grep -c replaced "$tmp/stderr" | grep -qx 2 && ok || bad 'replaces: not said once a stage'
expect 'a folder by date'   0 '' env TZ=UTC "$GPIPE" run -q --set 'stages.each.path=d-${date:%Y}/${date:%m%d}-%02d.raw' "$tmp/dir/files.yaml"
[ -n "$(find "$tmp/dir" -path '*/d-20[0-9][0-9]/[01][0-9][0-3][0-9]-00.raw')" ] && ok || bad 'a folder by date: it is not there'

mkfifo "$tmp/dir/fifo.npy"
expect 'a joined .npy at a FIFO' 1 "fifo.npy' is not a regular file, which a joined .npy needs" timeout 60 "$GPIPE" run --set stages.each.path=fifo.npy --set stages.each.format=npy "$tmp/dir/files.yaml"
rm "$tmp/dir/fifo.npy"

# == killed ======================================================================
cat >"$tmp/live.yaml" <<'Y'
buffers: {a: {dtype: u8, shape: [2, 8]}}
stages:
  - {use: generate, rate: 200, out: a}
  - {use: write, path: killed/live.npy, live: true}
  - {name: other, use: write, in: a, path: killed/other.npy}
Y
rows() { python3 - "$tmp/killed/live.npy" <<'P'
import ast, sys
data = open(sys.argv[1], "rb").read()
n = int.from_bytes(data[8:10], "little")
rows = ast.literal_eval(data[10:10 + n].decode())["shape"][0]
body = data[10 + n:]
sys.exit("less is there than it says") if len(body) < 8 * rows else print(rows)
sys.exit(any(body[i] != i % 256 for i in range(8 * rows)))
P
}
"$GPIPE" run -q "$tmp/live.yaml" 2>"$tmp/stderr" &
pid=$!
for i in $(seq 300); do [ -e "$tmp/killed/live.npy" ] && [ "$(rows)" -gt 3 ] 2>>"$tmp/stderr" && break; sleep 0.1; done
kill -9 $pid; wait $pid 2>>"$tmp/stderr"
r=$(rows) && [ "$r" -gt 3 ] && ok || bad "killed: live.npy: $r"
[ "$(find "$tmp/killed" -name '.other.npy.gpipe-*' | wc -l)" = 1 ] && [ ! -e "$tmp/killed/other.npy" ] && ok || bad 'killed: the other is not half there'
expect 'killed: run again'  0 "replaced a file, '.*live.npy'" "$GPIPE" run --set stages.generate.frames=3 "$tmp/live.yaml"
[ "$(rows)" = 6 ] && [ "$(find "$tmp/killed" -type f | wc -l)" = 2 ] && ok || bad 'killed: left behind'
# two runs do not mix their numbered files; one that is dead is in nobody's way
ln -s out "$tmp/same"
"$GPIPE" run "$tmp/slow.yaml" >/dev/null 2>"$tmp/first" &
pid=$!
until_ $pid runs $pid
for to in out ./same; do
    expect "two runs: $to" 1 "error: '.*/$to/%05d.raw' cannot be written: another run is writing it \\(process $pid\\)" \
        "$GPIPE" run --set stages.generate.frames=1 --set "stages.write.path=$to/%05d.raw" "$tmp/slow.yaml"
done
expect "two runs: patterns that meet" 1 "error: '.*/out/0%04d.raw' cannot be written: another run is writing '%05d.raw' there, which may be the same file \\(process $pid\\)" \
    "$GPIPE" run --set stages.generate.frames=1 --set 'stages.write.path=out/0%04d.raw' "$tmp/slow.yaml"
expect 'two runs: another pattern' 0 '' "$GPIPE" run --set stages.generate.frames=1 --set 'stages.write.path=out/x%d.raw' "$tmp/slow.yaml"
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1; then       # another user, who may not open the first's files
    chmod 777 "$tmp/out" && chmod 755 "$tmp"
    expect 'two runs: another user' 1 "another run is writing it \\(process $pid\\)" setpriv --reuid=nobody --clear-groups \
        env -u XDG_RUNTIME_DIR "$GPIPE" run --set stages.generate.frames=1 "$tmp/slow.yaml"
fi
kill -9 $pid; wait $pid 2>>"$tmp/first"
expect 'two runs: the first was killed' 0 '' "$GPIPE" run --set stages.generate.frames=1 "$tmp/slow.yaml"
[ -z "$(find "$tmp/out" -name '.*')" ] && ok || bad 'two runs: left behind'
# == which file is which ======================================================
# no output is lost in another one, in what is read, or in what the run is made of
mkdir -p "$tmp/which"
cat >"$tmp/which/two.yaml" <<'Y'
vars: {to: /dev/stdout, also: stdout}
buffers: {g: {dtype: u8, shape: [4096]}}
stages:
  - {use: generate, pattern: constant, value: 65, frames: 20, out: g}
  - {name: a, use: write, path: "${also}", format: raw}
  - {name: b, use: write, in: g, path: "${to}", format: raw}
Y
for to in /dev/stdout /dev/fd/1 /proc/self/fd/1 //proc/self/fd/1 /proc/thread-self/fd/1 /dev/fd/3 "$tmp/which/out"; do
    for also in stdout /dev/stdout "$tmp/which/../which/out"; do
        case $to,$also in /dev/stdout,/dev/stdout|"$tmp"*,"$tmp"*) continue ;; esac
        printf 'before' >"$tmp/which/out"
        expect "two outputs: $to and $also" 1 "is written by stage '[ab]' too" \
            sh -c '"$0" run "$1" --set "vars.to=$3" --set "vars.also=$4" >>"$2" 3>&1' "$GPIPE" "$tmp/which/two.yaml" "$tmp/which/out" "$to" "$also"
        [ "$(cat "$tmp/which/out")" = before ] && ok || bad "two outputs: $to and $also: a file changed"
    done
done
sed -i 's|"${also}"|"/dev/null"|' "$tmp/which/two.yaml"
for to in stdout /dev/stdout /dev/fd/1 //proc/self/fd/1 /dev/fd/3; do
    expect "at the end of a file: $to" 0 '' \
        sh -c 'echo before >"$2"; { echo header; "$0" run "$1" --set "vars.to=$3"; echo trailer; } >>"$2" 3>&1' "$GPIPE" "$tmp/which/two.yaml" "$tmp/which/out" "$to"
    { echo before; echo header; head -c 81920 /dev/zero | tr '\0' A; echo trailer; } | cmp -s - "$tmp/which/out" && ok || bad "at the end of a file: $to: it holds something else"
    expect "closed: $to" 1 "cannot be written: Bad file descriptor" sh -c '"$0" run "$1" --set "vars.to=$2" >&- 3>&-' "$GPIPE" "$tmp/which/two.yaml" $to
done
expect 'an open file, twice' 0 '' sh -c '"$0" run "$1" --set "vars.to=/dev/fd/2" 2>/dev/null' "$GPIPE" "$tmp/which/two.yaml"
cat >"$tmp/which/same.yaml" <<'Y'
vars: {from: stdin, to: in.raw}
buffers: {g: {dtype: u8, shape: [1024]}}
stages:
  - {use: read, path: "${from}", format: raw, out: g}
  - {use: write, path: "${to}", format: raw}
Y
head -c 8192 /dev/zero | tr '\0' x >"$tmp/which/in.raw"
for from in stdin /dev/stdin /proc/self/fd/0 in.raw; do
    for to in in.raw stdout /dev/stdout /proc/self/fd/3; do
        [ $from = in.raw ] && [ $to = in.raw ] && continue
        expect "over its input: $from to $to" 1 "is read by stage 'read'" \
            sh -c '"$0" run "$1" --set "vars.from=$3" --set "vars.to=$4" <"$2" 1<>"$2" 3<>"$2"' "$GPIPE" "$tmp/which/same.yaml" "$tmp/which/in.raw" $from $to
        head -c 8192 /dev/zero | tr '\0' x | cmp -s - "$tmp/which/in.raw" && ok || bad "over its input: $from to $to: it changed"
    done
done
expect 'no file of anybody'  0 '' "$GPIPE" run --set vars.from=/dev/null --set vars.to=/dev/null "$tmp/which/same.yaml"
mkfifo "$tmp/which/fifo"; ln "$tmp/which/fifo" "$tmp/which/other"
for to in fifo other; do
    expect "a FIFO to itself: $to"  1 "is read by stage 'read'" "$GPIPE" run --set vars.from=fifo --set vars.to=$to "$tmp/which/same.yaml"
done
# what the run is made of
cat >"$tmp/which/made.yaml" <<'Y'
device: cpu
vars: {to: out.raw}
buffers: {g: {dtype: u8, shape: [4096]}}
stages:
  - {use: generate, pattern: constant, value: 65, frames: 20, out: g}
  - {use: lua, script: inv.lua}
  - {use: kernel, source: k.cu, threads: out.size, args: [in, out, {i32: in.size}]}
  - {use: write, path: "${to}", format: raw}
Y
printf 'local m = require "mod"\nfunction process(f, x, y) y:fill(m) end\n' >"$tmp/which/inv.lua"
printf 'return 7\n' >"$tmp/which/mod.lua"
printf '#include "hh.h"\nextern "C" __global__ void k(const unsigned char *in, unsigned char *out, int n)\n{\n    for (int i = 0; i < n; i++)\n        out[i] = in[i] + ONE;\n}\n' >"$tmp/which/k.cu"
printf '#define ONE 1\n' >"$tmp/which/hh.h"
for one in '3 inv.lua lua' '3 k.cu kernel' '3 hh.h kernel' '1 mod.lua lua' '3 made.yaml gpipe'; do
    set -- $one
    cp "$tmp/which/$2" "$tmp/which/kept"
    expect "over a file of its own: $2" $1 "read by .*$3|which (stage )?'$3' reads|module '.*mod.lua' is written by stage 'write'" \
        "$GPIPE" run --set "vars.to=$2" "$tmp/which/made.yaml"
    cmp -s "$tmp/which/kept" "$tmp/which/$2" && ok || bad "over a file of its own: $2 changed"
    ln -sf "$2" "$tmp/which/link"
    expect "over a file of its own, by a link: $2" 1 "is read by |module '.*mod.lua' is written by stage 'write'" \
        "$GPIPE" run --set "vars.to=link" "$tmp/which/made.yaml"
    cmp -s "$tmp/which/kept" "$tmp/which/$2" && ok || bad "over a file of its own, by a link: $2 changed"
done
ln -sf hh.h "$tmp/which/report.json"
expect 'a report over a header' 2 "is read by stage 'kernel'" "$GPIPE" run --report "$tmp/which/report.json" "$tmp/which/made.yaml"
expect 'beside its files'       0 '' "$GPIPE" run "$tmp/which/made.yaml"
# == files that others wrote =====================================================
# nothing in one of them steers the terminal
mkdir -p "$tmp/hostile"
h="$tmp/hostile/"$'\x1b]0;me\x07\xe2\x80\xae.yaml'
cat >"$h" <<'END'
pipeline: "a\e[2J\x9b2J\u202eb"
buffers: {k: {const: "k\e[31m.npy"}, x: {dtype: f32, shape: [400]}}
stages:
  - {use: generate, out: x, frames: 3}
  - {use: fir, in: {in: x, taps: k}}
  - {use: discard}
END
cp examples/heartbeat/bandpass.npy "$tmp/hostile/k"$'\x1b[31m.npy'
printf 'device: cuda:\e[31m\xe2\x80\xae\n' >"$tmp/hostile/line.yaml"
printf '\x80%.0s' {1..161} >"$tmp/hostile/80.yaml"
plain() {                              # NAME CODE COMMAND...
    local name=$1 code=$2; shift 2
    timeout 60 "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    local rc=$?
    cat "$tmp/stdout" "$tmp/stderr" | python3 -c 'import re, sys
t = sys.stdin.buffer.read().decode()
sys.exit(not t or bool(re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", t)))' \
        && { [ "$code" = any ] || [ $rc -eq "$code" ]; } && ok || bad "steers the terminal, or exit $rc: $name"
}
plain check      0 "$GPIPE" check "$h"
for form in graph plan; do
    for how in '' --json --dot --svg; do
        plain "plan $form $how" 0 "$GPIPE" plan --form $form $how "$h"
    done
done
plain run        0 "$GPIPE" run -v "$h"
plain 'no file'  2 "$GPIPE" run --set $'buffers.k.const=\x9b\x1b[2J' "$h"
plain 'a line'   3 "$GPIPE" check "$tmp/hostile/line.yaml"
plain '161 80s'  3 "$GPIPE" check "$tmp/hostile/80.yaml"
plain bench      any "$GPIPE" bench --rounds 1 --window 1ms --max-time 3ms "$h"

# a FIFO that nobody reads, and a program that reads nothing, hold up nobody
mkdir "$tmp/leaky"; mkfifo "$tmp/leaky/fifo"
printf 'buffers: {x: {dtype: i32, shape: [16, 1024]}}\nstages:\n  - {use: generate, frames: 300, out: x}\n  - {use: write, path: all.raw, in: x, if_exists: replace}\n  - {name: view, use: write, path: fifo, in: x, when_full: drop-oldest}\n' >"$tmp/leaky/fifo.yaml"
sed 's/path: fifo/command: [sleep, "1000"]/' "$tmp/leaky/fifo.yaml" >"$tmp/leaky/program.yaml"
for of in fifo program; do
    expect "$of that reads nothing" 0 '^gpipe: view.queue: 300 frames in, [0-9]+ out, [0-9]+ dropped .[0-9]+ for lack of room., 0 failed, [0-9]+ cancelled' \
        "$GPIPE" run "$tmp/leaky/$of.yaml" --report "$tmp/leaky/run.json"
    grep -q '^gpipe: generate: 300 frames in, 300 out, 0 dropped' "$tmp/stderr" && [ "$(stat -c %s "$tmp/leaky/all.raw")" = 19660800 ] \
        && ok || bad "$of: what is beside it lost frames"
    expect "$of: a simulation" 2 'a simulation does not know which frames' "$GPIPE" simulate "$tmp/leaky/$of.yaml" --with "$tmp/leaky/run.json"
done

# what is no regular file, or a large one, is neither waited for nor read
mkfifo "$tmp/nobody"
truncate -s 3G "$tmp/sparse"
printf 'buffers: {x: {dtype: f32, shape: [4]}}\nstages: [{use: generate, out: x, frames: 2}, {use: lua, script: "${env:SCRIPT}"}, {use: discard}]\n' >"$tmp/script.yaml"
echo 'stages: [{use: generate, frames: 2, out: x}, {use: discard}]
buffers: {x: {dtype: f32, shape: [4]}}' >"$tmp/small.yaml"
for verb in check run plan bench; do
    for f in /dev/zero "$tmp/nobody"; do
        expect "$verb $f"          2 "^$f: error: this is not a regular file" "$GPIPE" $verb "$f"
    done
    for f in /dev/zero "$tmp/nobody" stdin; do
        SCRIPT=$f expect "$verb: script $f" 3 "stage 'lua': '$f' is not a regular file" "$GPIPE" $verb "$tmp/script.yaml"
    done
    expect "$verb: 3 GiB"          2 'sparse: error: this is larger than 64 MiB' "$GPIPE" $verb "$tmp/sparse"
    SCRIPT=$tmp expect "$verb: script a folder" 3 'is a folder' "$GPIPE" $verb "$tmp/script.yaml"
    SCRIPT=$tmp/sparse expect "$verb: script 3 GiB" 3 'is larger than 1 MiB' "$GPIPE" $verb "$tmp/script.yaml"
done
expect 'yaml: endless stdin'       2 'stdin: error: this is larger than 64 MiB' bash -c "\"$GPIPE\" check - </dev/zero"
expect 'yaml: a pipe'              0 '' bash -c "cat \"$tmp/small.yaml\" | \"$GPIPE\" run -"
expect 'yaml: a pipe, named'       0 '' bash -c "cat \"$tmp/small.yaml\" | \"$GPIPE\" run /dev/stdin"
expect 'yaml: of a process'        0 '' bash -c "\"$GPIPE\" run <(cat \"$tmp/small.yaml\")"
expect 'yaml: of a process, long'  2 'larger than 64 MiB' bash -c "\"$GPIPE\" check <(cat /dev/zero)"
# a pattern does not make 'check' walk a disk; 10 names above are 10 to the 9 paths
mkdir -p "$tmp/walk/"{0..9} && cp examples/heartbeat/bandpass.npy "$tmp/walk/x.npy"
printf 'stages: [{use: read, path: "%s"}, {use: discard}]\n' "$tmp/walk/*/../*/../*/../*/../*/../*/../*/../*/../x.np?" >"$tmp/walk.yaml"
expect 'glob: bounded in check'    3 "stage 'read': 'check' and 'plan' look at 100000 names for all patterns, and for '.*' there are more" "$GPIPE" check "$tmp/walk.yaml"
expect 'glob: bounded in plan'     3 "stage 'read': 'check' and 'plan' look at 100000 names for all patterns, and for '.*' there are more" "$GPIPE" plan "$tmp/walk.yaml"

# 'check' and 'plan' run nothing of it, compile nothing, write nothing; 'run' does
mkdir -p "$tmp/asleep"
echo 'io.open("'"$tmp/asleep/ran"'", "w"):close() function process(f, x, y) y:copy(x) end' >"$tmp/asleep/s.lua"
printf '#error compiled\nextern "C" __global__ void k(const float *in, float *out) { for (int i = 0; i < 4; i++) out[i] = in[i]; }\n' >"$tmp/asleep/k.cu"
echo 'buffers: {x: {dtype: f32, shape: [4]}}
stages: [{use: generate, out: x, frames: 3}, {use: lua, script: s.lua}, {use: write, path: out/x.npy}, {use: kernel, in: lua, source: k.cu, grid: 1, args: [in, out]}, {use: discard}]' >"$tmp/asleep/p.yaml"
before=$(ls "$tmp/asleep"; ls -R "$tmp/cache" 2>/dev/null)
for verb in check plan 'plan --svg' 'plan --form graph'; do
    expect "$verb runs nothing" 0 '' "$GPIPE" $verb "$tmp/asleep/p.yaml"
    [ "$(ls "$tmp/asleep"; ls -R "$tmp/cache" 2>/dev/null)" = "$before" ] && ok || bad "$verb wrote something"
done
expect 'run compiles'    3 'compiled' "$GPIPE" run --device cpu "$tmp/asleep/p.yaml"
sed -i '/^#error/d' "$tmp/asleep/k.cu"
expect 'run runs'        0 '' "$GPIPE" run --device cpu "$tmp/asleep/p.yaml"
[ -e "$tmp/asleep/ran" ] && [ -e "$tmp/asleep/out/x.npy" ] && ok || bad 'run: nothing ran'

# == random pipelines ===========================================================
if python3 tests/fuzz/pipelines.py "$GPIPE" 1 20 4 >"$tmp/stderr" 2>&1; then ok; else bad 'random pipelines'; fi

# however many sources there are, all are counted and reported
{ echo 'stages:'
  for i in $(seq 70); do echo "  - {use: generate, out: b$i, frames: 3}"; echo "  - {use: discard, in: b$i}"; done
  echo 'buffers:'; for i in $(seq 70); do echo "  b$i: {dtype: u8, shape: [4]}"; done; } >"$tmp/many.yaml"
expect '70 sources'      0 '70: 3 frames in, 3 out' "$GPIPE" run --report "$tmp/many.json" "$tmp/many.yaml"
[ "$(grep -c 'frames in, 3 out' "$tmp/stderr")" = 70 ] && ok || bad '70 sources: the summary is cut'
python3 -c 'import json, sys; sys.exit(len(json.load(open(sys.argv[1]))["sources"]) != 70)' "$tmp/many.json" \
    && ok || bad '70 sources: the report is cut'

# a launch waits for frames that share it, until its batch is full or no more come: 0-3, 4-7, 8 and 9
echo 'depth: 8
batch: 4
buffers: {a: {dtype: f32, shape: [64]}}
stages: [{use: generate, out: a, frames: 10, rate: 100}, {use: scale, a: 2}, {use: discard}]' >"$tmp/wait.yaml"
expect 'batch_wait'      0 '10 frames in, 10 out' "$GPIPE" run --device cpu --set batch_wait=1s --report "$tmp/wait.json" "$tmp/wait.yaml"
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); s = r["segments"][0]
sys.exit(s["launches"] != 3 or s["wait_in_s"] < s["wait_stream_s"])' "$tmp/wait.json" && ok || bad 'batch_wait: the launches'

# ... nor for frames that do not fit into the slots that are in use: it would wait 1 s for each few frames
sed '/^depth/d; /^batch/d; s/frames: 10, rate: 100/frames: 300/' "$tmp/wait.yaml" >"$tmp/wait-few.yaml"
expect 'batch_wait, many slots' 0 '300 frames in, 300 out' timeout 20 "$GPIPE" run --device cpu --set batch_wait=1s "$tmp/wait-few.yaml"

# launches are chosen: bytes are as they were; what cannot be is said, once, by a warning and in the report
echo 'depth: 16
batch: 8
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 500, pattern: noise}
  - {use: scale, a: 2}
  - {use: write, path: out.raw, durable: none}' >"$tmp/late.yaml"
"$GPIPE" run -q --device cpu "$tmp/late.yaml" && mv "$tmp/out.raw" "$tmp/plain.raw"
expect 'latency: time enough' 0 '500 frames in, 500 out' "$GPIPE" run --device cpu --set latency=20s "$tmp/late.yaml"
grep -q 'was not kept' "$tmp/stderr" && bad 'latency: 20 s are not enough' || ok
cmp -s "$tmp/out.raw" "$tmp/plain.raw" && ok || bad 'latency: the bytes'
expect 'latency: no time' 0 "latency=1us: warning: 'latency: 0.001ms' was not kept: 99 frames in 100 took up to " \
    "$GPIPE" run --device cpu --set latency=1us --report "$tmp/late.json" "$tmp/late.yaml"
[ "$(grep -c 'was not kept' "$tmp/stderr")" = 1 ] && ok || bad 'latency: said more than once'
cmp -s "$tmp/out.raw" "$tmp/plain.raw" && ok || bad 'latency: the bytes where there is no time'
python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))
sys.exit(r["pipeline"]["latency_ns"] != 1000 or "was not kept" not in r["verdict"]["text"])' "$tmp/late.json" && ok \
    || bad 'latency: the report'
"$GPIPE" plan --device cpu --set latency=5ms "$tmp/late.yaml" | grep -q 'batch 8 for a latency of 5 ms' && ok \
    || bad 'latency: the plan'

echo "cli: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
