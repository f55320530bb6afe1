/* yaml_edit.c - see yaml.h. Nodes say where they stand; the text is cut there. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/yaml.h"

typedef struct editing {
    gp_arena *arena;
    const char *text;
    size_t len;
} editing;

typedef const gp_marked part;

static part *key_of(part *map, int i)
{
    return (part *)map->node.key[i];
}

static part *item_of(part *p, int i)
{
    return (part *)p->node.item[i];
}

static bool is_text(part *p)
{
    return p->node.kind == GP_SCALAR && !p->alias;
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
static const char *indent(const editing *e, part *key)
{
    size_t from = line_start(e, key->from), n = 0;
    for (size_t i = from; i < key->from; i++)          /* as YAML counts: characters */
        n += ((unsigned char)e->text[i] & 0xc0) != 0x80;
    return gp_format(e->arena, "%*s", (int)n, "");
}

/* Does the value stand in the line of its key, with nothing behind it that is the map's? */
static bool in_one_line(const editing *e, part *key, part *item)
{
    if (item->block || (item->node.kind != GP_SCALAR && !item->flow))
        return false;
    return !memchr(e->text + key->from, '\n', item->to - key->from);
}

static char *add_to_block(const editing *e, part *map, const char *text, size_t *out_len)
{
    int last = -1;
    part *first = key_of(map, 0);
    for (int i = 0; i < map->node.n; i++)
        if (in_one_line(e, key_of(map, i), item_of(map, i)) && (is_text(item_of(map, i)) || last < 0))
            last = i;
    const char *blanks = indent(e, first), *nl = newline(e);
    if (last < 0 || !is_text(item_of(map, last)))
        return put(e, first->from, first->from, gp_format(e->arena, "%s%s%s", text, nl, blanks), out_len);
    size_t at = line_end(e, item_of(map, last)->to);
    return put(e, at, at, gp_format(e->arena, "%s%s%s", nl, blanks, text), out_len);
}

static char *add_to_flow(const editing *e, part *map, const char *text, size_t *out_len)
{
    int n = map->node.n;
    if (!n)
        return put(e, map->to - 1, map->to - 1, text, out_len);
    size_t key_end = key_of(map, n - 1)->to, at = item_of(map, n - 1)->to;
    at = at < key_end ? key_end : at;
    return put(e, at, at, gp_format(e->arena, ", %s", text), out_len);
}

/* ---- the way ---------------------------------------------------------- */

static part *child(part *p, const char *word)
{
    char *end;
    if (p->node.kind == GP_MAP)
        return (part *)gp_node_get(&p->node, word);
    unsigned long k = strtoul(word, &end, 10);
    return p->node.kind == GP_LIST && end != word && !*end && k < (unsigned long)p->node.n ? item_of(p, (int)k) : NULL;
}

static char *edit(editing *e, part *p, const char *const *word, int n, const char *value, size_t *out_len,
                  gp_errs *errs)
{
    int i = 0;
    for (part *to; i < n && (to = child(p, word[i])); i++)
        p = to;
    bool blank = is_text(p) && p->from == p->to;
    const char *text = i < n ? added(e->arena, word + i, n - i, value) : value_text(e->arena, value);
    if (blank)                         /* "key:" has nothing behind it */
        return put(e, p->from, p->from, gp_format(e->arena, i < n ? " {%s}" : " %s", text), out_len);
    if (i == n && p->node.kind == GP_SCALAR && !p->block)
        return put(e, p->from, p->to, text, out_len);
    if (i < n && p->node.kind == GP_MAP && (p->node.n || p->flow))
        return p->flow ? add_to_flow(e, p, text, out_len) : add_to_block(e, p, text, out_len);
    gp_loc at = p->node.at;
    at.len = 1;
    gp_fail(errs, GP_E_SPEC, at, p->alias
            ? "'%s' cannot be set here: this is an alias, and what it stands for is used in other places, too; write it "
              "by hand"
            : "'%s' cannot be set here; write it by hand", word[i < n ? i : n - 1]);
    return NULL;
}

char *gp_yaml_edit(gp_arena *a, const char *text, size_t len, const char *file, const char *const *word, int n,
                   const char *value, size_t *out_len, gp_errs *errs)
{
    bool marked = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);        /* a byte order mark */
    editing e = { .arena = a, .text = text + (marked ? 3 : 0), .len = len - (marked ? 3 : 0) };
    part *root = gp_yaml_marked(a, e.text, e.len, file, GP_NEW(a, gp_errs, 1));
    if (!root)
        return GP_NULL(gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = file }, "this cannot be read as YAML"));
    char *out = edit(&e, root, word, n, value, out_len, errs);
    if (!out || !marked)
        return out;
    char *with_mark = GP_NEW(a, char, *out_len + 4);
    memcpy(with_mark, text, 3);
    memcpy(with_mark + 3, out, *out_len);
    *out_len += 3;
    return with_mark;
}
