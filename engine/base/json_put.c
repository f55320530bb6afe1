/* json_put.c - several members of an object by one form, see json.h. */
#include <stdarg.h>
#include <string.h>
#include "base/json.h"

/* The value at s, which begins with '%'. Behind it. */
static const char *put_value(gp_json *j, const char *key, const char *s, va_list *v)
{
    bool wide = s[1] == 'z' || s[1] == 'j';
    char type = s[1 + wide];
    s += 2 + wide;
    if (type == 's')
        gp_json_str(j, key, va_arg(*v, const char *));
    else if (type == 'g')
        gp_json_num(j, key, va_arg(*v, double));
    else if (type == 'u')
        gp_json_size(j, key, va_arg(*v, size_t));
    else if (wide)
        gp_json_int(j, key, va_arg(*v, int64_t));
    else if (*s == '?')
        s++, gp_json_bool(j, key, va_arg(*v, int));
    else
        gp_json_int(j, key, va_arg(*v, int));
    return s;
}

void gp_json_put(gp_json *j, const char *form, ...)
{
    char key[64] = "";             /* they are gpipe's own */
    va_list v;
    va_start(v, form);
    for (const char *s = form; *s;) {
        const char *name = *key ? key : NULL;
        if (strchr(" ,", *s)) {
            s++;
        } else if (strchr("}]", *s)) {
            gp_json_close(j, *s++);
        } else if (strchr("{[%", *s)) {
            s = *s == '%' ? put_value(j, name, s, &v) : (gp_json_open(j, name, *s), s + 1);
            *key = 0;
        } else {
            size_t n = strcspn(s, ":");
            memcpy(key, s, n), key[n] = 0;
            s += n + 1;
        }
    }
    va_end(v);
}
