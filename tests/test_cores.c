/* test_cores.c - what other processes used, and what a cgroup allows: from files like those of the kernel. */
#include <sched.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "pipe.h"
#include "run/cores.h"

static const char *dir;

static void up(void)
{
    dir = pipe_dir();
}

static const char *in_dir(const char *name)
{
    static char path[2][600];
    static int turn;
    snprintf(path[turn ^= 1], sizeof path[0], "%s/%s", dir, name);
    return path[turn];
}

/* On the first core of this process only; `all` is for going back. */
static int on_one_core(cpu_set_t *all)
{
    cpu_set_t one;
    int core = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof *all, all), 0);
    while (!CPU_ISSET(core, all))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    return core;
}

/* user nice system idle iowait irq softirq steal guest guest_nice; guests are in user */
TEST(ticks_of_our_cores)
{
    cpu_set_t all;
    int core = on_one_core(&all);
    char *text = format("cpu  9 9 9 9 9 9 9 9 9 9\ncpu%d 1 2 4 8 16 32 64 128 256 512\n"
                        "cpu%d 9 9 9 9 9 9 9 9 0 0\nintr 9 9 9 9 9 9 9\n", core, core + 1);
    pipe_text(dir, "stat", text);
    gp_core_ticks t = gp_core_ticks_read(in_dir("stat"));
    sched_setaffinity(0, sizeof all, &all);
    ck_assert_int_eq(t.cores, 1);
    ck_assert_uint_eq(t.all, 255);
    ck_assert_uint_eq(t.idle, 24);
    t = gp_core_ticks_read(in_dir("none"));
    ck_assert_int_eq(t.cores, 0);
}

static const struct { gp_core_ticks from, to; double worked; } spans[] = {
    { { 0, 0, 2 }, { 100, 200, 2 }, 1 },
    { { 50, 1000, 2 }, { 50, 1200, 2 }, 2 },
    { { 50, 1000, 4 }, { 150, 1100, 4 }, 0 },
    { { 50, 1000, 4 }, { 200, 1100, 4 }, 0 },      /* the kernel counts both a little apart */
    { { 50, 1000, 4 }, { 49, 1100, 4 }, 4 },
    { { 0, 0, 2 }, { 10, 19, 2 }, -1 },            /* too short */
    { { 0, 0, 2 }, { 100, 200, 3 }, -1 },
    { { 0, 0, 0 }, { 0, 0, 0 }, -1 },
    { { 0, 300, 2 }, { 0, 200, 2 }, -1 },
};

TEST_EACH(cores_that_worked, spans)
{
    double worked = gp_cores_worked(spans[_i].from, spans[_i].to);
    ck_assert_msg(worked > spans[_i].worked - 1e-9 && worked < spans[_i].worked + 1e-9, "%g", worked);
}

/* As a thread that has run knows it; of a few sleeps it cannot be longer than they took. */
TEST(delay_of_a_thread)
{
    int64_t start = gp_now_ns(), before = gp_core_delay();
    for (int i = 0; i < 20; i++)
        nap();
    int64_t more = gp_core_delay() - before;
    ck_assert(before >= 0 && more >= 0 && more <= gp_now_ns() - start);
}

static const struct {
    const char *cgroup;
    struct { const char *path, *text; } file[3];
    double limit;                  /* of memory, if a file is of that, else of cores; 0: none */
} groups[] = {
    { "0::/\n", { { "cpu.max", "150000 100000\n" } }, 1.5 },
    { "0::/\n", { { "cpu.max", "max 100000\n" } }, 0 },
    { "0::/a/b\n", { { "a/b/cpu.max", "max 100000\n" }, { "a/cpu.max", "50000 100000\n" },
                     { "cpu.max", "max 100000\n" } }, 0.5 },
    { "0::/a/b\n", { { "a/b/cpu.max", "20000 10000\n" }, { "a/cpu.max", "300000 100000\n" } }, 2 },
    { "0::/elsewhere/of/the/host\n", { { "cpu.max", "100000 100000\n" } }, 1 },
    { "5:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/\n",
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } }, 2.5 },
    { "1:cpu:/\n", { { "cpu/cpu.cfs_quota_us", "-1\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } }, 0 },
    { "2:cpuacct:/\n", { { "cpuacct/cpu.cfs_quota_us", "1000\n" }, { "cpuacct/cpu.cfs_period_us", "100000\n" } }, 0 },
    { "0::/\n", { { "other", "1 1\n" } }, 0 },
    { "nonsense\n:\n", { { "cpu.max", "1 1\n" } }, 0 },
    { "0::/a/b\n", { { "a/b/memory.max", "max\n" }, { "a/memory.max", "5000\n" }, { "memory.max", "6000\n" } }, 5000 },
    { "4:memory:/a/b\n0::/\n", { { "memory/a/b/memory.limit_in_bytes", "9223372036854771712\n" },
                               { "memory/a/memory.limit_in_bytes", "5000\n" },
                               { "memory/memory.limit_in_bytes", "9223372036854771712\n" } }, 5000 },
    { "4:cpu,memory:/a\n", { { "cpu,memory/a/memory.limit_in_bytes", "7000\n" } }, 7000 },
    { "4:memory:/elsewhere/of/the/host\n", { { "memory/memory.limit_in_bytes", "8000\n" } }, 8000 },
    { "4:memory:/a\n", { { "memory/a/memory.limit_in_bytes", "9223372036854771712\n" } }, 0 },
};

TEST_EACH(limits_of_the_cgroup, groups)
{
    pipe_text(dir, "cgroup", groups[_i].cgroup);
    for (int i = 0; i < 3 && groups[_i].file[i].path; i++) {
        for (const char *at = groups[_i].file[i].path; (at = strchr(at, '/')); at++) {
            mkdir(in_dir(format("%.*s", (int)(at - groups[_i].file[i].path), groups[_i].file[i].path)), 0777);
        }
        pipe_text(dir, groups[_i].file[i].path, groups[_i].file[i].text);
    }
    bool of_memory = strstr(groups[_i].file[0].path, "memory.");
    double quota = gp_cores_quota(in_dir("cgroup"), dir), cores = of_memory ? 0 : groups[_i].limit;
    uint64_t memory = gp_machine_memory_limit(in_dir("cgroup"), dir);
    ck_assert_msg(quota > cores - 1e-9 && quota < cores + 1e-9, "%g", quota);
    ck_assert_uint_eq(memory, of_memory && groups[_i].limit > 0 ? (uint64_t)groups[_i].limit : UINT64_MAX);
    ck_assert(gp_cores_quota(in_dir("none"), dir) <= 0);
    ck_assert_uint_eq(gp_machine_memory_limit(in_dir("none"), dir), UINT64_MAX);
}

TEST_SUITE(cores, up, NULL, 0)
