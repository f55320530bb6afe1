/* beside.c - k.json beside k.cubin: what the file itself does not say, as gpipe-triton (examples/triton) writes it.
 *
 *   {"name": "softmax", "num_warps": 4, "shared": 64, "grid": "in.shape[0]",
 *    "params": ["*f32:16", "*f32:16", "i32", "null", "null"]}
 *
 * `params` are the kernel's parameters: a pointer to elements of a type, or a value of one, with the power of two that
 * it was compiled to be a multiple of; "null" at their end, a pointer that the kernel has and does not use. The other keys may
 * be left out; what they say the YAML does not say again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/plural.h"
#include "base/why.h"
#include "launch_args.h"

enum { WARP = 32, MOST_WARPS = 32 };

/* The option that says what `n` says, too, is not in the YAML. */
static bool alone(gp_shape *s, const char *opt, const gp_node *n)
{
    return !gp_shape_node(s, opt)
        || gp_shape_fail(s, opt, "leave out '%s': %s:%d says it", opt, n->at.file, n->at.line);
}

static bool read_text(gp_shape *s, const char *key, const gp_node *n, const char **text)
{
    *text = n->text;
    return n->kind == GP_SCALAR || gp_shape_fail_at(s, n->at, "'%s' takes a text", key);
}

static bool read_key(gp_shape *s, const char *key, const gp_node *n, gp_kbeside *b)
{
    if (!strcmp(key, "name"))
        return read_text(s, key, n, &b->name) && alone(s, "entry", n);
    if (!strcmp(key, "shared"))
        return b->shared = n, alone(s, "shared", n);
    if (!strcmp(key, "grid"))
        return b->grid = n, alone(s, "grid", n) && alone(s, "threads", n);
    if (!strcmp(key, "params"))
        return b->params = n, n->kind == GP_LIST || gp_shape_fail_at(s, n->at, "'params' is a list of texts");
    if (strcmp(key, "num_warps"))
        return gp_shape_fail_at(s, n->at, "'%s' has no meaning here: what stands beside a kernel has name, num_warps, "
                                "shared, grid and params; gpipe-triton (examples/triton) writes it of one of Triton's", key);
    char *end;
    long warps = n->kind == GP_SCALAR ? strtol(n->text, &end, 10) : 0;
    b->threads = WARP * warps;
    return warps < 1 || warps > MOST_WARPS || *end
        ? gp_shape_fail_at(s, n->at, "'num_warps' is a number from 1 to %d", MOST_WARPS) : alone(s, "block", n);
}

bool gp_kbeside_read(gp_shape *s, const char *path, gp_kbeside *b)
{
    const char *dot = strrchr(path, '.');
    char *json = gp_shape_alloc(s, strlen(path) + 6);
    memcpy(json, path, (size_t)(dot - path)), strcpy(json + (dot - path), ".json");
    *b = (gp_kbeside){ .path = NULL };
    const gp_file *f = gp_probe_file(s, json);
    if (f->error == ENOENT)
        return true;
    if (f->error || f->kind != GP_FILE_REGULAR || f->size > GP_PROBE_HEAD)
        return gp_shape_fail(s, "source", "cannot read '%s' beside it: %s", json,
                             f->error ? gp_strerror(f->error) : "it is no file of text");
    const gp_node *n = gp_probe_node(s, f);
    bool ok = n && (n->kind == GP_MAP || gp_shape_fail_at(s, n->at, "'%s' is no JSON object", json));
    for (int i = 0; ok && i < n->n; i++)
        ok = read_key(s, n->key[i]->text, n->item[i], b);
    b->path = json;
    return ok && (b->params || gp_shape_fail_at(s, n->at, "'%s' does not say 'params', the types of the "
                                                "kernel's parameters, like [\"*f32\", \"i32\"]", json));
}

/* ---- params ---------------------------------------------------------------- */

/* "*f32:16" */
static bool parse(const gp_node *n, bool *pointer, gp_dtype *t, long *multiple)
{
    char type[16], *end = NULL;
    const char *text = n->kind == GP_SCALAR ? n->text : "", *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    *pointer = *text == '*', *multiple = 1;
    if (len >= sizeof type)
        return false;
    memcpy(type, text, len), type[len] = '\0';
    *t = gp_dtype_parse(type + *pointer);
    if (colon)
        *multiple = strtol(colon + 1, &end, 10);
    return *t && *multiple > 0 && !(*multiple & (*multiple - 1)) && (!end || !*end)
        && (!colon || *pointer || *t < GP_F16);
}

/* Is argument `a` what the parameter takes? Complex numbers are pairs of floats. */
static bool suits(const gp_shape *s, const gp_karg *a, bool pointer, gp_dtype t)
{
    gp_dtype has = a->what == GP_INPUT ? s->in[a->port].dtype : a->what == GP_OUTPUT ? s->out[a->port].dtype
                 : a->what == GP_VALUE ? a->dtype : a->what == GP_FRAME_INFO ? GP_I64 : GP_U64;
    return pointer == (a->what == GP_INPUT || a->what == GP_OUTPUT || a->what == GP_FRAME_INFO)
        && (has == t || (has == GP_C64 && t == GP_F32)
            || (t == GP_I64 && (a->what == GP_STRIDE_IN || a->what == GP_STRIDE_OUT)));
}

bool gp_kbeside_fit(gp_shape *s, const gp_kbeside *b, gp_kargs *o)
{
    int given = o->n, n = b->params ? b->params->n : 0;
    for (int i = 0; i < n; i++) {
        const gp_node *p = b->params->item[i];
        bool pointer, null = p->kind == GP_SCALAR && !strcmp(p->text, "null");
        gp_dtype t;
        long multiple;
        if (!null && (o->nulls || !parse(p, &pointer, &t, &multiple)))
            return gp_shape_fail_at(s, p->at, "a parameter is a type as '*f32', '*f32:16', 'i32' or 'i32:16', or "
                                    "\"null\" at the end of the list");
        if (!null && i >= given)
            return gp_shape_fail(s, "args", "there are %d values, and '%s' has parameter %d, '%s' (%s:%d)", given,
                                 b->path, i + 1, p->text, p->at.file, p->at.line);
        if (!null && !suits(s, &o->arg[i], pointer, t))
            return gp_shape_fail_at(s, o->at[i], "argument %d is '%s', and the parameter is '%s' (%s:%d)", i + 1,
                                    o->type[i], p->text, p->at.file, p->at.line);
        if (null && o->n == GP_MAX_ARGS)
            return gp_shape_fail_at(s, p->at, "a kernel takes at most %d arguments", GP_MAX_ARGS);
        if (null)
            o->type[o->n] = "void *", o->at[o->n] = p->at, o->nulls++,
            o->arg[o->n++] = (gp_karg){ .what = GP_NO_POINTER };
        else
            o->arg[i].multiple = multiple;
        if (null && i < given)
            return gp_shape_fail_at(s, o->at[i], "there are %d values, and '%s' has %d parameter%s before \"null\"", given,
                                    b->path, i, gp_plural(i));
    }
    return !b->params || n == o->n
        || gp_shape_fail_at(s, o->at[n], "there are %d values, and '%s' has %d parameter%s", given, b->path, n,
                            gp_plural(n));
}
