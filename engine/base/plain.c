/* plain.c - see plain.h. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/plain.h"

bool gp_steers(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e)
        || (c >= 0x2066 && c <= 0x2069);
}

int gp_put_plain(FILE *f, const char *s, size_t n, const char *keep)
{
    int all = 0;
    for (size_t i = 0, len; i < n; i += len) {
        char code[16];
        const char *out = s + i;
        unsigned c;
        size_t is = gp_utf8(out, n - i, &c), bytes = len = is ? is : 1;
        int shown = 1;
        if (!is || (c < 0x80 && gp_steers(c) && !(c && strchr(keep, (int)c))))
            shown = snprintf(code, sizeof code, "\\x%02x", (unsigned char)*out);
        else if (c >= 0x80 && gp_steers(c))
            shown = snprintf(code, sizeof code, "\\u{%x}", c);
        if (shown > 1)
            out = code, bytes = (size_t)shown;
        if (f)
            fwrite(out, 1, bytes, f);
        all += shown;
    }
    return all;
}

bool gp_print_plain(FILE *to, void (*print)(FILE *f, const void *arg), const void *arg)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return false;
    print(f, arg);
    bool ok = !ferror(f) & !fclose(f);
    if (ok)
        gp_put_plain(to, text, n, "\n\t");
    free(text);
    return ok;
}
