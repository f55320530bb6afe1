/* module.h - kernels that another compiler made, as it left them in a file: PTX, a cubin (an ELF file), or a fatbin of
 * several of these. What they say is read here; nothing is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "base/why.h"
#include "gpipe/stage.h"

enum { GP_MODULE_ARCHS = 32, GP_MODULE_MAX = 256 << 20 };      /* bytes: no module is larger */

typedef struct gp_module {
    int kernels;
    char first[200];           /* the name of one of them */
    char names[400];           /* "'a', 'b'": all, or as many as there is room for */
    bool found;                /* the one that was looked for is there */
    bool hidden;               /* parts of the fatbin are compressed: what follows may hold for them, too */
    bool changes;              /* it has a variable in global memory that may be changed; */
    char variable[200];        /* ... its name, as far as there is room */
    bool waits;                /* its PTX reads where a grid's barrier is */
    int narchs;
    struct { int sm; bool ptx; char only; } arch[GP_MODULE_ARCHS];     /* only: 'a', 'f' of sm_90a, sm_100f; else 0 */
} gp_module;

/* Is what lies in global memory under this name a compiler's, which nothing writes: texts of printf ($str; of libdevice
 * _$_str), __func__ and what assert() says (__unnamed_1), tables of virtual functions? */
bool gp_module_is_constant(const char *name);

/* Is a file of this name one? */
bool gp_module_is(const char *path);
/* Reads `n` bytes, behind which there is a NUL, and looks for kernel `entry` (NULL: for none). False: they are no module;
 * `why`. */
bool gp_module_read(gp_module *m, const char *data, size_t n, const char *entry, char why[GP_WHY]);
/* May the stage have the kernel: is it there, and does the module keep to what the source says? False: `why`. */
bool gp_module_allows(const gp_module *m, const gp_source *src, char why[GP_WHY]);
/* Can a GPU of this compute capability (90 is 9.0) run it? `list`: what it is for. */
bool gp_module_fits(const gp_module *m, int cc, char list[GP_WHY]);
/* False, with an error, unless the kernel's n parameters have the sizes of those that the source names. */
bool gp_module_takes(const gp_source *src, const size_t *size, int n, gp_errs *errs);
/* Turns what ptxas wrote into errors at lines of the file; always adds one. */
void gp_module_errors(const gp_source *src, const char *log, gp_errs *errs);
