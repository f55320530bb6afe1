/* yaml_pairs.c - see yaml_text.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/yaml_text.h"

enum { PAIR = 12 };                    /* bytes of \ud83d\ude00 */

/* The number of an escape of `digits` hexadecimal digits, \uXXXX or \UXXXXXXXX, at s; 0: there is none. */
static unsigned escape(const char *s, const char *end, char letter, int digits)
{
    char text[9] = "", *stop;
    if (end - s < digits + 2 || s[0] != '\\' || s[1] != letter)
        return 0;
    memcpy(text, s + 2, (size_t)digits);
    if (strspn(text, "0123456789abcdefABCDEF") != (size_t)digits)
        return 0;
    return (unsigned)strtoul(text, &stop, 16);
}

/* The character that the pair at s stands for; 0: there is none. */
static unsigned pair(const char *s, const char *end)
{
    unsigned high = escape(s, end, 'u', 4), low = high >> 10 == 0x36 ? escape(s + PAIR / 2, end, 'u', 4) : 0;
    return low >> 10 == 0x37 ? 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff)) : 0;
}

static void hide(char *s)
{
    s[2] = s[PAIR / 2 + 2] = 'e';
}

static const char *next_pair(const char *s, const char *end)
{
    while (s < end && (s = memchr(s, '\\', (size_t)(end - s))) && !pair(s, end))
        s++;
    return s && s < end ? s : NULL;
}

/* Hides the pairs of a scalar in double quotes, but those whose backslash is itself escaped. */
static void hide_quoted(char *s, char *end)
{
    while (s < end)
        if (pair(s, end))
            hide(s), s += PAIR;
        else
            s += *s == '\\' ? 2 : 1;
}

/* libyaml alone knows what is in double quotes: it scans the text with all halves of pairs hidden, wherever they are.
 * */
const char *gp_yaml_hide_pairs(gp_arena *a, const char *text, size_t len)
{
    const char *end = text + len, *first = next_pair(text, end);
    yaml_parser_t y;
    yaml_token_t token;
    if (!first)
        return text;
    char *all = gp_strndup(a, text, len), *out = gp_strndup(a, text, len);
    if (!yaml_parser_initialize(&y))
        return text;
    for (const char *s = first; s && s < end; s = memchr(s + 1, '\\', (size_t)(end - s - 1)))
        if (escape(s, end, 'u', 4) >> 11 == 0x1b)
            all[s - text + 2] = 'e';
    yaml_parser_set_encoding(&y, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y, (const unsigned char *)all, len);
    size_t chars = 0, at = 0, from = 0;
    for (bool more = true; more && yaml_parser_scan(&y, &token);) {
        more = token.type != YAML_STREAM_END_TOKEN;
        bool quoted = token.type == YAML_SCALAR_TOKEN && token.data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        for (int i = 0; quoted && i < 2; i++) {        /* its marks, which come in order, count characters */
            for (size_t to = i ? token.end_mark.index : token.start_mark.index; chars < to && at < len; chars++)
                while (++at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
                    ;
            from = i ? from : at;
        }
        if (quoted)
            hide_quoted(out + from, out + at);
        yaml_token_delete(&token);
    }
    yaml_parser_delete(&y);
    return out;
}

/* Is one of the private characters at s that pairs are hidden as, U+E800 to U+EFFF? It has 3 bytes. */
static bool private_one(const char *s, const char *end)
{
    return end - s >= 3 && (unsigned char)s[0] == 0xee && (unsigned char)s[1] >= 0xa0;
}

/* The length of what makes one of them in double quotes: itself or an escape; 0: something else stands there. */
static size_t makes_private(const char *s, const char *end)
{
    return private_one(s, end) ? 3 : escape(s, end, 'u', 4) >> 11 == 0x1d ? 6 : escape(s, end, 'U', 8) >> 11 == 0x1d ? 10 : 0;
}

size_t gp_yaml_show_pairs(char *value, size_t len, const char *source, size_t n)
{
    const char *s = source, *end = source + n, *v = value, *stop = value + len;
    char *to = value;
    size_t own;
    unsigned c;
    if (!next_pair(source, end))
        return len;
    while (s < end) {
        c = pair(s, end), own = c ? 0 : makes_private(s, end);
        if (c || own) {
            while (v < stop && !private_one(v, stop))
                *to++ = *v++;
            for (int i = 0; own && i < 3 && v < stop; i++)
                *to++ = *v++;
            if (c) {
                *to++ = (char)(0xf0 | c >> 18), *to++ = (char)(0x80 | (c >> 12 & 0x3f));
                *to++ = (char)(0x80 | (c >> 6 & 0x3f)), *to++ = (char)(0x80 | (c & 0x3f));
                v = stop - v > 6 ? v + 6 : stop;
            }
        }
        s += c ? PAIR : own ? own : *s == '\\' ? 2 : 1;
    }
    while (v < stop)
        *to++ = *v++;
    *to = 0;
    return (size_t)(to - value);
}
