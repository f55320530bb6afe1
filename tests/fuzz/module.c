/* module.c - kernels of other compilers: each input as a PTX, cubin or fatbin; what it says as what the driver says. */
#include <stdlib.h>
#include <string.h>
#include "base/module.h"
#include "fuzz.h"

static void one(const char *data, size_t n)
{
    gp_source src = { .path = "k.cubin", .entry = "k", .overlaps = true, .at = { "p.yaml", 3, 5, 1 } };
    static const char *const param[] = { "const float *", "int", "unsigned char" };
    gp_errs errs = { 0 };
    gp_module m;
    size_t size[4];
    char why[GP_WHY], *text = malloc(n + 1);
    memcpy(text, data, n), text[n] = 0;
    if (gp_module_read(&m, text, n, src.entry, why)) {
        MUST(strlen(m.names) < sizeof m.names && strlen(m.first) < sizeof m.first && m.narchs <= GP_MODULE_ARCHS);
        MUST(!m.kernels == !*m.first);
        bool may = gp_module_allows(&m, &src, why);
        src.overlaps = false, src.cooperative = true;
        MUST(!may || gp_module_allows(&m, &src, why));
        for (int cc = 70; cc < 130; cc++)
            gp_module_fits(&m, cc, why);
    }
    src.param = param, src.nparam = 3;
    for (size_t i = 0; i < 4; i++)
        size[i] = i < n ? (unsigned char)data[i] : 8;
    MUST(gp_module_takes(&src, size, n < 4 ? (int)n : 4, &errs) == !errs.failed);
    gp_module_errors(&src, text, &errs);
    MUST(errs.failed > 0);
    fuzz_print_errs(&errs, text, n);
    free(text);
}

const fuzz_harness fuzz_module = { .name = "module", .one = one };
