/* image.c - variables that a compiled kernel could change, as the symbols of its image say. Both
 * the CPU's libraries and the GPU's cubins are ELF files.
 *
 * The text of a source is looked at before, where no compiler is (stages/kernel/state.c); this
 * finds what the text did not show. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/image.h"
#include "device/source.h"

typedef struct image {
    const char *at; size_t bytes;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *section;
} image;

/* [offset, offset + bytes) of the file; NULL: that is not in it, or not aligned for a struct. */
static const void *part(const image *m, size_t offset, size_t bytes)
{
    return offset > m->bytes || bytes > m->bytes - offset || offset % 8 ? NULL : m->at + offset;
}

/* The tables that names are in may begin anywhere. */
static bool holds(const image *m, const Elf64_Shdr *s)
{
    return s->sh_offset <= m->bytes && s->sh_size <= m->bytes - s->sh_offset;
}

static const char *text(const image *m, const Elf64_Shdr *strings, size_t i)
{
    const char *p = m->at + strings->sh_offset;
    return i < strings->sh_size && memchr(p + i, 0, strings->sh_size - i) ? p + i : "";
}

static bool begins(const char *name, const char *const *with)
{
    while (*with && strncmp(name, *with, strlen(*with)))
        with++;
    return *with != NULL;
}

/* May a kernel write what is in section `i`, and is that there for the next launch? */
static bool lasts(const image *m, unsigned i)
{
    static const char *const others[] = { ".data.rel.ro", ".got", ".nv.shared", ".nv.local", NULL };
    if (i == SHN_UNDEF || i >= m->head->e_shnum)
        return false;
    const Elf64_Shdr *s = &m->section[i];
    return s->sh_flags & SHF_WRITE && !(s->sh_flags & SHF_TLS)
        && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS)
        && !begins(text(m, &m->section[m->head->e_shstrndx], s->sh_name), others);
}

/* The name in one that C++ made: count of _ZN3abc5countE, tv of _Z2tvI3FooE. Others are as they
 * are, but for the number in count.0, of a function. */
static void plain(const char *symbol, char *name, size_t room)
{
    const char *last = symbol;
    size_t n = strcspn(symbol, ".");
    if (!n)
        n = strlen(symbol);
    for (const char *p = symbol; !strncmp(symbol, "_Z", 2) && *p;) {
        char *end;
        unsigned long len = *p >= '1' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        if (len && len <= strlen(end)) {
            last = end, n = len, p = end + len;
            if (*p == 'I' || *p == 'B')    /* template arguments, an ABI's tag */
                break;
        } else {
            p++;
        }
    }
    snprintf(name, room, "%.*s", (int)n, last);
}

/* What compilers and their libraries put there themselves. */
static bool is_compilers(const char *symbol)
{
    static const char *const begin[] = { "completed.", "DW.ref.", "_ZGV", "_ZSt", "_ZNSt", "_ZNKSt",
                                         "_ZT", "__dso_handle", "__TMC_END__", "__odr_asan", "$str", NULL };
    return begins(symbol, begin);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is the name in a list that is sorted? */
static bool is_among(const char *name, const char *const *list, int n)
{
    return n && bsearch(&name, list, (size_t)n, sizeof *list, compare);
}

static bool open_image(image *m, const void *data, size_t bytes)
{
    *m = (image){ .at = data, .bytes = bytes };
    m->head = part(m, 0, sizeof *m->head);
    if (!m->head || memcmp(m->head->e_ident, ELFMAG, SELFMAG) != 0
        || m->head->e_ident[EI_CLASS] != ELFCLASS64 || m->head->e_shentsize != sizeof *m->section)
        return false;
    m->section = part(m, m->head->e_shoff, (size_t)m->head->e_shnum * sizeof *m->section);
    return m->section && m->head->e_shstrndx < m->head->e_shnum
        && holds(m, &m->section[m->head->e_shstrndx]);
}

/* 1: `name` is a variable that may be changed, 0: there is none, -1: there are no symbols. */
static int find(const image *m, const gp_source *src, bool cpu, char *name, size_t room)
{
    const char *const *fixed = cpu ? src->constant : src->fixed;
    int found = -1, nfixed = cpu ? src->nconstants : src->nfixed;
    for (int i = 0; i < m->head->e_shnum; i++) {
        const Elf64_Shdr *t = &m->section[i];
        if (t->sh_type != SHT_SYMTAB || t->sh_link >= m->head->e_shnum
            || !holds(m, &m->section[t->sh_link]))
            continue;
        const Elf64_Sym *v = part(m, t->sh_offset, t->sh_size);
        found = v ? 0 : -1;
        for (size_t k = 0; v && k < t->sh_size / sizeof *v; k++) {
            const char *symbol = text(m, &m->section[t->sh_link], v[k].st_name);
            int type = ELF64_ST_TYPE(v[k].st_info);
            if ((type != STT_OBJECT && type != STT_NOTYPE) || !*symbol || !lasts(m, v[k].st_shndx)
                || is_compilers(symbol))
                continue;
            plain(symbol, name, room);
            /* without a type: of assembly, or of the linker */
            bool counts = src->words ? is_among(name, src->words, src->nwords) : type == STT_OBJECT;
            if (counts && !is_among(name, fixed, nfixed))
                return 1;
        }
    }
    return found;
}

bool gp_image_keeps_nothing(const gp_source *src, bool cpu, const void *data, size_t bytes, gp_errs *errs)
{
    image m;
    char name[200];
    if (!src->overlaps)
        return true;
    if (!open_image(&m, data, bytes))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "the compiled '%s' cannot be read, so it is "
                       "not known whether the kernel changes variables: set 'serial: true'", gp_source_name(src));
    int found = find(&m, src, cpu, name, sizeof name);
    if (found < 0)
        return gp_fail(errs, GP_E_SPEC, src->at, "the compiled '%s' has no symbols, so it is not "
                       "known whether the kernel changes variables: leave -s out of CXX, or set 'serial: "
                       "true'", gp_source_name(src));
    return !found || gp_fail(errs, GP_E_SPEC, src->at, "kernel '%s' of '%s' may change its variable '%s', "
                             "which launches for several frames share and change at the same time: declare "
                             "it const (or __constant__), with a value that the compiler knows, if it is only "
                             "read, else set 'serial: true', so that frames take turns", src->entry, gp_source_name(src), name);
}
