/* zarr_meta.c - what a Zarr array says of itself, see zarr_file.h.
 *
 * It is JSON of strangers. What is not known is refused, at its place: an array is never read as something else. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/half.h"
#include "base/npy.h"
#include "base/num.h"
#include "base/yaml.h"
#include "zarr_file.h"

typedef struct look {
    gp_arena arena;
    const gp_zarr_from *from;
    gp_zarr *to;
    char *err;
} look;

/* An error at a node. */
#define WRONG(l, node, form, ...) \
    gp_why((l)->err, "(%s:%d:%d) " form, (node)->at.file, (node)->at.line, (node)->at.col, __VA_ARGS__)

/* ---- a file as a tree ------------------------------------------------- */

/* Halves of characters beyond 16 bits, as JSON may spell them, are no YAML; nobody reads the texts that have such. */
static void no_halves(char *text, size_t n)
{
    for (char *p = text, *end = text + n; (p = memchr(p, '\\', (size_t)(end - p))) && end - p >= 6; p += 2)
        if (p[1] == 'u' && (p[2] | 32) == 'd' && p[3] && strchr("89abcdefABCDEF", p[3]))
            memcpy(p + 2, "fffd", 4);
}

/* NULL without a text in `err`: there is no such file. */
static const gp_node *tree(look *l, const char *folder, const char *name)
{
    enum { FIRST = 1 << 14, MOST = 1 << 26 };
    const char *file = gp_format(&l->arena, *folder ? "%s/%s" : "%s%s", folder, name);
    int64_t n = 0, cap = FIRST;
    char *text = gp_alloc(&l->arena, (size_t)cap);
    while ((n = l->from->get(l->from->user, file, 0, text, (size_t)cap)) == cap && cap < MOST)
        text = gp_alloc(&l->arena, (size_t)(cap *= 4));
    *l->err = 0;
    if (n < 0 && (errno == ENOENT || errno == ENOTDIR))
        return NULL;
    if (n < 0)
        return GP_NULL(gp_why(l->err, "(%s) cannot be read: %s", file, gp_strerror(errno)));
    gp_errs errs = { .n = 0 };
    no_halves(text, (size_t)n);
    const gp_node *root = n < cap ? gp_yaml_parse(&l->arena, text, (size_t)n, file, &errs) : NULL;
    if (!root && errs.n)
        return GP_NULL(gp_why(l->err, "(%s:%d:%d) is no JSON: %s", file, errs.e[0].at.line, errs.e[0].at.col, errs.e[0].msg));
    return root && root->kind == GP_MAP ? root : GP_NULL(gp_why(l->err, "(%s) holds no JSON object", file));
}

/* Refuses keys of a map that are not among `known`, a text of names with blanks around each, but those that need not be
 * understood. */
static bool only(look *l, const gp_node *map, const char *known, const char *of)
{
    char name[80];
    for (int i = 0; map && i < map->n; i++) {
        snprintf(name, sizeof name, " %.70s ", map->key[i]->text);
        if (!strstr(known, name) && strcmp(gp_node_text(map->item[i], "must_understand"), "false"))
            return WRONG(l, map->key[i], "has '%.70s' in %s, which gpipe does not know", map->key[i]->text, of);
    }
    return true;
}

/* A list of so many numbers from `least` on. */
static bool sizes(look *l, const gp_node *map, const char *key, int n, int64_t least, int64_t *to)
{
    const gp_node *list = gp_node_list(map, key);
    if (!list || list->n != n)
        return WRONG(l, list ? list : map, "has no '%s' of %d numbers", key, n);
    for (int i = 0; i < n; i++) {
        const char *text = list->item[i]->text;
        char *end;
        errno = 0;
        to[i] = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
        if (to[i] < least || *end || errno)
            return WRONG(l, list->item[i], "has a '%s' of '%.40s', which is no whole number from %lld on", key, text,
                         (long long)least);
    }
    return true;
}

static bool has_room(look *l, const gp_node *at, const gp_type *t, const int64_t *dim, const char *what)
{
    double bytes = (double)gp_dtype_size(t->dtype);
    for (int i = 0; i < t->ndim; i++)
        bytes *= (double)(dim[i] ? dim[i] : 1);
    return bytes <= 0x1p60 || WRONG(l, at, "has %s of more than 2^60 bytes", what);
}

/* ---- elements -------------------------------------------------------- */

/* One real number, in its own type. Floats may be bits ("0x7fc00000") or no numbers. */
static bool real(const gp_node *n, gp_dtype t, unsigned char *to)
{
    gp_num x = { 0 };
    char *end;
    const char *s = n->text;
    errno = 0;
    if (t >= GP_F16 && !strncmp(s, "0x", 2)) {
        uint64_t bits = strtoull(s, &end, 16);
        memcpy(to, &bits, gp_dtype_size(t));
        return !*end && !errno && (gp_dtype_size(t) == 8 || !(bits >> 8 * gp_dtype_size(t)));
    }
    bool minus = *s == '-';
    const bool whole = s[minus] && strspn(s + minus, "0123456789") == strlen(s + minus);
    uint64_t i = whole ? strtoull(s + minus, &end, 10) : 0;
    bool fits = whole && !errno;
    errno = 0;
    x.f = strtod(s, &end), x.is_int = fits, x.i = minus ? -(gp_int128)i : (gp_int128)i;
    if (!*s || *end || (t < GP_F16 && !gp_num_fits(&x, t)))
        return false;
    double f = x.f;
    float single = (float)f;
    uint16_t half = gp_half_from_double(f);
    if (t == GP_F16)
        memcpy(to, &half, sizeof half);
    else if (t == GP_F32)
        memcpy(to, &single, sizeof single);
    else
        gp_num_store(to, &x, t);
    return true;
}

static bool take_fill(look *l, const gp_node *root, bool truth)
{
    const gp_node *n = gp_node_get(root, "fill_value");
    gp_dtype t = l->to->whole.dtype;
    uint64_t bits[2] = { 0 };
    unsigned char *to = (unsigned char *)bits;
    bool pair = t == GP_C64 && n && n->kind == GP_LIST && n->n == 2;
    const int word = truth && n && n->kind == GP_SCALAR ? gp_bool_parse(n->text) : -1;
    bool ok = !n || word >= 0 || (n->kind == GP_SCALAR && !n->quoted && !strcmp(n->text, "null"))
           || (pair ? real(n->item[0], GP_F32, to) && real(n->item[1], GP_F32, to + 4)
                    : n->kind == GP_SCALAR && real(n, t == GP_C64 ? GP_F32 : t, to));
    *to = word >= 0 ? (unsigned char)word : *to;
    ok = ok && (!truth || *to <= 1);
    memcpy(l->to->fill, bits, sizeof l->to->fill);
    return ok || WRONG(l, n, "has a 'fill_value' of '%.40s', which is no %s", n->text,
                       truth ? "bool" : gp_dtype_name(t));
}

static bool take_array(look *l, const gp_node *root, const char *dtype)
{
    gp_zarr *z = l->to;
    const gp_node *shape = gp_node_list(root, "shape"), *n = gp_node_get(root, dtype);
    if (!n)
        return WRONG(l, root, "has no '%s'", dtype);
    z->whole.dtype = n->kind == GP_SCALAR ? gp_numpy_dtype(n->text, &z->big) : GP_NO_DTYPE;
    if (!z->whole.dtype)
        return WRONG(l, n, "has elements of type '%.60s', which gpipe does not have",
                     n->kind == GP_MAP ? gp_node_text(n, "name") : n->kind == GP_LIST ? "a list of fields" : n->text);
    const bool truth = !strcmp(n->text, "bool") || !strcmp(n->text + 1, "b1");
    if (shape && (shape->n < 1 || shape->n > GP_MAXDIM))
        return WRONG(l, shape, "has %d axes, and gpipe has 1 to %d", shape->n, GP_MAXDIM);
    z->whole.ndim = shape ? shape->n : 1;
    return sizes(l, root, "shape", z->whole.ndim, 0, z->whole.dim) && has_room(l, shape, &z->whole, z->whole.dim, "an array")
        && take_fill(l, root, truth);
}

/* ---- codecs ---------------------------------------------------------- */

static bool add_codec(look *l, const gp_node *at, const char *name)
{
    gp_zarr_chain *c = &l->to->chain;
    gp_zarr_codec k = gp_zarr_codec_of(name);
    if (k == GP_ZARR_NO_CODEC)
        return WRONG(l, at, "has the codec '%.60s', which gpipe does not know", name);
    for (int i = 0; i < c->n && k != GP_ZARR_CRC32C; i++)
        if (c->codec[i] != GP_ZARR_CRC32C)
            return WRONG(l, at, "is compressed twice, with '%s' and with '%s'", gp_zarr_codec_name(c->codec[i]), name);
    if (c->n == GP_ZARR_CODECS)
        return WRONG(l, at, "has more than %d codecs", GP_ZARR_CODECS);
    c->codec[c->n++] = k;
    return true;
}

/* A name, or an object with one. */
static const char *name_of(const gp_node *n)
{
    return n && n->kind == GP_SCALAR ? n->text : gp_node_text(n, "name");
}

static bool take_bytes(look *l, const gp_node *n, const gp_node *with, bool *big)
{
    const char *endian = gp_node_text(with, "endian");
    *big = !strcmp(endian, "big");
    return (*big || !*endian || !strcmp(endian, "little") || WRONG(l, n, "has bytes in the order '%.20s'", endian))
        && only(l, with, " endian ", "'bytes'");
}

/* Axes as they are stored: each once. */
static bool take_order(look *l, const gp_node *n, const gp_node *with)
{
    gp_zarr *z = l->to;
    int64_t order[GP_MAXDIM];
    unsigned seen = 0;
    if (!sizes(l, with ? with : n, "order", z->whole.ndim, 0, order))
        return false;
    for (int i = 0; i < z->whole.ndim; i++)
        z->order[i] = (int)order[i], seen |= order[i] < z->whole.ndim ? 1u << order[i] : 0;
    return (seen == (1u << z->whole.ndim) - 1 || WRONG(l, n, "has a 'transpose' that names %s", "no axis, or one twice"))
        && only(l, with, " order ", "'transpose'");
}

static bool take_codecs(look *l, const gp_node *at, const gp_node *list, bool in_shard);

/* The index of a shard is 16 bytes for each chunk. */
static bool take_index(look *l, const gp_node *at, const gp_node *list)
{
    bool big = false, ok = list && list->n >= 1 && list->n <= 2;
    for (int i = 0; ok && i < list->n; i++) {
        const gp_node *n = list->item[i];
        ok = !strcmp(name_of(n), i ? "crc32c" : "bytes")
          && (i || take_bytes(l, n, gp_node_get(n, "configuration"), &big)) && !big;
    }
    l->to->index_crc = ok && list->n == 2;
    return ok || WRONG(l, list ? list : at, "has 'index_codecs' of %s", "which gpipe knows 'bytes' (little) and 'crc32c' alone");
}

static bool take_shards(look *l, const gp_node *n, const gp_node *with)
{
    gp_zarr *z = l->to;
    const char *location = gp_node_text(with, "index_location");
    double chunks = 1;
    memcpy(z->shard, z->chunk, sizeof z->shard);
    if (!with)
        return WRONG(l, n, "has a 'sharding_indexed' without %s", "a configuration");
    if (!sizes(l, with, "chunk_shape", z->whole.ndim, 1, z->chunk)
        || !only(l, with, " chunk_shape codecs index_codecs index_location ", "'sharding_indexed'"))
        return false;
    for (int k = 0; k < z->whole.ndim; k++)
        if (z->shard[k] % z->chunk[k])
            return WRONG(l, n, "has shards of %lld elements of chunks of %lld", (long long)z->shard[k], (long long)z->chunk[k]);
    for (int k = 0; k < z->whole.ndim; k++)
        chunks *= (double)(z->shard[k] / z->chunk[k]);
    if (chunks > 0x1p26)               /* of an index of 1 GiB, which each worker has */
        return WRONG(l, n, "has shards of more than 2^26 %s", "chunks");
    z->sharded = true, z->index_at_start = !strcmp(location, "start");
    if (!z->index_at_start && *location && strcmp(location, "end"))
        return WRONG(l, n, "has an 'index_location' of '%.20s'", location);
    return take_index(l, n, gp_node_list(with, "index_codecs")) && take_codecs(l, n, gp_node_list(with, "codecs"), true);
}

/* In this order: axes change places, elements become bytes (or chunks a shard), and these others. */
static bool take_codecs(look *l, const gp_node *at, const gp_node *list, bool in_shard)
{
    bool bytes = false, shards = false, moved = false;
    for (int i = 0; list && i < list->n; i++) {
        const gp_node *n = list->item[i], *with = gp_node_get(n, "configuration");
        const char *name = name_of(n);
        const bool is_shards = !strcmp(name, "sharding_indexed");
        bool ok = n->kind != GP_MAP || only(l, n, " name configuration must_understand ", "a codec");
        if (!ok)
            return false;
        if (shards)
            ok = WRONG(l, n, "has the codec '%.60s' around shards, which gpipe does not read", name);
        else if (bytes)
            ok = add_codec(l, n, name);
        else if (!strcmp(name, "transpose") && !moved)
            ok = take_order(l, n, with), moved = true;
        else if (!strcmp(name, "bytes"))
            ok = take_bytes(l, n, with, &l->to->big), bytes = true;
        else if (is_shards && !in_shard && !moved)
            ok = take_shards(l, n, with), shards = true;
        else
            ok = WRONG(l, n, "has the codec '%.60s'%s, which gpipe does not %s", name, is_shards || moved ? " there" : "",
                       is_shards || moved ? "read" : "know");
        if (!ok)
            return false;
    }
    return bytes || shards || WRONG(l, list ? list : at, "has no codec %s", "'bytes'");
}

/* ---- the two versions ------------------------------------------------- */

static bool take_separator(look *l, const gp_node *map, const char *key, const gp_node *at, const char *otherwise)
{
    const char *said = gp_node_text(map, key), *text = *said ? said : otherwise;
    l->to->separator = *text;
    return !strcmp(text, "/") || !strcmp(text, ".") || WRONG(l, at, "has names of chunks with '%.20s'", text);
}

static bool take_v2(look *l, const gp_node *root)
{
    gp_zarr *z = l->to;
    const gp_node *codec = gp_node_get(root, "compressor"), *filters = gp_node_get(root, "filters");
    const char *order = gp_node_text(root, "order");
    if (strcmp(gp_node_text(root, "zarr_format"), "2"))
        return WRONG(l, root, "is of 'zarr_format' %.20s, and not 2", gp_node_text(root, "zarr_format"));
    if (!only(l, root, " zarr_format shape chunks dtype compressor fill_value order filters dimension_separator ", "it")
        || !take_array(l, root, "dtype") || !sizes(l, root, "chunks", z->whole.ndim, 1, z->chunk)
        || !take_separator(l, root, "dimension_separator", root, "."))
        return false;
    if (filters && filters->kind == GP_LIST && filters->n)
        return WRONG(l, filters, "has the filter '%.60s', which gpipe does not know", gp_node_text(filters->item[0], "id"));
    if (strcmp(order, "C") && strcmp(order, "F"))
        return WRONG(l, root, "has the order '%.20s', which is neither C nor F", order);
    for (int i = 0; i < z->whole.ndim; i++)
        z->order[i] = *order == 'F' ? z->whole.ndim - 1 - i : i;
    z->prefix = "";
    return !codec || codec->kind == GP_SCALAR || add_codec(l, codec, gp_node_text(codec, "id"));
}

static bool take_v3(look *l, const gp_node *root)
{
    gp_zarr *z = l->to;
    const gp_node *grid = gp_node_get(root, "chunk_grid"), *keys = gp_node_get(root, "chunk_key_encoding");
    const gp_node *with = gp_node_get(grid, "configuration"), *others = gp_node_get(root, "storage_transformers");
    if (strcmp(gp_node_text(root, "zarr_format"), "3"))
        return WRONG(l, root, "is of 'zarr_format' %.20s, and not 3", gp_node_text(root, "zarr_format"));
    if (!only(l, root, " zarr_format node_type shape data_type chunk_grid chunk_key_encoding codecs fill_value attributes "
              "dimension_names storage_transformers ", "it") || !take_array(l, root, "data_type"))
        return false;
    if (others && others->n)
        return WRONG(l, others, "has %s, which gpipe does not know", "'storage_transformers'");
    if (strcmp(name_of(grid), "regular") || !with)
        return WRONG(l, grid ? grid : root, "has a grid of chunks that is '%.60s', and gpipe reads 'regular'", name_of(grid));
    const bool as_v2 = !strcmp(name_of(keys), "v2");
    if (!as_v2 && strcmp(name_of(keys), "default"))
        return WRONG(l, keys ? keys : root, "has names of chunks that are '%.60s', and gpipe reads 'default' and 'v2'",
                     name_of(keys));
    if (!only(l, grid, " name configuration must_understand ", "its 'chunk_grid'")
        || !only(l, keys, " name configuration must_understand ", "its 'chunk_key_encoding'")
        || !only(l, gp_node_get(keys, "configuration"), " separator ", "its 'chunk_key_encoding'"))
        return false;
    z->prefix = as_v2 ? "" : "c";
    for (int i = 0; i < z->whole.ndim; i++)
        z->order[i] = i;
    return sizes(l, with, "chunk_shape", z->whole.ndim, 1, z->chunk) && only(l, with, " chunk_shape ", "its 'chunk_grid'")
        && take_separator(l, gp_node_get(keys, "configuration"), "separator", keys, as_v2 ? "." : "/")
        && take_codecs(l, root, gp_node_list(root, "codecs"), false);
}

static bool take(look *l, const gp_node *root, bool v3)
{
    gp_zarr *z = l->to;
    z->file = v3 ? "zarr.json" : ".zarray";
    if (!(v3 ? take_v3(l, root) : take_v2(l, root)))
        return false;
    if (!z->sharded)
        memcpy(z->shard, z->chunk, sizeof z->shard);
    if (z->big && gp_dtype_size(z->whole.dtype) == 1)
        z->big = false;
    return has_room(l, root, &z->whole, z->shard, "chunks") && gp_zarr_load(&z->chain, l->err);
}

/* ---- groups ----------------------------------------------------------- */

/* Of a group of OME-Zarr: the folder of an array. */
static bool find_level(look *l, const gp_node *group, const gp_node *attributes, int64_t level)
{
    const gp_node *ome = gp_node_get(attributes, "ome");
    const gp_node *scales = gp_node_list(ome ? ome : attributes, "multiscales");
    if (!scales || !scales->n)
        return WRONG(l, group, "is a group%s", ", and of no 'multiscales': name an array behind it, as in 'data.zarr/array'");
    const gp_node *list = gp_node_list(scales->item[0], "datasets");
    if (!list || level >= list->n)
        return WRONG(l, scales, "has %d levels, of which 'level: %lld' is none", list ? list->n : 0,
                     (long long)level);
    const char *path = gp_node_text(list->item[level], "path");
    if (!*path || *path == '/' || strlen(path) >= sizeof l->to->folder || strstr(path, ".."))
        return WRONG(l, list->item[level], "has a level at '%.100s', which is no folder in it", path);
    strcpy(l->to->folder, path);
    return true;
}

static bool look_inside(look *l, int64_t level)
{
    const char *folder = l->to->folder;
    for (;;) {
        const gp_node *root = tree(l, folder, "zarr.json"), *group = NULL;
        bool v3 = root || *l->err;
        root = v3 ? root : tree(l, folder, ".zarray");
        if (!root && *l->err)
            return false;
        if (root && (!v3 || strcmp(gp_node_text(root, "node_type"), "group")))
            return !level || *folder ? take(l, root, v3) : WRONG(l, root, "is an array, and has no %s", "levels");
        group = root ? root : tree(l, folder, ".zgroup");
        if (!group || *folder)
            return *l->err ? false : gp_why(l->err, "%s%s has no array: there is no zarr.json, .zarray or .zgroup",
                                            *folder ? "in " : "is a folder that", folder);
        const gp_node *attributes = v3 ? gp_node_get(root, "attributes") : tree(l, folder, ".zattrs");
        if (*l->err || !find_level(l, group, attributes, level))
            return false;
    }
}

bool gp_zarr_is_array(const gp_zarr_from *from, char err[GP_WHY])
{
    look l = { .from = from, .err = err };
    volatile bool is = false;
    GP_UNLESS_OOM(&l.arena)
        is = !strcmp(gp_node_text(tree(&l, "", "zarr.json"), "node_type"), "array") || tree(&l, "", ".zarray");
    gp_arena_free(&l.arena);
    return is;
}

bool gp_zarr_look(gp_zarr *z, const gp_zarr_from *from, int64_t level, char err[GP_WHY])
{
    look l = { .from = from, .to = z, .err = err };
    volatile bool ok = false;
    memset(z, 0, sizeof *z);           /* two are compared as bytes */
    z->prefix = "";
    GP_IF_OOM(&l.arena)
        gp_why(err, GP_WHY_MEMORY);
    else
        ok = look_inside(&l, level);
    gp_arena_free(&l.arena);
    return ok;
}
