/* state.c - variables that a compiled kernel could change, as the symbols of its library say.
 *
 * The text of a source is looked at before (stages/kernel/state.c); this is for what the text did
 * not show. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpu/kernel.h"

typedef struct library {
    const char *at; size_t bytes;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *section;
} library;

/* [offset, offset + bytes) of the file; NULL: it is not in it, or where no struct may be. */
static const void *part(const library *l, size_t offset, size_t bytes)
{
    return offset > l->bytes || bytes > l->bytes - offset || offset % 8 ? NULL : l->at + offset;
}

static const char *text(const library *l, const Elf64_Shdr *strings, size_t i)
{
    const char *p = l->at + strings->sh_offset;
    return i < strings->sh_size && memchr(p + i, 0, strings->sh_size - i) ? p + i : "";
}

/* The tables that names are in may begin anywhere. */
static bool holds(const library *l, const Elf64_Shdr *s)
{
    return s->sh_offset <= l->bytes && s->sh_size <= l->bytes - s->sh_offset;
}

/* May a kernel write what is in section `i`? */
static bool is_writable(const library *l, unsigned i)
{
    if (i == SHN_UNDEF || i >= l->head->e_shnum)
        return false;
    const Elf64_Shdr *s = &l->section[i];
    const char *name = text(l, &l->section[l->head->e_shstrndx], s->sh_name);
    return s->sh_flags & SHF_WRITE && !(s->sh_flags & SHF_TLS)
        && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS)
        && strncmp(name, ".data.rel.ro", 12) != 0 && strncmp(name, ".got", 4) != 0;
}

/* The last name in one that C++ made: 5 of _ZN3abc5countE. Others are as they are. */
static void plain(const char *symbol, char *name, size_t room)
{
    const char *last = symbol;
    size_t n = strlen(symbol);
    for (const char *p = symbol; !strncmp(symbol, "_Z", 2) && *p;) {
        char *end;
        unsigned long len = *p >= '1' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        if (len && len <= strlen(end))
            last = end, n = len, p = end + len;
        else
            p++;
    }
    snprintf(name, room, "%.*s", (int)n, last);
    if (!strncmp(symbol, "_Z", 2))
        return;
    char *dot = strchr(name, '.');         /* count.0: of a function */
    if (dot && dot > name)
        *dot = 0;
}

/* What compilers and their libraries put there themselves. */
static bool is_compilers(const char *symbol)
{
    static const char *const begin[] = { "completed.", "DW.ref.", "_ZGV", "_ZSt", "_ZNSt", "_ZNKSt",
                                         "_ZT", "__dso_handle", "__TMC_END__", NULL };
    for (int i = 0; begin[i]; i++)
        if (!strncmp(symbol, begin[i], strlen(begin[i])))
            return true;
    return false;
}

static bool is_fixed(const gp_source *src, const char *name)
{
    for (int i = 0; i < src->nfixed; i++)
        if (!strcmp(src->fixed[i], name))
            return true;
    return false;
}

static bool open_library(library *l, const void *data, size_t bytes)
{
    *l = (library){ .at = data, .bytes = bytes };
    l->head = part(l, 0, sizeof *l->head);
    if (!l->head || memcmp(l->head->e_ident, ELFMAG, SELFMAG) != 0
        || l->head->e_ident[EI_CLASS] != ELFCLASS64 || l->head->e_shentsize != sizeof *l->section)
        return false;
    l->section = part(l, l->head->e_shoff, (size_t)l->head->e_shnum * sizeof *l->section);
    return l->section && l->head->e_shstrndx < l->head->e_shnum
        && holds(l, &l->section[l->head->e_shstrndx]);
}

/* Looks through the library's symbols. 1: `name` is a variable that may be changed,
 * 0: there is none, -1: it has no such table. */
static int find(const library *l, const gp_source *src, char *name, size_t room)
{
    int found = -1;
    for (int i = 0; i < l->head->e_shnum; i++) {
        const Elf64_Shdr *t = &l->section[i];
        if (t->sh_type != SHT_SYMTAB || t->sh_link >= l->head->e_shnum
            || !holds(l, &l->section[t->sh_link]))
            continue;
        const Elf64_Sym *v = part(l, t->sh_offset, t->sh_size);
        found = v ? 0 : -1;
        for (size_t k = 0; v && k < t->sh_size / sizeof *v; k++) {
            const char *symbol = text(l, &l->section[t->sh_link], v[k].st_name);
            if (ELF64_ST_TYPE(v[k].st_info) != STT_OBJECT || !v[k].st_size
                || !is_writable(l, v[k].st_shndx) || is_compilers(symbol))
                continue;
            plain(symbol, name, room);
            if (!is_fixed(src, name))
                return 1;
        }
    }
    return found;
}

bool gp_cpu_keeps_nothing(const gp_source *src, const void *data, size_t bytes, gp_errs *errs)
{
    library l;
    char name[200];
    if (src->serial)
        return true;
    int found = open_library(&l, data, bytes) ? find(&l, src, name, sizeof name) : -1;
    if (found < 0)
        return gp_fail(errs, GP_E_SPEC, src->at, "the library that '%s' is compiled to has no symbols, so "
                       "that it is not known whether the kernel changes variables: leave -s out of "
                       "CXX, or set 'serial: true'", src->path);
    return !found || gp_fail(errs, GP_E_SPEC, src->at, "kernel '%s' of '%s' may change its variable '%s', "
                             "which launches for several frames share and change at the same time: declare "
                             "it const (or __constant__) if it is only read, else set 'serial: true', so "
                             "that frames take turns", src->entry, src->path, name);
}
