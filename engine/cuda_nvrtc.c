/* cuda_nvrtc.c - compiles a user's kernel for a CUDA device.
 *
 * NVRTC is opened when the first user's kernel asks for it; it needs no driver.
 * Contraction to fused multiply-add is off, as on the CPU, so that both give the
 * same bits; a kernel that wants it says fmaf(). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpu_kernel.h"
#include "gpipe.h"
#include "source.h"

/* The part of nvrtc.h that is used; its ABI has been the same since CUDA 11.1. */
typedef struct nvrtc {
    void *dl;
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

static bool open_nvrtc(nvrtc *n)
{
    static const char *const names[] = {
        "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
        "/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12",
        "/usr/local/cuda/lib64/libnvrtc.so",
    };
    const struct { const char *name; void *to; } symbol[] = {
        { "nvrtcVersion", &n->version },
        { "nvrtcGetErrorString", &n->error },
        { "nvrtcCreateProgram", &n->create },
        { "nvrtcDestroyProgram", &n->destroy },
        { "nvrtcCompileProgram", &n->compile },
        { "nvrtcGetProgramLogSize", &n->log_size },
        { "nvrtcGetProgramLog", &n->log },
        { "nvrtcGetCUBINSize", &n->cubin_size },
        { "nvrtcGetCUBIN", &n->cubin },
    };
    *n = (nvrtc){ 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names && !n->dl; i++)
        n->dl = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; i < sizeof symbol / sizeof *symbol && n->dl; i++) {
        void *f = dlsym(n->dl, symbol[i].name);
        memcpy(symbol[i].to, &f, sizeof f);
        if (!f) {
            dlclose(n->dl);
            n->dl = NULL;
        }
    }
    return n->dl != NULL;
}

/* Headers of the C library that a source may name, so that it also compiles for
 * the CPU: kernel.h and NVRTC have what kernels need of them. */
static const char *const stub_names[] = {
    "assert.h", "cmath", "cstddef", "cstdint", "cuda_runtime.h", "math.h", "stddef.h",
    "stdint.h", "stdio.h", "string.h",
};
enum { NSTUBS = sizeof stub_names / sizeof *stub_names };

typedef struct options {
    int n;
    const char **v;
    char arch[40], dir[PATH_MAX + 20];
} options;

static bool set_options(options *o, const gp_unit *u, int cc)
{
    static const char cuda[] = "/usr/local/cuda/include";
    o->v = calloc((size_t)(2 * u->src->ndefine + 8), sizeof *o->v);
    if (!o->v)
        return false;
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=sm_%d", cc);
    snprintf(o->dir, sizeof o->dir, "--include-path=%s", u->dir);
    o->v[o->n++] = o->arch;
    o->v[o->n++] = "--std=c++17";
    o->v[o->n++] = "--fmad=false";
    o->v[o->n++] = "--generate-line-info";
    o->v[o->n++] = o->dir;
    if (access(cuda, R_OK) == 0)
        o->v[o->n++] = "--include-path=/usr/local/cuda/include";
    for (int i = 0; i < u->src->ndefine; i++) {
        o->v[o->n++] = "-D";
        o->v[o->n++] = u->src->define[i];
    }
    return true;
}

static gp_key make_key(gp_unit *u, const nvrtc *rtc, const options *o)
{
    int version[2] = { 0, 0 };
    rtc->version(&version[0], &version[1]);
    gp_hash_text(&u->hash, "cuda " GP_VERSION);
    gp_hash_add(&u->hash, version, sizeof version);
    for (int i = 0; i < o->n; i++)
        gp_hash_text(&u->hash, o->v[i]);
    return gp_hash_end(&u->hash);
}

static bool compile(const nvrtc *rtc, const gp_unit *u, const options *o, void **image,
                    size_t *bytes, gp_errs *errs)
{
    const gp_source *src = u->src;
    const char *stubs[NSTUBS];
    void *prog = NULL;
    for (int i = 0; i < NSTUBS; i++)
        stubs[i] = "";
    int rc = rtc->create(&prog, u->text, "gpipe.cu", NSTUBS, stubs, stub_names);
    if (rc == 0)
        rc = rtc->compile(prog, o->n, o->v);
    if (rc) {
        size_t n = 0;
        char *log = NULL;
        if (prog && rtc->log_size(prog, &n) == 0 && n > 1 && (log = calloc(1, n + 1)))
            rtc->log(prog, log);
        gp_unit_errors(u, log ? log : rtc->error(rc), errs);
        free(log);
    } else if ((rc = rtc->cubin_size(prog, bytes)) || !(*image = malloc(*bytes + 1)) ||
               (rc = rtc->cubin(prog, *image))) {
        gp_fail(errs, GP_E_RESOURCE, src->at, "cannot compile '%s': %s", src->path,
                rc ? rtc->error(rc) : "no memory");
        rc = 1;
    } else if (!memmem(*image, *bytes, src->entry, strlen(src->entry) + 1)) {
        gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = src->path }, "'%s' has a C++ name; declare "
                "it as extern \"C\" __global__ void %s(...)", src->entry, src->entry);
        rc = 1;
    }
    if (prog)
        rtc->destroy(&prog);
    return rc == 0;
}

bool gp_nvrtc_compile(const gp_source *src, int cc, void **image, size_t *bytes, gp_errs *errs)
{
    nvrtc rtc;
    gp_unit u = { 0 };
    options o = { 0 };
    char path[PATH_MAX];
    *image = NULL;
    if (!open_nvrtc(&rtc))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no NVRTC to compile '%s' for the GPU; "
                       "install libnvrtc of CUDA 12 or 13, or run with `device: cpu`", src->path);
    bool ok = gp_unit_make(&u, src, false, errs);
    if (ok && !set_options(&o, &u, cc))
        ok = gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
    if (ok) {
        gp_key key = make_key(&u, &rtc, &o);
        if (!gp_cache_find(&key, ".cubin", path, image, bytes)) {
            ok = compile(&rtc, &u, &o, image, bytes, errs);
            if (ok)
                gp_cache_store(&key, ".cubin", *image, *bytes, path);
        }
    }
    if (!ok) {
        free(*image);
        *image = NULL;
    }
    free(o.v);
    gp_unit_free(&u);
    dlclose(rtc.dl);
    return ok;
}
