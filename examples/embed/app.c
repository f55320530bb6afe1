/* app.c - a program that runs a pipeline through the library, with a stage kind of its own.
 *
 *   cc app.c -o app $(pkg-config --cflags --libs gpipe) && ./app photo.png */
#include <gpipe/gpipe.h>
#include <inttypes.h>
#include <string.h>

static const char yaml[] =
    "vars: {photo: null}\n"
    "stages:\n"
    "  - {use: read, path: '${photo}'}\n"
    "  - {use: gray}\n"
    "  - {use: sobel}\n"
    "  - {use: cast, dtype: u8}\n"
    "  - {use: count}\n";

/* The kind 'count': a sink that counts the bytes that are not 0, over all frames. Its
 * port takes u8 only. It is `serial`, so that run() is never called by two workers at the
 * same time. */
static bool shape(gp_shape *s)
{
    s->serial = true;
    return true;
}

static bool run(gp_call *c, gp_frame *frames, int n)
{
    uint64_t *sum = c->user;
    for (int i = 0; i < n; i++) {
        const uint8_t *byte = frames[i].in[0].data;
        for (int64_t k = 0; k < gp_count(&frames[i].in[0].type); k++)
            *sum += byte[k] != 0;
    }
    return true;
}

int main(int argc, char **argv)
{
    char set[4096];
    const char *sets[] = { set };
    uint64_t sum = 0;
    gp_errs errs = { .n = 0 };
    gp_account a = { 0 };
    gp_kind count = { GP_KIND("count"), .help = "count the bytes that are not 0",
                      .in = (const gp_port[]){ { "in", GP_ACCEPT(GP_U8), .help = "bytes" }, { 0 } },
                      .shape = shape, .run = run, .user = &sum };
    gp_registry *kinds = gp_registry_create();
    gp_config config = { .registry = kinds, .set = sets, .nset = argc > 1 };
    gp_pipeline *p = NULL;

    snprintf(set, sizeof set, "vars.photo=%s", argc > 1 ? argv[1] : "");
    if (kinds && gp_register_builtin(kinds, &errs) && gp_register(kinds, &count, &errs)
        && (p = gp_compile(yaml, strlen(yaml), "app.yaml", &config, &errs))
        && gp_pipeline_run(p, &(gp_run_options){ .timed = false }, &errs) == GP_DONE
        && gp_accounts(p, &a, 1))
        printf("frames: %" PRIu64 ", bytes that are not 0: %" PRIu64 "\n", a.out, sum);
    for (int i = 0; i < errs.n; i++)
        gp_err_print(stderr, &errs.e[i], "app.yaml", yaml, strlen(yaml), false);
    gp_pipeline_destroy(p);
    gp_registry_destroy(kinds);
    return gp_errs_exit(&errs);
}
