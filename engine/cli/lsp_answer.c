/* lsp_answer.c - what a language server says of a place: its kind, option or buffer; what could stand there; where a
 * buffer is made. Where the text is no YAML, indentation and brackets tell (where.h). */
#include <stdlib.h>
#include <string.h>
#include "api/forms.h"
#include "base/memfile.h"
#include "cli/lsp.h"
#include "cli/where.h"
#include "draw/dump.h"

/* A word of the text and what it is for. */
typedef struct place {
    const gp_lsp *l;
    gp_where w;
    gp_span span;              /* len 0: there is no word */
    bool is_key;               /* of the map `box`; else it is a value */
    bool has_colon;
    gp_span key;               /* of a value: what it is the value of, in */
    int box;                   /* ... this map; 0: none */
    int stage;                 /* the stage that this is, or is in, or 0; */
    const gp_kind *kind;       /* its kind, or NULL */
} place;

/* ---- places --------------------------------------------------------------- */

static const gp_box *box_at(const place *p, int i)
{
    return &p->w.box[i > 0 ? i : 0];
}

static bool is_under(const place *p, int box, const char *key)
{
    return box > 0 && gp_where_is(&p->w, box_at(p, box)->key, key);
}

static bool is_stage(const place *p, int box)
{
    const gp_box *b = box_at(p, box), *of = box_at(p, b->parent);
    return box > 0 && !b->list
        && (gp_where_get(&p->w, box, "use").len || (of->list && is_under(p, b->parent, "stages")));
}

static bool is_buffer(const place *p, int box)
{
    return box > 0 && is_under(p, box_at(p, box)->parent, "buffers");
}

static bool is_top(const place *p, int box)
{
    return box <= 0 || (!box_at(p, box)->parent && !box_at(p, box)->list && !is_stage(p, box));
}

/* Does the box have what ports are called: in: {PORT: BUFFER}? */
static bool has_ports(const place *p, int box)
{
    return p->stage && p->stage == box_at(p, box)->parent && !box_at(p, box)->list
        && (is_under(p, box, "in") || is_under(p, box, "out") || is_under(p, box, "window"));
}

/* The place of the word that has byte `at`; false: no word has it. */
static bool find_place(const gp_lsp *l, gp_arena *a, place *p, const char *text, size_t len, size_t at)
{
    *p = (place){ .l = l };
    gp_where_scan(a, &p->w, text, len);
    int i = gp_where_at(&p->w, at);
    if (i < 0)
        return false;
    const gp_word *word = &p->w.word[i];
    const gp_box *b = box_at(p, word->box);
    p->has_colon = at - word->key.at < word->key.len;
    p->span = p->has_colon ? word->key : word->value;
    p->box = word->box, p->key = word->key;
    p->is_key = p->has_colon || (!word->key.len && !b->list) || (b->list && is_under(p, word->box, "stages"));
    if (b->list && !p->is_key)
        p->key = b->key, p->box = b->parent;
    for (p->stage = p->box; p->stage > 0 && !is_stage(p, p->stage);)
        p->stage = box_at(p, p->stage)->parent;
    gp_span use = p->stage > 0 ? gp_where_get(&p->w, p->stage, "use") : (gp_span){ 0 };
    if (use.len)
        p->kind = gp_kind_find(l->registry, gp_strndup(a, text + use.at, use.len));
    return true;
}

/* The same, or of the word that ends there. */
static bool find_near(const gp_lsp *l, gp_arena *a, place *p, const gp_doc *d, size_t at)
{
    return find_place(l, a, p, d->text, d->len, at) || (at && find_place(l, a, p, d->text, d->len, at - 1));
}

/* Has the stage of a place stages of its own? */
static bool is_branch(const place *p)
{
    for (int i = 0; i < p->w.nboxes; i++)
        if (p->w.box[i].parent == p->box && is_under(p, i, "stages"))
            return true;
    return false;
}

/* Row i of the keys that the map of a place may have; *rank: 0 for what must be there, 1 of the kind, 2 others. */
static const gp_opt *row_at(const place *p, int i, int *rank)
{
    bool of_stage = p->box > 0 && p->stage == p->box;
    bool item = box_at(p, p->box)->list && is_under(p, p->box, "stages");
    const gp_opt *own = of_stage && p->kind ? p->kind->opts : NULL;
    bool file = of_stage && gp_where_get(&p->w, p->box, "include").len;
    bool branch = of_stage && !gp_where_get(&p->w, p->box, "use").len && is_branch(p);
    const gp_opt *rows = file ? gp_include_keys : branch ? gp_branch_keys : of_stage || item ? gp_stage_keys : is_buffer(p, p->box) ? gp_buffer_keys
        : is_top(p, p->box) ? gp_top_keys : NULL;
    for (*rank = 1; own && own->name; own++)
        if (!i--)
            return *rank = !own->required, own;
    for (*rank = 2; rows && rows->name; rows++)
        if (!i--)
            return *rank = rows->required ? 0 : 2, rows;
    return NULL;
}

static const gp_opt *find_row(const place *p, gp_span key)
{
    const gp_opt *o;
    int rank;
    for (int i = 0; (o = row_at(p, i, &rank)); i++)
        if (gp_where_is(&p->w, key, o->name))
            return o;
    return NULL;
}

/* Port i that the keys of a place may name. */
static const gp_port *port_at(const place *p, int i)
{
    const gp_port *port = !has_ports(p, p->box) || !p->kind ? NULL
        : is_under(p, p->box, "out") ? p->kind->out : p->kind->in;
    for (; port && port->name && i; i--)
        port++;
    return port && port->name && strcmp(port->name, "*") ? port : NULL;
}

/* Is the word the name of a buffer? */
static bool names_buffer(const place *p)
{
    static const char *const keys[] = { "in", "out", "like", "carry", "until" };
    if (p->is_key)
        return is_under(p, p->box, "buffers") || is_under(p, p->box, "carry");
    for (int i = 0; i < 5; i++)
        if (gp_where_is(&p->w, p->key, keys[i]))
            return true;
    return is_under(p, p->box, "in") || is_under(p, p->box, "out") || is_under(p, p->box, "carry");
}

/* ---- what is there -------------------------------------------------------- */

/* Of the last text that was sound, with no stages fused, as these hide buffers. */
static void print_buffer(const place *p, FILE *to, const gp_doc *d, const char *name)
{
    gp_args args = *p->l->args;
    args.unfused = true;
    gp_loaded x = { .file = d->path, .text = d->sound, .len = d->sound_len };
    gp_errs ignored = { 0 };
    bool ok = d->sound && gp_load_for(&x, &args, p->l->machine, p->l->registry, &ignored);
    fputs("```text\n", to);
    if (!ok || !gp_dump_buffer(to, gp_pipeline_graph(x.pipeline), name))
        fprintf(to, "%s: not known while the pipeline has errors\n", name);
    fputs("```\n", to);
    x.text = NULL;
    gp_unload(&x);
}

static bool print_place(const place *p, FILE *to, gp_arena *a, const gp_doc *d)
{
    const char *word = gp_strndup(a, p->w.text + p->span.at, p->span.len);
    const gp_kind *k = NULL;
    const gp_port *port;
    if (names_buffer(p))
        return print_buffer(p, to, d, word), true;
    if (!p->is_key && gp_where_is(&p->w, p->key, "use") && (k = gp_kind_find(p->l->registry, word))) {
        fputs("```text\n", to);
        gp_kind_print(to, p->l->registry, k);
        fputs("```\n", to);
        return true;
    }
    for (int i = 0; p->is_key && (port = port_at(p, i)); i++)
        if (!strcmp(port->name, word))
            return fprintf(to, "**%s** %s\n", word, port->help ? port->help : "");
    const gp_opt *o = find_row(p, p->is_key ? p->span : p->key);
    if (!o)
        return false;
    fprintf(to, "**%s** %s\n\n", o->name, o->help);
    gp_option_print(to, o);
    fputc('\n', to);
    return true;
}

void gp_lsp_hover(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at)
{
    place p;
    gp_memfile m;
    size_t n;
    if (!gp_memfile_open(&m))
        longjmp(*l->oom, 1);
    bool found = find_near(l, a, &p, d, at) && print_place(&p, m.f, a, d);
    char *text = gp_memfile_close(&m, &n);
    if (!text)
        longjmp(*l->oom, 1);
    if (found) {
        gp_json_put(j, "result: {contents: {kind: %s, value: %s}", "markdown", text);
        gp_lsp_put_range(j, gp_lsp_range(d, p.span.at, p.span.len));
        gp_json_close(j, '}');
    } else {
        gp_json_str(j, "result", NULL);
    }
    free(text);
}

/* ---- what could be there -------------------------------------------------- */

enum { AS_VARIABLE = 6, AS_CLASS = 7, AS_PROPERTY = 10, AS_VALUE = 20 };       /* of the protocol's kinds of items */

typedef struct list { gp_json *j; gp_range prefix; } list;

/* `behind`: what is put behind the name. */
static void put_item(const list *to, int as, int rank, const char *name, const char *behind, const char *help)
{
    char text[256];
    gp_json_put(to->j, "{label: %s, kind: %d", name, as);
    if (help)
        gp_json_str(to->j, "detail", help);
    snprintf(text, sizeof text, "%d%.200s", rank, name);
    gp_json_put(to->j, "sortText: %s, textEdit: {", text);
    gp_lsp_put_range(to->j, to->prefix);
    snprintf(text, sizeof text, "%.200s%s", name, behind);
    gp_json_put(to->j, "newText: %s}}", text);
}

static bool has_key(const place *p, const char *name)
{
    for (int i = 0; i < p->w.nwords; i++) {
        const gp_word *w = &p->w.word[i];
        if (w->box == p->box && w->key.len && w->key.at != p->span.at && gp_where_is(&p->w, w->key, name))
            return true;
    }
    return false;
}

static void put_keys(const place *p, const list *to)
{
    const char *colon = p->has_colon ? "" : ": ";
    const gp_opt *o;
    const gp_port *port;
    int rank;
    for (int i = 0; (o = row_at(p, i, &rank)); i++)
        if (!has_key(p, o->name))
            put_item(to, AS_PROPERTY, rank, o->name, colon, o->help);
    for (int i = 0; (port = port_at(p, i)); i++)
        if (!has_key(p, port->name))
            put_item(to, AS_PROPERTY, port->optional, port->name, colon, port->help);
}

static void put_values(const place *p, const list *to, gp_arena *a)
{
    const gp_kind *k;
    const gp_opt *o = find_row(p, p->key);
    if (o && o->def && !strcmp(o->def, "auto"))
        put_item(to, AS_VALUE, 0, "auto", "", NULL);
    for (int t = 1; o && o->type == GP_OPT_DTYPE && t < GP_NDTYPES; t++)
        put_item(to, AS_VALUE, 0, gp_dtype_name((gp_dtype)t), "", NULL);
    const char *c = !o ? "" : o->type == GP_OPT_ENUM ? o->choices : o->type == GP_OPT_BOOL ? "true|false" : "";
    for (size_t n; *c; c += n + (c[n] == '|')) {
        n = strcspn(c, "|");
        if (!o->def || strcmp(o->def, "auto") || n != 4 || strncmp(c, "auto", 4))
            put_item(to, AS_VALUE, 0, gp_strndup(a, c, n), "", NULL);
    }
    for (int i = 0; p->stage == p->box && gp_where_is(&p->w, p->key, "use") && (k = gp_kind_at(p->l->registry, i)); i++)
        put_item(to, AS_CLASS, 0, k->name, "", k->help);
}

static void put_buffers(const list *to, const gp_names *names)
{
    for (int i = 0; i < names->nbuffers; i++)
        if (!names->buffer[i].again)
            put_item(to, AS_VARIABLE, 0, names->buffer[i].name, "", NULL);
}

/* With a letter put in at the place there is a word, which begins with what is before it. */
void gp_lsp_complete(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at)
{
    place p;
    char *text = GP_NEW(a, char, d->len + 2);
    memcpy(text, d->text, at);
    text[at] = 'x';
    memcpy(text + at + 1, d->text + at, d->len - at + 1);
    bool found = find_place(l, a, &p, text, d->len + 1, at);
    list to = { j, gp_lsp_range(d, p.span.at, at - p.span.at) };
    gp_json_open(j, "result", '[');
    if (found && p.is_key)
        put_keys(&p, &to);
    else if (found)
        put_values(&p, &to, a);
    if (found && names_buffer(&p))
        put_buffers(&to, &d->names);
    gp_json_close(j, ']');
}

/* ---- where it is made ----------------------------------------------------- */

void gp_lsp_define(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at)
{
    place p;
    bool found = find_near(l, a, &p, d, at) && names_buffer(&p);
    gp_json_open(j, "result", '[');
    for (int i = 0; found && i < d->names.nbuffers; i++) {
        const gp_name *n = &d->names.buffer[i];
        size_t len, from = gp_lsp_place(d, n->at, &len);
        if (!gp_where_is(&p.w, p.span, n->name))
            continue;
        gp_json_put(j, "{uri: %s", d->uri);
        gp_lsp_put_range(j, gp_lsp_range(d, from, len));
        gp_json_close(j, '}');
    }
    gp_json_close(j, ']');
}
