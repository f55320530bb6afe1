/* wire.c - headers of messages from the network: what was read is written, and read again as the same. */
#include <stdio.h>
#include "fuzz.h"
#include "wire.h"

static void one(const char *data, size_t n)
{
    static const char *const keys[] = { "gain", "time" };
    gp_wire w, again;
    char why[GP_WHY] = "", *text = NULL;
    size_t len = 0;
    if (!gp_wire_read(&w, data, n, keys, 2, why)) {
        MUST(*why && strnlen(why, sizeof why) < sizeof why);
        return;
    }
    MUST(w.end || (w.type.dtype && w.type.ndim >= 1 && w.type.ndim <= GP_MAXDIM));
    MUST(w.end || gp_wire_fits(&w, 4, why) || *why);
    FILE *f = open_memstream(&text, &len);
    MUST(f && gp_wire_write(f, &w, keys, 2) && !fclose(f));
    MUST(gp_wire_read(&again, text, len, keys, 2, why));
    MUST(again.end == w.end && again.frame == w.frame && again.dropped == w.dropped && again.has == w.has);
    MUST(w.end || gp_type_same(&again.type, &w.type));
    free(text);
}

const fuzz_harness fuzz_wire = { .name = "wire", .one = one };
