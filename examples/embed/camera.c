/* camera.c - a program that pushes frames into a pipeline, and pulls what that makes of them.
 *
 *   cc camera.c -o camera $(pkg-config --cflags --libs gpipe) && ./camera */
#include <gpipe/gpipe.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

static const char yaml[] =
    "buffers: {picture: {dtype: u8, shape: [480, 640]}}\n"
    "stages:\n"
    "  - {name: camera, use: input, out: picture}\n"
    "  - {use: cast, dtype: f32}\n"
    "  - {use: blur, sigma: 2}\n"
    "  - {use: sobel}\n"
    "  - {use: reduce, op: mean}\n"
    "  - {name: edges, use: output}\n";

/* Stands in for a camera: a bright square, which is larger in each frame. Its pixels go into the slot that the pipeline
 * lends. */
static void *camera(void *input)
{
    gp_loan l;
    for (int64_t i = 0; i < 100 && gp_push_begin(input, &l, -1) == GP_LOAN_OK; i++) {
        int64_t width = l.view.type.dim[1], size = 20 + 4 * i;
        uint8_t *pixel = l.view.data;
        memset(pixel, 20, gp_bytes(&l.view.type));
        for (int64_t y = 30; y < 30 + size; y++)
            memset(pixel + y * width + 100, 220, (size_t)size);
        gp_push_end(input, &l);
    }
    gp_push_close(input);
    return NULL;
}

int main(void)
{
    gp_errs errs = { .n = 0 };
    gp_registry *kinds = gp_registry_create();
    gp_config config = { .registry = kinds };
    gp_pipeline *p = NULL;
    pthread_t thread;
    gp_loan l;

    if (kinds && gp_register_builtin(kinds, &errs)
        && (p = gp_compile(yaml, strlen(yaml), "camera.yaml", &config, &errs))) {
        gp_input *in = gp_pipeline_input(p, "camera");
        gp_output *out = gp_pipeline_output(p, "edges");
        if (gp_pipeline_start(p, NULL, &errs) && !pthread_create(&thread, NULL, camera, in)) {
            while (gp_pull_begin(out, &l, -1) == GP_LOAN_OK) {
                printf("frame %" PRIu64 ": %.2f\n", l.index, *(const float *)l.view.data);
                gp_pull_end(out, &l);
            }
            pthread_join(thread, NULL);
            gp_pipeline_wait(p);
        }
    }
    for (int i = 0; i < errs.n; i++)
        gp_err_print(stderr, &errs.e[i], "camera.yaml", yaml, strlen(yaml), false);
    gp_pipeline_destroy(p);
    gp_registry_destroy(kinds);
    return gp_errs_exit(&errs);
}
