/* yaml.c - see yaml.h. Only this file and yaml_pairs.c know libyaml.
 *
 * libyaml counts characters; all places that leave this file count bytes.
 * Work and memory are linear in the size of the text: an alias is a second
 * pointer to the same node, and the number of nodes that a walk over the tree
 * would meet is bounded (ALL_NODES). */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/json.h"
#include "base/table.h"
#include "base/yaml.h"
#include "base/yaml_text.h"

enum {
    DEEPEST = 64,
    ALL_NODES = 1000 * 1000,
    FEW = 16,                          /* keys that are compared one by one */
};

struct anchor {
    gp_node *node;                     /* NULL while the node is being read */
    int64_t nodes;                     /* in it, aliases expanded */
};

struct parser {
    yaml_parser_t yaml;
    yaml_event_t event;                /* the current one, owned */
    gp_arena *arena;
    const char *text;
    const char *shown;                 /* ... to libyaml, of the same length; see yaml_text.h */
    size_t len;
    const char *file;
    const gp_loc *fixed;               /* where all nodes are, or NULL */
    gp_errs *errs;
    bool marked;                       /* nodes are gp_marked */
    bool ascii;
    size_t chars, bytes;               /* the same position, counted both ways */
    size_t seen, line, line_start;     /* lines before `seen`, and where its line starts */
    gp_table names;                    /* of anchors */
    struct anchor *anchor;
    int nanchors, anchor_cap;
    int64_t nodes;
};

/* ---- places ---------------------------------------------------------- */

/* Characters -> bytes. Positions come in order, so that the steps are short. */
static size_t byte_of(struct parser *p, size_t chars)
{
    if (p->ascii)
        return chars < p->len ? chars : p->len;
    while (p->chars < chars && p->bytes < p->len) {
        p->chars++;
        while (++p->bytes < p->len && ((unsigned char)p->text[p->bytes] & 0xc0) == 0x80)
            ;
    }
    while (p->chars > chars) {
        p->chars--;
        while (((unsigned char)p->text[--p->bytes] & 0xc0) == 0x80)
            ;
    }
    return p->bytes;
}

static gp_loc place(struct parser *p, size_t from, size_t to)
{
    if (p->fixed)
        return *p->fixed;
    if (from < p->line_start)
        p->seen = p->line = p->line_start = 0;
    const char *nl;
    for (; p->seen < from; p->seen = nl ? p->line_start : from)
        if ((nl = memchr(p->text + p->seen, '\n', from - p->seen)))
            p->line_start = (size_t)(nl - p->text) + 1, p->line++;
    to = to < p->len ? to : p->len;
    if (to > from && (nl = memchr(p->text + from, '\n', to - from)))
        to = (size_t)(nl - p->text);
    return (gp_loc){ p->file, (int)p->line + 1, (int)(from - p->line_start) + 1,
                     (int)(to > from ? to - from : 1) };
}

static gp_loc here(struct parser *p)
{
    size_t from = byte_of(p, p->event.start_mark.index);
    return place(p, from, byte_of(p, p->event.end_mark.index));
}

/* ---- text that is not YAML ------------------------------------------- */

/* Bytes of the character at s, of n; 0 if text may not contain it. */
static size_t character(const unsigned char *s, size_t n)
{
    unsigned code;
    if (*s < 0x80)
        return (*s >= 0x20 && *s != 0x7f) || *s == '\t' || *s == '\n' || *s == '\r';
    size_t k = gp_utf8((const char *)s, n, &code);
    return k && (code == 0x85 || code >= 0xa0) && (code & ~1u) != 0xfffe ? k : 0;
}

static bool check_bytes(struct parser *p)
{
    const unsigned char *s = (const unsigned char *)p->text;
    if (p->len >= 2 && ((s[0] == 0xff && s[1] == 0xfe) || (s[0] == 0xfe && s[1] == 0xff)))
        return gp_fail(p->errs, GP_E_SPEC, ((gp_loc){ .file = p->file }),
                       "the file is UTF-16; save it as UTF-8");
    p->ascii = true;
    for (size_t i = 0, k; i < p->len; i += k) {
        k = character(s + i, p->len - i);
        if (!k)
            return gp_fail(p->errs, GP_E_SPEC, place(p, i, i + 1),
                           "byte 0x%02x is not UTF-8 text; is this a YAML file?", s[i]);
        p->ascii &= k == 1;
    }
    return true;
}

static bool fail_yaml(struct parser *p)
{
    const yaml_parser_t *y = &p->yaml;
    size_t at = byte_of(p, y->problem_mark.index);
    size_t from = byte_of(p, y->context_mark.index);
    gp_yaml_problem x = { .text = p->text, .len = p->len, .problem = y->problem ? y->problem : "not YAML",
                          .context = y->context ? y->context : "", .at = at, .context_at = from };
    if (y->error == YAML_MEMORY_ERROR)
        return gp_fail(p->errs, GP_E_RESOURCE, place(p, at, at + 1), "out of memory");
    gp_yaml_explain(&x);
    return gp_fail(p->errs, GP_E_SPEC, place(p, x.from, x.to), "%s", x.say);
}

/* ---- events -> nodes ------------------------------------------------- */

static bool next(struct parser *p)
{
    yaml_event_delete(&p->event);
    return yaml_parser_parse(&p->yaml, &p->event) || fail_yaml(p);
}

/* Where the event ends, at present. */
static void mark_end(struct parser *p, gp_node *n)
{
    if (p->marked)
        ((gp_marked *)n)->to = byte_of(p, p->event.end_mark.index);
}

/* Behind `&name` and blanks: where the node itself begins. */
static void mark_behind_anchor(const struct parser *p, gp_marked *m)
{
    while (m->from < m->to && !isspace((unsigned char)p->text[m->from]))
        m->from++;
    while (m->from < m->to && isspace((unsigned char)p->text[m->from]))
        m->from++;
}

static gp_node *new_node(struct parser *p, gp_node_kind kind)
{
    gp_node *n = p->marked ? &GP_NEW(p->arena, gp_marked, 1)->node : GP_NEW(p->arena, gp_node, 1);
    if (p->marked)
        ((gp_marked *)n)->from = byte_of(p, p->event.start_mark.index), mark_end(p, n);
    n->kind = kind, n->text = "", n->at = here(p);
    if (kind != GP_SCALAR)
        n->at.len = p->fixed ? 0 : 1;
    return n;
}

static bool count(struct parser *p, int64_t nodes)
{
    if ((p->nodes += nodes) <= ALL_NODES)
        return true;
    return gp_fail(p->errs, GP_E_SPEC, here(p),
                   "more than %d values, counting each use of an alias", ALL_NODES);
}

/* `[min(a, b), 2]` is the list "min(a", "b)", 2, which is hardly what was meant. */
static bool check_parens(struct parser *p, const gp_node *n)
{
    int open = 0;
    for (const char *s = n->text; *s; s++)
        open += *s == '(' ? 1 : *s == ')' ? -1 : 0;
    if (open <= 0)
        return true;
    const char *from = p->text + byte_of(p, p->event.start_mark.index), *s = from;
    const char *end = p->text + p->len;
    int cut = open;                        /* how many are open at the comma */
    open = 0;
    do
        open += *s == '(' ? 1 : *s == ')' ? -1 : 0;
    while (!(*s == ')' && !open) && ++s < end && *s != '\n' && s - from < 80);
    if (s < end && *s == ')' && *from == '(' && cut == 1)
        return gp_fail(p->errs, GP_E_SPEC, n->at, "a list is written in [ ]: [%.*s]", (int)(s - 1 - from), from + 1);
    if (s < end && *s == ')')
        return gp_fail(p->errs, GP_E_SPEC, n->at, "'%s' is cut at the comma; "
                       "put quotes around the whole: \"%.*s\"",
                       n->text, (int)(s + 1 - from), from);
    return gp_fail(p->errs, GP_E_SPEC, n->at, "'%.80s' has a '(' that is not closed", n->text);
}

/* Do the lines of a block scalar stand below its '|' as in its text, behind as many blanks each? Of a
 * folded one they may not. */
static void find_lines(const struct parser *p, gp_node *n, size_t from)
{
    const char *end = p->text + p->len, *s = memchr(p->text + from, '\n', p->len - from);
    size_t blanks = 0;
    bool known = false;
    for (const char *t = n->text; *t;) {
        if (!s)
            return;
        s++;
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *stop = nl ? nl : end;
        size_t room = (size_t)(stop - s), len = strcspn(t, "\n"), before = 0;
        room -= room && s[room - 1] == '\r';
        while (before < room && s[before] == ' ')
            before++;
        if (len && !known)
            blanks = before - strspn(t, " "), known = true;
        if (len ? room < len || room - len != blanks || memcmp(s + blanks, t, len) : before < room)
            return;
        t += len + (t[len] == '\n'), s = nl;
    }
    if (known)
        n->line = n->at.line + 1, n->col = (int)blanks + 1;
}

static gp_node *parse_scalar(struct parser *p, bool flow)
{
    gp_node *n = new_node(p, GP_SCALAR);
    size_t len = p->event.data.scalar.length;
    char *text = gp_strndup(p->arena, (const char *)p->event.data.scalar.value, len);
    if (p->shown != p->text && p->event.data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE) {
        size_t from = byte_of(p, p->event.start_mark.index), to = byte_of(p, p->event.end_mark.index);
        len = gp_yaml_show_pairs(text, len, p->text + from, to - from);
    }
    n->text = text;
    n->len = len;
    n->quoted = p->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (strlen(n->text) != len)
        return GP_NULL(gp_fail(p->errs, GP_E_SPEC, n->at, "text cannot hold the character '\\0'"));
    bool block = p->event.data.scalar.style == YAML_LITERAL_SCALAR_STYLE
        || p->event.data.scalar.style == YAML_FOLDED_SCALAR_STYLE;
    if (p->marked)
        ((gp_marked *)n)->block = block;
    if (block && !p->fixed)
        find_lines(p, n, byte_of(p, p->event.start_mark.index));
    if (flow && !n->quoted)
        check_parens(p, n);            /* reading goes on, to find more errors */
    return n;
}

static gp_node *parse_node(struct parser *p, int depth, bool flow);

static gp_node *end_node(struct parser *p, gp_node *n, bool flow)
{
    mark_end(p, n);
    if (p->marked)
        ((gp_marked *)n)->flow = flow;
    return n;
}

static gp_node *parse_list(struct parser *p, int depth, bool flow)
{
    gp_node *n = new_node(p, GP_LIST);
    int cap = 0;
    flow |= p->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    while (next(p)) {
        if (p->event.type == YAML_SEQUENCE_END_EVENT)
            return end_node(p, n, flow);
        gp_node *item = parse_node(p, depth + 1, flow);
        if (!item)
            return NULL;
        *GP_PUSH(p->arena, n->item, n->n, cap) = item;
    }
    return NULL;
}

/* A map that grows. */
struct map {
    gp_node *node;
    int cap;
    gp_table *names;                   /* of the keys, once they are many */
};

static int map_find(const struct map *m, const char *key)
{
    if (m->names)
        return gp_table_index(m->names, key);
    for (int i = 0; i < m->node->n; i++)
        if (!strcmp(m->node->key[i]->text, key))
            return i;
    return -1;
}

static void map_add(struct parser *p, struct map *m, gp_node *key, gp_node *item)
{
    gp_node *n = m->node;
    if (n->n == m->cap) {
        size_t old = sizeof *n->key * (size_t)m->cap;
        m->cap = m->cap ? 2 * m->cap : 8;
        size_t size = sizeof *n->key * (size_t)m->cap;
        n->key = gp_regrow(p->arena, n->key, old, size);
        n->item = gp_regrow(p->arena, n->item, old, size);
    }
    n->key[n->n] = key, n->item[n->n++] = item;
    if (n->n < FEW)
        return;
    if (!m->names) {
        n->index = m->names = GP_NEW(p->arena, gp_table, 1);
        m->names->arena = p->arena;
    }
    for (int i = (int)m->names->n; i < n->n; i++)
        gp_table_put(m->names, n->key[i]->text, i);
}

/* `<<: *a`, `<<: [*a, *b]`: own keys win, then earlier maps. */
static bool merge(struct parser *p, struct map *m, const gp_node *from, bool in_list)
{
    if (from->kind == GP_LIST && !in_list) {
        for (int i = 0; i < from->n; i++)
            if (!merge(p, m, from->item[i], true))
                return false;
        return true;
    }
    if (from->kind != GP_MAP)
        return gp_fail(p->errs, GP_E_SPEC, from->at, "'<<' takes a map or a list of maps, "
                       "like '<<: *a' or '<<: [*a, *b]'");
    for (int i = 0; i < from->n; i++)
        if (map_find(m, from->key[i]->text) < 0)
            map_add(p, m, from->key[i], from->item[i]);
    return true;
}

static gp_node *parse_map(struct parser *p, int depth, bool flow)
{
    struct map m = { .node = new_node(p, GP_MAP) };
    gp_node *merged = NULL;
    flow |= p->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    while (next(p)) {
        if (p->event.type == YAML_MAPPING_END_EVENT)
            return !merged || merge(p, &m, merged, false) ? end_node(p, m.node, flow) : NULL;
        gp_node *key = parse_node(p, depth + 1, flow);
        if (!key)
            return NULL;
        if (key->kind != GP_SCALAR || (!key->len && !key->quoted))
            return GP_NULL(gp_fail(p->errs, GP_E_SPEC, key->at, "a key must be a word, not %s", key->kind == GP_SCALAR
                                   ? "empty" : key->kind == GP_LIST ? "a list" : "a map"));
        gp_node *item = next(p) ? parse_node(p, depth + 1, flow) : NULL;
        if (!item)
            return NULL;
        bool is_merge = !p->marked && !key->quoted && !strcmp(key->text, "<<");
        int i = is_merge ? -1 : map_find(&m, key->text);
        if (is_merge && !merged)
            merged = item;
        else if (is_merge)
            gp_fail(p->errs, GP_E_SPEC, key->at,
                    "'<<' appears twice in this map; write '<<: [*a, *b]'");
        else if (i >= 0)
            gp_fail(p->errs, GP_E_SPEC, key->at, "key '%s' is given twice, first in line %d; "
                    "remove one", key->text, m.node->key[i]->at.line);
        else
            map_add(p, &m, key, item);
    }
    return NULL;
}

static gp_node *parse_alias(struct parser *p)
{
    if (p->marked) {
        gp_node *n = new_node(p, GP_SCALAR);
        ((gp_marked *)n)->alias = true;
        return n;
    }
    const char *name = (const char *)p->event.data.alias.anchor;
    int i = gp_table_index(&p->names, name);
    if (i < 0)
        gp_fail(p->errs, GP_E_SPEC, here(p), "'*%s' is a YAML alias, but no anchor '&%s' comes "
                "before it; put quotes around the value if it is text", name, name);
    else if (!p->anchor[i].node)
        gp_fail(p->errs, GP_E_SPEC, here(p), "'*%s' is inside the '&%s' it stands for",
                name, name);
    else if (count(p, p->anchor[i].nodes))
        return p->anchor[i].node;
    return NULL;
}

/* The node that starts at the current event; its last event is then current. */
static gp_node *parse_node(struct parser *p, int depth, bool flow)
{
    if (p->event.type == YAML_ALIAS_EVENT)
        return parse_alias(p);
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (p->event.type) {
    case YAML_SCALAR_EVENT:
        anchor = p->event.data.scalar.anchor, tag = p->event.data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = p->event.data.sequence_start.anchor, tag = p->event.data.sequence_start.tag;
        break;
    default:
        anchor = p->event.data.mapping_start.anchor, tag = p->event.data.mapping_start.tag;
    }
    if (tag) {
        static const char standard[] = "tag:yaml.org,2002:";
        const char *word = (const char *)tag;
        if (!strncmp(word, standard, sizeof standard - 1))
            gp_fail(p->errs, GP_E_SPEC, here(p), "the tag '!!%s' is not needed, as each key says what its value is; delete "
                    "it", word + sizeof standard - 1);
        else
            gp_fail(p->errs, GP_E_SPEC, here(p), "the tag '%s' has no meaning here; delete it, "
                    "or put quotes around text that starts with '!'", word);
        return NULL;
    }
    if (depth > DEEPEST)
        return GP_NULL(gp_fail(p->errs, GP_E_SPEC, here(p), "nested more than %d deep", DEEPEST));
    int64_t before = p->nodes;
    int id = -1;
    if (!count(p, 1))
        return NULL;
    if (anchor) {                      /* a later one of the same name replaces it */
        id = p->nanchors;
        *GP_PUSH(p->arena, p->anchor, p->nanchors, p->anchor_cap) = (struct anchor){ 0 };
        gp_table_put(&p->names, gp_strdup(p->arena, (const char *)anchor), id)->n = id;
    }
    gp_node *n = p->event.type == YAML_SCALAR_EVENT ? parse_scalar(p, flow)
        : p->event.type == YAML_SEQUENCE_START_EVENT ? parse_list(p, depth, flow)
        : parse_map(p, depth, flow);
    if (n && id >= 0 && p->marked && n->kind == GP_SCALAR)
        mark_behind_anchor(p, (gp_marked *)n);
    if (n && id >= 0)
        p->anchor[id] = (struct anchor){ n, p->nodes - before };
    return n;
}

/* The one document of the text. NULL: there is none, or after errors. */
static gp_node *parse_document(struct parser *p)
{
    if (!next(p) || !next(p))                          /* stream start, document start */
        return NULL;
    if (p->event.type == YAML_STREAM_END_EVENT || !next(p))
        return NULL;
    gp_node *root = parse_node(p, 1, false);
    if (!root || !next(p) || !next(p))                 /* document end, stream end */
        return NULL;
    if (p->event.type != YAML_STREAM_END_EVENT)
        return GP_NULL(gp_fail(p->errs, GP_E_SPEC, here(p), "a second document starts here; a file holds one"));
    return root->kind == GP_SCALAR && !root->len && !root->quoted ? NULL : root;
}

/* Runs parse_document and frees what libyaml has, also when the arena is out of
 * memory. */
static gp_node *parse_text(struct parser *p)
{
    int before = p->errs->failed;
    jmp_buf oom, *outer = p->arena->oom;
    if (!check_bytes(p))
        return NULL;
    p->shown = gp_yaml_hide_pairs(p->arena, p->text, p->len);
    gp_node *volatile root = NULL;
    volatile bool failed = true;
    if (!yaml_parser_initialize(&p->yaml))
        return GP_NULL(gp_fail(p->errs, GP_E_RESOURCE, ((gp_loc){ .file = p->file }), "out of memory"));
    p->names.arena = p->arena;
    yaml_parser_set_encoding(&p->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p->yaml, (const unsigned char *)p->shown, p->len);
    if (!setjmp(oom)) {
        p->arena->oom = &oom;
        root = parse_document(p);
        failed = false;
    }
    p->arena->oom = outer;
    yaml_event_delete(&p->event);
    yaml_parser_delete(&p->yaml);
    if (failed) {
        if (!outer)
            abort();
        longjmp(*outer, 1);
    }
    return p->errs->failed > before ? NULL : root;
}

gp_node *gp_yaml_parse(gp_arena *a, const char *text, size_t len, const char *file, gp_errs *errs)
{
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))  /* a byte order mark */
        text += 3, len -= 3;
    if (len > INT_MAX)
        return GP_NULL(gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = file }, "the file is larger than 2 GiB"));
    struct parser p = { .arena = a, .text = text, .len = len, .file = file, .errs = errs };
    return parse_text(&p);
}

const gp_marked *gp_yaml_marked(gp_arena *a, const char *text, size_t len, const char *file, gp_errs *errs)
{
    struct parser p = { .arena = a, .text = text, .len = len, .file = file, .marked = true, .errs = errs };
    return (const gp_marked *)parse_text(&p);
}

gp_node *gp_yaml_value(gp_arena *a, const char *text, gp_loc at, gp_errs *errs)
{
    struct parser p = { .arena = a, .text = text, .len = strlen(text), .file = at.file,
                        .fixed = &at, .errs = errs };
    return parse_text(&p);
}
