/* test_resolve_errors.c - every way to be refused by resolve. Kinds of its own here;
 * tests/bad/resolve_*.yaml has the real ones. */
#include <glob.h>
#include <stdarg.h>
#include "compile/resolve.h"
#include "pipe.h"
#include "world.h"

/* Each is all that must be said: "LINE:COL MESSAGE", messages may be cut. */
#define CHAIN "stages: [{use: src}, {use: host}, {use: sink}]\n"
static const struct { const char *yaml, *err[4]; } bad[] = {
    /* the top */
    { "device: cpu\n", { "0:0 the pipeline has no stages" } },
    { "stage: [{use: src}]\n", { "1:1 a pipeline has no key 'stage'; did you mean 'stages'?" } },
    { "pipeline:\n  depth: 3\n  stages: [{use: src}]\n",
      { "3:3 'stages' stands below 'pipeline'; write it in the first column, beside that" } },
    { "stages: []\n", { "1:9 the pipeline has no stages" } },
    { "stages: {use: src}\n", { "1:9 'stages' must be a list" } },
    { CHAIN "strems: 2\n", { "2:1 a pipeline has no key 'strems'; did you mean 'streams'?" } },
    { CHAIN "depth: 0\n", { "2:8 'depth' must be 1 to 65536, not 0" } },
    { CHAIN "depth: -1\n", { "2:8 'depth' must be 1 to 65536, not -1" } },
    { CHAIN "depth: 1000000000\n", { "2:8 'depth' must be 1 to 65536, not 1000000000" } },
    { CHAIN "depth: 1.5\n", { "2:8 'depth' must be a whole number, not '1.5'" } },
    { CHAIN "depth: 15e-2\n", { "2:8 'depth' must be a whole number, not '15e-2'" } },
    { CHAIN "depth: 1e19\n", { "2:8 'depth' must be a whole number, from 2^53 on written without point or exponent, not '1e19'" } },
    { CHAIN "depth: 18446744073709551615\n", { "2:8 'depth' must be 1 to 65536, not 18446744073709551615" } },
    { CHAIN "X-a: 1\n", { "2:1 a pipeline has no key 'X-a'" } },
    { CHAIN "depth: 3 / 2.0\n", { "2:8 'depth' must be a whole number, not '3 / 2.0', which is 1.5" } },
    { CHAIN "vars: {deep: 1e16}\ndepth: deep\n", { "3:8 'depth' must be a whole number, from 2^53 on written without point or exponent, not 'deep', which is 1e+16" } },
    { CHAIN "depth: deep\n", { "2:8 'deep' is neither a number nor a variable that is a number" } },
    { CHAIN "depth: [1]\n", { "2:8 'depth' must be a number, not a list" } },
    { CHAIN "streams: 0\n", { "2:10 'streams' must be 1 to 1024, not 0" } },
    { CHAIN "batch: 0\n", { "2:8 'batch' must be 1 to 65536, not 0" } },
    { CHAIN "launch: grahp\n",
      { "2:9 'launch' must be one of graph, stream, persistent, not 'grahp'; did you mean 'graph'?" } },
    { CHAIN "sync: [x]\n", { "2:7 'sync' must be text, not a list" } },
    { CHAIN "on_error: explode\n", { "2:11 'on_error' must be one of stop, drop, not 'explode'" } },
    { CHAIN "stall_timeout: 30\n", { "2:16 '30' has no unit" } },
    { CHAIN "batch_wait: -1us\n", { "2:13 'batch_wait' must be from 0 to 1s" } },
    { CHAIN "batch_wait: 1001ms\n", { "2:13 'batch_wait' must be from 0 to 1s" } },
    { CHAIN "batch_wait: 30\n", { "2:13 '30' has no unit" } },
    { CHAIN "batch_wait: 5ms\nstall_timeout: 5ms\n", { "2:13 'batch_wait' must be less than 'stall_timeout'" } },
    { CHAIN "latency: -1us\n", { "2:10 'latency' must be 0 (any) or more" } },
    { CHAIN "latency: 5\n", { "2:10 '5' has no unit" } },
    { CHAIN "latency: 30s\n", { "2:10 'latency' must be less than 'stall_timeout'" } },
    { CHAIN "latency: 5ms\nbatch_wait: 1us\n",
      { "2:10 'latency' chooses how long a launch waits: leave out 'batch_wait'" } },
    { CHAIN "latency: 5ms\nlaunch: persistent\n", { "2:10 'latency' chooses what a launch takes, and with 'launch: "
      "persistent' there are no launches: leave out one of them" } },
    { CHAIN "stall_timeout: -1s\n", { "2:16 'stall_timeout' must be 0 (never) or more" } },
    { CHAIN "vars: 3\n", { "2:7 'vars' must be a map" } },
    { CHAIN "vars: {a: [1]}\n", { "2:11 'a' is a list; a variable has a single value" } },
    { CHAIN "vars: {a b: 1}\n", { "2:8 'a b' is not a valid name for a variable" } },
    { CHAIN "vars: {out: null, x: 'a'}\ndepth: out\n", { "3:8 'out' has no value; give one with --set vars.out=..." } },
    { CHAIN "vars: {x: a}\ndepth: 2 * x\n", { "3:8 'x' is 'a', which is not a number" } },
    { CHAIN "vars: {x: y, y: x}\ndepth: x\n", { "3:8 'x' is 'y', which is not a number" } },
    { CHAIN "vars: {x: 60, y: x / 7}\ndepth: y\n", { "3:8 'y' is 'x / 7', which is not a number: 60 / 7 leaves a "
      "remainder; write ceil(a / b) or floor(a / b), or 60.0 for a fraction" } },
    { CHAIN "vars: {z: y + 1, x: 60, y: x / 0}\ndepth: 2 * z\n",
      { "3:8 'y' is 'x / 0', which is not a number: division by zero" } },
    { CHAIN "vars: {y: x + 1, x: null}\ndepth: y\n", { "3:8 'x' has no value; give one with --set vars.x=..." } },
    { CHAIN "vars: {gain: 2}\ndepth: gian\n",
      { "3:8 'gian' is neither a number nor a variable that is a number; did you mean 'gain'?" } },
    { CHAIN "vars: {d: 2}\ndepth: ${d}\n", { "3:8 '${' is for text" } },
    { "vars: {out: }\nstages: [{use: src}, {use: both, s: '${out}'}, {use: sink}]\n",
      { "2:38 'out' has no value; give one with --set vars.out=..." } },
    /* buffers */
    { CHAIN "buffers: [src]\n", { "2:10 'buffers' must be a map" } },
    { CHAIN "buffers: {src: f32}\n", { "2:16 buffer 'src' must be a map" } },
    { CHAIN "buffers: {a b: {}}\n", { "2:11 'a b' is not a valid name for a buffer" } },
    { CHAIN "buffers: {src: {dtpye: f32}}\n", { "2:17 a buffer has no key 'dtpye'; did you mean 'dtype'?" } },
    { CHAIN "buffers: {src: {dtype: float}}\n", { "2:24 'dtype' must be a type: u8 i8" } },
    { CHAIN "buffers: {src: {shape: []}}\n", { "2:24 a shape has 1 to 8 axes, not 0" } },
    { CHAIN "buffers: {src: {shape: [1,1,1,1,1,1,1,1,1]}}\n", { "2:24 a shape has 1 to 8 axes, not 9" } },
    { CHAIN "buffers:\n  src:\n    shape: (3, 4)\n", { "4:14 expected ')', not ','; a list is written [1, 2]" } },
    { CHAIN "buffers: {src: {shape: [3, 0]}}\n", { "2:28 'shape' must be 1 to 1099511627776" } },
    { CHAIN "buffers: {src: {shape: [1000000, 1000000, 2]}}\n", { "2:24 a frame of this shape is larger than 1 TiB" } },
    { CHAIN "buffers: {src: {depth: 0}}\n", { "2:24 'depth' must be 1 to 65536, not 0" } },
    { CHAIN "buffers: {src: {like: hots}}\n", { "2:23 no buffer 'hots'; did you mean 'host'?" } },
    { CHAIN "buffers: {src: {like: src}}\n", { "2:23 buffer 'src' is like itself" } },
    { CHAIN "buffers: {src: {like: host}, host: {like: src}}\n",
      { "2:23 buffer 'src' is like itself, by way of others" } },
    { CHAIN "buffers: {src: {like: host}}\n",
      { "1:16 the type of what stage 'src' makes depends on itself, by way of 'like'" } },
    { CHAIN "buffers: {src: {like: host, dtype: u8, shape: 3}}\n", { "2:23 'like' has no effect" } },
    { CHAIN "buffers: {hots: {depth: 2}}\n",
      { "2:11 buffer 'hots' is declared, but no stage makes or reads it; did you mean 'host'?" } },
    { CHAIN "buffers: {host: {dtype: f32}}\n",
      { "2:25 buffer 'host' is declared as f32, but stage 'host' makes u8 [4, 6]" } },
    { CHAIN "buffers: {host: {shape: [4, 7]}}\n",
      { "2:25 buffer 'host' is declared as u8 [4, 7], but stage 'host' makes u8 [4, 6]" } },
    { CHAIN "buffers: {k: {const: none.npy}}\n",
      { "2:11 no stage reads the constant 'k'",
        "2:22 constant 'k': 'none.npy' cannot be read: No such file" } },
    { "buffers: {k: {const: none.npy, depth: 8}}\n"
      "stages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': 'none.npy' cannot be read: No such file or directory",
        "1:32 'depth' has no effect: buffer 'k' is constant" } },
    { "buffers: {k: {const: .}}\nstages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': '.' is not a regular file" } },
    { "buffers: {k: {const: Makefile}}\nstages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': 'Makefile' " } },
    /* stages */
    { "stages: [src]\n", { "1:10 a stage must be a map; write {use: src}" } },
    { "stages: [{name: a}]\n", { "1:17 stage 'a' does not say its kind" } },
    { "stages: [{us: gray, sigma: 1}]\n", { "1:11 a stage has no key 'us'; did you mean 'use'?" } },
    { "stages: [{use: srcc}, {use: host}, {use: sink}]\n", { "1:16 no stage kind 'srcc'; did you mean 'src'?" } },
    { "stages: [{use: src}, {use: xxxxxxxx}]\n", { "1:28 no stage kind 'xxxxxxxx'; 'gpipe stages' lists them" } },
    { "stages: [{use: src, name: a b}, {use: sink}]\n",
      { "1:27 'a b' is not a valid name for a stage",
        "1:27 'a b' is not a valid name for a buffer" } },
    { "stages: [{use: src, name: a},\n{use: host, name: a, out: b}, {use: sink}]\n",
      { "2:19 two stages are named 'a'; the first is in line 1" } },
    { "stages: [{use: src}, {use: both, gian: 2}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'gian'; 'gpipe stages both' lists them" } },
    { "stages: [{use: src}, {use: host, input: src, outputs: x}, {use: sink}]\n",
      { "1:34 stage 'host' has no option 'input'; did you mean 'in'?",
        "1:46 stage 'host' has no option 'outputs'; did you mean 'out'?" } },
    { "stages: [{use: src}, {use: both, n 3}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'n 3'; write 'n: 3'" } },
    { "stages: [{use: src}, {use: both, workers=3}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'workers=3'; write 'workers: 3'" } },
    { "stages: [{use: src}, {use: both, n: 3.txt}, {use: sink}]\n", { "1:39 no unit 'txt'" } },
    { "stages: [{use: src}, {use: both, n: /x/n.txt}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' takes a number, not a file like '/x/n.txt'" } },
    { "stages: [{use: src}, {use: both, ints: n.txt}, {use: sink}]\n",
      { "1:40 option 'ints' of stage 'both' takes numbers, like [1, 2], not a file like 'n.txt'" } },
    { "stages: [{use: src}, {use: both, wrod: red}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'wrod'; did you mean 'word'?" } },
    { "stages: [{use: src}, {use: host, worker: 2}, {use: sink}]\n",
      { "1:34 stage 'host' has no option 'worker'; did you mean 'workers'?" } },
    { "stages: [{use: open}, {use: sink}]\n", { "1:16 stage 'open' needs the option 'file': a value" } },
    { "stages: [{use: open, file: ''}, {use: sink}]\n", { "1:28 option 'file' of stage 'open' is empty" } },
    { "stages: [{use: open, file: none}, {use: sink}]\n", { "1:28 stage 'open': cannot read 'none'" } },
    { "stages: [{use: src}, {use: both, n:\xc2\xa0" "5}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'n:\xc2\xa0" "5'; write 'n: 5' (U+00A0: no-break space)" } },
    { "stages: [{use: src}, {use: both, n: x}, {use: sink}]\n", { "1:37 'x' is neither a number" } },
    { "stages: [{use: src}, {use: both, n: 65}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' must be 0 to 64 px, not 65" } },
    { "stages: [{use: src}, {use: both, n: 1.1}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' must be a whole number, not '1.1'" } },
    { "stages: [{use: src}, {use: both, n: {}}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' must be a number, not a map" } },
    { "stages: [{use: src}, {use: both, b: yes}, {use: sink}]\n",
      { "1:37 option 'b' of stage 'both' must be true or false, not 'yes'" } },
    { "vars: {v: true}\nstages: [{use: src}, {use: both, b: v}, {use: sink}]\n",
      { "2:37 option 'b' of stage 'both' must be true or false, not 'v'; the variable is written ${v}" } },
    { "vars: {v: red}\nstages: [{use: src}, {use: both, word: v}, {use: sink}]\n",
      { "2:40 option 'word' of stage 'both' must be one of red, green, blue, not 'v'; the variable is written ${v}" } },
    { "vars: {v: f32}\nstages: [{use: src}, {use: both, dtype: v}, {use: sink}]\n",
      { "2:41 option 'dtype' of stage 'both' must be a type: u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 c64, not 'v'; the "
        "variable is written ${v}" } },
    { "vars: {gren: 3}\nstages: [{use: src}, {use: both, word: gren}, {use: sink}]\n",
      { "2:40 option 'word' of stage 'both' must be one of red, green, blue, not 'gren'; did you mean 'green'?" } },
    { "vars: {v: \"${w}\", w: false}\nstages: [{use: src}, {use: both, b: v}, {use: sink}]\n",
      { "2:37 option 'b' of stage 'both' must be true or false, not 'v'; the variable is written ${v}" } },
    { "stages: [{use: src}, {use: both, word: bleu}, {use: sink}]\n",
      { "1:40 option 'word' of stage 'both' must be one of red, green, blue, not 'bleu'; did you mean 'blue'?" } },
    { "stages: [{use: src}, {use: both, s: [1]}, {use: sink}]\n",
      { "1:37 option 's' of stage 'both' must be text, not a list" } },
    { "stages: [{use: src}, {use: both, wait: 5}, {use: sink}]\n", { "1:40 '5' has no unit" } },
    { "stages: [{use: src}, {use: both, wait: 5s}, {use: sink}]\n",
      { "1:40 option 'wait' of stage 'both' must be 0 to 1 s, not 5 s" } },
    { "stages: [{use: src}, {use: both, ints: [1, 99]}, {use: sink}]\n", { NULL } },
    { "stages: [{use: src}, {use: both, ints: [1, x]}, {use: sink}]\n",
      { "1:44 'x' is neither a number nor a variable that is a number" } },
    { "stages: [{use: src}, {use: both, dtype: f23}, {use: sink}]\n",
      { "1:41 option 'dtype' of stage 'both' must be a type: " } },
    { "stages: [{use: src}, {use: both, n: 13}, {use: sink}]\n", { "1:37 stage 'both': 13 brings bad luck" } },
    { "stages: [{use: src}, {use: both, node: 'in.shape[2]'}, {use: sink}]\n", { "1:41 'in' has no axis 2" } },
    { "stages: [{use: src}, {use: both, node: 'im.size'}, {use: sink}]\n", { "1:41 no port 'im'" } },
    { "stages: [{use: src}, {use: both, n: 65, f: x, b: 1}, {use: host}, {use: sink}]\n",
      { "1:37 option 'n'", "1:44 'x' is neither a number", "1:50 option 'b'" } },
    { "stages: [{use: src}, {use: both, on: gpu}, {use: sink}]\n",
      { "1:38 option 'on' of stage 'both' must be one of host, device, not 'gpu'" } },
    { "stages: [{use: src}, {use: host, on: host}, {use: sink}]\n",
      { "1:38 'on' has no effect: stage 'host' runs on the host only" } },
    { "stages: [{use: src}, {use: dev, on: device}, {use: sink}]\n",
      { "1:37 'on' has no effect: stage 'dev' runs on the device only" } },
    { "stages: [{use: src}, {use: both, workers: 2}, {use: sink}]\n",
      { "1:43 'workers' has no effect: stage 'both' runs on the device; write on: host" } },
    { "stages: [{use: src}, {use: host, workers: 0}, {use: sink}]\n",
      { "1:43 option 'workers' of stage 'host' must be 1 to 1024, not 0" } },
    { "stages: [{use: src, workers: 2}, {use: sink}]\n", { "1:30 stage 'src' cannot have 2 workers: it is a source" } },
    { "stages: [{use: src}, {use: every, workers: 2}, {use: sink}]\n",
      { "1:44 stage 'every' cannot have 2 workers: it takes frames in order" } },
    { "stages: [{use: src}, {use: host, on_hole: reset}, {use: sink}]\n",
      { "1:43 'on_hole' has no effect: stage 'host' carries nothing" } },
    { "stages: [{use: src}, {use: sink, zero: true}]\n", { "1:40 'zero' has no effect" } },
    { "stages: [{use: src}, {use: host, zero: 1}, {use: sink}]\n",
      { "1:40 option 'zero' of stage 'host' must be true or false, not '1'" } },
    { "stages: [{use: src}, {use: mute}, {use: sink}]\n",
      { "1:28 shape() of kind 'mute' failed and does not say why" } },
    { "stages: [{use: src}, {use: empty}, {use: sink}]\n",
      { "1:28 stage 'empty' makes empty frames: 'empty' is u8 [0]" } },
    /* wiring */
    { "stages: [{use: host}, {use: sink}]\n",
      { "1:16 stage 'host' needs an input, and no stage is before it; write in: BUFFER" } },
    { "stages: [{use: src}, {use: sink}, {use: sink}]\n",
      { "1:41 stage 'sink2' has no input: 'sink' before it has no output; write in: BUFFER" } },
    { "stages: [{use: src}, {use: sink}, {use: free}, {use: sink}]\n",
      { "1:41 stage 'free' has no input: 'sink' before it has no output; write in: BUFFER, or in: [] for a source" } },
    { "stages: [{use: src}, {use: split}, {use: sink}]\n",
      { "1:42 which of the 2 outputs of 'split' does stage 'sink' read?" } },
    { "stages: [{use: src}, {use: host, in: scr}, {use: sink}]\n",
      { "1:38 no stage makes a buffer 'scr'; did you mean 'src'?" } },
    { "buffers: {x: {dtype: u8}}\nstages: [{use: src}, {use: add, in: [src, x]}, {use: sink}]\n",
      { "2:43 buffer 'x' is declared, but no stage makes it" } },
    { "stages: [{use: src, in: x}, {use: sink}]\n", { "1:25 stage 'src' has no input: 'src' is a source" } },
    { "stages: [{use: src}, {use: sink, out: x}]\n", { "1:39 stage 'sink' has no output" } },
    { "stages: [{use: src}, {use: host, in: [src, src]}, {use: sink}]\n",
      { "1:44 stage 'host' has 1 input, and 2 are given" } },
    { "stages: [{use: src}, {use: host, in: [[src]]}, {use: sink}]\n",
      { "1:39 the name of a buffer is expected here" } },
    { "stages: [{use: src}, {use: masked, in: {imgae: src}}, {use: sink}]\n",
      { "1:48 stage 'masked' has no input 'imgae'; did you mean 'image'?" } },
    { "stages: [{use: src}, {use: add}, {use: sink}]\n",
      { "1:28 input 'b' of stage 'add' is not connected; write in: {b: BUFFER}" } },
    { "stages: [{use: src}, {use: free, in: [src, src]}, {use: sink}]\n",
      { "1:44 stage 'free' has two inputs named 'src'" } },
    { "stages: [{use: src}, {use: split, out: [a]}, {use: sink, in: a}]\n",
      { "1:40 output 'high' of stage 'split' needs a buffer" } },
    { "stages: [{use: src}, {use: host, out: a}, {use: host, out: a}, {use: sink}]\n",
      { "1:60 buffer 'a' has two producers: stages 'host' and 'host2'" } },
    { "stages: [{use: src}, {use: host}]\n",
      { "1:28 no stage reads 'host', which stage 'host' makes; read it with in: host, or add" } },
    { "stages: [{use: src}, {use: free}]\n",
      { "1:28 no stage reads 'free', which stage 'free' makes; write out: [] if it is a sink" } },
    { "stages: [{use: src}, {use: free, out: [a, b]}, {use: sink, in: a}]\n",
      { "1:28 no stage reads 'b', which stage 'free' makes; read it with in: b, or add" } },
    { "stages: [{use: src}, {use: src}, {use: sink}]\n",
      { "1:16 no stage reads 'src', which stage 'src' makes, and 'src2' after it is a source" } },
    { "buffers: {k: {const: x}}\nstages: [{use: src}, {use: host, out: k}, {use: sink}]\n",
      { "1:22 constant 'k'", "2:39 buffer 'k' is constant; stage 'host' cannot write it" } },
    { "stages: [{use: host, in: c, out: b}, {use: host, in: b, out: c}, {use: sink}]\n",
      { "1:16 a cycle: host2 -> host -> host2" } },
    { "stages: [{use: src}, {use: add, in: [src, add], out: add}, {use: sink}]\n", { "1:28 a cycle: add -> add" } },
    /* types */
    { "buffers: {src: {dtype: i16}}\nstages: [{use: src}, {use: both}, {use: host}, {use: sink}]\n",
      { "2:28 stage 'both' takes u8 or f32 at 'in', but 'src' is i16; put {use: cast, dtype: f32} before it" } },
    { "stages: [{use: src}, {use: float, in: src}, {use: sink}]\n",
      { "1:39 stage 'float' takes f32 at 'in', but 'src' is u8; put {use: cast, dtype: f32}" } },
    { "buffers: {src: {dtype: c64}}\nstages: [{use: src}, {use: float}, {use: sink}]\n",
      { "2:28 stage 'float' takes f32 at 'in', but 'src' is c64" } },
    { "stages: [{use: free}, {use: sink}]\n",
      { "1:16 the dtype of buffer 'free' cannot be inferred; declare it under 'buffers'" } },
    { "buffers: {free: {dtype: u8}}\nstages: [{use: free}, {use: sink}]\n",
      { "1:11 the shape of buffer 'free' cannot be inferred" } },
    /* one error has no others in its wake */
    { "stages: [{use: src}, {use: both, n: 99}, {use: float}, {use: every}, {use: add, in: [src, "
      "every]}, {use: sink}]\n", { "1:37 option 'n'" } },
    { "stages: [{use: scr}, {use: both}, {use: add, in: [both, scr]}]\n",
      { "1:16 no stage kind 'scr'; did you mean 'src'?" } },
    { "stages: [{use: src}, {use: both, in: nix}, {use: host}, {use: free}]\n",
      { "1:38 no stage makes a buffer 'nix'" } },
    { "buffers: {both: {dtype: u8, shape: [4, 6]}}\n"
      "stages: [{use: src}, {use: both, n: 99}, {use: float}, {use: sink}]\n",
      { "2:37 option 'n'", "2:48 stage 'float' takes f32 at 'in', but 'both' is u8" } },
};

TEST_EACH(refuses, bad)
{
    const gp_graph *g = world_resolve(bad[_i].yaml);
    char got[4000] = "";
    int n = 0;
    for (int i = 0; i < world.errs.n; i++)
        n += snprintf(got + n, sizeof got - (size_t)n, "%d:%d %s\n", world.errs.e[i].at.line,
                      world.errs.e[i].at.col, world.errs.e[i].msg);
    const char *s = got;
    bool same = true;
    for (int i = 0; same && i < 4 && bad[_i].err[i]; i++) {
        same = !strncmp(s, bad[_i].err[i], strlen(bad[_i].err[i]));
        s = strchr(s, '\n') ? strchr(s, '\n') + 1 : s;
    }
    ck_assert_msg(same && !*s, "%sgave\n%snot %s ...", bad[_i].yaml, got, bad[_i].err[0]);
    ck_assert((g == NULL) == (bad[_i].err[0] != NULL));
}

/* ---- long names, long chains ----------------------------------------- */

static char made[10000];

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
    va_list ap;
    size_t n = strlen(made);
    va_start(ap, fmt);
    vsnprintf(made + n, sizeof made - n, fmt, ap);
    va_end(ap);
}

static const char *only_error(void)
{
    ck_assert_ptr_null(world_resolve(made));
    ck_assert_int_eq(world.errs.n, 1);
    return world.errs.e[0].msg;
}

TEST(chains_of_vars)
{
    for (int n = 60; n <= 70; n++) {
        strcpy(made, "stages: [{use: src}, {use: host}, {use: sink}]\ndepth: v0\nvars:\n");
        for (int i = 0; i < n; i++)
            put("  v%d: v%d + 1\n", i, i + 1);
        put("  v%d: 1\n", n);
        if (n < GP_VARS_DEEPEST)
            ck_assert_int_eq(world_must(made)->depth, n + 1);
        else
            ck_assert_str_eq(only_error(), "'v0' depends on a chain of more than 64 variables; put "
                             "some of them into one expression");
    }
}

TEST(long_names)
{
    for (int n = 60; n <= 66; n++) {
        strcpy(made, "stages: [{use: src}, {use: host}, {use: sink}]\n");
        put("vars: {%0*d: 5}\ndepth: %0*d\n", n, 0, n, 0);
        for (char *zero = made; (zero = strstr(zero, "00")); zero += n)
            memset(zero, 'v', (size_t)n);
        if (n < 64)
            ck_assert_int_eq(world_must(made)->depth, 5);
        else
            ck_assert_str_eq(only_error(), "a name in an expression has at most 63 letters");
    }
}

/* All of a cycle is told, however long its names are. */
TEST(long_cycle)
{
    enum { N = 7 };
    char want[1000] = "a cycle: ";
    strcpy(made, "stages:\n");
    for (int i = 0; i < N; i++)
        put("  - {use: host, name: s%039d, in: s%039d}\n", i, (i + 1) % N);
    put("  - {use: sink, in: s%039d}\n", 0);
    for (int i = N; i >= 0; i--)
        snprintf(want + strlen(want), 60, "s%039d%s", (i + N - 1) % N, i ? " -> " : "; a stage");
    ck_assert_msg(!strncmp(only_error(), want, strlen(want)), "%s\nnot\n%s", world.errs.e[0].msg, want);
}

/* ---- files ----------------------------------------------------------- */

/* The first lines of a file of tests/bad are "# error: FILE:LINE:COL: error: MSG", all the errors it has. */
static void check_bad_file(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    ck_assert_ptr_null(world_resolve_file(text, strrchr(path, '/') + 1));
    const char *line = text;
    int n = 0;
    for (; !strncmp(line, "# error: ", 9); line = strchr(line, '\n') + 1, n++) {
        char got[1000] = "none";
        size_t len = strcspn(line, "\n") - 9;
        if (n < world.errs.n)
            snprintf(got, sizeof got, "%s:%d:%d: error: %s", world.errs.e[n].at.file,
                     world.errs.e[n].at.line, world.errs.e[n].at.col, world.errs.e[n].msg);
        ck_assert_msg(!strncmp(got, line + 9, len), "%s: got\n%s\nnot\n%.*s", path, got, (int)len, line + 9);
    }
    ck_assert_int_gt(n, 0);
    ck_assert_msg(world.errs.n == n, "%s: %d errors more: %s", path, world.errs.n - n, world.errs.e[n].msg);
}

TEST(bad_files)
{
    gp_registry *mine = world.registry;
    glob_t g;
    world.registry = (gp_registry *)pipe_registry();
    ck_assert_int_eq(glob("tests/bad/resolve_*.yaml", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        check_bad_file(g.gl_pathv[i]);
    globfree(&g);
    world.registry = mine;
}

TEST_SUITE(resolve_errors, world_up, world_down, 0)
