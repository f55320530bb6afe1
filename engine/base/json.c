/* json.c - writing JSON, see json.h. */
#include <math.h>
#include <string.h>
#include "base/json.h"
#include "base/plain.h"

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

void gp_json_escape(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);       /* controls, and what YAML folds or refuses: \u */
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (gp_steers(c) || (c & ~1u) == 0x2028 || (c & ~1u) == 0xfffe)
            fprintf(f, "\\u%04x", c);
        else if (!len)
            fputs("\\ufffd", f);
        else
            fwrite(s + i, 1, len, f);
    }
}

void gp_json_quote(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    gp_json_escape(f, s, n);
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
        gp_json_quote(j->f, key, strlen(key));
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
        gp_json_quote(j->f, s, n);
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

void gp_json_raw(gp_json *j, const char *key, const char *json)
{
    begin(j, key);
    fputs(json, j->f);
}

void gp_json_strs(gp_json *j, const char *key, const char *const *v, int n)
{
    GP_JSON_EACH(j, key, i, n)
        gp_json_str(j, NULL, v[i]);
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
