/* one_by_one.c - see one_by_one.h. */
#include "one_by_one.h"
#include <stdio.h>

bool gp_one_by_one(gp_call *c, gp_frame *f, int n, bool is_sink, gp_status (*one)(gp_call *c, gp_frame *f, bool first))
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        f[i].status = i && bytes >= GP_RUN_BYTES ? GP_AGAIN : one(c, &f[i], i == 0);
        if (f[i].status == GP_FAILED && i + 1 < n)
            f[i + 1].status = GP_AGAIN;            /* the others are not done */
        if (f[i].status != GP_OK && f[i].status != GP_LOST && f[i].status != GP_DROP)
            break;
        bytes += f[i].status == GP_OK ? gp_bytes(&(is_sink ? f[i].in : f[i].out)[0].type) : 0;
    }
    return true;
}

void gp_warn_of(const gp_call *c, gp_loc at, const char *of, const gp_oddity *odd, size_t n)
{
    char text[600] = "";
    size_t end = 0;
    for (size_t i = 0; i < n; i++)
        if (odd[i].n && end < sizeof text)
            end += (size_t)snprintf(text + end, sizeof text - end, "%s%llu %s", end ? "; " : "", (unsigned long long)odd[i].n,
                                    odd[i].what);
    if (end)
        gp_fail(c->errs, GP_E_WARN, at, "%s %s", of, text);
}
