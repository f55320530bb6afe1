/* written_variables.c - variables that a compiled kernel could change, as the symbols of its library say: those in
 * writable memory. __constant__ variables do not count, but for those of templates (kernels/cpu.h); nor do const ones,
 * unless their value is computed when it is first needed. */
#include <elf.h>
#include <string.h>
#include "base/cxx.h"
#include "cpu/kernel.h"
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
    static const char *const others[] = { ".data.rel.ro", ".got", NULL };
    if (i == SHN_UNDEF || i >= m->head->e_shnum)
        return false;
    const Elf64_Shdr *s = &m->section[i];
    return s->sh_flags & SHF_WRITE && !(s->sh_flags & SHF_TLS)
        && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS)
        && !begins(text(m, &m->section[m->head->e_shstrndx], s->sh_name), others);
}

/* What compilers, their libraries and instrumentation put there themselves. */
static bool is_compilers(const char *symbol)
{
    static const char *const begin[] = { "completed.", "DW.ref.", "_ZGV", "_ZSt", "_ZNSt", "_ZNKSt",
                                         "_ZT", "__dso_handle", "__TMC_END__", "__odr_asan", "__asan", "__tsan",
                                         "__gcov", "__llvm_prof", "__sanitizer", "_edata", "_end", "__bss_start", "$",
                                         NULL };
    return begins(symbol, begin);
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
static int find(const image *m, char *name, size_t room)
{
    int found = -1;
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
            /* without a type: of assembly */
            if ((type != STT_OBJECT && type != STT_NOTYPE) || !*symbol || !lasts(m, v[k].st_shndx) || is_compilers(symbol))
                continue;
            gp_plain_symbol(symbol, name, room);
            return 1;
        }
    }
    return found;
}

bool gp_source_writes_no_variable(const gp_source *src, const void *data, size_t bytes, gp_errs *errs)
{
    image m;
    char name[200];
    if (!src->overlaps)
        return true;
    if (!open_image(&m, data, bytes))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "the compiled '%s' cannot be read, so it is "
                       "not known whether the kernel changes variables: set 'serial: true'", gp_source_name(src));
    int found = find(&m, name, sizeof name);
    if (found < 0)
        return gp_fail(errs, GP_E_SPEC, src->at, "the compiled '%s' has no symbols, so it is not "
                       "known whether the kernel changes variables: leave -s out of CXX, or set 'serial: "
                       "true'", gp_source_name(src));
    return !found || gp_source_changes(src, name, errs);
}
