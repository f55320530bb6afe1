/* dump.c - the spec as text, DOT or JSON, and how all dumps write these.
 *
 * Dumps are for people and for golden files: the same form is the same bytes,
 * wherever it is written. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "draw/dump.h"

/* ---- sizes and places ------------------------------------------------ */

char *gp_size_text(size_t bytes, char buf[24])
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double x = (double)bytes;
    int u = 0;
    for (; x >= 1023.95; u++)
        x /= 1024;
    snprintf(buf, 24, u ? "%.1f %s" : "%.0f %s", x, unit[u]);
    return buf;
}

char *gp_place_text(const gp_plan *p, gp_place place, char buf[24])
{
    if (place.device && !p->unified)
        snprintf(buf, 24, "cuda:%d", p->graph->device);
    else
        snprintf(buf, 24, "%s", place.device ? "cpu" : "host");
    return buf;
}

/* ---- JSON ------------------------------------------------------------ */

size_t gp_utf8(const char *text, size_t n, unsigned *code)
{
    const unsigned char *s = (const unsigned char *)text;
    static const struct { unsigned char mask, lead; unsigned least; } form[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 },
    };
    *code = 0xfffd;
    for (size_t k = 0; k < 4; k++) {
        if ((s[0] & form[k].mask) != form[k].lead)
            continue;
        unsigned c = s[0] & (unsigned char)~form[k].mask;
        for (size_t i = 1; i <= k; i++) {
            if (i >= n || (s[i] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (s[i] & 0x3f);
        }
        if (c < form[k].least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return 0;
        *code = c;
        return k + 1;
    }
    return 0;
}

static void quote(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (c < 0x20 || c == 0x7f)
            fprintf(f, "\\u%04x", c);
        else if (!len)
            fputs("\\ufffd", f);
        else
            fwrite(s + i, 1, len, f);
    }
    fputc('"', f);
}

static void begin(gp_json *j, const char *key)
{
    if (j->some)
        fputc(',', j->f);
    if (j->level > 0 && j->level <= 2)
        fprintf(j->f, "\n%*s", 2 * j->level, "");
    else if (j->some)
        fputc(' ', j->f);
    j->some = true;
    if (key) {
        quote(j->f, key, strlen(key));
        fputs(": ", j->f);
    }
}

void gp_json_open(gp_json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->f);
    j->level++;
    j->some = false;
}

void gp_json_close(gp_json *j, char bracket)
{
    j->level--;
    if (j->some && j->level < 2)
        fprintf(j->f, "\n%*s", 2 * j->level, "");
    fputc(bracket, j->f);
    j->some = true;
    if (j->level == 0)
        fputc('\n', j->f);
}

void gp_json_strn(gp_json *j, const char *key, const char *s, size_t n)
{
    begin(j, key);
    if (s)
        quote(j->f, s, n);
    else
        fputs("null", j->f);
}

void gp_json_str(gp_json *j, const char *key, const char *s)
{
    gp_json_strn(j, key, s, s ? strlen(s) : 0);
}

void gp_json_int(gp_json *j, const char *key, int64_t i)
{
    begin(j, key);
    fprintf(j->f, "%lld", (long long)i);
}

void gp_json_num(gp_json *j, const char *key, double v)
{
    begin(j, key);
    if (isfinite(v))
        fprintf(j->f, "%.15g", v);
    else
        fputs("null", j->f);
}

void gp_json_size(gp_json *j, const char *key, size_t n)
{
    begin(j, key);
    fprintf(j->f, "%zu", n);
}

void gp_json_bool(gp_json *j, const char *key, bool b)
{
    begin(j, key);
    fputs(b ? "true" : "false", j->f);
}

void gp_json_ints(gp_json *j, const char *key, const int *v, int n)
{
    gp_json_open(j, key, '[');
    j->level += 2;             /* never over lines */
    for (int i = 0; i < n; i++)
        gp_json_int(j, NULL, v[i]);
    j->level -= 2;
    j->level--;
    fputc(']', j->f);
    j->some = true;
}

void gp_dot_text(FILE *f, const char *s)
{
    quote(f, s, strlen(s));
}

/* ---- the spec -------------------------------------------------------- */

/* A scalar as YAML; in a flow list more needs quotes. */
static void scalar(FILE *f, const gp_node *n, const char *special)
{
    bool plain = !n->quoted && n->len && !strpbrk(n->text, special);
    for (size_t i = 0; i < n->len; i++)
        plain &= !iscntrl((unsigned char)n->text[i]);
    if (plain)
        fwrite(n->text, 1, n->len, f);
    else
        quote(f, n->text, n->len);
}

/* A scalar, something empty, or a list of scalars. */
static bool one_line(const gp_node *n)
{
    for (int i = 0; n->kind != GP_SCALAR && i < n->n; i++)
        if (n->kind == GP_MAP || n->item[i]->kind != GP_SCALAR)
            return false;
    return true;
}

/* As YAML, from column `indent`, where the cursor already is if `behind` a dash. */
static void spec_text(FILE *f, const gp_node *n, int indent, bool behind)
{
    if (one_line(n)) {
        if (n->kind == GP_SCALAR)
            scalar(f, n, "");
        else
            fputc(n->kind == GP_MAP ? '{' : '[', f);
        for (int i = 0; n->kind == GP_LIST && i < n->n; i++) {
            fputs(i ? ", " : "", f);
            scalar(f, n->item[i], ",[]{}#:\"'");
        }
        fputs(n->kind == GP_SCALAR ? "\n" : n->kind == GP_MAP ? "}\n" : "]\n", f);
        return;
    }
    for (int i = 0; i < n->n; i++) {
        const gp_node *item = n->item[i];
        bool below = n->kind == GP_MAP && !one_line(item);
        if (i || !behind)
            fprintf(f, "%*s", indent, "");
        if (n->kind == GP_MAP) {
            scalar(f, n->key[i], "");
            fputs(below ? ":\n" : ": ", f);
        } else {
            fputs("- ", f);
        }
        spec_text(f, item, indent + 2, !below);
    }
}

static void spec_json(gp_json *j, const char *key, const gp_node *n)
{
    if (n->kind == GP_SCALAR) {
        gp_json_strn(j, key, n->text, n->len);
        return;
    }
    gp_json_open(j, key, n->kind == GP_MAP ? '{' : '[');
    for (int i = 0; i < n->n; i++)
        spec_json(j, n->kind == GP_MAP ? n->key[i]->text : NULL, n->item[i]);
    gp_json_close(j, n->kind == GP_MAP ? '}' : ']');
}

/* A node per tree node, numbered as met; returns the next free number. */
static int spec_dot(FILE *f, const gp_node *n, int id)
{
    int next = id + 1;
    fprintf(f, "  n%d [label=", id);
    if (n->kind == GP_SCALAR)
        quote(f, n->text, n->len);
    else
        fputs(n->kind == GP_MAP ? "\"map\" shape=ellipse" : "\"list\" shape=ellipse", f);
    fputs("];\n", f);
    for (int i = 0; i < (n->kind == GP_SCALAR ? 0 : n->n); i++) {
        fprintf(f, "  n%d -> n%d [label=", id, next);
        if (n->kind == GP_MAP)
            quote(f, n->key[i]->text, n->key[i]->len);
        else
            fprintf(f, "\"%d\"", i);
        fputs("];\n", f);
        next = spec_dot(f, n->item[i], next);
    }
    return next;
}

void gp_dump_spec(FILE *f, const gp_spec *s, gp_dump how)
{
    if (how == GP_DUMP_TEXT) {
        spec_text(f, s->root, 0, false);
    } else if (how == GP_DUMP_JSON) {
        spec_json(&(gp_json){ .f = f }, NULL, s->root);
    } else {
        fputs("digraph spec {\n  rankdir=LR;\n  node [shape=box];\n", f);
        spec_dot(f, s->root, 0);
        fputs("}\n", f);
    }
}
