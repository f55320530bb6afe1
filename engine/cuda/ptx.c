/* ptx.c - which of its own variables a kernel may change, and whether it waits for other blocks, as its PTX says
 * (NVIDIA, "Parallel Thread Execution ISA"). Other kernels of the source are compiled with it, and never launched.
 *
 * A variable lies in .global, and is changed through its address. The instructions of carries[] compute registers from
 * an address, which then carry it on; those of loads[] make plain values of it. Every other instruction that has such a
 * register, or the variable itself, may change the variable: st, atom and red, a call, and whatever is not known here.
 * A variable whose address is the initial value of another one may be changed, too. */
#include <stdlib.h>
#include <string.h>
#include "base/cxx.h"
#include "base/module.h"
#include "base/table.h"
#include "cuda/nvrtc.h"
#include "device/source.h"

static const char *const carries[] = {
    "mov", "cvta", "cvt", "add", "sub", "mul", "mad", "shl", "shr", "shf", "and", "or", "xor", "not", "neg", "min", "max",
    "selp", "slct", "bfe", "bfi", "prmt", "lop3", NULL
};
static const char *const loads[] = { "ld", "ldu", "prefetch", "prefetchu", "isspacep", "setp", "set", NULL };

enum { MAX_PASSES = 100 };     /* over a function: one more for each loop that an address goes around */

typedef struct search {
    gp_table variable;             /* the names of those in .global */
    gp_table carrier;              /* registers of a function that carry an address; ptr: the variable's name */
    const char *changed;           /* the first variable that is; NULL: none */
    bool more;                     /* the last pass over a function found a carrier */
    bool lost;                     /* there was no memory */
} search;

/* ---- statements ----------------------------------------------------------- */

static bool in_name(char c)
{
    return gp_in_word(c) || c == '$' || c == '%';
}

/* The next name in the statement at *p, which is moved behind it and cut off there; NULL: there is none. */
static char *next_name(char **p, char *end)
{
    char *from = *p;
    while (from < end && !in_name(*from))
        from++;
    char *to = from;
    while (to < end && in_name(*to))
        to++;
    *p = to;
    return from < to ? from : NULL;
}

/* The variable whose address is in, or is, the name of n characters; NULL: none. */
static const char *carried(const search *s, char *name, size_t n)
{
    char last = name[n];
    name[n] = 0;
    const gp_entry *v = gp_table_find(&s->variable, name), *r = v ? NULL : gp_table_find(&s->carrier, name);
    name[n] = last;
    return v ? v->name : r ? r->ptr : NULL;
}

static bool is_of(const char *op, size_t n, const char *const *list)
{
    for (; *list; list++)
        if (n == strlen(*list) && !memcmp(op, *list, n))
            return true;
    return false;
}

/* Adds a name that is not in the table. */
static void add(search *s, gp_table *t, const char *name, size_t n, const char *variable)
{
    char *copy = strndup(name, n);
    gp_entry *e = copy ? gp_table_put(t, copy, 0) : NULL;
    if (e)
        e->ptr = (void *)variable;
    else
        free(copy), s->lost = true;
}

/* `.visible .global .align 4 .u32 name[4] = {...}` */
static void declare(search *s, char *p, char *end)
{
    char *value = memchr(p, '=', (size_t)(end - p)), *stop = value ? value : end, *name = next_name(&p, stop);
    while (name && (name[-1] == '.' || isdigit((unsigned char)*name)))
        name = next_name(&p, stop);
    size_t n = name ? (size_t)(p - name) : 0;
    if (n && !gp_module_is_constant(name) && !carried(s, name, n))
        add(s, &s->variable, name, n, NULL);
}

/* The address of a variable in the initial value of one. */
static void look_at_value(search *s, char *p, char *end)
{
    char *value = memchr(p, '=', (size_t)(end - p));
    for (char *w; value && !s->changed && (w = next_name(&value, end));)
        s->changed = carried(s, w, (size_t)(value - w));
}

/* `mad.wide.s32 %rd4, %r1, 4, %rd3`; `mov.b64 {%r1, %r2}, %rd3` */
static void look_at_instruction(search *s, char *p, char *end)
{
    const char *variable = NULL;
    char *op = next_name(&p, end), *w;
    size_t n = op ? (size_t)(p - op) : 0;
    if (!op || is_of(op, n, loads))
        return;
    bool carry = is_of(op, n, carries);
    while (p < end && *p == '.')               /* .wide.s32 */
        next_name(&p, end);
    p += strspn(p, " \t");
    char *into = p, *stop = p < end ? memchr(p, *p == '{' ? '}' : ',', (size_t)(end - p)) : NULL;
    for (p = carry && stop ? stop : p; !variable && (w = next_name(&p, end));)
        variable = carried(s, w, (size_t)(p - w));
    if (variable && !carry && !s->changed)
        s->changed = variable;
    while (variable && carry && stop && (w = next_name(&into, stop)))
        if (!carried(s, w, (size_t)(into - w)))
            add(s, &s->carrier, w, (size_t)(into - w), variable), s->more = true;
}

/* Is it a line that ends by itself, `.loc 1 2 3`? */
static bool is_line(const char *p)
{
    static const char *const lines[] = { ".loc", ".file", ".version", ".target", ".address_size", ".section", NULL };
    return is_of(p, strcspn(p, " \t\r\n"), lines);
}

/* The body of a function: statements, which end with ';', braces and labels. */
static void look_at_body(search *s, char *p, char *end)
{
    while (p < end) {
        p += strspn(p, " \t\r\n{};");
        if (p >= end)
            break;
        if (is_line(p)) {
            p += strcspn(p, "\n");
            continue;
        }
        if (*p == '@') {                       /* a guard, which is no operand */
            p += 1 + strspn(p + 1, "! \t\r\n");
            next_name(&p, end), p += strspn(p, " \t\r\n");
        }
        char *to = p + strcspn(p, ";");
        char *colon = memchr(p, ':', (size_t)(to - p)), *space = p + strcspn(p, " \t\n");
        if (colon && colon < space && colon[1] != ':') {
            p = colon + 1;
            continue;
        }
        if (*p != '.')                         /* .reg, .param: names that it declares */
            look_at_instruction(s, p, to < end ? to : end);
        p = to;
    }
}

static void free_names(gp_table *t)
{
    for (gp_entry *e = NULL; (e = gp_table_next(t, e));)
        free((char *)e->name);
    gp_table_free(t);
}

/* ---- functions and variables ------------------------------------------------ */

/* The line at p begins a function's body, or its declaration? */
static bool is_function(const char *p)
{
    size_t n = strcspn(p, "\n");
    return *p == '.' && (memmem(p, n, ".entry ", 7) || memmem(p, n, ".func ", 6));
}

/* The line at p begins another kernel than `entry`? It is compiled with it, and never launched. */
static bool is_other(const char *p, const char *entry)
{
    const char *name = memmem(p, strcspn(p, "\n"), ".entry ", 7);
    size_t n = strlen(entry);
    return *p == '.' && name && (strncmp(name + 7, entry, n) || in_name(name[7 + n]));
}

/* Does a line at p declare a variable in the space, ".global " or ".const "? */
static bool is_variable(const char *p, const char *space)
{
    return *p == '.' && !is_function(p) && memmem(p, strcspn(p, "\n=;"), space, strlen(space));
}

/* Behind the line, and the lines of a statement or body that it begins. An assembler text in a body may have braces. */
static char *behind(char *p)
{
    if (is_function(p)) {
        char *stop = p + strcspn(p, "{;"), *end = *stop == '{' ? (char *)gp_closing(stop) : stop;
        return end && *end ? end + 1 : p + strlen(p);
    }
    if (is_variable(p, ".global ") || is_variable(p, ".const ")) {
        char *end = p + strcspn(p, ";");
        return end + (*end == ';');
    }
    return p + strcspn(p, "\n");
}

static bool waits(const gp_source *src, char *ptx)
{
    for (char *p = ptx, *end; *p; p = end + strspn(end, " \t\r\n")) {
        end = behind(p);
        if (!is_other(p, src->entry) && memmem(p, (size_t)(end - p), "%envreg", 7))
            return true;
    }
    return false;
}

static void declare_all(search *s, char *ptx)
{
    for (char *p = ptx, *end; *p; p = end + strspn(end, " \t\r\n")) {
        end = behind(p);
        if (is_variable(p, ".global "))
            declare(s, p, end);
        for (char *in = is_function(p) ? p : NULL; in && (in = memmem(in, (size_t)(end - in), ".global ", 8)); in += 8)
            if (strchr(" \t\n{};", in[-1]))   /* of an assembler text: not in an instruction's name */
                declare(s, in, in + strcspn(in, ";"));
    }
}

static void look_at_function(search *s, char *body, char *end)
{
    int passes = 0;
    do {
        s->more = false;
        look_at_body(s, body, end);
    } while (s->more && !s->changed && !s->lost && ++passes < MAX_PASSES);
    if (passes == MAX_PASSES)                  /* written so that it takes long to read: the worst is assumed */
        s->changed = gp_table_next(&s->variable, NULL)->name;
    free_names(&s->carrier);
    s->carrier = (gp_table){ 0 };
}

static bool keeps_nothing(const gp_source *src, char *ptx, gp_errs *errs)
{
    search s = { .changed = NULL };
    declare_all(&s, ptx);
    for (char *p = ptx, *end; *p && s.variable.n; p = end + strspn(end, " \t\r\n")) {
        end = behind(p);
        char *body = is_function(p) && !is_other(p, src->entry) ? memchr(p, '{', (size_t)(end - p)) : NULL;
        if (is_variable(p, ".global ") || is_variable(p, ".const "))
            look_at_value(&s, p, end);
        if (body)
            look_at_function(&s, body, end);
    }
    char name[200];
    bool ok = !s.changed && !s.lost;
    if (s.changed)
        gp_plain_symbol(s.changed, name, sizeof name), gp_source_changes(src, name, errs);
    else if (s.lost)
        gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    free_names(&s.variable);
    return ok;
}

bool gp_ptx_check(const gp_source *src, const char *text, gp_errs *errs)
{
    char *ptx = gp_code_blank(text);           /* without comments */
    bool ok = ptx || gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (ok && !src->cooperative && waits(src, ptx))
        ok = gp_source_waits(src, errs);
    ok = ok && (!src->overlaps || keeps_nothing(src, ptx, errs));
    free(ptx);
    return ok;
}
