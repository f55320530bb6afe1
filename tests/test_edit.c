/* test_edit.c - what --set says, written into the text of a file: all other bytes stay. */
#include "compile/ir.h"
#include "pipe.h"

#define MADE "is of a stage or buffer that 'include' or 'repeat' makes"
#define STAGES "stages:\n  - {use: generate}\n"

static const struct { const char *what, *before, *set, *after, *error; } cases[] = {
    { "a value", "depth: 3\n" STAGES, "depth=8", "depth: 8\n" STAGES, NULL },
    { "a comment behind it", "depth:   3   # slots\n" STAGES, "depth=12", "depth:   12   # slots\n" STAGES, NULL },
    { "one in quotes", "depth: \"3\"\n" STAGES, "depth=8", "depth: 8\n" STAGES, NULL },
    { "one that needs quotes", "pipeline: a\n" STAGES, "pipeline=a: b", "pipeline: \"a: b\"\n" STAGES, NULL },
    { "a quote in it", "pipeline: a\n" STAGES, "pipeline=a \\ \"b", "pipeline: \"a \\\\ \\\"b\"\n" STAGES, NULL },
    { "no value yet", "buffers:\n" STAGES, "buffers.generate.depth=4", "buffers: {generate: {depth: 4}}\n" STAGES,
      NULL },
    { "a word", "sync: auto\n" STAGES, "sync=block", "sync: block\n" STAGES, NULL },
    { "without an end of line", "stages: [{use: generate}]\ndepth: 3", "depth=4",
      "stages: [{use: generate}]\ndepth: 4", NULL },
    { "CRLF", "depth: 3\r\nbatch: 1 # one\r\nstages: [{use: generate}]\r\n", "streams=2",
      "depth: 3\r\nbatch: 1 # one\r\nstreams: 2\r\nstages: [{use: generate}]\r\n", NULL },
    { "a byte order mark", "\xef\xbb\xbf" "depth: 3\n" STAGES, "depth=8", "\xef\xbb\xbf" "depth: 8\n" STAGES, NULL },
    { "letters of several bytes in front", "pipeline: \xc3\xa4\xe2\x82\xac  # \xc3\xb6\ndepth: 3\n" STAGES, "depth=8",
      "pipeline: \xc3\xa4\xe2\x82\xac  # \xc3\xb6\ndepth: 8\n" STAGES, NULL },

    /* keys that are not there */
    { "behind the last line", "# head\npipeline: a   # name\n\nvars: {x: 1}\n" STAGES, "depth=8",
      "# head\npipeline: a   # name\ndepth: 8\n\nvars: {x: 1}\n" STAGES, NULL },
    { "in front of all", "# head\n" STAGES, "depth=8", "# head\ndepth: 8\n" STAGES, NULL },
    { "not behind a block of text", "stages:\n  - use: kernel\n    code: |\n      x\n      y\n    args: []\n",
      "stages.kernel.workers=2",
      "stages:\n  - use: kernel\n    workers: 2\n    code: |\n      x\n      y\n    args: []\n", NULL },
    { "of a stage in a block", "stages:\n  - use: generate  # source\n    out: x\n\n  - use: discard\n",
      "stages.generate.workers=4",
      "stages:\n  - use: generate  # source\n    out: x\n    workers: 4\n\n  - use: discard\n", NULL },
    { "of a stage in braces", "stages:\n  - { use: generate, out: x }   # source\n", "stages.generate.workers=4",
      "stages:\n  - { use: generate, out: x, workers: 4 }   # source\n", NULL },
    { "of the second of two alike", "stages:\n  - {use: lua}\n  - {use: lua}\n", "stages.lua2.workers=2",
      "stages:\n  - {use: lua}\n  - {use: lua, workers: 2}\n", NULL },
    { "braces over several lines", "stages:\n  - {use: generate,\n     out: x  # name\n    }\n",
      "stages.generate.workers=4",
      "stages:\n  - {use: generate,\n     out: x, workers: 4  # name\n    }\n", NULL },
    { "a comma at the end", "stages:\n  - {use: generate, }\n", "stages.generate.workers=4",
      "stages:\n  - {use: generate, workers: 4, }\n", NULL },
    { "empty braces", "buffers: { }\n" STAGES, "buffers.generate.depth=4", "buffers: { generate: {depth: 4}}\n" STAGES,
      NULL },
    { "of a stage in a loop", "stages:\n  - use: loop\n    stages:\n      - {use: blur, sigma: 1}\n      - {use: cast}\n",
      "stages.loop.stages.blur.sigma=2",
      "stages:\n  - use: loop\n    stages:\n      - {use: blur, sigma: 2}\n      - {use: cast}\n", NULL },
    { "of a buffer", "buffers:\n  generate: {dtype: f32}\n" STAGES, "buffers.generate.depth=4",
      "buffers:\n  generate: {dtype: f32, depth: 4}\n" STAGES, NULL },
    { "a buffer more", "buffers:\n  other: {dtype: f32}\n" STAGES, "buffers.generate.depth=4",
      "buffers:\n  generate: {depth: 4}\n  other: {dtype: f32}\n" STAGES, NULL },
    { "behind a pair of escapes", "{\"vars\": {\"a\": \"\\ud83d\\ude00\"}, \"depth\": 3, \"stages\": [{\"use\": \"generate\"}]}\n",
      "depth=8", "{\"vars\": {\"a\": \"\\ud83d\\ude00\"}, \"depth\": 8, \"stages\": [{\"use\": \"generate\"}]}\n", NULL },
    { "all in braces", "{stages: [{use: generate}]}\n", "depth=4", "{stages: [{use: generate}], depth: 4}\n", NULL },

    /* anchors */
    { "an anchor that nobody uses", "depth: &d 3\n" STAGES, "depth=8", "depth: &d 8\n" STAGES, NULL },
    { "an alias is replaced", "vars: {n: &n 3}\ndepth: *n\n" STAGES, "depth=8", "vars: {n: &n 3}\ndepth: 8\n" STAGES,
      NULL },
    { "an anchor that others use", "depth: &d 3\nvars: {n: *d}\n" STAGES, "depth=8", NULL,
      "'depth=8' cannot be written into this file without a change in another place" },
    { "through an alias", "stages:\n  - &a {use: lua, name: a}\n  - *a\n", "stages.1.workers=2", NULL, "no stage '1'" },
    { "what an alias shares", "vars: {s: &s {use: generate}}\nstages:\n  - *s\n", "stages.generate.workers=2", NULL,
      "this is an alias" },
    { "a key that is merged", "vars: {s: &s {workers: 1}}\nstages:\n  - {<<: *s, use: generate}\n",
      "stages.generate.workers=2",
      "vars: {s: &s {workers: 1}}\nstages:\n  - {<<: *s, use: generate, workers: 2}\n", NULL },
    { "a list", "depth: [3]\n" STAGES, "depth=8", NULL, "cannot be set here" },
    { "a stage that is none", STAGES, "stages.x.workers=8", NULL, "no stage 'x'" },

    /* what has no line of its own */
    { "one copy", "stages:\n  - {use: lua, repeat: {over: {i: 2}}}\n", "stages.lua.0.workers=2", NULL, MADE },
    { "all copies", "stages:\n  - {use: lua, repeat: {over: {i: 2}}}\n", "stages.lua.workers=2",
      "stages:\n  - {use: lua, repeat: {over: {i: 2}}, workers: 2}\n", NULL },
    { "a stage of a file", "stages:\n  - {include: a.yaml}\n", "stages.a.lua.workers=2", NULL, MADE },
    { "a variable of a file", "stages:\n  - {include: a.yaml}\n", "stages.a.vars.gain=2",
      "stages:\n  - {include: a.yaml, vars: {gain: 2}}\n", NULL },
    { "a variable of one copy", "stages:\n  - {include: a.yaml, repeat: {over: {i: 2}}}\n", "vars.a.0.gain=2", NULL, MADE },
    { "a buffer of a file", "stages:\n  - {include: a.yaml}\n", "buffers.a.x.depth=2", NULL, MADE },
    { "a buffer beside", STAGES "  - {include: a.yaml}\n", "buffers.generate.depth=2",
      "buffers: {generate: {depth: 2}}\n" STAGES "  - {include: a.yaml}\n", NULL },
    { "a stage of a branch", "stages:\n  - {name: a, stages: [{use: lua}], repeat: {over: {i: 2}}}\n",
      "stages.a.1.lua.workers=2", NULL, MADE },
    { "... in all copies", "stages:\n  - {name: a, stages: [{use: lua}], repeat: {over: {i: 2}}}\n",
      "stages.a.stages.lua.workers=2",
      "stages:\n  - {name: a, stages: [{use: lua, workers: 2}], repeat: {over: {i: 2}}}\n", NULL },
    { "a var with a type", "vars: {n: {type: integer, default: 3}}\n" STAGES, "vars.n=4",
      "vars: {n: {type: integer, default: 4}}\n" STAGES, NULL },
};

TEST_EACH(changes_one_place, cases)
{
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    size_t n = 0;
    const char *before = cases[_i].before, *after = cases[_i].after;
    const char *is = gp_spec_edit(&a, before, strlen(before), "p.yaml", cases[_i].set, pipe_registry(), &n, &errs);
    if (after)
        ck_assert_msg(is && !strcmp(is, after) && n == strlen(after), "%s: %s\n%s", cases[_i].what, is ? is : "",
                      errs.e[0].msg);
    else
        ck_assert_msg(!is && errs.failed && strstr(errs.e[0].msg, cases[_i].error), "%s: %s\n%s", cases[_i].what,
                      errs.e[0].msg, is ? is : "");
    gp_arena_free(&a);
}

TEST_SUITE(edit, NULL, NULL, 0)
