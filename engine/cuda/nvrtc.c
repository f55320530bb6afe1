/* nvrtc.c - see nvrtc.h.
 *
 * NVRTC is opened when the first user's kernel asks for it; it needs no driver.
 * Contraction to fused multiply-add is off, as on the CPU, so that both give the
 * same bits; a kernel that wants it says fmaf(). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/embed.h"
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
} nvrtc;

static bool open_nvrtc(nvrtc *n, const char *what, const char *advice, gp_loc at, gp_errs *errs)
{
    static const char *const names[] = {
        "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
        "/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12",
        "/usr/local/cuda/lib64/libnvrtc.so", NULL,
    };
    const gp_dl_symbol symbol[] = {
        { "nvrtcVersion", &n->version },
        { "nvrtcGetErrorString", &n->error },
        { "nvrtcCreateProgram", &n->create },
        { "nvrtcDestroyProgram", &n->destroy },
        { "nvrtcCompileProgram", &n->compile },
        { "nvrtcGetProgramLogSize", &n->log_size },
        { "nvrtcGetProgramLog", &n->log },
        { "nvrtcGetCUBINSize", &n->cubin_size },
        { "nvrtcGetCUBIN", &n->cubin },
        { 0 },
    };
    return gp_dl_open(names, symbol, what, advice, at, errs);
}

/* Headers of the C library that a source may name, so that it also compiles for
 * the CPU: kernel.h and NVRTC have what kernels need of them. */
static const char *const stub_names[] = {
    "assert.h", "cmath", "cstddef", "cstdint", "cuda_runtime.h", "math.h", "stddef.h",
    "stdint.h", "stdio.h", "string.h",
};
static const char *const kernel_headers[] = {
    "kernels/kernel.h", "kernels/map.h", "kernels/slide.h", "kernels/resident.h",
};
enum {
    NSTUBS = sizeof stub_names / sizeof *stub_names,
    NKERNEL_HEADERS = sizeof kernel_headers / sizeof *kernel_headers,
};

typedef struct options {
    int n;
    const char **v;
    char arch[40];
    char **dir;
} options;

/* For the given sources. */
static bool set_options(options *o, const gp_unit *u, int nunits, int cc)
{
    static const char cuda[] = "/usr/local/cuda/include";
    o->v = calloc((size_t)(nunits + 8), sizeof *o->v);
    o->dir = calloc((size_t)nunits + 1, sizeof *o->dir);
    if (!o->v || !o->dir)
        return false;
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=sm_%d", cc);
    o->v[o->n++] = o->arch;
    o->v[o->n++] = "--std=c++17";
    o->v[o->n++] = "--fmad=false";
    o->v[o->n++] = "--generate-line-info";
    for (int i = 0; i < nunits; i++) {
        if (asprintf(&o->dir[i], "--include-path=%s", u[i].dir) < 0) {
            o->dir[i] = NULL;
            return false;
        }
        o->v[o->n++] = o->dir[i];
    }
    if (access(cuda, R_OK) == 0)
        o->v[o->n++] = "--include-path=/usr/local/cuda/include";
    return true;
}

static void free_options(options *o)
{
    for (int i = 0; o->dir && o->dir[i]; i++)
        free(o->dir[i]);
    free(o->dir), free(o->v);
}

static gp_key make_key(gp_hash *hash, const nvrtc *rtc, const options *o)
{
    int version[2] = { 0, 0 };
    rtc->version(&version[0], &version[1]);
    gp_hash_text(hash, "cuda " GP_VERSION);
    gp_hash_add(hash, version, sizeof version);
    for (int i = 0; i < o->n; i++)
        gp_hash_text(hash, o->v[i]);
    return gp_hash_end(hash);
}

/* NULL, with an image; or what the compiler said, malloc'd. */
static char *build(const nvrtc *rtc, const char *text, const options *o, void **image,
                   size_t *bytes)
{
    const char *header[NSTUBS + NKERNEL_HEADERS], *name[NSTUBS + NKERNEL_HEADERS];
    int n = 0;
    for (; n < NSTUBS; n++)
        header[n] = "", name[n] = stub_names[n];
    for (const gp_blob *b = gp_blobs; b->name; b++)
        for (int i = 0; i < NKERNEL_HEADERS; i++)
            if (!strcmp(b->name, kernel_headers[i]))
                header[n] = (const char *)b->data, name[n++] = strchr(b->name, '/') + 1;
    void *prog = NULL;
    char *log = NULL;
    size_t length = 0;
    int rc = rtc->create(&prog, text, "gpipe.cu", n, header, name);
    if (rc == 0)
        rc = rtc->compile(prog, o->n, o->v);
    if (rc && prog && rtc->log_size(prog, &length) == 0 && length > 1
        && (log = calloc(1, length + 1)))
        rtc->log(prog, log);
    if (rc == 0 && !(rc = rtc->cubin_size(prog, bytes)) && !(*image = malloc(*bytes + 1)))
        log = strdup("out of memory");
    if (rc == 0 && *image)
        rc = rtc->cubin(prog, *image);
    if (rc && !log)
        log = strdup(rtc->error(rc));
    if (prog)
        rtc->destroy(&prog);
    return log;
}

static bool compile(const nvrtc *rtc, const gp_unit *u, const options *o, void **image,
                    size_t *bytes, gp_errs *errs)
{
    const gp_source *src = u->src;
    char *log = build(rtc, u->text, o, image, bytes);
    if (log) {
        gp_unit_errors(u, log, errs);
        free(log);
        return false;
    }
    return memmem(*image, *bytes, src->entry, strlen(src->entry) + 1)
        || gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = src->path }, "'%s' has a C++ name; declare "
                   "it as extern \"C\" __global__ void %s(...)", src->entry, src->entry);
}

bool gp_nvrtc_compile(const gp_source *src, int cc, void **image, size_t *bytes, gp_errs *errs)
{
    nvrtc rtc;
    gp_unit u = { 0 };
    options o = { 0 };
    char path[PATH_MAX], what[300];
    *image = NULL;
    snprintf(what, sizeof what, "compiling '%.200s' for the GPU", src->path);
    if (!open_nvrtc(&rtc, what, "install libnvrtc of CUDA 12 or 13, or run with 'device: cpu'",
                    src->at, errs))
        return false;
    bool ok = gp_unit_make(&u, src, false, errs);
    if (ok && !set_options(&o, &u, 1, cc))
        ok = gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
    if (ok) {
        gp_key key = make_key(&u.hash, &rtc, &o);
        if (!u.traced || !gp_cache_find(&key, ".cubin", path, image, bytes)) {
            ok = compile(&rtc, &u, &o, image, bytes, errs);
            if (ok && u.traced)
                gp_cache_store(&key, ".cubin", *image, *bytes, path);
        }
    }
    if (!ok) {
        free(*image);
        *image = NULL;
    }
    free_options(&o);
    gp_unit_free(&u);
    return ok;
}

bool gp_nvrtc_compile_text(const char *text, const gp_source *const *source, int nsource, int cc,
                           void **image, size_t *bytes, gp_errs *errs)
{
    nvrtc rtc;
    options o = { 0 };
    char path[PATH_MAX];
    gp_unit *u = calloc((size_t)nsource + 1, sizeof *u);
    gp_hash hash;
    bool ok = u, traced = true;
    *image = NULL;
    if (!open_nvrtc(&rtc, "'launch: persistent'",
                    "install libnvrtc of CUDA 12 or 13, or set 'launch: graph'", (gp_loc){ 0 },
                    errs)) {
        free(u);
        return false;
    }
    gp_hash_begin(&hash);
    gp_hash_text(&hash, text);
    for (const gp_blob *b = gp_blobs; b->name; b++)
        for (int i = 0; i < NKERNEL_HEADERS; i++)
            if (!strcmp(b->name, kernel_headers[i]))
                gp_hash_text(&hash, (const char *)b->data);
    for (int i = 0; ok && i < nsource; i++)
        if ((ok = gp_unit_make(&u[i], source[i], false, errs))) {
            gp_key key = gp_hash_end(&u[i].hash);  /* with all that it includes */
            gp_hash_text(&hash, key.hex);
            traced &= u[i].traced;
        }
    if (ok && set_options(&o, u, nsource, cc)) {
        gp_key key = make_key(&hash, &rtc, &o);
        if (!traced || !gp_cache_find(&key, ".cubin", path, image, bytes)) {
            char *log = build(&rtc, text, &o, image, bytes);
            if (log)
                ok = gp_fail(errs, GP_E_SPEC, nsource ? source[0]->at : (gp_loc){ 0 },
                             "the kernels cannot be put into one resident kernel: set "
                             "'launch: graph': %.300s", log);
            else if (traced)
                gp_cache_store(&key, ".cubin", *image, *bytes, path);
            free(log);
        }
    } else if (ok) {
        ok = gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    }
    for (int i = 0; u && i < nsource; i++)
        gp_unit_free(&u[i]);
    free(u);
    free_options(&o);
    return ok;
}
