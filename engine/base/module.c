/* module.c - see module.h.
 *
 * PTX is read word by word, however its lines stand (NVIDIA, "Parallel Thread Execution ISA"). Of a cubin names of
 * sections and symbols say all that is wanted: a kernel's code is in .text.NAME, variables that it may change are in
 * .nv.global and .nv.global.init. A fatbin has a head of 16 bytes, then parts with a head each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cxx.h"
#include "base/module.h"
#include "base/plural.h"

bool gp_module_is_constant(const char *name)
{
    return *name == '$' || !strncmp(name, "_$_str", 6) || !strncmp(name, "__unnamed_", 10) || !strncmp(name, "_ZT", 3);
}

bool gp_module_is(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".cubin") || !strcmp(dot, ".ptx") || !strcmp(dot, ".fatbin"));
}

/* ---- what is in it ------------------------------------------------------- */

static void add_kernel(gp_module *m, const char *name, size_t n, const char *entry)
{
    char quoted[sizeof m->first + 2];
    m->found |= entry && n && strlen(entry) == n && !memcmp(entry, name, n);
    if (!n || n >= sizeof m->first)
        return;                        /* too long to be told */
    snprintf(quoted, sizeof quoted, "'%.*s'", (int)n, name);
    if (strstr(m->names, quoted))
        return;                        /* of another part */
    if (!m->kernels++)
        snprintf(m->first, sizeof m->first, "%.*s", (int)n, name);
    size_t used = strlen(m->names);
    if (used + n + 5 < sizeof m->names)
        snprintf(m->names + used, sizeof m->names - used, "%s%s", used ? ", " : "", quoted);
}

static void add_arch(gp_module *m, int sm, bool ptx, char only)
{
    if (m->narchs == GP_MODULE_ARCHS)
        return;
    m->arch[m->narchs].sm = sm, m->arch[m->narchs].ptx = ptx, m->arch[m->narchs++].only = only;
}

/* Something in global memory has this name, of n characters; others may stand behind it. */
static void add_variable(gp_module *m, const char *name, size_t n, bool others)
{
    if (m->changes || (gp_module_is_constant(name) && !others))
        return;
    m->changes = true;
    snprintf(m->variable, sizeof m->variable, "%.*s", (int)n, name);
}

static bool is_word(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(p, word, n);
}

static bool read_ptx(gp_module *m, const char *text, const char *entry)
{
    static const char in_word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%.";
    char *code = gp_code_blank(text);
    const char *before = "";
    size_t nbefore = 0;
    int words = 0;
    bool target = false, declares = false;     /* declares: behind .global, up to the name */
    for (const char *p = code; p && *(p += strcspn(p, in_word)); words++) {
        size_t n = strspn(p, in_word);
        if (!words && !is_word(p, n, ".version"))
            break;
        if (is_word(before, nbefore, ".entry"))
            add_kernel(m, p, n, entry);
        if (is_word(before, nbefore, ".target") && !strncmp(p, "sm_", 3)) {
            char *end;
            int sm = (int)strtol(p + 3, &end, 10);
            add_arch(m, sm, true, end < p + n ? *end : 0), target = true;
        }
        if (declares && *p != '.' && !isdigit((unsigned char)*p)) {
            const char *end = p + n + strspn(p + n, " \t\r\n[]0123456789");
            add_variable(m, p, n, *end == ',');
            declares = false;
        }
        declares |= is_word(p, n, ".global") && !is_word(before, nbefore, ".ptr");     /* that is of a parameter */
        m->waits |= n > 7 && !memcmp(p, "%envreg", 7);
        before = p, nbefore = n, p += n;
    }
    free(code);
    return words && target;
}

static uint64_t number(const char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

/* Of a cubin: the heads of its sections; `names`: what they are called. */
typedef struct elf { const char *d, *section, *names; size_t n, sections, nnames; } elf;
enum { HEAD = 64, SECTION = 64 };

/* A field of section i, which there is. */
static uint64_t field(const elf *e, uint64_t i, int at, int bytes)
{
    return number(e->section + i * SECTION + at, bytes);
}

/* The bytes of section i. */
static bool section_of(const elf *e, uint64_t i, const char **data, size_t *n)
{
    uint64_t at = i < e->sections ? field(e, i, 24, 8) : e->n + 1, size = i < e->sections ? field(e, i, 32, 8) : 0;
    *data = e->d + (at <= e->n ? at : 0), *n = size;
    return at <= e->n && size <= e->n - at;
}

/* The same of texts with a NUL at the end of each. */
static bool texts_of(const elf *e, uint64_t i, const char **data, size_t *n)
{
    return section_of(e, i, data, n) && *n && !(*data)[*n - 1];
}

static const char *name_of(const elf *e, uint64_t i)
{
    uint64_t at = i < e->sections ? field(e, i, 0, 4) : 0;
    return at < e->nnames ? e->names + at : "";
}

static bool is_global(const elf *e, uint64_t i)
{
    return !strncmp(name_of(e, i), ".nv.global", 10);
}

/* The symbols in section i. */
static bool read_symbols(gp_module *m, const elf *e, uint64_t i)
{
    enum { SYMBOL = 24, OBJECT = 1 };
    const char *s, *names;
    size_t n, nnames;
    if (!section_of(e, i, &s, &n) || !texts_of(e, field(e, i, 40, 4), &names, &nnames))
        return false;
    for (; n >= SYMBOL; s += SYMBOL, n -= SYMBOL) {
        uint64_t name = number(s, 4);
        if (name >= nnames)
            return false;
        if ((s[4] & 15) == OBJECT && is_global(e, number(s + 6, 2)))
            add_variable(m, names + name, strlen(names + name), false);
    }
    return true;
}

static bool read_cubin(gp_module *m, const char *d, size_t n, const char *entry)
{
    enum { CUDA = 190, ABI_SM_IN_2ND_BYTE = 8, SYMBOLS = 2 };
    if (n < HEAD || memcmp(d, "\177ELF\2\1", 6) || number(d + 18, 2) != CUDA || number(d + 58, 2) != SECTION)
        return false;
    uint64_t at = number(d + 40, 8), flags = number(d + 48, 4);
    elf e = { .d = d, .n = n, .sections = number(d + 60, 2) };
    if (at > n || e.sections > (n - at) / SECTION)
        return false;
    e.section = d + at;
    if (!texts_of(&e, number(d + 62, 2), &e.names, &e.nnames))
        return false;
    bool symbols = false, global = false;
    for (uint64_t i = 0; i < e.sections; i++) {
        const char *name = name_of(&e, i);
        if (!strncmp(name, ".text.", 6))
            add_kernel(m, name + 6, strlen(name + 6), entry);
        global |= is_global(&e, i);
        if (field(&e, i, 4, 4) != SYMBOLS)
            continue;
        symbols = true;
        if (!read_symbols(m, &e, i))
            return false;
    }
    if (global && !symbols)
        add_variable(m, "?", 1, true);
    add_arch(m, (int)(d[8] >= ABI_SM_IN_2ND_BYTE ? flags >> 8 & 255 : flags & 255), false, 0);
    return true;
}

enum { FAT_HEAD = 16, PART_HEAD = 64 };
static const uint64_t FAT_MAGIC = 0xba55ed50;

static bool read_fatbin(gp_module *m, const char *d, size_t n, const char *entry)
{
    enum { PTX = 1, CUBIN = 2 };
    size_t at = number(d + 6, 2), end = at + number(d + 8, 8), parts = 0;
    if (end > n || end < at)
        return false;
    for (; end - at >= PART_HEAD; parts++) {
        const char *p = d + at, *body;
        uint64_t kind = number(p, 2), head = number(p + 4, 4), bytes = number(p + 8, 8);
        if (head < PART_HEAD || head > end - at || bytes > end - at - head)
            return false;
        body = p + head;
        bool packed = number(p + 56, 8) != 0;          /* how large it is when unpacked */
        if (packed || (kind != PTX && kind != CUBIN))
            add_arch(m, (int)number(p + 28, 4), kind == PTX, 0), m->hidden = true;
        else if (kind == CUBIN && !read_cubin(m, body, bytes, entry))
            return false;
        else if (kind == PTX) {
            char *text = strndup(body, bytes);
            bool ok = text && read_ptx(m, text, entry);
            free(text);
            if (!ok)
                return false;
        }
        at += head + bytes;
    }
    return parts > 0;
}

bool gp_module_read(gp_module *m, const char *data, size_t n, const char *entry, char why[GP_WHY])
{
    *m = (gp_module){ .kernels = 0 };
    bool object = n >= 4 && !memcmp(data, "\177ELF", 4), fat = n >= FAT_HEAD && number(data, 4) == FAT_MAGIC;
    if (object ? read_cubin(m, data, n, entry) : fat ? read_fatbin(m, data, n, entry)
            : strlen(data) == n && read_ptx(m, data, entry))
        return true;
    return gp_why(why, !n ? "is empty" : object ? "is an ELF file, but no whole cubin" : fat ? "is not a whole fatbin"
                  : "is none of PTX (which begins with .version and .target), a cubin and a fatbin");
}

/* ---- whether it fits ------------------------------------------------------- */

bool gp_module_allows(const gp_module *m, const gp_source *src, char why[GP_WHY])
{
    if (!m->found && !m->hidden)
        return gp_why(why, "no kernel '%s' in '%s', which has %s", src->entry, src->path, m->kernels ? m->names : "none");
    if (m->waits && !src->cooperative)
        return gp_why(why, "'%s' reads %%envreg, as a kernel does that waits for all blocks of its grid, which needs them "
                      "to run at once: set 'cooperative: true'", src->path);
    if (src->overlaps && m->changes)
        return gp_why(why, "'%s' has a variable '%s', which launches for several frames share and may change at the same "
                      "time: declare it __constant__ if it is only read, else set 'serial: true', so that frames take turns",
                      src->path, m->variable);
    if (src->overlaps && m->hidden)
        return gp_why(why, "parts of '%s' are compressed, so that it cannot be seen whether its kernels change variables: "
                      "make it with 'nvcc --no-compress', or set 'serial: true', so that frames take turns", src->path);
    return true;
}

bool gp_module_fits(const gp_module *m, int cc, char list[GP_WHY])
{
    bool fits = false;
    size_t used = 0;
    *list = '\0';
    for (int i = 0; i < m->narchs; i++) {
        int sm = m->arch[i].sm;
        bool ptx = m->arch[i].ptx, same = sm / 10 == cc / 10;
        char only = m->arch[i].only;
        fits |= only == 'a' ? sm == cc : cc >= sm && (same || (ptx && !only));
        if (used < GP_WHY - 40)
            used += (size_t)snprintf(list + used, GP_WHY - used, "%ssm_%d%.1s%s", used ? ", " : "", sm, &only,
                                     ptx && !only ? " and newer" : "");
    }
    return fits;
}

static size_t size_of(const char *type)
{
    static const struct { const char *type; size_t bytes; } sizes[] = {
        { "unsigned char", 1 }, { "signed char", 1 }, { "unsigned short", 2 }, { "short", 2 }, { "unsigned", 4 },
        { "int", 4 }, { "float", 4 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!strcmp(type, sizes[i].type))
            return sizes[i].bytes;
    return 8;                          /* pointers, size_t, double, long long */
}

bool gp_module_takes(const gp_source *src, const size_t *size, int n, gp_errs *errs)
{
    char has[200] = "", asks[200] = "";
    int wrong = 0;
    for (int i = 0; i < n || i < src->nparam; i++) {
        size_t h = strlen(has), a = strlen(asks);
        if (i < n)
            snprintf(has + h, sizeof has - h, "%s%zu", i ? ", " : "", size[i]);
        if (i < src->nparam)
            snprintf(asks + a, sizeof asks - a, "%s%zu", i ? ", " : "", size_of(src->param[i]));
        wrong += wrong == i && i < n && i < src->nparam && size[i] == size_of(src->param[i]);
    }
    if (wrong == n && n == src->nparam)
        return true;
    bool place = src->param_at && wrong < src->nparam && src->param_at[wrong].file;
    return gp_fail(errs, GP_E_SPEC, place ? src->param_at[wrong] : src->at, "kernel '%s' of '%s' has %d parameter%s of "
                   "%s bytes, but args gives %d value%s of %s", src->entry, src->path, n, gp_plural(n), n ? has : "0",
                   src->nparam, gp_plural(src->nparam), src->nparam ? asks : "0");
}

/* "ptxas application ptx input, line 12; error   : Unknown symbol 'x'", a line each */
void gp_module_errors(const gp_source *src, const char *log, gp_errs *errs)
{
    enum { SHOWN = 5 };
    int told = 0;
    for (const char *p = log; *p && told < SHOWN; p += strspn(p, "\n")) {
        const char *line = p, *in, *error;
        size_t n = strcspn(p, "\n");
        p += n;
        if (!(in = memmem(line, n, "line ", 5)) || (!(error = memmem(in, (size_t)(p - in), "; error", 7))
                                                    && !(error = memmem(in, (size_t)(p - in), "; fatal", 7))))
            continue;
        error += 7 + strspn(error + 7, " \t:");
        gp_loc at = { .file = src->path, .line = atoi(in + 5) };
        gp_fail(errs, GP_E_SPEC, at, "%.*s", (int)(p - error), error);
        told++;
    }
    if (!told)
        gp_fail(errs, GP_E_SPEC, src->at, "the driver cannot compile '%s': %.400s", src->path, *log ? log : "it does not "
                "say why");
}
