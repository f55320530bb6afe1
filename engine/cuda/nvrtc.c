/* nvrtc.c - see nvrtc.h.
 *
 * NVRTC is opened when the first user's kernel asks for it; it needs no driver.
 * Contraction to fused multiply-add is off, as on the CPU, so that both give the
 * same bits; a kernel that wants it says fmaf().
 *
 * Which headers a text includes is in includes.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/embed.h"
#include "cuda/libraries.h"
#include "cuda/nvrtc.h"
#include "device/source.h"
#include "gpipe/gpipe.h"

/* The part of nvrtc.h that is used; its ABI has been the same since CUDA 11.1. */
typedef struct nvrtc {
    int (*version)(int *major, int *minor);
    const char *(*error)(int result);
    int (*create)(void **prog, const char *src, const char *name, int nheaders,
                  const char *const *headers, const char *const *names);
    int (*destroy)(void **prog);
    int (*compile)(void *prog, int noptions, const char *const *options);
    int (*log_size)(void *prog, size_t *bytes);
    int (*log)(void *prog, char *log);
    int (*cubin_size)(void *prog, size_t *bytes);
    int (*cubin)(void *prog, char *cubin);
    int (*ptx_size)(void *prog, size_t *bytes);
    int (*ptx)(void *prog, char *ptx);         /* NUL-terminated */
    int (*flow)(void *prog, int (*stop)(void *arg, void *unused), void *arg);  /* or NULL */
} nvrtc;

#define INSTALL "install libnvrtc of CUDA 12 or 13 (NVIDIA's package cuda-nvrtc-13-0)"

static bool open_nvrtc(nvrtc *n, const char *what, const char *advice, gp_loc at, gp_errs *errs)
{
    static const char *const names[] = GP_CUDA_FILES("libnvrtc", "13", "12");
    const gp_dl_symbol symbol[] = {
        { "nvrtcVersion", &n->version }, { "nvrtcGetErrorString", &n->error }, { "nvrtcCreateProgram", &n->create },
        { "nvrtcDestroyProgram", &n->destroy }, { "nvrtcCompileProgram", &n->compile },
        { "nvrtcGetProgramLogSize", &n->log_size }, { "nvrtcGetProgramLog", &n->log },
        { "nvrtcGetCUBINSize", &n->cubin_size }, { "nvrtcGetCUBIN", &n->cubin },
        { "nvrtcGetPTXSize", &n->ptx_size }, { "nvrtcGetPTX", &n->ptx }, { 0 },
    };
    const gp_dl_symbol flow[] = { { "nvrtcSetFlowCallback", &n->flow }, { 0 } };
    gp_errs none = { .n = 0 };
    if (!gp_dl_open(names, symbol, what, advice, at, errs))
        return false;
    if (!gp_dl_open(names, flow, what, advice, at, &none))
        n->flow = NULL;                /* before CUDA 13 */
    return true;
}

bool gp_nvrtc_is_there(void)
{
    nvrtc n;
    gp_errs none = { .n = 0 };
    return open_nvrtc(&n, "", "", (gp_loc){ 0 }, &none);
}

/* Headers of the C library that a source may name, so that it also compiles for
 * the CPU: kernel.h and NVRTC have what kernels need of them. */
static const char *const stub_names[] = {
    "assert.h", "cmath", "cstddef", "cstdint", "cuda_runtime.h", "math.h", "stddef.h",
    "stdint.h", "stdio.h", "string.h",
};
static const char *const kernel_headers[] = {
    "kernels/kernel.h", "kernels/map.h", "kernels/slide.h", "kernels/join.h", "kernels/fold.h", "kernels/lines.h",
    "kernels/resize.h", "kernels/warp.h", "kernels/copy.h", "kernels/pad.h", "kernels/quantile.h",
    "kernels/sort.h", "kernels/lanes.h", "kernels/edge.h", "kernels/expr_ops.h", "kernels/resident.h",
};
enum {
    NSTUBS = sizeof stub_names / sizeof *stub_names,
    NKERNEL_HEADERS = sizeof kernel_headers / sizeof *kernel_headers,
};

typedef struct options {
    int n;
    const char *v[5];
    char arch[40];
    char **dir; int ndirs;     /* "--include-path=DIR" */
} options;

/* The second has what headers of the first include since CUDA 13. */
static const char include_path[] = "--include-path=";
static const char *const toolkit[] = { "/usr/local/cuda/include", "/usr/local/cuda/include/cccl" };
enum { NTOOLKIT = sizeof toolkit / sizeof *toolkit };

static bool add_folder(options *o, const char *dir)
{
    return dir && asprintf(&o->dir[o->ndirs], "%s%s", include_path, dir) >= 0 && ++o->ndirs;
}

/* For the given sources. */
static bool set_options(options *o, const gp_source *const *src, int n, int cc)
{
    if (!(o->dir = calloc((size_t)n + NTOOLKIT, sizeof *o->dir)))
        return false;
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=sm_%d", cc);
    o->v[o->n++] = o->arch;
    o->v[o->n++] = "--std=c++17";
    o->v[o->n++] = "--fmad=false";
    o->v[o->n++] = "--generate-line-info";
    for (int i = 0; i < n; i++) {
        char *dir = gp_source_folder(src[i]->path);
        bool ok = add_folder(o, dir);
        free(dir);
        if (!ok)
            return false;
    }
    bool ok = true;
    for (int i = 0; i < NTOOLKIT; i++)
        ok = ok && (access(toolkit[i], R_OK) != 0 || add_folder(o, toolkit[i]));
    return ok;
}

static void free_options(options *o)
{
    for (int i = 0; i < o->ndirs; i++)
        free(o->dir[i]);
    free(o->dir);
}

/* Adds what decides the image, beside the files that are read. NVRTC takes nothing from the environment. An image is
 * stored only if its PTX passed the checks, so that what the stage allows is a part of the key, and so is a number
 * that is raised when ptx.c finds more. */
static gp_key make_key(const char *text, const nvrtc *rtc, const options *o, const gp_source *src)
{
    int version[2] = { 0, 0 }, may[3] = { src && src->cooperative, !src || !src->overlaps, 1 };
    gp_hash h;
    gp_hash_begin(&h);
    rtc->version(&version[0], &version[1]);
    gp_hash_text(&h, "cuda " GP_VERSION);
    gp_hash_text(&h, text);
    for (const gp_blob *b = gp_blobs; b->name; b++)
        for (int i = 0; i < NKERNEL_HEADERS; i++)
            if (!strcmp(b->name, kernel_headers[i]))
                gp_hash_text(&h, (const char *)b->data);
    gp_hash_add(&h, version, sizeof version);
    gp_hash_add(&h, may, sizeof may);
    for (int i = 0; i < o->n; i++)
        gp_hash_text(&h, o->v[i]);
    for (int i = 0; i < o->ndirs; i++)
        gp_hash_text(&h, o->dir[i]);
    return gp_hash_end(&h);
}

/* The texts of ours, too: each is a header of NVRTC's for the others. */
bool gp_nvrtc_has_header(const char *name)
{
    bool ours = false;
    for (int i = 0; i < NSTUBS; i++)
        ours |= !strcmp(name, stub_names[i]);
    for (int i = 0; i < NKERNEL_HEADERS; i++)
        ours |= !strcmp(name, strchr(kernel_headers[i], '/') + 1);
    return ours;
}

/* ---- compiling ----------------------------------------------------------- */

static int is_cancelled(void *cancel, void *unused)
{
    return atomic_load((const atomic_int *)cancel) != 0;
}

/* False, with an error: its PTX says that the kernel does what its stage does not allow. */
static bool check_ptx(const nvrtc *rtc, void *prog, const gp_source *src, gp_errs *errs)
{
    size_t bytes = 0;
    char *ptx = NULL;
    if (src->cooperative && !src->overlaps)
        return true;
    bool ok = !rtc->ptx_size(prog, &bytes) && (ptx = calloc(1, bytes + 1)) && !rtc->ptx(prog, ptx);
    ok = ok ? gp_ptx_check(src, ptx, errs) : gp_fail(errs, GP_E_RESOURCE, src->at, "no PTX of '%s'", gp_source_name(src));
    free(ptx);
    return ok;
}

/* NULL, with an image, or with an error about `src`, if that is not NULL; or what the compiler said, malloc'd. The text
 * has a name in the first folder, where NVRTC then looks for headers in quotes, and not in the one that we are in. */
static char *build(const nvrtc *rtc, const char *text, const options *o, const gp_source *src,
                   const atomic_int *cancel, void **image, size_t *bytes, gp_errs *errs)
{
    const char *header[NSTUBS + NKERNEL_HEADERS], *name[NSTUBS + NKERNEL_HEADERS];
    const char **v = calloc((size_t)(o->n + o->ndirs) + 1, sizeof *v);
    char *own = NULL;
    int n = 0, nv = 0;
    if (!v || asprintf(&own, "%s/gpipe.cu", o->ndirs ? o->dir[0] + sizeof include_path - 1 : "") < 0) {
        free(v);
        return strdup("out of memory");
    }
    for (; n < NSTUBS; n++)
        header[n] = "", name[n] = stub_names[n];
    for (const gp_blob *b = gp_blobs; b->name; b++)
        for (int i = 0; i < NKERNEL_HEADERS; i++)
            if (!strcmp(b->name, kernel_headers[i]))
                header[n] = (const char *)b->data, name[n++] = strchr(b->name, '/') + 1;
    for (int i = 0; i < o->n; i++)
        v[nv++] = o->v[i];
    for (int i = 0; i < o->ndirs; i++)
        v[nv++] = o->dir[i];
    void *prog = NULL;
    char *log = NULL;
    size_t length = 0;
    int rc = rtc->create(&prog, text, own, n, header, name);
    if (rc == 0 && cancel && rtc->flow)
        rtc->flow(prog, is_cancelled, (void *)cancel);
    if (rc == 0)
        rc = rtc->compile(prog, nv, v);
    if (rc && prog && rtc->log_size(prog, &length) == 0 && length > 1
        && (log = calloc(1, length + 1)))
        rtc->log(prog, log);
    bool allowed = rc || !src || check_ptx(rtc, prog, src, errs);
    if (rc == 0 && allowed && !(rc = rtc->cubin_size(prog, bytes)) && !(*image = malloc(*bytes + 1)))
        log = strdup("out of memory");
    if (rc == 0 && *image)
        rc = rtc->cubin(prog, *image);
    if (rc && !log)
        log = strdup(rtc->error(rc));
    if (rc) {
        free(*image);
        *image = NULL;
    }
    if (prog)
        rtc->destroy(&prog);
    free(v), free(own);
    return log;
}

/* Finds or makes the image of a text. NULL, or what the compiler said. */
static char *get(const nvrtc *rtc, const char *text, const char *own, const options *o, const gp_source *src,
                 const atomic_int *cancel, void **image, size_t *bytes, gp_errs *errs)
{
    gp_deps r = { .unit = make_key(text, rtc, o, src) };
    char *log = NULL;
    gp_deps_text(&r, text);
    for (int i = 0; i < o->ndirs; i++) {
        const char *dir = o->dir[i] + sizeof include_path - 1;
        gp_deps_folder(&r, dir, strlen(dir));
    }
    if (!gp_deps_find(&r, ".cubin", image, bytes, errs)) {
        gp_nvrtc_includes(&r, own, toolkit[0]);
        gp_deps_start(&r);
        log = build(rtc, text, o, src, cancel, image, bytes, errs);
        if (*image)
            gp_deps_store(&r, ".cubin", *image, *bytes, errs);
    }
    gp_deps_free(&r);
    return log;
}

/* Has the image code under this name, as it stands? The code of each kernel is in a section of its own. */
static bool has_code(const char *entry, const void *image, size_t bytes)
{
    char *section = NULL;
    int n = asprintf(&section, ".text.%s", entry);
    bool has = n > 0 && memmem(image, bytes, section, (size_t)n + 1);
    free(section);
    return has;
}

bool gp_nvrtc_compile(const gp_source *src, int cc, const atomic_int *cancel, void **image,
                      size_t *bytes, bool *early, gp_errs *errs)
{
    nvrtc rtc;
    gp_unit u = { 0 };
    options o = { 0 };
    char what[300];
    *image = NULL;
    snprintf(what, sizeof what, "compiling '%.200s' for the GPU", gp_source_name(src));
    if (!open_nvrtc(&rtc, what, INSTALL ", or run with 'device: cpu'", src->at, errs))
        return false;
    bool ok = gp_unit_make(&u, src, false, errs);
    if (ok && !set_options(&o, &src, 1, cc))
        ok = gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (ok) {
        char *log = get(&rtc, u.text, u.user, &o, src, cancel, image, bytes, errs);
        ok = *image;
        if (early)
            *early = gp_source_is_early(u.code, src->entry);
        if (log && !(cancel && atomic_load(cancel)))
            gp_unit_errors(&u, log, errs);
        free(log);
    }
    if (ok && !has_code(src->entry, *image, *bytes)) {
        free(*image);
        *image = NULL;
        ok = gp_fail(errs, GP_E_SPEC, gp_source_at(src), "'%s' has a C++ name; declare "
                     "it as extern \"C\" __global__ void %s(...)", src->entry, src->entry);
    }
    free_options(&o);
    gp_unit_free(&u);
    return ok;
}

const char gp_resident_head[] =
    "#include \"resident.h\"\n#include \"map.h\"\n#include \"slide.h\"\n#include \"join.h\"\n"
    "#include \"fold.h\"\n#include \"lines.h\"\n#include \"edge.h\"\n#include \"lanes.h\"\n#include \"sort.h\"\n#include \"expr_ops.h\"\n";

bool gp_nvrtc_compile_text(const char *text, const gp_source *const *source, int nsource, int cc,
                           const atomic_int *cancel, void **image, size_t *bytes, gp_errs *errs)
{
    nvrtc rtc;
    options o = { 0 };
    *image = NULL;
    if (!open_nvrtc(&rtc, "'launch: persistent'",
                    INSTALL ", or set 'launch: graph'", (gp_loc){ 0 },
                    errs))
        return false;
    bool ok = set_options(&o, source, nsource, cc)
        || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (ok) {
        char *log = get(&rtc, text, text, &o, NULL, cancel, image, bytes, errs);
        ok = *image;
        if (!ok && !(cancel && atomic_load(cancel)))
            gp_fail(errs, GP_E_SPEC, nsource ? source[0]->at : (gp_loc){ 0 },
                    "the kernels cannot be put into one resident kernel: set "
                    "'launch: graph': %.300s", log ? log : "");
        free(log);
    }
    free_options(&o);
    return ok;
}
