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

void cases_add(TCase *tc, SFun up, SFun down, double seconds, const suite_item *list, int every)
{
    if (seconds > 0)
        tcase_set_timeout(tc, seconds);
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
