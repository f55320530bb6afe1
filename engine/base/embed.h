/* embed.h - files that travel inside the binary: device code of the built-in
 * kernels, the header that lets kernels run on a CPU, Lua modules, the page of a
 * report. The tables are made by the Makefile. */
#pragma once

#include <string.h>

typedef struct gp_blob {
    const char *name;                      /* "kernels/gray.fatbin", "lua/gpipe.lua" */
    const unsigned char *data, *end;       /* *end is a NUL */
} gp_blob;

extern const gp_blob gp_blobs[];           /* ends with {0} */

/* The file of that name; NULL: there is none. */
static inline const gp_blob *gp_blob_find(const char *name)
{
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

/* A built-in kernel for the CPU: runs threads of one block, see kernels/cpu.h.
 * One table per file of kernels/, each ends with {0}. */
struct gp_cpu_block;
typedef struct gp_cpu_entry {
    const char *name;
    void (*threads)(struct gp_cpu_block *block, void *const *args);
    int nargs;
    const unsigned short *arg_bytes;       /* sizeof each parameter */
} gp_cpu_entry;

extern const gp_cpu_entry *const gp_cpu_tables[];   /* ends with NULL */
