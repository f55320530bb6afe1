/* registry.c - the table of stage kinds, sorted by name.
 *
 * Everything that resolve relies on is checked here once, when a kind is
 * added: a kind in the table has a valid descriptor. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/c_locale.h"
#include "compile/registry.h"
#include "compile/resolve.h"

typedef struct entry {
    gp_kind kind;              /* a copy, so that each has the size of ours */
    const gp_plugged *from;    /* NULL: of no plug-in */
} entry;

struct gp_registry {
    entry **kind;
    int n, cap;
    gp_plugged *plugged;
    char *looked, *failed;     /* names with commas between; NULL: none */
    _Atomic(const char *) opens;
};

gp_registry *gp_registry_create(void)
{
    return calloc(1, sizeof(gp_registry));
}

void gp_registry_destroy(gp_registry *r)
{
    for (int i = 0; r && i < r->n; i++)
        free(r->kind[i]);
    for (gp_plugged *p = r ? r->plugged : NULL, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    if (r)
        free(r->kind), free(r->looked), free(r->failed);
    free(r);
}

/* The place of `name`: of the kind if it is there, else where it belongs. */
static int place(const gp_registry *r, const char *name)
{
    int lo = 0, hi = r->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (strcmp(r->kind[mid]->kind.name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const gp_kind *gp_kind_at(const gp_registry *r, int i)
{
    return i >= 0 && i < r->n ? &r->kind[i]->kind : NULL;
}

const gp_kind *gp_kind_find(const gp_registry *r, const char *name)
{
    const gp_kind *k = gp_kind_at(r, place(r, name));
    return k && !strcmp(k->name, name) ? k : NULL;
}

const gp_opt *gp_kind_opt(const gp_kind *k, const char *name, gp_opt_type type)
{
    for (const gp_opt *o = k->opts; o && o->name; o++)
        if (o->type == type && !strcmp(o->name, name))
            return o;
    return NULL;
}

/* ---- checks ---------------------------------------------------------- */

#define BAD(...) gp_fail(errs, GP_E_USAGE, (gp_loc){0}, __VA_ARGS__)

static bool ports_sound(const gp_kind *k, const gp_port *p, const char *side, gp_errs *errs)
{
    for (int i = 0; p && p[i].name; i++) {
        if (i == GP_MAXPORT)
            return BAD("kind '%s' has more than %d %s ports", k->name, GP_MAXPORT, side);
        if (!strcmp(p[i].name, "*") ? p[i + 1].name != NULL : !gp_is_name(p[i].name))
            return BAD("kind '%s': '%s' is not a valid name for %s port %d", k->name, p[i].name,
                       side, i);
        if (p == k->in && !(p[i].accept & GP_ACCEPT_ANY))
            return BAD("kind '%s': the input '%s' accepts no type", k->name, p[i].name);
        for (int j = 0; j < i; j++)
            if (!strcmp(p[i].name, p[j].name))
                return BAD("kind '%s' has two %s ports '%s'", k->name, side, p[i].name);
    }
    return true;
}

static bool option_sound(const gp_kind *k, int i, gp_reader *r, void *opts, gp_errs *errs)
{
    const gp_opt *o = &k->opts[i];
    size_t size = gp_opt_size(o->type);
    bool of_source = !k->in || !k->in->name;
    if (gp_is_stage_key(o->name) && !(of_source && !strcmp(o->name, "when_full")))     /* whose frames nobody waits for */
        return BAD("kind '%s': '%s' is a key of every stage, and no name for an option", k->name, o->name);
    if (!gp_is_name(o->name))
        return BAD("kind '%s': '%s' is not a valid name for an option; use letters, digits and _", k->name, o->name);
    for (int j = 0; j < i; j++)
        if (!strcmp(k->opts[j].name, o->name))
            return BAD("kind '%s' has two options '%s'", k->name, o->name);
    if (!size)
        return BAD("kind '%s': option '%s' has no type", k->name, o->name);
    if (size > k->opts_size || o->off > k->opts_size - size)
        return BAD("kind '%s': option '%s' lies outside of opts_size", k->name, o->name);
    if (!o->help)
        return BAD("kind '%s': option '%s' has no help", k->name, o->name);
    bool stands_in = o->type != GP_OPT_ENUM && o->required && o->choices && gp_option_find(k, o->choices);
    bool of_texts = o->type == GP_OPT_NODE && o->choices && !strcmp(o->choices, "text");
    if ((o->type == GP_OPT_ENUM) != (o->choices != NULL) && !stands_in && !of_texts)
        return BAD("kind '%s': option '%s': an enum, and only an enum, has choices", k->name,
                   o->name);
    if (o->def && (o->required || o->type == GP_OPT_NODE))
        return BAD("kind '%s': option '%s' may have no default", k->name, o->name);
    gp_errs *report = r->errs;
    gp_errs why = { .n = 0 };
    r->errs = &why;
    bool ok = !o->def || gp_opt_default(r, o, (char *)opts + o->off);
    r->errs = report;
    return ok || BAD("kind '%s': the default of option '%s': %s", k->name, o->name, why.e[0].msg);
}

static bool each_option_sound(const gp_kind *k, gp_arena *a, gp_errs *errs)
{
    gp_reader *r = GP_NEW(a, gp_reader, 1);
    void *opts = gp_alloc(a, k->opts_size);
    r->arena = a, r->errs = errs, r->dir = "", r->vars = GP_NEW(a, gp_vars, 1);
    for (int i = 0; k->opts && k->opts[i].name; i++)
        if (!option_sound(k, i, r, opts, errs))
            return false;
    return true;
}

static bool options_sound(const gp_kind *k, gp_errs *errs)
{
    gp_arena a = {0};
    GP_IF_OOM(&a) {
        gp_arena_free(&a);
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    }
    bool ok = each_option_sound(k, &a, errs);
    gp_arena_free(&a);
    return ok;
}

static bool is_one(const gp_port *p)
{
    return p && p[0].name && strcmp(p[0].name, "*") && !p[0].optional && !p[1].name;
}

static bool sound(const gp_kind *k, gp_errs *errs)
{
    if (!k->name || !gp_is_name(k->name))
        return BAD("a kind is named '%s'", k->name ? k->name : "");
    bool sink = !k->out || !k->out[0].name, one = is_one(k->in) && is_one(k->out);
    bool works = k->open || k->close || k->finish || k->break_off || k->save || k->set_workers || k->max_run;
    const struct { bool is; const char *what; } wrong[] = {
        { !k->help, "has no help" },
        { !k->shape, "has no shape()" },
        { !k->run && !k->record && (works || !one), "has no run(), nor record() for the device" },
        { !k->run && k->finish, "has finish() and no run()" },
        { !k->run && k->break_off, "has break_off() and no run()" },
        { !k->run && k->save, "has save() and no run()" },
        { !k->run && k->set_workers, "has set_workers() and no run()" },
        { k->save && !sink, "has save(), but is no sink" },
        { !k->run && (!k->in || !k->in[0].name), "is a source and has no run()" },
        { k->emit && !(k->record && one), "has emit(), but not record() and one input and output" },
        { k->table && !k->record, "has table() and no record()" },
        { k->reserve && !(k->run && sink), "has reserve(), but is no sink with run()" },
        { k->one_rank && !k->collective, "has one_rank, but is not collective" },
        { k->joins && !(k->run && sink), "has joins, but is no sink with run()" },
        { k->fills_device && (!k->run || (k->record && !k->collective)), "has fills_device, but is no kind with run() alone" },
        { k->reads_device && !k->fills_device, "has reads_device, and not fills_device" },
        { k->collective && !k->run, "is collective, but has no run()" },
        { k->skipped && !k->collective && !(k->run && sink), "has skipped(), but is neither collective nor a sink with run()" },
        { k->on_device && (!k->run || !k->record || k->elementwise),
          "has on_device(), but not run() and record(), or is elementwise" },
        { k->on_loan && (!k->run || k->record || (k->in && k->out) || !(is_one(k->in) || is_one(k->out))),
          "has on_loan, but is no source or sink with run() and one port" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].is)
            return BAD("kind '%s' %s", k->name, wrong[i].what);
    if (k->max_run < 0)
        return BAD("kind '%s': max_run is %d", k->name, k->max_run);
    return ports_sound(k, k->in, "input", errs) && ports_sound(k, k->out, "output", errs) && options_sound(k, errs)
        && ((k->in && k->in[0].name) || (k->out && k->out[0].name)
            || BAD("kind '%s' has neither an input nor an output", k->name));
}

/* A copy of a descriptor, which may have another size, as one of ours: fields that it does
 * not have are zero; fields that we do not know must be zero. NULL after an error; the
 * caller frees it. */
static entry *copy_of(const gp_kind *k, gp_errs *errs)
{
    const unsigned char *bytes = (const unsigned char *)k;
    size_t known = k->size < sizeof *k ? k->size : sizeof *k;
    if (k->abi != GP_ABI || k->size < offsetof(gp_kind, shape) + sizeof k->shape)
        return GP_NULL(gp_fail(errs, GP_E_USAGE, (gp_loc){0}, "a stage kind was built for another gpipe (its ABI is "
                               "%u, its size %zu; the ABI of this gpipe is %d); build it again with this gpipe's "
                               "stage.h", k->abi, k->size, GP_ABI));
    for (size_t i = known; i < k->size; i++)
        if (bytes[i])
            return GP_NULL(gp_fail(errs, GP_E_USAGE, (gp_loc){0}, "stage kind '%s' uses something that this gpipe does "
                                   "not have (byte %zu of its descriptor); it needs a newer gpipe", k->name ? k->name
                                   : "", i));
    entry *copy = calloc(1, sizeof *copy);
    if (!copy)
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory"));
    memcpy(&copy->kind, k, known);
    copy->kind.size = sizeof copy->kind;
    return copy;
}

static bool insert(gp_registry *r, entry *k, gp_errs *errs)
{
    const char *name = k->kind.name;
    const gp_kind *taken = gp_kind_find(r, name);
    const gp_plugin_info *by = taken ? gp_kind_plugin(r, taken) : NULL;
    if (by)
        return BAD("there is a kind '%s' already, of plug-in '%s' %s (%s)", name, by->name, by->version, by->file);
    if (taken)
        return BAD("there is a kind '%s' already%s", name, k->from ? ", which is built in" : "");
    if (!GP_ROOM(r->kind, r->n, r->cap))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    int at = place(r, name);
    memmove(&r->kind[at + 1], &r->kind[at], sizeof *r->kind * (size_t)(r->n - at));
    r->kind[at] = k;
    r->n++;
    return true;
}

static bool add(gp_registry *r, const gp_kind *kind, const gp_plugged *from, gp_errs *errs)
{
    entry *k = copy_of(kind, errs);
    if (k)
        k->from = from;
    if (k && sound(&k->kind, errs) && insert(r, k, errs))
        return true;
    free(k);
    return false;
}

bool gp_register(gp_registry *r, const gp_kind *kind, gp_errs *errs)
{
    GP_C_LOCALE;
    return kind ? add(r, kind, NULL, errs) : BAD("no stage kind is given");
}

/* ---- plug-ins -------------------------------------------------------- */

const gp_plugin_info *gp_kind_plugin(const gp_registry *r, const gp_kind *k)
{
    int i = place(r, k->name);
    const gp_plugged *from = gp_kind_at(r, i) == k ? r->kind[i]->from : NULL;
    return from ? &from->info : NULL;
}

const gp_plugged *gp_registry_plugged(const gp_registry *r)
{
    return r->plugged;
}

const gp_plugin_info *gp_plugin_at(const gp_registry *r, const void *address)
{
    const gp_plugged *p = r->plugged;
    while (p && ((const char *)address < p->begin || (const char *)address >= p->end))
        p = p->next;
    return p ? &p->info : NULL;
}

bool gp_registry_plug(gp_registry *r, const gp_plugin *p, const char *file, const char *begin, const char *end_of,
                      gp_errs *errs)
{
    const char *text[] = { p->name, p->version, file }, *copy[3];
    size_t n = strlen(p->name) + strlen(p->version) + strlen(file) + 3;
    gp_plugged *from = malloc(sizeof *from + n);
    if (!from)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    char *end = from->text;
    for (int i = 0; i < 3; end += strlen(end) + 1, i++)
        copy[i] = strcpy(end, text[i]);
    from->info = (gp_plugin_info){ copy[0], copy[1], copy[2] };
    from->begin = begin, from->end = end_of;
    bool ok = true;
    for (const gp_kind *const *k = p->kinds; ok && *k; k++)
        ok = add(r, *k, from, errs);
    if (ok) {
        from->next = r->plugged;
        r->plugged = from;
        return true;
    }
    int kept = 0;
    for (int i = 0; i < r->n; i++)
        if (r->kind[i]->from == from)
            free(r->kind[i]);
        else
            r->kind[kept++] = r->kind[i];
    r->n = kept;
    free(from);
    return false;
}

/* Without memory the list ends earlier. */
static void append(char **list, const char *name)
{
    size_t n = *list ? strlen(*list) : 0;
    char *more = realloc(*list, n + strlen(name) + 3);
    if (more)
        sprintf(more + n, "%s%s", n ? ", " : "", name), *list = more;
}

void gp_registry_opening(gp_registry *r, const char *file)
{
    atomic_store(&r->opens, file);
}

const char *gp_plugin_opening(const gp_registry *r)
{
    return atomic_load(&r->opens);
}

void gp_registry_looked(gp_registry *r, const char *folder)
{
    append(&r->looked, folder);
}

void gp_registry_failed(gp_registry *r, const char *file)
{
    append(&r->failed, file);
}

char *gp_registry_missing(const gp_registry *r, bool near)
{
    char *text = NULL;
    const char *failed = r->failed ? r->failed : "", *looked = r->looked && (*failed || !near) ? r->looked : "";
    int n = !*failed && !*looked ? 0
          : asprintf(&text, "%s%s%s%s%s", failed, *failed ? " could not be loaded" : "", *failed && *looked ? "; " : "",
                     *looked ? "plug-ins were looked for in " : "", looked);
    return n < 0 ? NULL : text;
}

/* Is `word` one of a list of words? */
static bool is_among(const char *word, const char *list, char between)
{
    size_t n = strlen(word);
    const char *at = list;
    while (at && !(!strncmp(at, word, n) && (!at[n] || at[n] == between))) {
        at = strchr(at, between);
        at = at ? at + 1 : NULL;
    }
    return at != NULL;
}

enum { HINT = 400 };

static void add_hint(char hint[HINT], const char *kind, const char *opt, const char *value)
{
    size_t n = strlen(hint);
    snprintf(hint + n, HINT - n, "%s{use: %s%s%s%s%s}", n ? " or " : "; here it is ", kind, opt ? ", " : "",
             opt ? opt : "", opt ? ": " : "", opt ? value : "");
}

/* A kind that has `name` as another word, or those that have it as a choice of an option; "" if there are none. */
static void find_hint(const gp_registry *r, const char *name, char hint[HINT])
{
    const gp_kind *k;
    *hint = 0;
    for (int i = 0; (k = gp_kind_at(r, i)); i++) {
        if (is_among(name, k->also ? k->also : "", ' '))
            add_hint(hint, k->name, NULL, NULL);
        for (const gp_opt *o = k->opts; o && o->name; o++)
            if (o->type == GP_OPT_ENUM && o->required && is_among(name, o->choices, '|'))
                add_hint(hint, k->name, o->name, name);
    }
}

bool gp_registry_lacks(const gp_registry *r, const char *name, gp_code code, gp_loc at, gp_errs *errs)
{
    char known[HINT];
    gp_near near = GP_NEAR(name);
    const gp_kind *k;
    for (int i = 0; (k = gp_kind_at(r, i)); i++)
        gp_near_try(&near, k->name);
    find_hint(r, name, known);
    const char *hint = *known ? known : gp_near_text(&near);
    gp_fail(errs, code, at, "no stage kind '%s'%s", name, *hint ? hint : "; 'gpipe stages' lists them");
    char *missing = gp_registry_missing(r, *hint);
    if (missing)
        gp_fail(errs, GP_E_NOTE, at, "%s; one that is elsewhere is named by --plugin FILE.so, or in GPIPE_PLUGINS", missing);
    free(missing);
    return false;
}
