/* path.c - names of files as a pipeline spells them, see path.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/path.h"

bool gp_path_has_choice(const char *path)
{
    const char *open = strchr(path, '{'), *comma = open ? strchr(open, ',') : NULL;
    return comma && strchr(comma, '}');
}

int gp_path_choices(const char *path)
{
    int all = 1, of = 0;               /* of: texts of the choice that it is in; 0: none */
    for (const char *p = path; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{' || (*p == '}' && of == 1))
            of = of || *p == '}' ? -1 : 1;
        else if (*p == ',' && of)
            of++;
        else if (*p == '}' && of)
            all = all * of > GP_CHOICES ? GP_CHOICES + 1 : all * of, of = 0;
        if (of < 0)
            return 0;
    }
    return of ? 0 : all;
}

void gp_path_first_choice(const char *path, char *to)
{
    bool within = false, first = true;
    for (const char *p = path; *p; p++) {
        bool brace = *p == (within ? '}' : '{');
        first = brace || (first && !(within && *p == ','));
        within ^= brace;
        if (!brace && first)
            *to++ = *p;
    }
    *to = 0;
}

bool gp_path_is_glob(const char *path)
{
    return strpbrk(path, "*?[") || gp_path_has_choice(path);
}

/* The length of the %d or %05d at `p`, or 0: what is %5d in C, with spaces before it, is no
 * number in a name. */
static size_t number_at(const char *p, int *width)
{
    size_t n = 1;
    *width = 0;
    if (*p != '%' || (p[1] != '0' && p[1] != 'd'))
        return 0;
    for (; p[n] >= '0' && p[n] <= '9' && *width < 20; n++)
        *width = 10 * *width + (p[n] - '0');
    return p[n] == 'd' && *width <= 20 ? n + 1 : 0;
}

size_t gp_path_conversion(const char *p)
{
    int width;
    size_t n = number_at(p, &width);
    return n ? n : *p == '%' && (p[1] == 'n' || p[1] == 't' || p[1] == '%') ? 2 : 0;
}

bool gp_path_lacks_zero(const char *path)
{
    for (const char *p = path; (p = strchr(p, '%')); p++) {
        size_t digits = strspn(p + 1, "0123456789");
        if (digits && p[1] != '0' && p[1 + digits] == 'd')
            return true;
        p += p[1] == '%';
    }
    return false;
}

/* Is there a conversion that ends with `c`? */
static bool has(const char *path, char c)
{
    for (const char *p = path; (p = strchr(p, '%')); p++) {
        size_t n = gp_path_conversion(p);
        if (n && p[n - 1] == c)
            return true;
        p += n ? n - 1 : 0;
    }
    return false;
}

bool gp_path_has_number(const char *path)
{
    return has(path, 'd');
}

bool gp_path_has_name(const char *path)
{
    return has(path, 'n');
}

bool gp_path_has_time(const char *path)
{
    return has(path, 't');
}

size_t gp_path_fixed(const char *path)
{
    size_t fixed = 0, n;
    int width;
    for (const char *p = path; *p && !number_at(p, &width); p += n) {
        n = gp_path_conversion(p);
        n = n ? n : 1;
        fixed = *p == '/' ? (size_t)(p + 1 - path) : fixed;
    }
    return fixed;
}

static bool is_too_long(char err[GP_WHY])
{
    return gp_why(err, "makes a name of more than %d bytes", PATH_MAX - 1);
}

int gp_utc_text(char to[GP_UTC_TEXT], int64_t time_ns, const char *date, const char *hour)
{
    const int64_t second = 1000000000;
    int64_t ns = (time_ns % second + second) % second;
    time_t whole = (time_t)((time_ns - ns) / second);
    struct tm utc = { 0 };
    gmtime_r(&whole, &utc);
    return snprintf(to, GP_UTC_TEXT, "%04d%s%02d%s%02dT%02d%s%02d%s%02d.%09dZ", utc.tm_year + 1900, date, utc.tm_mon + 1, date,
                    utc.tm_mday, utc.tm_hour, hour, utc.tm_min, hour, utc.tm_sec, (int)ns);
}

bool gp_path_put_time(char out[PATH_MAX], const char *pattern, int64_t time_ns, char err[GP_WHY])
{
    char time[GP_UTC_TEXT];
    size_t n = 0, k;
    gp_utc_text(time, time_ns, "", "");
    for (const char *p = pattern; *p && n < PATH_MAX; p += k) {
        k = gp_path_conversion(p);
        k = k ? k : 1;
        n += k == 2 && p[1] == 't'
           ? (size_t)snprintf(out + n, PATH_MAX - n, "%s", time)
           : (size_t)snprintf(out + n, PATH_MAX - n, "%.*s", (int)k, p);
    }
    return n < PATH_MAX || is_too_long(err);
}

bool gp_path_expand(char out[PATH_MAX], const char *pattern, uint64_t number, const char *name,
                    char err[GP_WHY])
{
    size_t n = 0;
    for (const char *p = pattern; *p && n < PATH_MAX;) {
        int width;
        size_t spec = number_at(p, &width);
        if (spec) {
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%0*llu", width,
                                  (unsigned long long)number);
            p += spec;
        } else if (p[0] == '%' && p[1] == 'n') {
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%s", name);
            p += 2;
        } else {
            p += p[0] == '%' && p[1] == '%';
            out[n++] = *p++;
        }
    }
    bool fits = n < PATH_MAX;
    out[fits ? n : 0] = 0;
    return fits || is_too_long(err);
}

/* What stands where the first number is may be any part of the digits there: the number
 * then says what the whole is. */
bool gp_path_match(const char *pattern, const char *path, uint64_t *number)
{
    enum { DIGITS = 19 };              /* of the largest number */
    char made[PATH_MAX], why[GP_WHY], digits[DIGITS + 1];
    const char *p = pattern, *s = path;
    int width;
    *number = 0;
    for (; *p && !number_at(p, &width); p++, s++) {
        p += p[0] == '%' && p[1] == '%';
        if (*p != *s)
            return false;
    }
    if (!*p)
        return !*s;
    size_t most = strspn(s, "0123456789");
    for (size_t k = 1; k <= most && k <= DIGITS; k++) {
        memcpy(digits, s, k);
        digits[k] = 0;
        *number = strtoull(digits, NULL, 10);
        if (gp_path_expand(made, pattern, *number, "", why) && !strcmp(made, path))
            return true;
    }
    return false;
}

/* Is what `a` makes of this number one that `b` makes? */
static bool makes_too(const char *a, uint64_t number, const char *b)
{
    char made[PATH_MAX], why[GP_WHY];
    uint64_t other;
    return gp_path_expand(made, a, number, "", why) && gp_path_match(b, made, &other);
}

/* Where the digits of one stand for some of the other's, only how many there are matters. */
bool gp_path_meets(const char *a, const char *b)
{
    bool meets = makes_too(a, 0, b) || makes_too(b, 0, a);
    for (uint64_t n = 1; !meets && n <= 1000000000000000000; n *= 10)
        meets = makes_too(a, n, b) || makes_too(b, n, a);
    return meets;
}

const char *gp_path_stem(const char *path, size_t *len)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    const char *dot = strrchr(stem, '.');
    *len = dot && dot > stem ? (size_t)(dot - stem) : strlen(stem);
    return stem;
}

size_t gp_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

char *gp_path_plain(char *out, const char *path)
{
    char *base = out + (*path == '/'), *end = base;
    size_t n;
    *out = *path;
    for (const char *p = path + strspn(path, "/"); *p; p += n, p += strspn(p, "/")) {
        n = strcspn(p, "/");
        char *last = end > base ? memrchr(base, '/', (size_t)(end - base)) : NULL;
        last = last ? last + 1 : base;             /* the component before this one */
        bool up = n == 2 && !strncmp(p, "..", 2);
        if ((n == 1 && *p == '.') || (up && end == base && base > out))
            continue;
        if (up && end > base && strncmp(last, "..", (size_t)(end - last))) {
            end = last > base ? last - 1 : base;
            continue;
        }
        if (end > base)
            *end++ = '/';
        memmove(end, p, n);
        end += n;
    }
    *end = '\0';
    return out;
}

bool gp_path_is_device(const char *path)
{
    return (!strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0) || !strncmp(path, "/proc/self/fd/", 14);
}
