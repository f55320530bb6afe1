/* ort_library.c - see ort_library.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/dl.h"
#include "ort_library.h"

#define ADVICE "install a package of ONNX Runtime, as libonnxruntime-dev of Debian 13 or pip's onnxruntime, and " \
               "where the loader does not look set GPIPE_ONNXRUNTIME to the path of its libonnxruntime.so"

/* The library's first function gives these two. */
typedef struct base {
    const void *const *(*table)(uint32_t version);
    const char *(*version)(void);
} base;

bool gp_ort_open(gp_ort *l, gp_loc at, gp_errs *errs)
{
    const char *variable = getenv("GPIPE_ONNXRUNTIME");
    const char *named = variable && *variable ? variable : NULL;
    const char *const usual[] = { "libonnxruntime.so.1", "libonnxruntime.so", NULL }, *const one[] = { named, NULL };
    const base *(*get)(void);
    const gp_dl_symbol symbol[] = { { "OrtGetApiBase", &get }, { 0 } };
    if (!gp_dl_open(named ? one : usual, symbol, "a model", ADVICE, at, errs))
        return false;
    const char *version = get()->version();
    unsigned minor = 0;
    bool first = sscanf(version, "1.%u", &minor) == 1;
    if (first && minor < GP_ORT_TABLE)      /* which says so on stderr, if it is asked */
        return gp_fail(errs, GP_E_RESOURCE, at, "%s is ONNX Runtime %.20s, and models need 1.%d or later",
                       named ? named : usual[0], version, GP_ORT_TABLE);
    const void *const *table = get()->table(GP_ORT_TABLE);
    if (!table)
        return gp_fail(errs, GP_E_RESOURCE, at, "%s is ONNX Runtime %.20s, which no longer has the functions of 1.%d",
                       named ? named : usual[0], version, GP_ORT_TABLE);
    *l = (gp_ort){ .version = version };
#define X(name, place, theirs, result, parameters) memcpy(&l->name, &table[place], sizeof l->name);
    GP_ORT_CALLS(X)
    table = first && minor < GP_ORT_GPU_TABLE ? NULL : get()->table(GP_ORT_GPU_TABLE);
    if (table) {
        GP_ORT_GPU_CALLS(X)
    }
#undef X
    return true;
}

bool gp_ort_failed(const gp_ort *l, void *status, char why[GP_WHY])
{
    if (!status)
        return false;
    gp_why(why, "%s", l->status_text(status));
    for (char *p = why; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    for (size_t n = strlen(why); n && why[n - 1] == ' '; n--)
        why[n - 1] = 0;
    l->release_status(status);
    return true;
}
