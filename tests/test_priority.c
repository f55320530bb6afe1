/* test_priority.c - the key `priority`: which segments and streams it comes to, and what nice values threads have. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "idle.h"
#include "pipe.h"
#include "planned.h"

/* ---- plans ----------------------------------------------------------- */

#define SRC(name) "  - {use: src, name: " name "}\n"
#define DEV(name, in, more) "  - {use: dev, name: " name ", in: " in more "}\n"
#define SINK(in) "  - {use: sink, in: " in "}\n"

/* `segments`: of each its priority, and whether its stages have several. */
static const struct { const char *what, *yaml, *segments; } plans[] = {
    { "none is said", "stages:\n" SRC("s") DEV("a", "s", "") SINK("a"), "0" },
    { "for all", "priority: low\nstages:\n" SRC("s") DEV("a", "s", "") DEV("b", "a", "") SINK("b"), "-1" },
    { "for all but one", "priority: low\nstages:\n" SRC("s") DEV("a", "s", "") DEV("b", "a", ", priority: normal")
      SINK("b"), "0*" },
    { "for all alike", "priority: low\nstages:\n" SRC("s") DEV("a", "s", ", priority: high")
      DEV("b", "a", ", priority: high") SINK("b"), "1" },
    { "two chains", "stages:\n" SRC("s") DEV("a", "s", ", priority: high") SINK("a") SRC("t")
      DEV("b", "t", ", priority: low") SINK("b"), "1 -1" },
    { "stages that say none are normal", "stages:\n" SRC("s") DEV("a", "s", ", priority: low") DEV("b", "a", "")
      DEV("c", "b", ", priority: high") SINK("c"), "1*" },
    { "what is put together has that of its maker", "stages:\n" SRC("s") DEV("a", "s", ", priority: low")
      "  - {use: group, frames: 2}\n" SINK("group"), "-1 -1" },
    { "unless it says one", "stages:\n" SRC("s") DEV("a", "s", ", priority: low")
      "  - {use: group, frames: 2, priority: high}\n" SINK("group"), "-1 1" },
    { "on a cycle", "buffers: {a: {dtype: u8, shape: [1000]}, u: {carry: a}}\nstages:\n" SRC("s")
      DEV("a", "[s, u]", ", priority: low") SINK("a"), "-1" },
};

TEST_EACH(segments_have_it, plans)
{
    char text[200] = "";
    planned p = plan_ok(plans[_i].yaml, true);
    for (int k = 0; k < p.plan->nsegments; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d%s", k ? " " : "", p.plan->segment[k].priority,
                 p.plan->segment[k].priorities ? "*" : "");
    ck_assert_msg(!strcmp(text, plans[_i].segments), "%s: %s, not %s", plans[_i].what, text, plans[_i].segments);
}

/* ---- threads --------------------------------------------------------- */

enum { FRAMES = 3000, STAGES = 4 };

static struct { atomic_int frames, nice, least, most; } seen[STAGES];     /* by the option `id` */
static atomic_int streams, stream_nice;

struct opts { int64_t id; };

static int nice_of(id_t thread)
{
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, thread);
    ck_assert_int_eq(errno, 0);
    return nice;
}

static void note(const gp_call *c, int n)
{
    int id = (int)((const struct opts *)c->opts)->id, nice = nice_of(0);
    bool first = !atomic_fetch_add(&seen[id].frames, n);
    if (first || nice < seen[id].least)
        seen[id].least = nice;
    if (first || nice > seen[id].most)
        seen[id].most = nice;
}

/* The threads that stand for streams on the CPU back end. */
static void note_streams(void)
{
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && !strcmp(name, "stream\n"))
            atomic_fetch_add(&streams, 1), atomic_store(&stream_nice, nice_of((id_t)atoi(e->d_name)));
        if (f)
            fclose(f);
    }
    closedir(dir);
}

static bool make_shape(gp_shape *s)
{
    s->out[0] = (gp_type){ GP_F32, 1, { 4 } };
    return true;
}

static bool make(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++) {
        if (f[i].index >= FRAMES) {
            f[i].status = GP_END;
            return true;
        }
        memset(f[i].out[0].data, 0, 16);
        note(c, 1);
    }
    return true;
}

static bool step(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(f[i].out[0].data, f[i].in[0].data, 16);
    note(c, n);
    return true;
}

static bool take(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++)
        if (f[i].index == FRAMES / 2)
            note_streams();
    note(c, n);
    return true;
}

static const gp_port in_port[] = { { "in", GP_ACCEPT(GP_F32), .help = "frames" }, { 0 } };
static const gp_port out_port[] = { { "out", .help = "frames" }, { 0 } };
static const gp_opt options[] = { { GP_INT(struct opts, id), .min = 0, .max = STAGES - 1, .help = "" }, { 0 } };
#define OPTIONS .help = "", .opts = options, .opts_size = sizeof(struct opts)

static const gp_kind kinds[] = {
    { GP_KIND("make"), OPTIONS, .out = out_port, .max_run = 8, .shape = make_shape, .run = make },
    { GP_KIND("step"), OPTIONS, .in = in_port, .out = out_port, .max_run = 8, .shape = like_first, .run = step },
    { GP_KIND("take"), OPTIONS, .in = in_port, .max_run = 8, .shape = like_first, .run = take },
};

static void *may_be_high(void *may)
{
    int now = nice_of(0);
    *(bool *)may = !setpriority(PRIO_PROCESS, (id_t)gettid(), now - 10 < -20 ? -20 : now - 10);
    return NULL;
}

/* What a thread of that priority has, where the process has `base`. */
static int expected(int base, int priority, bool may)
{
    int nice = priority > 0 && !may ? base : base - 10 * priority;
    return nice > 19 ? 19 : nice < -20 ? -20 : nice;
}

static gp_errs run(const char *yaml)
{
    gp_errs errs = { 0 };
    pipe_kinds(kinds, sizeof kinds / sizeof *kinds);
    gp_pipeline *p = pipe_compile(".", yaml, (gp_config){ .set = NULL }, &errs);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    memset(seen, 0, sizeof seen);
    atomic_store(&streams, 0);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    gp_pipeline_destroy(p);
    return errs;
}

/* Every turn of a stage is done by a thread of its priority, though neighbors as cheap as these lend each other
 * theirs. */
TEST(threads_have_it)
{
    static const int priority[STAGES] = { 0, -1, 1, -1 };
    int base = nice_of(0);
    bool may;
    pthread_t t;
    ck_assert(!pthread_create(&t, NULL, may_be_high, &may) && !pthread_join(t, NULL));
    gp_errs errs = run("device: cpu\nstages:\n  - {use: make, id: 0}\n  - {use: step, id: 1, priority: low}\n"
                       "  - {use: step, id: 2, priority: high}\n  - {use: scale, priority: low}\n"
                       "  - {use: take, id: 3, priority: low}\n");
    for (int i = 0; i < STAGES; i++) {
        ck_assert_int_eq(seen[i].frames, FRAMES);
        ck_assert_int_eq(seen[i].least, expected(base, priority[i], may));
        ck_assert_int_eq(seen[i].most, expected(base, priority[i], may));
    }
    ck_assert_int_ge(streams, 1);
    ck_assert_int_eq(stream_nice, expected(base, -1, may));
    ck_assert_int_eq(nice_of(0), base);
    ck_assert_int_eq(errs.n, !may);
    if (!may)
        ck_assert_msg(errs.e[0].code == GP_E_WARN && errs.e[0].at.line == 5
                      && strstr(errs.e[0].msg, "have a high priority, as those of 'step2', have a normal one"),
                      "%s", errs.e[0].msg);
}

/* Several stages of high priority in a process that may not have it: one warning. */
TEST(said_once)
{
    struct rlimit none = { 0, 0 };
    const char *fork = getenv("CK_FORK");
    if (fork && !strcmp(fork, "no"))
        return;
    ck_assert(!setrlimit(RLIMIT_NICE, &none));
    if (!geteuid())                    /* in a process of its own, by libcheck */
        ck_assert(!setuid(65534));
    gp_errs errs = run("device: cpu\npriority: high\nstages:\n  - {use: make, id: 0}\n  - {use: step, id: 1}\n"
                       "  - {use: scale}\n  - {use: take, id: 3}\n");
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq(errs.failed, 0);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "RLIMIT_NICE"));
    ck_assert_int_eq(seen[3].frames, FRAMES);
}

TEST_SUITE(priority, NULL, NULL, 0)
