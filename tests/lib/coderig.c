#include <check.h>
#include <string.h>
#include "coderig.h"

const char *code_dir;
gp_errs code_errs;
char code_plan[4000];
static gp_registry *registry;

void code_up(void)
{
    memset(&code_errs, 0, sizeof code_errs);
    registry = gp_registry_create();
    ck_assert(gp_register_builtin(registry, &code_errs));
    code_dir = pipe_dir();
}

void code_down(void)
{
    pipe_dir_remove(code_dir);
    gp_registry_destroy(registry);
}

void code_compile(const char *source, const char *shape, const char *options, bool cuda)
{
    char yaml[1000], file[600];
    gp_machine machine;
    gp_config config = { .registry = registry, .machine = &machine };
    snprintf(file, sizeof file, "%s/test.yaml", code_dir);
    int n = snprintf(yaml, sizeof yaml, "buffers: {a: {dtype: f32, shape: %s}}\nstages:\n"
                     "  - {use: generate, out: a, frames: 1}\n"
                     "  - {use: kernel, source: k.cu, %s}\n  - {use: discard}\n", shape, options);
    ck_assert_int_lt(n, (int)sizeof yaml);
    pipe_text(code_dir, "k.cu", source);
    memset(&code_errs, 0, sizeof code_errs);
    gp_machine_fixed(&machine, cuda);
    gp_pipeline *p = gp_compile(yaml, strlen(yaml), file, &config, &code_errs);
    *code_plan = 0;
    if (!p)
        return;
    FILE *f = fmemopen(code_plan, sizeof code_plan, "w");
    gp_dump_plan(f, gp_pipeline_plan(p), GP_DUMP_TEXT);
    fclose(f);
    gp_pipeline_destroy(p);
}
