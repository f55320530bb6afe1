/* wire.c - see wire.h. */
#include <string.h>
#include "base/json.h"
#include "base/npy.h"
#include "base/yaml.h"
#include "filemeta.h"
#include "wire.h"

bool gp_wire_write(FILE *to, const gp_wire *w, const char *const *keys, int nkeys)
{
    char text[GP_FILEMETA_NUMBER], dtype[GP_NUMPY_NAME];
    gp_json j = { .f = to, .level = 3 };           /* all in one line */
    gp_json_open(&j, NULL, '{');
    if (w->end) {
        gp_json_bool(&j, "end", true);
    } else {
        gp_json_str(&j, "dtype", gp_numpy_name(w->type.dtype, dtype));
        GP_JSON_EACH(&j, "shape", k, w->type.ndim)
            gp_json_int(&j, NULL, w->type.dim[k]);
    }
    gp_json_int(&j, "frame", (int64_t)w->frame);
    if (w->dropped)
        gp_json_int(&j, "dropped", (int64_t)w->dropped);
    if (w->time_ns)
        gp_json_int(&j, "time_ns", w->time_ns);
    if (*w->name)
        gp_json_str(&j, "name", w->name);
    if (w->has) {
        gp_json_open(&j, "meta", '{');
        for (int i = 0; i < nkeys; i++)
            if (w->has >> i & 1)
                gp_text_spell(text, w->value[i]), gp_json_raw(&j, keys[i], text);
        gp_json_close(&j, '}');
    }
    gp_json_str(&j, "sender", w->sender);
    gp_json_close(&j, '}');
    return !ferror(to);
}

/* ---- reading ------------------------------------------------------------ */

/* A whole number that is not negative. */
static bool whole(const gp_node *n, int64_t *to)
{
    bool ok = n && n->kind == GP_SCALAR && !n->quoted && n->len;
    *to = 0;
    for (size_t i = 0; ok && i < n->len; i++)
        ok = n->text[i] >= '0' && n->text[i] <= '9' && !__builtin_mul_overflow(*to, 10, to)
            && !__builtin_add_overflow(*to, n->text[i] - '0', to);
    return ok;
}

/* False: it is there, and no such number. */
static bool maybe_whole(const gp_node *map, const char *key, int64_t *to, char err[GP_WHY])
{
    const gp_node *n = gp_node_get(map, key);
    return !n || whole(n, to) || gp_why(err, "has a '%s' that is not a whole number below 2^63", key);
}

static bool maybe_text(const gp_node *map, const char *key, char *to, size_t room, char err[GP_WHY])
{
    const gp_node *n = gp_node_get(map, key);
    if (!n)
        return true;
    if (n->kind != GP_SCALAR || n->len >= room || strlen(n->text) != n->len)
        return gp_why(err, "has a '%s' that is not a text of at most %zu bytes", key, room - 1);
    memcpy(to, n->text, n->len + 1);
    return true;
}

static bool read_type(gp_wire *w, const gp_node *map, char err[GP_WHY])
{
    const gp_node *dtype = gp_node_get(map, "dtype"), *shape = gp_node_get(map, "shape");
    if (!dtype || !shape)
        return gp_why(err, "has no '%s'", dtype ? "shape" : "dtype");
    w->type.dtype = gp_numpy_dtype(dtype->text, &w->big);
    if (!w->type.dtype)
        return gp_why(err, "has the dtype '%.40s', and not one of NumPy's that gpipe has, as uint8, float32 or <f4",
                      dtype->text);
    if (shape->kind != GP_LIST || shape->n > GP_MAXDIM)
        return gp_why(err, "has a 'shape' that is not a list of at most %d numbers", GP_MAXDIM);
    w->type.ndim = shape->n;
    for (int k = 0; k < shape->n; k++)
        if (!whole(shape->item[k], &w->type.dim[k]))
            return gp_why(err, "has a 'shape' that is not of whole numbers");
    if (!shape->n)                     /* a number alone */
        w->type.ndim = 1, w->type.dim[0] = 1;
    return true;
}

static bool read_meta(gp_wire *w, const gp_node *map, const char *const *keys, int nkeys, char err[GP_WHY])
{
    const gp_node *meta = gp_node_get(map, "meta");
    for (int i = 0; meta && i < nkeys; i++) {
        const gp_node *n = gp_node_get(meta, keys[i]);
        if (!n || !strcmp(keys[i], "time"))
            continue;
        if (n->kind != GP_SCALAR || n->quoted || !gp_text_number(n->text, &w->value[i]))
            return gp_why(err, "says that its '%s' is '%.40s', which is not a number", keys[i], n->text);
        w->has |= 1u << i;
    }
    return true;
}

static bool read_map(gp_wire *w, const gp_node *map, const char *const *keys, int nkeys, char err[GP_WHY])
{
    int64_t frame = 0, dropped = 0;
    w->end = gp_node_get(map, "end") && gp_bool_parse(gp_node_get(map, "end")->text) == 1;
    w->numbered = gp_node_get(map, "frame");
    if (!maybe_whole(map, "frame", &frame, err) || !maybe_whole(map, "dropped", &dropped, err)
        || !maybe_whole(map, "time_ns", &w->time_ns, err) || !maybe_text(map, "sender", w->sender, sizeof w->sender, err)
        || !maybe_text(map, "name", w->name, sizeof w->name, err))
        return false;
    w->frame = (uint64_t)frame, w->dropped = (uint64_t)dropped;
    if (strchr(w->name, '/'))          /* it may become a file's */
        return gp_why(err, "has the name '%.80s', in which there is a '/'", w->name);
    return w->end || (read_type(w, map, err) && read_meta(w, map, keys, nkeys, err));
}

bool gp_wire_read(gp_wire *w, const char *text, size_t n, const char *const *keys, int nkeys, char err[GP_WHY])
{
    gp_arena a = { 0 };
    gp_errs errs = { .n = 0 };
    volatile bool ok = false;
    *w = (gp_wire){ 0 };
    if (n > GP_WIRE_HEADER)
        return gp_why(err, "has %zu bytes, and a header has at most %d", n, GP_WIRE_HEADER);
    if (!n || *text != '{')
        return gp_why(err, "is not an object of JSON");
    GP_IF_OOM(&a) {
        gp_why(err, GP_WHY_MEMORY);
    } else {
        const gp_node *map = gp_yaml_parse(&a, text, n, "header", &errs);      /* YAML has all of JSON */
        ok = map && map->kind == GP_MAP ? read_map(w, map, keys, nkeys, err)
            : gp_why(err, "is not an object of JSON: %s", errs.n ? errs.e[0].msg : "there is nothing in it");
    }
    gp_arena_free(&a);
    return ok;
}

bool gp_wire_fits(const gp_wire *w, size_t bytes, char err[GP_WHY])
{
    char text[128];
    size_t want = gp_dtype_size(w->type.dtype);
    bool fits = true;
    for (int k = 0; k < w->type.ndim; k++)
        fits &= !__builtin_mul_overflow(want, (size_t)w->type.dim[k], &want);
    return (fits && want == bytes) || gp_why(err, "says that its data are %s, and they have %zu bytes",
                                             gp_type_text(&w->type, text), bytes);
}
