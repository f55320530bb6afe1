/* buffers.c - what `buffers:` says: names, types as far as they are declared, and `like`, from one to another. */
#include <string.h>
#include "compile/expr.h"
#include "compile/wire.h"

/* ---- buffers --------------------------------------------------------- */

gp_rbuf *gp_find_buffer(gp_resolving *r, const char *name)
{
    int i = gp_table_index(&r->buffer_index, name);
    return i < 0 ? NULL : &r->buffer[i];
}

gp_rbuf *gp_push_buffer(gp_resolving *r, const char *name, gp_loc at)
{
    gp_rbuf *b = GP_PUSH(r->arena, r->buffer, r->nbuffers, r->buffers_cap);
    *b = (gp_rbuf){ .b = { .name = name, .at = at, .depth = 1, .producer = { -1, -1 } },
                    .like = -1 };
    return b;
}

gp_rbuf *gp_add_buffer(gp_resolving *r, const char *name, gp_loc at)
{
    gp_table_put(&r->buffer_index, name, r->nbuffers);
    return gp_push_buffer(r, name, at);
}

const char *gp_near_buffer(const gp_resolving *r, gp_near *near)
{
    for (int i = 0; r->errs->n < GP_ERRS_MAX && i < r->nbuffers; i++)
        if ((r->buffer[i].konst && r->buffer[i].node) || r->buffer[i].b.given
            || (r->buffer[i].b.producer.stage >= 0 && !r->buffer[i].b.hidden))
            gp_near_try(near, r->buffer[i].b.name);
    return gp_near_text(near);
}

bool gp_check_label(gp_resolving *r, const char *what, const char *name, gp_loc at)
{
    return gp_is_label(name) || (r->spec->expanded && !r->body)        /* which checks them */
        || AT(r, at, "'%.60s' is not a valid name for a %s; use letters, digits, _ and -", name,
              what);
}

/* "<=1080" of a dim is its bound: the expression behind; else the dim itself. */
static const gp_node *bound_of(gp_resolving *r, const gp_node *dim)
{
    if (dim->kind != GP_SCALAR || strncmp(dim->text, "<=", 2))
        return dim;
    gp_node *bound = GP_NEW(r->arena, gp_node, 1);
    size_t skip = 2 + strspn(dim->text + 2, " ");
    *bound = *dim;
    bound->text += skip, bound->len -= skip;
    bound->at = gp_node_part(dim, skip, bound->len);
    bound->quoted = false, bound->expr = NULL, bound->line = 0;
    return bound;
}

/* Is it an expression of shapes, which are not known yet? */
static bool of_shapes(gp_resolving *r, const gp_node *dim)
{
    const gp_expr *e = dim->kind == GP_SCALAR ? gp_expr_keep(r->arena, dim) : NULL;
    for (int i = 0; e && i < e->n; i++)
        if (e->node[i].op == GP_EXPR_PORT)
            return true;
    return false;
}

static bool read_shape(gp_resolving *r, const gp_node *n, bool carried, gp_buffer *b)
{
    gp_type *t = &b->said;
    int count = n->kind == GP_LIST ? n->n : 1;
    int64_t size = t->dtype ? (int64_t)gp_dtype_size(t->dtype) : 1;
    r->read.key = "shape";
    if (count < 1 || count > GP_MAXDIM)
        return AT(r, n->at, "a shape has 1 to %d axes, not %d", GP_MAXDIM, count);
    for (int i = 0; i < count; i++) {
        const gp_node *dim = n->kind == GP_LIST ? n->item[i] : n, *bound = bound_of(r, dim);
        b->varies |= (bound != dim) ? 1u << i : 0;
        if (!carried && of_shapes(r, bound)) {
            b->dim[i] = bound;
            continue;
        }
        if (!gp_read_int(&r->read, bound, 1, GP_BYTES_MAX, &t->dim[i]))
            return false;
        if (__builtin_mul_overflow(size, t->dim[i], &size) || size > GP_BYTES_MAX)
            return AT(r, n->at, "a frame of this shape is larger than 1 TiB");
    }
    t->ndim = count;
    return true;
}

/* A constant's shape is that of its file or list. */
static void read_const(gp_resolving *r, gp_rbuf *b)
{
    r->read.key = "const";
    b->konst = true;
    b->b.depth = 1;
    const gp_node *value = gp_node_get(b->node, "const");
    if (value->kind == GP_MAP)
        b->broken = true, AT(r, value->at, "constant '%s' is a .npy file or a list of numbers, not a map", b->b.name);
    else
        b->broken = value->kind != GP_LIST && !(b->b.path = gp_read_path(&r->read, value));
    for (int i = 0; i < b->node->n; i++) {
        r->read.key = b->node->key[i]->text;
        if (!strcmp(r->read.key, "dtype"))
            b->broken |= !(b->b.said.dtype = gp_read_dtype(&r->read, b->node->item[i]));
        else if (!strcmp(r->read.key, "memory"))
            b->b.managed = gp_read_word(&r->read, b->node->item[i], "device|managed") == 1;
        else if (strcmp(r->read.key, "const") && gp_key_find(gp_buffer_keys, r->read.key))
            AT(r, b->node->key[i]->at, "'%s' has no effect: buffer '%s' is constant, and has the shape of its %s",
               r->read.key, b->b.name, b->b.path ? "file" : "list");
    }
    b->broken |= !b->b.path && !b->broken && !gp_read_const_list(r, b, value);
}

static void read_buffer(gp_resolving *r, gp_rbuf *b)
{
    const gp_node *map = b->node, *n;
    int64_t depth;
    for (int i = 0; i < map->n; i++) {
        gp_near near = gp_key_near(gp_buffer_keys, map->key[i]->text);
        const gp_node *file = strcmp(map->key[i]->text, "path") ? NULL : map->item[i];
        if (!gp_key_find(gp_buffer_keys, map->key[i]->text))
            AT(r, map->key[i]->at, "a buffer has no key '%s'%s", map->key[i]->text, file && file->kind == GP_SCALAR
               ? gp_format(r->arena, "; a constant has its file as const: %.200s", file->text) : gp_near_text(&near));
    }
    if (gp_node_get(map, "const") && !gp_node_get(map, "carry") && !gp_node_get(map, "state")) {
        read_const(r, b);
        return;
    }
    for (int i = 0; i < map->n && !gp_node_get(map, "carry") && !gp_node_get(map, "state"); i++)
        if (gp_word_index(map->key[i]->text, "init|missing|on_hole|save|save_every") >= 0)
            AT(r, map->key[i]->at, "'%s' has no effect: buffer '%s' carries nothing; add carry: BUFFER, or state: true", map->key[i]->text,
               b->b.name);
    if ((n = gp_node_get(map, "memory"))) {
        r->read.key = "memory";
        b->b.managed = gp_read_word(&r->read, n, "device|managed") == 1, b->b.managed_at = n->at;
        if (gp_node_get(map, "carry"))
            AT(r, n->at, "'memory' has no effect: buffer '%s' is carried, and its slots are those of '%s'", b->b.name,
               gp_node_get(map, "carry")->text);
    }
    if ((n = gp_node_get(map, "depth"))) {
        r->read.key = "depth";
        b->b.depth_said = true, b->b.depth_at = n->at;
        if (gp_read_int(&r->read, n, 1, GP_DEPTH_MAX, &depth))
            b->b.depth = (int)depth;
    }
    if ((n = gp_node_get(map, "dtype"))) {
        r->read.key = "dtype";
        b->broken |= !(b->b.said.dtype = gp_read_dtype(&r->read, n));
    }
    if ((n = gp_node_get(map, "shape")))
        b->broken |= !read_shape(r, n, gp_node_get(map, "carry"), &b->b);
    if (!gp_node_get(map, "carry") && (n = gp_node_get(map, "like")) && b->b.said.dtype && b->b.said.ndim)
        AT(r, n->at, "'like' has no effect: dtype and shape of buffer '%s' are both given",
           b->b.name);
}

const char *gp_type_expected(gp_resolving *r, const gp_node *decl, const gp_type *is)
{
    const gp_node *dtype = gp_node_get(decl, "dtype"), *shape = gp_node_get(decl, "shape");
    const char *text = "";
    int axes = !shape ? is->ndim : shape->kind == GP_LIST ? shape->n : 1;
    bool same = axes == is->ndim;
    r->read.stage = NULL, r->read.key = "dtype";
    gp_dtype want = dtype ? gp_read_dtype(&r->read, dtype) : is->dtype;
    same &= want == is->dtype;
    r->read.key = "shape";
    for (int k = 0; shape && k < axes; k++) {
        const gp_node *dim = shape->kind == GP_LIST ? shape->item[k] : shape, *bound = bound_of(r, dim);
        int64_t most = 0;
        bool any = dim->kind == GP_SCALAR && !strcmp(dim->text, "any");
        if (!any && !gp_read_int(&r->read, bound, 1, GP_BYTES_MAX, &most))
            return NULL;
        int64_t n = k < is->ndim ? is->dim[k] : 0;
        same &= any || (bound == dim ? n == most : n <= most);
        text = gp_format(r->arena, "%s%s%s%s", text, k ? ", " : " [", bound == dim ? "" : "<=",
                         any ? "any" : gp_format(r->arena, "%lld", (long long)most));
    }
    return same || !want ? NULL : gp_format(r->arena, "%s%s%s", dtype ? gp_dtype_name(want) : "any type", text, shape ? "]"
                                            : "");
}

void gp_read_buffers(gp_resolving *r, const gp_node *buffers)
{
    if (buffers && buffers->kind != GP_MAP && !gp_is_null(buffers)) {
        AT(r, buffers->at,
           "'buffers' must be a map, like {photo: {dtype: u8, shape: [768, 1024]}}");
        return;
    }
    r->read.stage = NULL;
    for (int i = 0; buffers && i < buffers->n; i++) {
        const gp_node *key = buffers->key[i], *value = buffers->item[i];
        gp_check_label(r, "buffer", key->text, key->at);
        gp_rbuf *b = gp_add_buffer(r, key->text, key->at);
        if (value->kind == GP_MAP) {
            int index = (int)(b - r->buffer);
            b->node = value, read_buffer(r, b);
            if (gp_node_get(value, "state"))
                gp_state_read(r, index);
            else if (gp_node_get(value, "carry"))
                gp_carry_read(r, index);
        } else if (!gp_is_null(value)) {
            AT(r, value->at, "buffer '%s' must be a map, like {dtype: f32, shape: [480, 640]}",
               key->text), b->broken = true;
        }
    }
}

/* ---- like ------------------------------------------------------------ */

void gp_buffer_type_like(gp_rbuf *b, const gp_type *t, unsigned varies)
{
    if (!b->b.said.dtype)
        b->b.said.dtype = t->dtype;
    if (!b->b.said.ndim) {
        b->b.varies = varies;
        b->b.said.ndim = t->ndim;
        memcpy(b->b.said.dim, t->dim, sizeof t->dim);
    }
}

static void find_like(gp_resolving *r, gp_rbuf *b)
{
    const gp_node *n = b->konst || b->carry ? NULL : gp_node_get(b->node, "like");
    if (!n || gp_is_complete(&b->b.said))
        return;
    r->read.stage = NULL, r->read.key = "like";
    const char *name = gp_read_text(&r->read, n);
    gp_rbuf *other = name ? gp_find_buffer(r, name) : NULL;
    gp_near near = GP_NEAR(name);
    if (other)
        b->like = (int)(other - r->buffer);
    else if (name)
        AT(r, n->at, "no buffer '%s'%s", name, gp_near_buffer(r, &near));
    b->broken |= !other;
}

/* Follows chains of `like` down to what is declared. A chain that ends at a
 * buffer whose type is inferred is left to infer. */
void gp_follow_likes(gp_resolving *r)
{
    enum { NEW, BUSY, DONE };
    char *state = GP_NEW(r->arena, char, r->nbuffers);
    int *path = GP_NEW(r->arena, int, r->nbuffers), n;
    for (int i = 0; i < r->nbuffers; i++)
        find_like(r, &r->buffer[i]);
    for (int start = 0; start < r->nbuffers; start++) {
        int i = start;
        for (n = 0; i >= 0 && state[i] == NEW; i = r->buffer[i].like)
            state[i] = BUSY, path[n++] = i;
        if (i >= 0 && state[i] == BUSY) {
            gp_rbuf *b = &r->buffer[i];
            AT(r, gp_node_get(b->node, "like")->at, "buffer '%s' is like itself%s", b->b.name,
               b->like == i ? "" : ", by way of others");
            b->broken = true;
            b->like = -1;
        }
        while (n > 0) {
            gp_rbuf *b = &r->buffer[path[--n]], *other = b->like < 0 ? NULL : &r->buffer[b->like];
            state[path[n]] = DONE;
            if (other && other->broken)
                b->broken = true;
            if (other && gp_is_complete(&other->b.said))
                gp_buffer_type_like(b, &other->b.said, other->b.varies), b->like = -1;
        }
    }
}
