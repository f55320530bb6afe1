/* history.c - see history.h. */
#include "history.h"

bool gp_history(gp_dcall *c, size_t past, const void *x, size_t bytes)
{
    char *to = c->carried;
    if (!past)
        return true;
    if (bytes >= past)
        return gp_copy(c, to, (const char *)x + (bytes - past), past);
    return gp_copy(c, c->scratch, to + bytes, past - bytes)
        && gp_copy(c, to, c->scratch, past - bytes)
        && gp_copy(c, to + (past - bytes), x, bytes);
}
