/* cases.c - see cases.h. */
#include "cases.h"

const char *on = "cpu";

static bool on_gpu(void)
{
    return strcmp(on, "cpu") != 0;
}

const gp_backend *cases_backend(void)
{
    return on_gpu() ? gp_backend_gpu() : &gp_backend_cpu;
}

int cases_every(int quick, int all, int gpu)
{
    return on_gpu() ? tests_every(gpu, gpu) : tests_every(quick, all);
}

int cases_thin(int quick, int all, int gpu)
{
    const char *thin = on_gpu() ? getenv("GPIPE_THIN") : NULL;
    return thin && atoi(thin) > 0 ? atoi(thin) : cases_every(quick, all, gpu);
}

const char *const cases_knobs[CASES_KNOBS] = {
    "", "depth: 1\n", "depth: 2\nlaunch: stream\n", "depth: 7\nstreams: 2\nbatch: 4\n",
    "depth: 12\nbatch: 1\nsync: block\n", "depth: 5\nlaunch: persistent\n",
    "depth: 8\nbatch: 4\nbatch_wait: 400us\n", "depth: 8\nbatch: 4\nlatency: 2ms\n",
};

pipe_result cases_run(const char *dir, const char *yaml, int i)
{
    bool stays = strstr(cases_knobs[i], "persistent") != NULL;
    char *text = format("%s%s", stays && getenv("GPIPE_SANITIZED") ? "" : cases_knobs[i], yaml);
    pipe_result r = pipe_run(dir, text, on, NULL, (gp_run_options){ .poison = i % 2 });
    if (stays && !r.compiled && strstr(pipe_said(&r.errs), "'launch: persistent'"))
        r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = i % 2 });
    return r;
}

gp_pipeline *cases_compiled(const char *dir, const char *device, const char *yaml)
{
    gp_machine machine;
    const char *set = format("device=%s", device);
    gp_machine_read(&machine, !strncmp(on, "cuda", 4));
    return pipe_compiled(dir, yaml, (gp_config){ .machine = &machine, .set = &set, .nset = 1 });
}

void cases_add(TCase *tc, SFun up, SFun down, double seconds, const suite_item *list, int every)
{
    if (seconds > 0)
        tcase_set_timeout(tc, seconds);
    tcase_add_checked_fixture(tc, pipe_dirs_begin, pipe_dirs_end);
    tcase_add_checked_fixture(tc, up, down);
    suite_fill(tc, list, every);
}

Suite *cases_suite(const char *name, const char *on_cuda, void (*add)(TCase *tc))
{
    if (!on)
        return NULL;
    Suite *s = suite_create(on_gpu() ? on_cuda : name);
    TCase *tc = tcase_create(on);
    suite_add_tcase(s, tc);
    add(tc);
    return s;
}
