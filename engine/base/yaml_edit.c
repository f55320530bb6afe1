/* yaml_edit.c - see yaml_edit.h. libyaml's events say where each node stands; the text is cut there. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/yaml_edit.h"
#include "base/yaml_pairs.h"

enum { DEEPEST = 64 };

typedef enum part_kind { SCALAR, ALIAS, LIST, MAP } part_kind;

/* A node and the bytes it has in the text, its anchor not included. */
typedef struct part part;
struct part {
    part_kind kind;
    bool flow, block_text;             /* block_text: a scalar after | or > */
    size_t from, to;
    const char *text;                  /* of a scalar */
    part **key, **item; int n, key_cap, item_cap;
};

typedef struct editing {
    yaml_parser_t yaml;
    yaml_event_t event;
    gp_arena *arena;
    const char *text, *file;
    size_t len, *byte_of, chars;       /* byte_of: of each character; NULL: all are ASCII */
} editing;

/* ---- where nodes stand ------------------------------------------------ */

static size_t byte_at(const editing *e, yaml_mark_t mark)
{
    size_t i = mark.index;
    return !e->byte_of ? (i < e->len ? i : e->len) : i < e->chars ? e->byte_of[i] : e->len;
}

static void count_characters(editing *e)
{
    bool ascii = true;
    for (size_t i = 0; i < e->len; i++)
        ascii &= (unsigned char)e->text[i] < 0x80;
    if (ascii)
        return;
    e->byte_of = GP_NEW(e->arena, size_t, e->len);
    for (size_t i = 0; i < e->len; i++)
        if (((unsigned char)e->text[i] & 0xc0) != 0x80)
            e->byte_of[e->chars++] = i;
}

static bool next(editing *e)
{
    yaml_event_delete(&e->event);
    return yaml_parser_parse(&e->yaml, &e->event);
}

/* Behind `&name` and blanks: where the node itself begins. */
static size_t behind_anchor(const editing *e, size_t at, size_t end, bool anchored)
{
    if (!anchored || at >= end || e->text[at] != '&')
        return at;
    while (at < end && !isspace((unsigned char)e->text[at]))
        at++;
    while (at < end && isspace((unsigned char)e->text[at]))
        at++;
    return at;
}

static part *read_part(editing *e, int depth);

static bool read_items(editing *e, part *p, yaml_event_type_t end, int depth)
{
    while (next(e)) {
        if (e->event.type == end) {
            p->to = byte_at(e, e->event.end_mark);
            return true;
        }
        part *one = read_part(e, depth + 1);
        if (!one)
            return false;
        if (p->kind == MAP) {
            *GP_PUSH(e->arena, p->key, p->n, p->key_cap) = one;
            p->n--;
            if (!next(e) || !(one = read_part(e, depth + 1)))
                return false;
        }
        *GP_PUSH(e->arena, p->item, p->n, p->item_cap) = one;
    }
    return false;
}

static part *read_part(editing *e, int depth)
{
    part *p = GP_NEW(e->arena, part, 1);
    const yaml_event_t *v = &e->event;
    size_t from = byte_at(e, v->start_mark), to = byte_at(e, v->end_mark);
    *p = (part){ .from = from, .to = to, .text = "" };
    if (depth > DEEPEST)
        return NULL;
    switch (v->type) {
    case YAML_ALIAS_EVENT:
        p->kind = ALIAS;
        return p;
    case YAML_SCALAR_EVENT:
        p->kind = SCALAR;
        p->block_text = v->data.scalar.style == YAML_LITERAL_SCALAR_STYLE
            || v->data.scalar.style == YAML_FOLDED_SCALAR_STYLE;
        p->from = behind_anchor(e, from, to, v->data.scalar.anchor != NULL);
        p->text = gp_strndup(e->arena, (const char *)v->data.scalar.value, v->data.scalar.length);
        return p;
    case YAML_SEQUENCE_START_EVENT:
        p->kind = LIST, p->flow = v->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        return read_items(e, p, YAML_SEQUENCE_END_EVENT, depth) ? p : NULL;
    case YAML_MAPPING_START_EVENT:
        p->kind = MAP, p->flow = v->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        return read_items(e, p, YAML_MAPPING_END_EVENT, depth) ? p : NULL;
    default:
        return NULL;
    }
}

/* The node of the one document; NULL: it is no YAML. */
static part *read_text(editing *e)
{
    jmp_buf oom, *outer = e->arena->oom;
    part *volatile root = NULL;
    volatile bool failed = true;
    const char *shown = gp_yaml_hide_pairs(e->arena, e->text, e->len);
    if (!yaml_parser_initialize(&e->yaml))
        return NULL;
    yaml_parser_set_encoding(&e->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&e->yaml, (const unsigned char *)shown, e->len);
    if (!setjmp(oom)) {
        e->arena->oom = &oom;
        count_characters(e);
        bool begun = next(e) && next(e) && e->event.type == YAML_DOCUMENT_START_EVENT && next(e);
        root = begun ? read_part(e, 1) : NULL;
        failed = false;
    }
    e->arena->oom = outer;
    yaml_event_delete(&e->event);
    yaml_parser_delete(&e->yaml);
    if (failed) {
        if (!outer)
            abort();
        longjmp(*outer, 1);
    }
    return root;
}

/* ---- what is put there ------------------------------------------------ */

static bool is_plain(const char *s)
{
    const char *p = s;
    while (isalnum((unsigned char)*p) || (*p && strchr("_./+-", *p)))
        p++;
    return *s && !*p && isalnum((unsigned char)*s);
}

static const char *quoted(gp_arena *a, const char *s)
{
    char *to = GP_NEW(a, char, 6 * strlen(s) + 3), *p = to;
    *p++ = '"';
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            *p++ = '\\', *p++ = *s;
        else if ((unsigned char)*s < 0x20)
            p += snprintf(p, 7, "\\x%02x", (unsigned)*s);
        else
            *p++ = *s;
    }
    *p = '"';
    return to;
}

static const char *scalar(gp_arena *a, const char *s)
{
    return is_plain(s) ? s : quoted(a, s);
}

static const char *value_text(gp_arena *a, const char *value)
{
    return *value && strchr("[{\"'", *value) ? value : scalar(a, value);
}

/* "a: {b: value}" of the words that lead to nothing. */
static const char *added(gp_arena *a, const char *const *word, int n, const char *value)
{
    const char *text = value_text(a, value);
    for (int i = n - 1; i >= 0; i--)
        text = gp_format(a, i ? "{%s: %s}" : "%s: %s", scalar(a, word[i]), text);
    return text;
}

/* ---- cutting ---------------------------------------------------------- */

static char *put(const editing *e, size_t from, size_t to, const char *text, size_t *out_len)
{
    size_t n = strlen(text);
    char *out = GP_NEW(e->arena, char, e->len - (to - from) + n + 1);
    memcpy(out, e->text, from);
    memcpy(out + from, text, n);
    memcpy(out + from + n, e->text + to, e->len - to);
    *out_len = e->len - (to - from) + n;
    return out;
}

static size_t line_start(const editing *e, size_t at)
{
    while (at && e->text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const editing *e, size_t at)
{
    while (at < e->len && e->text[at] != '\n')
        at++;
    return at > 0 && at < e->len && e->text[at - 1] == '\r' ? at - 1 : at;
}

static const char *newline(const editing *e)
{
    const char *nl = memchr(e->text, '\n', e->len);
    return nl && nl > e->text && nl[-1] == '\r' ? "\r\n" : "\n";
}

/* Blanks up to where a key of a block stands, whatever is in front of it: "- ", "? ". */
static const char *indent(const editing *e, const part *key)
{
    size_t from = line_start(e, key->from), n = 0;
    for (size_t i = from; i < key->from; i++)          /* as YAML counts: characters */
        n += ((unsigned char)e->text[i] & 0xc0) != 0x80;
    return gp_format(e->arena, "%*s", (int)n, "");
}

/* Does the value stand in the line of its key, with nothing behind it that is the map's? */
static bool in_one_line(const editing *e, const part *key, const part *item)
{
    if (item->block_text || (item->kind != SCALAR && item->kind != ALIAS && !item->flow))
        return false;
    return !memchr(e->text + key->from, '\n', item->to - key->from);
}

static char *add_to_block(const editing *e, const part *map, const char *text, size_t *out_len)
{
    int last = -1;
    for (int i = 0; i < map->n; i++)
        if (in_one_line(e, map->key[i], map->item[i]) && (map->item[i]->kind == SCALAR || last < 0))
            last = i;
    const char *blanks = indent(e, map->key[0]), *nl = newline(e);
    if (last < 0 || map->item[last]->kind != SCALAR)
        return put(e, map->key[0]->from, map->key[0]->from, gp_format(e->arena, "%s%s%s", text, nl, blanks), out_len);
    size_t at = line_end(e, map->item[last]->to);
    return put(e, at, at, gp_format(e->arena, "%s%s%s", nl, blanks, text), out_len);
}

static char *add_to_flow(const editing *e, const part *map, const char *text, size_t *out_len)
{
    size_t at = map->n ? map->item[map->n - 1]->to : map->to - 1;
    if (map->n && map->item[map->n - 1]->to < map->key[map->n - 1]->to)
        at = map->key[map->n - 1]->to;
    return put(e, at, at, map->n ? gp_format(e->arena, ", %s", text) : text, out_len);
}

/* ---- the way ---------------------------------------------------------- */

static gp_loc place(const editing *e, const part *p)
{
    size_t start = line_start(e, p->from);
    int line = 1;
    for (size_t i = 0; i < start; i++)
        line += e->text[i] == '\n';
    return (gp_loc){ e->file, line, (int)(p->from - start) + 1, 1 };
}

static const part *child(const part *p, const char *word)
{
    char *end;
    if (p->kind == MAP)
        for (int i = 0; i < p->n; i++)
            if (p->key[i]->kind == SCALAR && !strcmp(p->key[i]->text, word))
                return p->item[i];
    unsigned long k = strtoul(word, &end, 10);
    return p->kind == LIST && end != word && !*end && k < (unsigned long)p->n ? p->item[k] : NULL;
}

static char *edit(editing *e, const part *p, const char *const *word, int n, const char *value, size_t *out_len,
                  gp_errs *errs)
{
    int i = 0;
    for (const part *to; i < n && (to = child(p, word[i])); i++)
        p = to;
    bool blank = p->kind == SCALAR && p->from == p->to;
    const char *text = i < n ? added(e->arena, word + i, n - i, value) : value_text(e->arena, value);
    if (blank)                         /* "key:" has nothing behind it */
        return put(e, p->from, p->from, gp_format(e->arena, i < n ? " {%s}" : " %s", text), out_len);
    if (i == n && (p->kind == SCALAR || p->kind == ALIAS) && !p->block_text)
        return put(e, p->from, p->to, text, out_len);
    if (i < n && p->kind == MAP && p->n)
        return p->flow ? add_to_flow(e, p, text, out_len) : add_to_block(e, p, text, out_len);
    if (i < n && p->kind == MAP && p->flow)
        return add_to_flow(e, p, text, out_len);
    gp_fail(errs, GP_E_SPEC, place(e, p), p->kind == ALIAS
            ? "'%s' cannot be set here: this is an alias, and what it stands for is used in other places, too; write it "
              "by hand"
            : "'%s' cannot be set here; write it by hand", word[i < n ? i : n - 1]);
    return NULL;
}

char *gp_yaml_edit(gp_arena *a, const char *text, size_t len, const char *file, const char *const *word, int n,
                   const char *value, size_t *out_len, gp_errs *errs)
{
    bool marked = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);        /* a byte order mark */
    editing e = { .arena = a, .text = text + (marked ? 3 : 0), .len = len - (marked ? 3 : 0), .file = file };
    const part *root = read_text(&e);
    if (!root) {
        gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = file }, "this cannot be read as YAML");
        return NULL;
    }
    char *out = edit(&e, root, word, n, value, out_len, errs);
    if (!out || !marked)
        return out;
    char *with_mark = GP_NEW(a, char, *out_len + 4);
    memcpy(with_mark, text, 3);
    memcpy(with_mark + 3, out, *out_len);
    *out_len += 3;
    return with_mark;
}
