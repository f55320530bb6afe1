/* test_machine.c - what gpipe takes the machine for. */
#include <sched.h>
#include <sys/resource.h>
#include "device/backend.h"
#include "base/memfile.h"
#include "device/machine.h"
#include "cuda/libraries.h"
#include "effort.h"
#include "pipe.h"
#include "run/pipeline.h"

TEST_LOOP(fixed_is_fixed, 0, 5)
{
    static const struct { int ask, get; } cases[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 99, 99 }, { 5000, GP_DEVICES } };
    gp_machine m;
    gp_machine_fixed(&m, cases[_i].ask);
    ck_assert_int_eq(m.cpus, 8);
    ck_assert_uint_eq(m.memory, (size_t)64 << 30);
    ck_assert_uint_eq(m.pin_limit, (size_t)48 << 30);
    ck_assert_int_eq(m.ndevices, cases[_i].get);
    ck_assert_int_eq(m.unified, cases[_i].get == 0);
    ck_assert_int_eq(m.why[0] != '\0', cases[_i].get == 0);
    for (int i = 0; i < m.ndevices; i++) {
        ck_assert_str_eq(m.device[i].name, "NVIDIA H200");
        ck_assert_int_eq(m.device[i].cc, 90);
        ck_assert_int_eq(m.device[i].sms, 132);
        ck_assert_uint_eq(m.device[i].memory, 141000000000u);
    }
}

TEST(this_machine)
{
    gp_machine m;
    memset(&m, 0xa5, sizeof m);
    gp_machine_read(&m, false);    /* a fork must not touch CUDA */
    ck_assert_int_ge(m.cpus, 1);
    ck_assert_int_le(m.cpus, (int)sysconf(_SC_NPROCESSORS_CONF));
    ck_assert_uint_gt(m.memory, 1 << 20);
    ck_assert_uint_eq(m.pin_limit, m.memory / 4 * 3);
    ck_assert_int_eq(m.ndevices, 0);
    ck_assert(m.unified);
    ck_assert_str_ne(m.why, "");
}

/* Who has no descriptor left has memory. */
TEST(no_descriptor)
{
    struct rlimit was, none;
    gp_machine m;
    ck_assert(!getrlimit(RLIMIT_NOFILE, &was));
    none = (struct rlimit){ 0, was.rlim_max };
    ck_assert(!setrlimit(RLIMIT_NOFILE, &none));
    gp_machine_read(&m, false);
    ck_assert(!setrlimit(RLIMIT_NOFILE, &was));
    ck_assert_uint_gt(m.memory, 1 << 20);
}

TEST(only_our_cpus_count)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    gp_machine m;
    gp_machine_read(&m, false);
    sched_setaffinity(0, sizeof all, &all);
    ck_assert_int_eq(m.cpus, 1);
}

/* ---- as JSON ------------------------------------------------------------- */

static char *printed(const gp_machine *m)
{
    gp_memfile f;
    size_t n;
    ck_assert(gp_memfile_open(&f));
    gp_machine_print(m, f.f);
    char *text = gp_memfile_close(&f, &n);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* What is printed is read back as it was, and prints the same. */
TEST_LOOP(there_and_back, 0, 4)
{
    gp_errs errs = { .n = 0 };
    gp_machine m;
    gp_machine_fixed(&m, _i);
    for (int i = 0; i < _i; i++) {
        m.device[i].cc = 75 + 5 * i, m.device[i].f64 = 32, m.device[i].sms = 40 + i;
        snprintf(m.device[i].pci, sizeof m.device[i].pci, "0000:%02x:00.0", i);
        m.device[i].total = i ? (size_t)80 << 30 : 0, m.device[i].free = i ? (size_t)i << 30 : 0;
        m.device[i].copy_engines = i;
        for (int k = 0; k < i; k++)        /* of the first nothing was measured */
            m.device[i].launch[k] = (gp_link){ .rate = 25e9 + 1e9 * k, .step_ns = 8250 - 1500 * k };
    }
    char *text = printed(&m);
    gp_machine *read = gp_machine_create_from(text, strlen(text), "m.json", &errs);
    ck_assert_msg(read != NULL, "%s\n%s", pipe_said(&errs), text);
    ck_assert_int_eq(read->ndevices, _i);
    ck_assert_int_eq(read->unified, _i == 0);
    ck_assert_uint_eq(read->pin_limit, m.pin_limit);
    char *again = printed(read);
    ck_assert_str_eq(again, text);
    free(text), free(again);
    gp_machine_destroy(read);
}

#define GPU "{\"name\": \"x\", \"compute_capability\": 9.0, \"memory\": \"1GiB\""

static const struct { const char *text, *error; int line, col; } bad[] = {
    { "", "a machine is an object", 0, 0 },
    { "[1]", "a machine is an object", 1, 1 },
    { "{\"format\": 1,\n \"devices\": [{\"name\": \"x\", ", "expected a value here", 2, 28 },
    { "{\"format\": 2,\n \"color\": 1}", "this file has format 2 of machines, and gpipe " GP_VERSION " reads format 1",
      1, 12 },
    { "{\"format\": \"new\"}", "", 1, 13 },
    { "{\"format\": 1}", "a plan needs the machine's 'devices'", 1, 1 },
    { "{\"cores\": [8],\n\"devices\": []}", "'cores' takes a number", 1, 11 },
    { "{\"cores\": 0,\n\"devices\": []}", "'cores' must be a number from 1 to 4096", 1, 11 },
    { "{\"devices\": {}}", "'devices' takes a list of devices; without a GPU it is []", 1, 13 },
    { "{\"devices\": [7]}", "a device is an object", 1, 14 },
    { "{\"devices\": [\n{\"nome\": \"x\"}]}", "a device has no 'nome'; did you mean 'name'?", 2, 2 },
    { "{\"devices\": [\n{\"name\": [1]}]}", "'name' takes a text", 2, 10 },
    { "{\"devices\": [\n{\"name\": \"x\", \"memory\": 1e9}]}", "a device needs 'compute_capability'", 2, 1 },
    { "{\"devices\": [\n{\"name\": \"x\", \"compute_capability\": 9.0}]}", "a device needs 'memory'", 2, 1 },
    { "{\"devices\": [" GPU ", \"peers\": 1}]}", "'peers' takes a list of numbers of devices", 1, 82 },
    { "{\"devices\": [" GPU ", \"peers\": [-1]}]}", "'peers' must be a number from 0 to 1023", 1, 83 },
    { "{\"devices\": [" GPU ", \"launch\": 1}]}", "'launch' is an object, as 'gpipe machine --measure' prints it", 1, 83 },
    { "{\"devices\": [" GPU ", \"launch\": {\"engine_gb_s\": 0}}]}", "'engine_gb_s' must be a number from 0.001", 1, 99 },
    { "{\"devices\": [" GPU "}], \"gpu\": \"y\"}", "'gpu' and 'devices' exclude each other", 1, 82 },
    { "{\"gpu\": \"y\",\n\"devices\": []}", "'gpu' and 'devices' exclude each other", 2, 12 },
    { "{\"devices\": [], \"devices\": []}", "", 1, 17 },
};

TEST_EACH(bad_files, bad)
{
    gp_errs errs = { .n = 0 };
    gp_machine *m = gp_machine_create_from(bad[_i].text, strlen(bad[_i].text), "m.json", &errs);
    ck_assert_ptr_null(m);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(strstr(errs.e[0].msg, bad[_i].error) == errs.e[0].msg, "%s: %s", bad[_i].text, errs.e[0].msg);
    ck_assert_str_eq(errs.e[0].at.file, "m.json");
    ck_assert_int_eq(errs.e[0].code, GP_E_USAGE);
    ck_assert_msg(errs.e[0].at.line == bad[_i].line && errs.e[0].at.col == bad[_i].col, "%s: %d:%d", bad[_i].text,
                  errs.e[0].at.line, errs.e[0].at.col);
}

/* ---- what launches take, by who copies -------------------------------------- */

/* Any device is measured, and its numbers are kept for this device at this place and with this driver. */
TEST(measured_launches)
{
    gp_errs errs = { .n = 0 };
    gp_machine m, other;
    const char *dir = pipe_dir();
    ck_assert(!setenv("XDG_CACHE_HOME", dir, 1));
    gp_machine_fixed(&m, 2);
    gp_dev *dev = gp_backend_cpu.open(0, &errs);
    ck_assert_msg(dev && gp_copying_measure(dev, m.device[1].launch, &errs), "%s", pipe_said(&errs));
    gp_backend_cpu.close(dev);
    for (int k = 0; k < GP_COPYINGS; k++)
        ck_assert_msg(m.device[1].launch[k].rate > 0 && m.device[1].launch[k].rate <= 1e12 && m.device[1].launch[k].step_ns >= 0,
                      "%d: %g %g", k, m.device[1].launch[k].rate, m.device[1].launch[k].step_ns);
    snprintf(m.device[1].pci, sizeof m.device[1].pci, "0000:1b:00.0");
    ck_assert(gp_copying_keep(&m, &m.device[1], &errs));
    other = m;
    memset(other.device[1].launch, 0, sizeof other.device[1].launch);
    gp_copying_find(&other, &other.device[0]);
    ck_assert(!(other.device[0].launch[0].rate > 0));
    gp_copying_find(&other, &other.device[1]);
    ck_assert(!memcmp(other.device[1].launch, m.device[1].launch, sizeof m.device[1].launch));
    memset(other.device[1].launch, 0, sizeof other.device[1].launch);
    other.cuda_driver++;
    gp_copying_find(&other, &other.device[1]);
    ck_assert(!(other.device[1].launch[0].rate > 0) && !errs.n);
}

/* ---- which GPU `auto` takes ------------------------------------------------ */

static const size_t GIB = (size_t)1 << 30;

static const struct { const char *device; int free[3]; int rank, ranks; const char *name, *why; } chosen[] = {
    { "auto", { 12, 78, 40 }, 0, 1, "cuda:1",
      "auto: NVIDIA H200; most free memory, 78.0 of 80.0 GiB; cuda:2 has 40.0" },
    { "auto", { 78, 12, 78 }, 0, 1, "cuda:0",
      "auto: NVIDIA H200; most free memory, 78.0 of 80.0 GiB; cuda:2 has 78.0" },
    { "auto", { -1, -1, -1 }, 0, 1, "cuda:0", "auto: NVIDIA H200; the first, since free memory is not known" },
    { "auto", { 12, -1, 40 }, 0, 1, "cuda:0", "auto: NVIDIA H200; the first, since free memory is not known" },
    { "auto", { 12, 78, 40 }, 2, 4, "cuda:2", "auto: NVIDIA H200; one of the 3 GPUs here for each rank" },
    { "auto", { 12, 78, 40 }, 3, 4, "cuda:0", "auto: NVIDIA H200; one of the 3 GPUs here for each rank" },
    { "all", { 12, 78, 40 }, 1, 2, "cuda:1", "all: NVIDIA H200; one of the 3 GPUs here for each rank" },
    { "cuda", { 12, 78, 40 }, 1, 2, "cuda:1", "cuda: NVIDIA H200; one of the 3 GPUs here for each rank" },
    { "cuda", { 12, 78, 40 }, 0, 1, "cuda:0", "cuda: NVIDIA H200" },
    { "cuda:2", { 12, 78, 40 }, 1, 2, "cuda:2", "cuda:2: NVIDIA H200" },
    { "all", { 12, 78, 40 }, 0, 1, "cuda:0, cuda:1, cuda:2", "all: NVIDIA H200" },
};

TEST_EACH(which_gpu, chosen)
{
    gp_machine m;
    gp_machine_fixed(&m, 3);
    for (int i = 0; i < 3; i++)
        if (chosen[_i].free[i] >= 0)
            m.device[i].total = 80 * GIB, m.device[i].free = (size_t)chosen[_i].free[i] * GIB + (size_t)i * 1000;
    char *text = format("device: %s\nbuffers: {x: {dtype: f32, shape: [4]}}\nstages:\n"
        "  - {use: generate, frames: 8, out: x}\n  - {use: scale}\n  - {use: discard}\n", chosen[_i].device);
    gp_env env = { .rank = chosen[_i].rank, .ranks = chosen[_i].ranks, .local_rank = chosen[_i].rank };
    gp_pipeline *p = pipe_compiled(".", text, (gp_config){ .machine = &m, .env = env });
    ck_assert_str_eq(gp_pipeline_graph(p)->device_name, chosen[_i].name);
    ck_assert_str_eq(gp_pipeline_graph(p)->device_why, chosen[_i].why);
    gp_pipeline_destroy(p);
}

/* NVML has its own order: devices are found by their address. */
TEST(free_memory)
{
    char *fake = suite_beside("nvml_fake.so");
    gp_nvml_device of[] = { { .pci = "0000:0a:00.0" }, { .pci = "0000:1b:00.0" }, { .pci = "0000:ff:00.0" } };
    ck_assert(gp_nvml_look(fake, of, 2));
    ck_assert_uint_eq(of[0].memory.free, 12 * GIB);
    ck_assert_uint_eq(of[1].memory.free, 78 * GIB);
    ck_assert_uint_eq(of[1].memory.total, 80 * GIB);
    ck_assert(!gp_nvml_look(fake, of, 3));
    ck_assert(!gp_nvml_look("/no/such/library.so", of, 2));
}

/* ---- many devices and stages ------------------------------------------------- */

typedef struct planning { bool placed; size_t bytes; } planning;

/* A plan of `n` stages, each on a GPU of its own, or of `n` stages on all of `n` GPUs: the CPU time, and its memory. */
static double plan_many(int n, void *arg)
{
    planning *x = arg;
    const bool placed = x->placed;
    static char text[300000];
    gp_errs errs = { .n = 0 };
    gp_machine *m = gp_machine_create_fixed(n);
    size_t len = (size_t)snprintf(text, sizeof text, "device: %s\nfuse: none\n"
                                  "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n"
                                  "  - {use: generate, frames: 8, out: x}\n", placed ? "cuda:0" : "all");
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                placed ? "  - {use: scale, device: cuda:%d}\n" : "  - {use: scale}\n", i);
    len += (size_t)snprintf(text + len, sizeof text - len, "  - {use: discard}\n");
    ck_assert_uint_lt(len, sizeof text);
    gp_config c = { .registry = pipe_registry(), .machine = m };
    effort_begin();
    gp_pipeline *p = gp_compile(text, len, "p.yaml", &c, &errs);
    double took = effort_end();
    ck_assert_msg(p != NULL, "%s", pipe_said(&errs));
    gp_plan *plan = (gp_plan *)gp_pipeline_plan(p);
    ck_assert_int_eq(plan->nsegments, placed ? n : 1);
    x->bytes = p->arena.total;
    gp_pipeline_destroy(p);
    gp_machine_destroy(m);
    return took;
}

TEST_EFFORT(many_devices, 2)
{
    planning some = { .placed = _i }, more = some;
    plan_many(256, &some), plan_many(1024, &more);
    ck_assert_msg(more.bytes < 6 * some.bytes, "4 times the size: %zu instead of %zu bytes", more.bytes, some.bytes);
    effort_is_linear("a plan over many devices", plan_many, &some, 256);
}

/* A plan for another machine's GPU is refused here, by whatever back ends this build has. */
TEST(a_gpu_that_is_not_here)
{
    static const char text[] = "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                               "  - {use: scale, a: 2}\n  - {use: discard}\n";
    gp_errs errs = { .n = 0 };
    gp_machine *here = gp_machine_create(true), *m = gp_machine_create_fixed(1);
    gp_machine_info is;
    gp_machine_about(here, &is);
    gp_pipeline *p = pipe_compiled(".", text, (gp_config){ .machine = m });
    if (!is.ndevices) {
        ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
        ck_assert_int_eq(gp_errs_exit(&errs), 4);
    }
    gp_pipeline_destroy(p), gp_machine_destroy(m), gp_machine_destroy(here);
}

TEST_SUITE(machine, NULL, NULL, 0)
