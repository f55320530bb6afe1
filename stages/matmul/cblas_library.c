/* cblas_library.c - see cblas_library.h. Of the libraries there are, those count that can be told to compute on one
 * thread: OpenBLAS and BLIS, also where the system has them as its BLAS (an OpenBLAS that uses OpenMP takes that
 * number for each calling thread anew, and does not count). The reference BLAS is three times as slow as loops.c. */
#include <stdio.h>
#include <string.h>
#include "base/dl.h"
#include "cblas_library.h"

/* Names of the library and its version, of a text that begins with the version, or with both. */
static void say(gp_cblas *l, const char *name, const char *is)
{
    const char *version = !strncmp(is, name, strlen(name)) ? is + strlen(name) + 1 : is;
    snprintf(l->name, sizeof l->name, "%s %.*s", name, (int)strcspn(version, " "), version);
}

static bool open_one(gp_cblas *l, const char *file, bool blis)
{
    const char *const names[] = { file, NULL };
    char *(*openblas_is)(void);
    int (*openblas_parallel)(void);
    const char *(*blis_is)(void);
    const gp_dl_symbol openblas_has[] = {
        { "cblas_sgemm", &l->f32 }, { "cblas_dgemm", &l->f64 }, { "openblas_set_num_threads", &l->openblas_threads },
        { "openblas_get_config", &openblas_is }, { "openblas_get_parallel", &openblas_parallel }, { 0 },
    };
    const gp_dl_symbol blis_has[] = {
        { "cblas_sgemm", &l->f32 }, { "cblas_dgemm", &l->f64 }, { "bli_thread_set_num_threads", &l->blis_threads },
        { "bli_info_get_version_str", &blis_is }, { 0 },
    };
    gp_errs errs = { .n = 0 };
    if (!gp_dl_open(names, blis ? blis_has : openblas_has, "", "", (gp_loc){ 0 }, &errs))
        return false;
    enum { OPENMP = 2 };
    if (!blis && openblas_parallel() == OPENMP)
        return false;
    say(l, blis ? "BLIS" : "OpenBLAS", blis ? blis_is() : openblas_is());
    return true;
}

void gp_cblas_open(gp_cblas *l)
{
    static const struct { const char *file; bool blis; } libraries[] = {
        { "libopenblas.so.0", false }, { "libblis.so.4", true }, { "libblas.so.3", false }, { "libblas.so.3", true },
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        *l = (gp_cblas){ .blis_threads = NULL };
        if (open_one(l, libraries[i].file, libraries[i].blis))
            return;
    }
    *l = (gp_cblas){ .name = "own loops, no OpenBLAS" };
}

void gp_cblas_single_thread(const gp_cblas *l)
{
    if (l->openblas_threads)
        l->openblas_threads(1);
}

static void one(const gp_cblas *l, const gp_product *p, const char *a, const char *b, void *c)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TURNED = 112 };
    bool ta = p->turned[GP_LEFT], tb = p->turned[GP_RIGHT];
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = ta ? m : k, ldb = tb ? k : n;
    int turn_a = ta ? TURNED : AS_IT_IS, turn_b = tb ? TURNED : AS_IT_IS;
    if (l->blis_threads)
        l->blis_threads(1);
    if (l->f32) {
        if (p->dtype == GP_F32)
            l->f32(ROW_MAJOR, turn_a, turn_b, m, n, k, 1, (const float *)a, lda, (const float *)b, ldb, 0, c, n);
        else
            l->f64(ROW_MAJOR, turn_a, turn_b, m, n, k, 1, (const double *)a, lda, (const double *)b, ldb, 0, c, n);
        return;
    }
    gp_loops_factor left = { a, ta ? 1 : lda, ta ? lda : 1 }, right = { b, tb ? 1 : ldb, tb ? ldb : 1 };
    if (p->dtype == GP_F32)
        gp_loops_f32(m, n, k, left, right, c);
    else
        gp_loops_f64(m, n, k, left, right, c);
}

void gp_cblas_multiply(const gp_cblas *l, const gp_product *p, const gp_product_frames *frames, const void *a,
                       const void *b, void *made)
{
    int64_t at[GP_FACTORS], batches = frames->axis.n * gp_product_batches(p), each = (int64_t)gp_dtype_size(p->dtype);
    for (int64_t i = 0; i < batches; i++) {
        gp_product_at_frame(p, frames, i, at);
        for (int64_t j = 0; j < p->batch.n; j++) {
            const int64_t *step = p->batch.step;
            one(l, p, (const char *)a + each * (at[GP_LEFT] + j * step[GP_LEFT]),
                (const char *)b + each * (at[GP_RIGHT] + j * step[GP_RIGHT]),
                (char *)made + each * (at[GP_MADE] + j * step[GP_MADE]));
        }
    }
}
