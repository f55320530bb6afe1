/* filemeta.c - numbers that travel with frames, in files, see filemeta.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "filemeta.h"

static bool is_time(const gp_filemeta *s, int i)
{
    return !strcmp(s->key[i], "time");
}

/* ---- of frames -------------------------------------------------------- */

gp_filemeta gp_filemeta_none(const gp_call *c)
{
    gp_filemeta s = { .n = 0 };
    s.n = gp_meta_keys(c, &s.key);
    return s;
}

gp_filemeta gp_filemeta_of_frame(const gp_call *c, const gp_frame *f)
{
    gp_filemeta s = gp_filemeta_none(c);
    for (int i = 0; i < s.n; i++)
        if (is_time(&s, i) ? f->time_ns > 0 : gp_meta_get(c, f, s.key[i], &s.value[i]))
            s.has |= 1u << i;
    s.time_ns = f->time_ns;
    return s;
}

void gp_filemeta_to_frame(const gp_call *c, gp_frame *f, const gp_filemeta *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->has & 1u << i && is_time(s, i))
            f->time_ns = s->time_ns;
        else if (s->has & 1u << i)
            gp_meta_set(c, f, s->key[i], &s->value[i]);
}

/* ---- of files --------------------------------------------------------- */

int gp_filemeta_find(const gp_filemeta *s, const char *key, size_t n)
{
    for (int i = 0; i < s->n; i++)
        if (strlen(s->key[i]) == n && !memcmp(s->key[i], key, n))
            return i;
    return -1;
}

/* Seconds as text, to the nanosecond: more than a double holds. */
static bool to_time(const char *text, int64_t *ns)
{
    char *end;
    long long s = strtoll(text, &end, 10), part = 0, unit = 1000000000;
    if (end == text || *text == '-' || *text == '+' || s > 9000000000)
        return false;
    for (end += *end == '.'; *end >= '0' && *end <= '9' && unit > 1; end++)
        part += (*end - '0') * (unit /= 10);
    *ns = s * 1000000000 + part;
    return !*end && *ns > 0;
}

void gp_filemeta_set(gp_filemeta *s, const char *key, double value)
{
    int i = gp_filemeta_find(s, key, strlen(key));
    if (i >= 0)
        s->has |= 1u << i, s->value[i] = value;
}

/* Is x, which the text is as a number, the same, if that has digits only? */
static bool is_exact(const char *s, double x)
{
    char again[400];
    s += *s == '-' || *s == '+';
    s += strspn(s, "0");
    snprintf(again, sizeof again, "%.0f", fabs(x));
    return s[strspn(s, "0123456789")] || !*s || !strcmp(s, again);
}

bool gp_filemeta_parse(gp_filemeta *s, int i, const char *text, size_t n, char err[GP_WHY])
{
    char copy[2 * GP_FILEMETA_NUMBER];
    for (; n && strchr(" \t\r\n", text[n - 1]); n--) {}
    for (; n && strchr(" \t\r\n", *text); n--)
        text++;
    if (n >= sizeof copy)
        return gp_why(err, "says its '%s' in %zu characters, and a number has at most %zu: take '%s' out of 'metadata', or "
                      "correct the file", s->key[i], n, sizeof copy - 1, s->key[i]);
    if (memchr(text, 0, n))
        return gp_why(err, "has a NUL in its '%s', which is not a number: take '%s' out of 'metadata', or correct the file",
                      s->key[i], s->key[i]);
    snprintf(copy, sizeof copy, "%.*s", (int)n, text);
    if (!(is_time(s, i) ? to_time(copy, &s->time_ns) : gp_text_number(copy, &s->value[i])))
        return gp_why(err, "says that its '%s' is '%.*s', which is not a %s: take '%s' out of 'metadata', or correct the "
                      "file", s->key[i], n < 40 ? (int)n : 40, text,
                      is_time(s, i) ? "number of seconds since 1970" : "number", s->key[i]);
    if (!is_time(s, i) && !is_exact(copy, s->value[i]))
        return gp_why(err, "says that its '%s' is '%.40s', which is not exact in an f64: take '%s' out of 'metadata'",
                      s->key[i], copy, s->key[i]);
    s->has |= 1u << i;
    return true;
}

/* ---- JSON ------------------------------------------------------------- */

int gp_filemeta_format(const gp_filemeta *s, int i, char to[GP_FILEMETA_NUMBER])
{
    const long long second = 1000000000, ns = s->time_ns;
    return is_time(s, i) ? snprintf(to, GP_FILEMETA_NUMBER, "%lld.%09lld", ns / second, ns % second)
                         : gp_text_spell(to, s->value[i]);
}

size_t gp_filemeta_to_json(const gp_filemeta *s, char to[GP_FILEMETA_JSON])
{
    size_t n = 0;
    for (int i = 0; i < s->n; i++) {
        if (!(s->has & 1u << i))
            continue;
        n += (size_t)sprintf(to + n, "%s\"%s\": ", n ? ", " : "{", s->key[i]);
        n += (size_t)gp_filemeta_format(s, i, to + n);
    }
    if (!n)
        return 0;
    for (to[n++] = '}'; (n + 1) % 8; n++)
        to[n] = ' ';
    to[n] = 0;
    return n;
}

static const char *blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Behind a string that begins at p; NULL: it does not end. */
static const char *string_end(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        p += *p == '\\' && p[1];
    return *p ? p + 1 : NULL;
}

/* Behind a value, whatever is in it. */
static const char *value_end(const char *p)
{
    int deep = 0;
    do {
        if (*p == '"') {
            if (!(p = string_end(p)))
                return NULL;
            continue;
        }
        if (!*p)
            return NULL;
        deep += *p == '{' || *p == '[' ? 1 : *p == '}' || *p == ']' ? -1 : 0;
        p++;
    } while (deep > 0 || !strchr(",}", *blanks(p)));
    return deep ? NULL : p;
}

/* No object after all: an error if it names a number that is asked for. */
static bool torn(const gp_filemeta *s, const char *text, char err[GP_WHY])
{
    char name[GP_META_NAME + 3];
    for (int i = 0; i < s->n; i++) {
        snprintf(name, sizeof name, "\"%s\"", s->key[i]);
        if (strstr(text, name))
            return gp_why(err, "has a description that begins as JSON, names '%s', and is none: take '%s' out of 'metadata', "
                          "or correct the file", s->key[i], s->key[i]);
    }
    return true;
}

bool gp_filemeta_from_json(gp_filemeta *s, const char *text, char err[GP_WHY])
{
    gp_filemeta found = { .n = s->n, .key = s->key };
    const char *p = blanks(text), *name, *value;
    if (*p != '{')
        return true;
    p = blanks(p + 1);
    while (*p == '"') {
        name = p + 1;
        if (!(p = string_end(p)))
            return torn(s, text, err);
        int i = gp_filemeta_find(s, name, (size_t)(p - 1 - name));
        p = blanks(p);
        if (*p != ':' || !(p = value_end(value = blanks(p + 1))))
            return torn(s, text, err);
        if (i >= 0 && !gp_filemeta_parse(&found, i, value, (size_t)(p - value), err))
            return false;
        p = blanks(p);
        p = *p == ',' ? blanks(p + 1) : p;
    }
    if (*p != '}')
        return torn(s, text, err);
    *s = found;
    return true;
}
