/* saved_variables.c - what a kernel's library keeps from launch to launch, its __device__ variables: saved,
 * and put back, so that a launch can be repeated. */
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpu/kernel.h"

enum { MOST_PARTS = 8 };

typedef struct part { char *at; size_t bytes, from; } part;    /* `from`: in the copy */

struct gp_cpu_saved {
    const void *code;
    part part[MOST_PARTS]; int nparts;
    size_t bytes;
    char *copy;
};

static bool holds(const struct dl_phdr_info *o, const ElfW(Phdr) *p, const void *address)
{
    return p->p_type == PT_LOAD && (uintptr_t)address - (o->dlpi_addr + p->p_vaddr) < p->p_memsz;
}

/* Where what cannot be written once the library is loaded ends; 0: there is nothing such. */
static uintptr_t sealed_end(const struct dl_phdr_info *o)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = 0;
    for (int i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            end = (o->dlpi_addr + o->dlpi_phdr[i].p_vaddr + o->dlpi_phdr[i].p_memsz) / page * page;
    return end;
}

static int find_parts(struct dl_phdr_info *o, size_t size, void *arg)
{
    gp_cpu_saved *k = arg;
    bool ours = false;
    for (int i = 0; i < o->dlpi_phnum; i++)
        ours |= holds(o, &o->dlpi_phdr[i], k->code);
    for (int i = 0; ours && i < o->dlpi_phnum && k->nparts < MOST_PARTS; i++) {
        const ElfW(Phdr) *p = &o->dlpi_phdr[i];
        uintptr_t at = o->dlpi_addr + p->p_vaddr, end = at + p->p_memsz, sealed = sealed_end(o);
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
            continue;
        if (at < sealed && sealed <= end)      /* they begin one segment */
            at = sealed;
        k->part[k->nparts++] = (part){ (char *)at, end - at, k->bytes };
        k->bytes += end - at;
    }
    return ours;
}

gp_cpu_saved *gp_cpu_keep(const void *code)
{
    gp_cpu_saved *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->code = code;
    dl_iterate_phdr(find_parts, k);
    if (!(k->copy = malloc(k->bytes + 1))) {
        free(k);
        return NULL;
    }
    for (int i = 0; i < k->nparts; i++)
        memcpy(k->copy + k->part[i].from, k->part[i].at, k->part[i].bytes);
    return k;
}

void gp_cpu_put_back(const gp_cpu_saved *k)
{
    for (int i = 0; i < k->nparts; i++)
        memcpy(k->part[i].at, k->copy + k->part[i].from, k->part[i].bytes);
}

void gp_cpu_keep_no_more(gp_cpu_saved *k)
{
    if (k)
        free(k->copy);
    free(k);
}
