/* plain.c - see plain.h. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/plain.h"

bool gp_steers(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e)
        || (c >= 0x2066 && c <= 0x2069);
}

static const struct { unsigned code; bool seen; const char *name; } odd[] = {
    { 0xa0, false, "no-break space" }, { 0xad, false, "soft hyphen" }, { 0x2002, false, "en space" },
    { 0x2003, false, "em space" }, { 0x2007, false, "figure space" }, { 0x2009, false, "thin space" },
    { 0x200a, false, "hair space" }, { 0x200b, false, "zero-width space" }, { 0x200c, false, "zero-width non-joiner" },
    { 0x200d, false, "zero-width joiner" }, { 0x200e, false, "left-to-right mark" },
    { 0x200f, false, "right-to-left mark" }, { 0x202f, false, "narrow no-break space" },
    { 0x2060, false, "word joiner" }, { 0x3000, false, "ideographic space" }, { 0xfeff, false, "byte order mark" },
    { 0x2010, true, "hyphen" }, { 0x2011, true, "non-breaking hyphen" }, { 0x2013, true, "en dash" },
    { 0x2014, true, "em dash" }, { 0x2212, true, "minus sign" }, { 0xd7, true, "multiplication sign" },
    { 0x2018, true, "left single quotation mark" }, { 0x2019, true, "right single quotation mark" },
    { 0x201c, true, "left double quotation mark" }, { 0x201d, true, "right double quotation mark" },
    { 0x201e, true, "low double quotation mark" }, { 0xff1a, true, "fullwidth colon" },
};

const char *gp_odd_name(unsigned c, bool seen)
{
    for (size_t i = 0; c >= 0x80 && i < sizeof odd / sizeof *odd; i++)
        if (odd[i].code == c)
            return odd[i].seen && !seen ? NULL : odd[i].name;
    return NULL;
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
        else if (c >= 0x80 && (gp_steers(c) || gp_odd_name(c, false)))
            shown = snprintf(code, sizeof code, c > 0xffff ? "\\U%08x" : "\\u%04x", c);       /* as YAML has it */
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
    gp_memfile m;
    size_t n;
    if (!gp_memfile_open(&m))
        return false;
    print(m.f, arg);
    char *text = gp_memfile_close(&m, &n);
    if (text)
        gp_put_plain(to, text, n, "\n\t");
    free(text);
    return text;
}
