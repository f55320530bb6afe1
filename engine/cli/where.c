/* where.c - see where.h. */
#include <string.h>
#include "cli/where.h"

typedef struct scan {
    gp_arena *a;
    gp_where *w;
    const char *s;
    size_t i, n;
    int cur;                   /* the innermost box */
} scan;

static gp_box *box(const scan *x)
{
    return &x->w->box[x->cur];
}

static void enter(scan *x, bool list, bool flow, int indent)
{
    gp_span key = { 0 };
    if (x->w->nboxes && box(x)->open >= 0)
        key = x->w->word[box(x)->open].key;
    *GP_PUSH(x->a, x->w->box, x->w->nboxes, x->w->boxes_cap) =
        (gp_box){ x->w->nboxes ? x->cur : -1, key, list, flow, indent, -1 };
    x->cur = x->w->nboxes - 1;
}

static void leave(scan *x)
{
    x->cur = box(x)->parent;
}

static void add_key(scan *x, gp_span key)
{
    box(x)->open = x->w->nwords;
    *GP_PUSH(x->a, x->w->word, x->w->nwords, x->w->words_cap) = (gp_word){ .box = x->cur, .key = key };
}

static void add_value(scan *x, gp_span value)
{
    gp_box *b = box(x);
    if (b->open >= 0 && !x->w->word[b->open].value.len)
        x->w->word[b->open].value = value;
    else
        *GP_PUSH(x->a, x->w->word, x->w->nwords, x->w->words_cap) = (gp_word){ .box = x->cur, .value = value };
}

/* Within a line: is there a comment, or nothing, from i on? */
static bool at_end(const scan *x, size_t i)
{
    return i >= x->n || strchr("\r\n", x->s[i]) || (x->s[i] == '#' && (!i || strchr(" \t\n", x->s[i - 1])));
}

static void skip_spaces(scan *x)
{
    while (x->i < x->n && (x->s[x->i] == ' ' || x->s[x->i] == '\t'))
        x->i++;
}

static void skip_line(scan *x)
{
    while (x->i < x->n && x->s[x->i++] != '\n')
        ;
}

static int depth_of(const scan *x)
{
    int b = x->cur;
    while (x->w->box[b].flow)
        b = x->w->box[b].parent;
    return x->w->box[b].indent;
}

/* The column of the first character of the line at i; -1: the line has none. */
static int column(const scan *x, size_t i)
{
    size_t from = i;
    while (i < x->n && x->s[i] == ' ')
        i++;
    return at_end(x, i) ? -1 : (int)(i - from);
}

static bool is_dash(const scan *x, size_t i)
{
    return x->s[i] == '-' && (i + 1 >= x->n || strchr(" \r\n", x->s[i + 1]));
}

/* What is in quotes, with more lines if a quote closes it before one that stands no deeper. */
static gp_span quoted(scan *x)
{
    char quote = x->s[x->i];
    size_t from = x->i + 1, line = 0;
    for (size_t i = from; i < x->n; i++) {
        if (x->s[i] == '\\' && quote == '"') {
            i++;
        } else if (x->s[i] == quote) {
            x->i = i + 1;
            return (gp_span){ from, i - from };
        } else if (x->s[i] == '\n') {
            int col = column(x, i + 1);
            line = line ? line : i;
            if (col >= 0 && col <= depth_of(x))
                break;
        }
    }
    x->i = line ? line : x->n;
    return (gp_span){ from, x->i - from };
}

/* A word without quotes, up to ": ", " #", the end of the line, in brackets up to one or a comma. */
static gp_span plain(scan *x)
{
    size_t from = x->i, end;
    while (!at_end(x, x->i)) {
        char c = x->s[x->i], next = x->i + 1 < x->n ? x->s[x->i + 1] : '\n';
        if ((c == ':' && (strchr(" \t\r\n", next) || (box(x)->flow && strchr(",]}", next))))
            || (box(x)->flow && strchr(",[]{}", c)))
            break;
        x->i++;
    }
    for (end = x->i; end > from && strchr(" \t", x->s[end - 1]); end--)
        ;
    return (gp_span){ from, end - from };
}

/* Text behind | or >: all lines that stand deeper. */
static void block_text(scan *x)
{
    for (skip_line(x); x->i < x->n; skip_line(x)) {
        size_t i = x->i;
        while (i < x->n && x->s[i] == ' ')
            i++;
        if (i < x->n && !strchr("\r\n", x->s[i]) && (int)(i - x->i) <= box(x)->indent)
            return;
    }
}

/* A word, and whether it is a key. `col`: its column where it begins a line, or an item in one; else -1. */
static void word(scan *x, int col)
{
    gp_span s = strchr("\"'", x->s[x->i]) ? quoted(x) : plain(x);
    skip_spaces(x);
    bool flow = box(x)->flow, key = x->i < x->n && x->s[x->i] == ':';
    x->i += key;
    if (key && (flow || col >= 0)) {
        if (!flow && (box(x)->list || box(x)->indent != col))
            enter(x, false, false, col);
        add_key(x, s);
        return;
    }
    if (!flow && col >= 0 && !box(x)->list && box(x)->indent < col
        && (!x->cur || (box(x)->open >= 0 && !x->w->word[box(x)->open].value.len)))
        enter(x, false, false, col);       /* alone in its line: it may become a key */
    else if (!flow && col >= 0 && box(x)->indent == col)
        box(x)->open = -1;
    add_value(x, s);
}

/* What is in brackets, and closes them; up to the end of the line. */
static void flow_line(scan *x)
{
    while (box(x)->flow) {
        skip_spaces(x);
        if (at_end(x, x->i))
            return;
        char c = x->s[x->i];
        if (c == '{' || c == '[') {
            x->i++;
            enter(x, c == '[', true, 0);
        } else if (c == '}' || c == ']') {
            x->i++;
            leave(x);
        } else if (c == ',') {
            x->i++;
            box(x)->open = -1;
        } else if (c == ':') {
            x->i++;
        } else {
            size_t from = x->i;
            word(x, -1);
            x->i += x->i == from;
        }
    }
}

/* A line, or the rest of one, outside of brackets; `col`: its column. `own`: nothing is before it but dashes. */
static void block_line(scan *x, int col, bool own)
{
    while (!at_end(x, x->i)) {
        char c = x->s[x->i];
        size_t from = x->i;
        if (own && is_dash(x, x->i)) {
            if (!box(x)->list || box(x)->indent != col)
                enter(x, true, false, col);
            x->i++;
            skip_spaces(x);
            col += (int)(x->i - from);
            continue;
        }
        if (c == '{' || c == '[') {
            x->i++;
            enter(x, c == '[', true, 0);
            flow_line(x);
            if (box(x)->flow)
                return;
            own = false;
        } else if (c == '|' || c == '>') {
            block_text(x);
            return;
        } else if (c == '&' || c == '!') {
            while (x->i < x->n && !strchr(" \r\n", x->s[x->i]))
                x->i++;
        } else {
            word(x, own ? col : -1);
            own = false;
            x->i += x->i == from;
        }
        skip_spaces(x);
    }
}

void gp_where_scan(gp_arena *a, gp_where *w, const char *text, size_t len)
{
    *w = (gp_where){ .text = text };
    scan x = { .a = a, .w = w, .s = text, .n = len };
    enter(&x, false, false, -1);
    while (x.i < x.n) {
        int col = column(&x, x.i);
        if (col < 0) {
            skip_line(&x);
            continue;
        }
        size_t line = x.i;
        x.i += (size_t)col;
        if (box(&x)->flow && (col > depth_of(&x) || strchr("]}", x.s[x.i]))) {
            flow_line(&x);
            if (!box(&x)->flow)
                block_line(&x, -1, false);
        } else {
            bool dash = is_dash(&x, x.i);
            while (box(&x)->flow || box(&x)->indent > col || (box(&x)->list && box(&x)->indent == col && !dash))
                leave(&x);
            block_line(&x, col, true);
        }
        if (x.i < x.n && x.i > line && x.s[x.i - 1] != '\n')
            skip_line(&x);
    }
}

bool gp_where_is(const gp_where *w, gp_span s, const char *word)
{
    return strlen(word) == s.len && !memcmp(w->text + s.at, word, s.len);
}

gp_span gp_where_get(const gp_where *w, int of, const char *key)
{
    for (int i = 0; i < w->nwords; i++)
        if (w->word[i].box == of && w->word[i].key.len && gp_where_is(w, w->word[i].key, key))
            return w->word[i].value;
    return (gp_span){ 0 };
}

int gp_where_at(const gp_where *w, size_t at)
{
    for (int i = 0; i < w->nwords; i++)
        if (at - w->word[i].key.at < w->word[i].key.len || at - w->word[i].value.at < w->word[i].value.len)
            return i;
    return -1;
}
