/* json.h - writing JSON to a file, and UTF-8.
 *
 * The outer two levels go over lines, what is deeper is on one line. `key` is NULL
 * inside arrays. Strings need not be UTF-8: what is not becomes U+FFFD. A NULL string
 * is null. Errors are the file's (ferror). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct gp_json {
    FILE *f;
    int level;
    bool some;                 /* the open object or array has something in it */
} gp_json;

void gp_json_open(gp_json *j, const char *key, char bracket);     /* '{' or '[' */
void gp_json_close(gp_json *j, char bracket);                     /* '}' or ']' */
void gp_json_str(gp_json *j, const char *key, const char *s);
void gp_json_strn(gp_json *j, const char *key, const char *s, size_t n);
void gp_json_int(gp_json *j, const char *key, int64_t i);
void gp_json_num(gp_json *j, const char *key, double v);          /* null: not finite */
void gp_json_size(gp_json *j, const char *key, size_t n);
void gp_json_bool(gp_json *j, const char *key, bool b);
void gp_json_raw(gp_json *j, const char *key, const char *json); /* what is JSON already */
/* Several members, or values of a list, as they stand in `form`: "{name: %s, depth: %d, busy: %g}". A key has a ':'
 * behind it; %d? is a bool; %jd, %zd, %zu and %ju are as in printf. What is opened may be left open, or be closed by a
 * later form. */
void gp_json_put(gp_json *j, const char *form, ...)
    __attribute__((format(printf, 2, 3)));
void gp_json_strs(gp_json *j, const char *key, const char *const *v, int n);
void gp_json_ints(gp_json *j, const char *key, const int *v, int n);

/* A loop over the elements of a list, for (int i = 0; i < n; i++), around which the list is opened and closed. It is
 * not left before its end. */
#define GP_JSON_EACH(j, key, i, n) \
    for (int i = (gp_json_open(j, key, '['), 0); i < (n) || (gp_json_close(j, ']'), false); i++)

/* A string alone, in quotes; what stands between them. */
void gp_json_quote(FILE *f, const char *s, size_t n);
void gp_json_escape(FILE *f, const char *s, size_t n);

/* How many bytes the UTF-8 character at `s` has, of `n` there are; 0: it is none.
 * `*code` is set, then to U+FFFD. */
size_t gp_utf8(const char *s, size_t n, unsigned *code);
