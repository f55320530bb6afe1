/* cxx.c - see cxx.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cxx.h"

char *gp_code_blank(const char *text)
{
    char *copy = strdup(text), *p = copy;
    while (p && *p) {
        char *from = p;
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else if (*p == '"' || (*p == '\'' && (p == copy || !isalnum((unsigned char)p[-1])))) {
            char quote = *p++;
            while (*p && *p != quote && *p != '\n')
                p += p[0] == '\\' && p[1] ? 2 : 1;
            p += *p == quote;
        } else {
            p++;
            continue;
        }
        for (; from < p; from++)
            if (*from != '\n')
                *from = ' ';
    }
    return copy;
}

const char *gp_find_word(const char *text, const char *p, const char *word)
{
    size_t n = strlen(word);
    for (; (p = strstr(p, word)); p += n)
        if ((p == text || !gp_in_word(p[-1])) && !gp_in_word(p[n]))
            return p;
    return NULL;
}

const char *gp_include_operand(const char *text, const char *code, const char *word)
{
    const char *p = word;
    while (p > code && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    if (p == code || *--p != '#')
        return NULL;
    while (p > code && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    if (p > code && p[-1] != '\n')
        return NULL;
    p = text + (word - code) + 7;
    return p + strspn(p, " \t");
}

const char *gp_closing(const char *p)
{
    int deep = 0;
    for (; *p; p++) {
        deep += *p == '(' || *p == '[' || *p == '{';
        deep -= *p == ')' || *p == ']' || *p == '}';
        if (!deep)
            return p;
    }
    return NULL;
}

const char *gp_kernel_name(const char *p, size_t *len)
{
    const char *name = NULL;
    for (; *p && *p != ';' && *p != '{'; p++) {
        if (gp_in_word(*p)) {
            name = p;
            while (gp_in_word(p[1]))
                p++;
            *len = (size_t)(p + 1 - name);
        } else if (*p == '(') {
            if (name && strncmp(name, "__", 2) != 0 && strncmp(name, "alignas", 7) != 0)
                return name;
            if (!(p = gp_closing(p)))
                break;
        }
    }
    return NULL;
}

void gp_plain_symbol(const char *symbol, char *name, size_t room)
{
    const char *last = symbol;
    size_t n = strcspn(symbol, ".");
    if (!n)
        n = strlen(symbol);
    for (const char *p = symbol; !strncmp(symbol, "_Z", 2) && *p;) {
        char *end = (char *)p + 1;
        unsigned long len = *p >= '1' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        p = end;
        if (len && len == strnlen(end, len)) {
            last = end, n = len, p = end + len;
            if (*p == 'I' || *p == 'B')    /* template arguments, an ABI's tag */
                break;
        }
    }
    snprintf(name, room, "%.*s", (int)n, last);
}
