/* test_nvtx.c - what an NVTX tool hears of a run: `nvtx_inject.so` beside this program
 * is attached to the command and writes each call down (nvtx_inject.c). */
#include "command.h"
#include "iotest.h"

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
enum { FRAMES = 40, MAX = 64 };

/* clean and mixed give each frame a range of its own; the others, runs of frames. */
static const char yaml[] =
    "batch: 1\nbuffers: {a: {dtype: f32, shape: [16]}}\nstages:\n  - {use: generate, out: a, frames: 40}\n"
    "  - {name: clean, use: lua, script: copy.lua, workers: 3}\n  - {name: twice, use: scale, a: 2}\n"
    "  - {name: cut, use: threshold, level: 1}\n  - {name: again, use: lua, script: copy.lua, workers: 2}\n"
    "  - {name: half, use: scale, a: 0.5}\n  - {name: less, use: scale, b: -1}\n  - {use: discard}\n"
    "fuse: none\n";

/* The names of ranges, the categories that they are in, how many threads have them. */
static const struct { const char *name, *category; int threads; bool each; } ranges[] = {
    { "generate", "generate", 1, false }, { "clean", "lua", 3, true },
    { "twice..cut", "segment", 1, true }, { "again", "lua", 2, true },
    { "half..less", "scale", 1, true },   { "discard", "discard", 1, false },
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static const char *const categories[] = { "generate", "lua", "scale", "threshold", "discard",
                                          "segment" };
static const char *const threads[] = {
    "generate", "clean worker 1", "clean worker 2", "clean worker 3", "twice..cut launcher",
    "twice..cut reaper", "again worker 1", "again worker 2", "half..less launcher",
    "half..less reaper", "discard",
};
enum { CATEGORIES = sizeof categories / sizeof *categories,
       THREADS = sizeof threads / sizeof *threads };

/* What was heard so far. */
static struct {
    int domains, destroyed, ranges;
    char category[MAX][40], string[MAX][40];   /* by id, "" before it is named */
    struct { long tid; int depth; char name[40]; } thread[MAX];
    int nthreads;
    int seen[RANGES][FRAMES];                  /* ranges that begin with this frame */
    long next[RANGES];                         /* the last payload, plus 1 */
    bool pushed[RANGES][MAX];                  /* by which thread */
} heard;

static int thread_of(long tid)
{
    int t = 0;
    while (t < heard.nthreads && heard.thread[t].tid != tid)
        t++;
    if (t == heard.nthreads)
        heard.thread[heard.nthreads++].tid = tid;
    ck_assert_int_lt(t, MAX);
    return t;
}

static void hear_push(long tid, unsigned category, int string, unsigned long long payload)
{
    int i = 0, t = thread_of(tid);
    ck_assert_uint_lt(category, MAX);
    ck_assert(string > 0 && string < MAX && *heard.string[string]);
    while (i < RANGES && strcmp(ranges[i].name, heard.string[string]))
        i++;
    ck_assert_msg(i < RANGES, "a range '%s'", heard.string[string]);
    ck_assert_str_eq(heard.category[category], ranges[i].category);
    ck_assert_uint_lt(payload, FRAMES + (i == 0));    /* a source asks for one more */
    if (payload < FRAMES)
        heard.seen[i][payload]++;
    if (ranges[i].threads == 1)
        ck_assert_int_ge((long)payload, heard.next[i]);
    heard.next[i] = (long)payload + 1;
    heard.pushed[i][t] = true;
    heard.ranges++;
    ck_assert_msg(++heard.thread[t].depth == 1, "ranges of one thread are nested");
    ck_assert_msg(!strncmp(heard.thread[t].name, ranges[i].name, strlen(ranges[i].name)),
                  "range '%s' on thread '%s'", ranges[i].name, heard.thread[t].name);
}

/* Names the id of `table`, once. */
static void hear_name(char table[MAX][40], unsigned id, const char *name)
{
    ck_assert_uint_gt(id, 0);
    ck_assert_uint_lt(id, MAX);
    ck_assert_msg(!*table[id], "%u has two names", id);
    ck_assert_msg(!heard.ranges, "'%s' is named after the first range", name);
    for (int i = 0; i < MAX; i++)
        ck_assert_msg(strcmp(table[i], name), "'%s' twice", name);
    snprintf(table[id], sizeof table[id], "%s", name);
}

static void hear(const char *line)
{
    long tid;
    unsigned id;
    int d, string;
    char name[40];
    unsigned long long payload;
    ck_assert_msg(!heard.destroyed, "after the end: %s", line);
    if (sscanf(line, "%*d domain %d \"%39[^\"]\"", &d, name) == 2) {
        heard.domains++;
        ck_assert_str_eq(name, "gpipe");
    } else if (sscanf(line, "%*d category 1 %u \"%39[^\"]\"", &id, name) == 2) {
        hear_name(heard.category, id, name);
    } else if (sscanf(line, "%*d string 1 %u \"%39[^\"]\"", &id, name) == 2) {
        hear_name(heard.string, id, name);
    } else if (sscanf(line, "%ld thread %u \"%39[^\"]\"", &tid, &id, name) == 3) {
        ck_assert_int_eq(tid, (long)id);
        snprintf(heard.thread[thread_of(tid)].name, sizeof name, "%s", name);
    } else if (sscanf(line, "%ld push 1 %u %d %llu", &tid, &id, &string, &payload) == 4) {
        hear_push(tid, id, string, payload);
    } else if (sscanf(line, "%ld pop %d", &tid, &d) == 2 && d == 1) {
        ck_assert_msg(--heard.thread[thread_of(tid)].depth == 0, "a pop without a push");
    } else if (sscanf(line, "%*d destroy %d", &d) == 1 && d == 1) {
        heard.destroyed++;
    } else {
        ck_abort_msg("not to be called: %s", line);
    }
}

/* How many ids have this name. */
static int count(char (*table)[40], const char *name)
{
    int n = 0;
    for (int i = 0; i < MAX; i++)
        n += !strcmp(table[i], name);
    return n;
}

/* Runs the pipeline with the library attached, or not; what it wrote down. */
static char *listen(bool attached)
{
    size_t n;
    pipe_text(io_dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(io_dir, "p.yaml", yaml);
    setenv("NVTX_LOG", io_at("log"), 1);
    if (attached)
        setenv("NVTX_INJECTION64_PATH", suite_beside("nvtx_inject.so"), 1);
    const char *args[] = { "run", "--device", "cpu", io_at("p.yaml"), NULL };
    command_result r = command_run(io_dir, args, 60, 0);
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("NVTX_LOG");
    ck_assert_msg(r.code == 0, "exit %d: %s", r.code, r.err);
    command_free(&r);
    return pipe_read(io_dir, "log", &n);
}

TEST(calls)
{
    char *log = listen(true);
    ck_assert_msg(log != NULL, "the library was not loaded");
    for (char *at = log, *line; (line = strsep(&at, "\n")) && *line;)
        hear(line);
    free(log);
    ck_assert_int_eq(heard.domains, 1);
    ck_assert_int_eq(heard.destroyed, 1);
    for (int i = 0; i < CATEGORIES; i++)
        ck_assert_msg(count(heard.category, categories[i]) == 1, "category '%s'", categories[i]);
    ck_assert_int_eq(count(heard.category, ""), MAX - CATEGORIES);
    ck_assert_int_eq(count(heard.string, ""), MAX - RANGES);
    for (int i = 0; i < RANGES; i++) {
        int by = 0;
        for (int t = 0; t < heard.nthreads; t++)
            by += heard.pushed[i][t];
        ck_assert_msg(by > 0 && by <= ranges[i].threads, "'%s' on %d threads", ranges[i].name, by);
        ck_assert_int_eq(heard.seen[i][0], 1);
        for (int f = 0; ranges[i].each && f < FRAMES; f++)
            ck_assert_msg(heard.seen[i][f] == 1, "frame %d of '%s': %d ranges", f, ranges[i].name, heard.seen[i][f]);
    }
    for (int i = 0, k; i < THREADS; i++) {
        for (k = 0; k < heard.nthreads && strcmp(heard.thread[k].name, threads[i]); k++)
            ;
        ck_assert_msg(k < heard.nthreads, "no thread '%s'", threads[i]);
    }
    for (int t = 0; t < heard.nthreads; t++)
        ck_assert_int_eq(heard.thread[t].depth, 0);
}

TEST(not_attached)
{
    ck_assert_ptr_null(listen(false));
}
#else
TEST(calls)
{
    fprintf(stderr, "SKIPPED: tests of NVTX: make found no nvtx3/nvToolsExt.h; install a CUDA toolkit\n");
}
#endif

TEST_SUITE(nvtx, io_set_up, NULL, 120)
