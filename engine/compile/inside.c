/* inside.c - see inside.h; and where errors are, once they are told. */
#include <string.h>
#include "compile/inside.h"
#include "compile/resolve.h"

void gp_inside_near(const gp_inside *in, gp_near *near)
{
    for (bool opaque = false; in && !opaque; opaque = in->opaque, in = in->outer)
        for (const gp_entry *e = NULL; (e = gp_table_next(&in->vars, e));)
            gp_near_try(near, e->name);
}

const char *gp_inside_dir(const gp_node *n, const gp_node *vars, const char *dir)
{
    for (int deep = 0; vars && deep < GP_VARS_DEEPEST && n->kind == GP_SCALAR && !strncmp(n->text, "${", 2); deep++) {
        char name[256];
        size_t len = strcspn(n->text + 2, ":}");
        snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), n->text + 2);
        const char *full = gp_inside_name(n->inside, name);
        const gp_node *value = full ? gp_node_get(vars, full) : NULL;
        if (!value || gp_is_null(value))
            break;
        n = value;
    }
    return n->inside ? n->inside->dir : dir;
}

static const gp_inside *place_of(const gp_spec *spec, gp_loc at)
{
    const gp_inside *i = at.file ? spec->insides : NULL;
    while (i && i->file != at.file)
        i = i->next;
    return i;
}

/* With the file's name as others have it, of which line 0 is none of it. */
static gp_loc plain_place(const gp_spec *spec, gp_loc at)
{
    const gp_inside *in = place_of(spec, at);
    at.file = !in ? at.file : strcmp(in->path, spec->file) ? in->path : spec->file;
    return at;
}

gp_loc gp_spec_place(const gp_spec *spec, gp_loc at)
{
    for (const gp_inside *in = place_of(spec, at); in && in->at.line; in = place_of(spec, at))
        at = in->at;
    return plain_place(spec, at);
}

void gp_spec_places(const gp_spec *spec, gp_errs *errs)
{
    gp_errs is = { .n = 0 };
    if (!spec->insides)
        return;
    for (int i = 0; i < errs->n; i++) {
        const gp_err *e = &errs->e[i];
        const gp_inside *in = place_of(spec, e->at);
        gp_fail_(&is, e->code, plain_place(spec, e->at), e->c_file, e->c_line, "%s", e->msg);
        for (; in && in->at.line; in = place_of(spec, in->at)) {
            gp_loc from = plain_place(spec, in->at);
            gp_fail(&is, GP_E_NOTE, from, "%.200s:%d:%d: included here as '%.200s'", from.file, from.line, from.col, in->name);
        }
    }
    is.dropped += errs->dropped, is.failed = errs->failed, is.at = errs->at;
    *errs = is;
}
