/* test_lua_workers.c - the Lua stage from frame to frame: runs of frames, sources and their ends,
 * finish(), several workers, random numbers. */
#include <pthread.h>
#include "luarig.h"
#include "pipe.h"

/* ---- runs of frames -------------------------------------------------- */

/* A frame that failed leaves the stage able to go on. */
TEST(after_failure)
{
    rig *r = rig_opened(X16, "", "", P("if f.index == 1 then y() end y:copy(x)"));
    for (uint64_t i = 0; i < 3; i++) {
        frame *f = rig_frame(r, i, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), i == 1 ? GP_FAILED : GP_OK);
        ck_assert_int_eq(((unsigned char *)f->out[0].data)[15], i == 1 ? 0xa5 : 16);
        rig_frame_free(f);
    }
    rig_free(r);
}

/* ---- sources, finish, several workers --------------------------------- */

TEST(source_ends)
{
    rig *r = rig_opened(NULL, X16, "", "local n = 0\nfunction produce(f, y)\n  if n == 3 then return false end\n"
                        "  n = n + 1\n  f.time = 100 + n\n  y:fill(n)\nend");
    for (uint64_t i = 0; i < 4; i++) {
        frame *f = rig_frame(r, i, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), i == 3 ? GP_END : GP_OK);
        if (i < 3) {
            ck_assert_int_eq(f->f.time_ns, (101 + (int64_t)i) * 1000000000);
            ck_assert_int_eq(*(unsigned char *)f->out[0].data, (int)i + 1);
        }
        rig_frame_free(f);
    }
    rig_free(r);
}

static bool call_finish(rig *r)
{
    gp_call c = { .opts = r->stage->opts, .state = r->state, .name = r->stage->name,
                  .at = r->stage->at, .errs = &r->errs, .ctx = &r->thread };
    return r->stage->kind->finish(&c);
}

/* finish() is called in every worker's state, and may fail. */
TEST(finish)
{
    rig *r = rig_opened(X16, "", "workers: 3, params: {dir: '${env:LUA_TEST}'}",
                        "stateless = true\nlocal seen = 0\nfunction process(f, x, y) seen = seen + 1 kept = x end\n"
                        "function finish(stage)\n  if stage.worker == 3 then error(stage.params.dir .. seen) end\n"
                        "  assert(seen == stage.worker - 1 and not pcall(function() return kept[1] end))\nend");
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < w; i++) {
            frame *f = rig_frame(r, (uint64_t)i, -1);
            ck_assert_int_eq(rig_run(r, w, f, &r->errs), GP_OK);
            rig_frame_free(f);
        }
    ck_assert(!call_finish(r));
    ck_assert_msg(strstr(rig_error(&r->errs), "stage 'it', finish: a word2") != NULL, "%s", rig_error(&r->errs));
    ck_assert_int_eq(r->errs.e[0].at.line, 5);
    rig_free(r);
    r = rig_opened(X16, "", "", "function process(f, x, y) end");
    ck_assert(call_finish(r));
    rig_free(r);
}

static void stop_once_begun(gp_pipeline *p, void *dir)
{
    char *begun;
    size_t len;
    while (!(begun = pipe_read(dir, "begun", &len)))
        nap();
    free(begun);
    gp_cancel(p, 2);
}

#define ALL(why) "1 " why "\n2 " why "\n3 " why "\n"

static const struct { const char *script, *last, *ends; gp_outcome outcome; } run_ends[] = {
    { "", "", ALL("nil"), GP_DONE },
    { "function body(f) if f.index == 5 then error('boom') end end", "", ALL("stage 'it', frame 5: boom"), GP_ERROR },
    { "function init() error('no luck') end", "", "1 stage 'it': no luck\n", GP_ERROR },
    { "function init(s) if s.worker == 2 then error('no luck') end end", "",
      "1 stage 'it': no luck\n2 stage 'it': no luck\n", GP_ERROR },
    { "fail = 1", "", "1 nil\n2 stage 'it', finish: a bad end\n3 stage 'it', finish: a bad end\n", GP_ERROR },
    { "", "function init() error('not open') end", ALL("stage 'last': not open"), GP_ERROR },
    { "fail = 3", "function init() error('not open') end", ALL("stage 'last': not open"), GP_ERROR },
    { "", "function process(f) error('no room') end", ALL("stage 'last', frame 0: no room"), GP_ERROR },
    { "function body(f, x) local b = io.open(dir .. '/begun', 'w') b:write('1') b:close() "
      "while true do x:sum() end end", "",
      ALL("the run was stopped"), GP_NOT_DRAINED },
};

/* Whatever becomes of a run: each state that was begun comes to finish() once, and is told what happened. */
TEST_EACH(finish_always, run_ends)
{
    const char *dir = pipe_dir();
    size_t len;
    char *text = format("stateless = true\ndir = '%s'\nbody = function() end\n%s\n"
                        "function process(f, x, y) y:copy(x) body(f, x) end\nfunction finish(stage, why)\n"
                        "  local f = io.open(dir .. '/ends', 'a')\n"
                        "  f:write(stage.worker, ' ', tostring(why):match('[^\\n]*'), '\\n')\n  f:close()\n"
                        "  if fail == stage.worker then error('a bad end') end\nend", dir, run_ends[_i].script);
    pipe_text(dir, "it.lua", text);
    text = format("function process() end %s", run_ends[_i].last);
    pipe_text(dir, "last.lua", text);
    pipe_result r = pipe_run_with(dir, "buffers: {a: {dtype: u8, shape: [8]}}\nstages:\n"
        "  - {use: generate, frames: 1000, out: a}\n  - {name: it, use: lua, script: it.lua, workers: 3}\n"
        "  - {name: last, use: lua, script: last.lua, out: []}\n", "cpu", NULL, (gp_run_options){ 0 },
        run_ends[_i].outcome == GP_NOT_DRAINED ? stop_once_begun : NULL, (void *)(uintptr_t)dir);
    ck_assert_msg(r.outcome == run_ends[_i].outcome, "%s", rig_error(&r.errs));
    OWNED char *ends = pipe_read(dir, "ends", &len);
    ck_assert_msg(ends && !strcmp(ends, run_ends[_i].ends), "not:\n%sbut:\n%s", run_ends[_i].ends, ends ? ends : "nothing");
    bool warns = strstr(run_ends[_i].script, "fail = 3");
    ck_assert_int_eq(r.errs.failed, r.outcome == GP_ERROR);
    if (r.outcome != GP_NOT_DRAINED)   /* who was long at its frame is named then */
        ck_assert_int_eq(r.errs.n, (r.outcome == GP_ERROR) + warns);
    ck_assert(!warns || strstr(r.errs.e[1].msg, "finish: a bad end"));
}

enum { FRAMES = 96 };
typedef struct crew { rig *r; int worker, workers; gp_errs errs; double *out; } crew;

static void *crew_work(void *arg)
{
    crew *c = arg;
    for (int i = c->worker; i < FRAMES; i += c->workers) {
        frame *f = rig_frame(c->r, (uint64_t)i, -1);
        if (rig_run(c->r, c->worker, f, &c->errs) == GP_OK)
            memcpy(c->out + 4 * i, f->out[0].data, 4 * sizeof(double));
        rig_frame_free(f);
    }
    return NULL;
}

/* Frames of a stage without state, among so many threads. */
static void crew_run(const char *script, int workers, double *out)
{
    pthread_t id[CREW];
    crew c[CREW];
    rig *r = rig_opened("{dtype: f64, shape: [4]}", "", format("workers: %d", workers), script);
    for (int w = 0; w < workers; w++) {
        c[w] = (crew){ .r = r, .worker = w, .workers = workers, .out = out };
        pthread_create(&id[w], NULL, crew_work, &c[w]);
    }
    for (int w = 0; w < workers; w++) {
        pthread_join(id[w], NULL);
        ck_assert_msg(!c[w].errs.n, "%s", rig_error(&c[w].errs));
    }
    rig_free(r);
}

TEST(workers)
{
    static const char script[] = "stateless = true\nlocal gpipe = require 'gpipe'\n"
        "function process(f, x, y)\n  y[1] = math.random()\n  y[2] = math.random(1000)\n"
        "  y[3] = f.index + x:sum()\n  y[4] = math.random() * #gpipe.json { y[1] }\nend";
    static double one[4 * FRAMES], many[4 * FRAMES];
    crew_run(script, 1, one);
    for (int n = 2; n <= CREW; n++) {
        memset(many, 0, sizeof many);
        crew_run(script, n, many);
        ck_assert_msg(!memcmp(one, many, sizeof one), "%d workers make something else", n);
    }
    ck_assert(one[0] != one[4] && one[2] == 10 && one[6] == 11);
}

/* Random numbers are the same in each run, and differ between stages. */
TEST(seeds)
{
    double got[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        rig *r = rig_opened("{dtype: f64, shape: [2]}", "", "",
            "local a = math.random()\nfunction process(f, x, y) y:fill(a) end");
        frame *f = rig_frame(r, 0, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_OK);
        got[i] = *(double *)f->out[0].data;
        rig_frame_free(f);
        rig_free(r);
    }
    ck_assert(got[0] == got[1] && got[0] > 0 && got[0] < 1);
}

/* The same through the executor: text of a source, a filter and a writer. */
TEST(pipeline)
{
    static const char yaml[] =
        "buffers: {n: {dtype: f64, shape: [8]}, text: {dtype: u8, shape: [400]}}\nstages:\n"
        "  - {use: lua, script: source.lua, out: n}\n  - {name: it, use: lua, script: it.lua, out: text}\n"
        "  - {use: write, path: out.txt, format: raw}\n";
    char *first = NULL;
    for (int n = 1; n <= CREW; n++) {
        char set[60];
        size_t len;
        const char *dir = pipe_dir(), *sets[] = { set, NULL };
        snprintf(set, sizeof set, "stages.it.workers=%d", n);
        pipe_text(dir, "source.lua", "function produce(f, y)\n  if f.index == 50 then return false end\n"
                  "  if f.index % 7 == 3 then return 'drop' end\n  y:fill(f.index)\n"
                  "  if f.index % 7 == 4 then f.valid = 2 end\nend");
        pipe_text(dir, "it.lua", "stateless = true\nfunction process(f, x, y)\n"
                  "  if f.index % 5 > 0 then y:print(f.index, #x, x:sum(), math.random(1000)) end\nend");
        pipe_result p = pipe_run(dir, yaml, "cpu", sets, (gp_run_options){ .poison = true });
        ck_assert_msg(p.outcome == GP_DONE, "%s", rig_error(&p.errs));
        ck_assert_uint_eq(p.account[0].in, 50);
        ck_assert_uint_eq(p.account[0].dropped, 7);
        char *text = pipe_read(dir, "out.txt", &len);
        ck_assert_ptr_nonnull(text);
        ck_assert(!strncmp(text, "1\t8\t8", 5) && strstr(text, "\n4\t2\t8"));
        ck_assert_msg(!first || !strcmp(first, text), "%d workers write something else", n);
        if (first)
            free(text);
        else
            first = text;
    }
    free(first);
}

TEST_SUITE(lua_workers, NULL, NULL, 0)
