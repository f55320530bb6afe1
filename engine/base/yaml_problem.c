/* yaml_problem.c - see yaml_text.h. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"
#include "base/plain.h"
#include "base/yaml_text.h"

static const struct { const char *problem, *say; } rewords[] = {
    { "mapping values are not allowed",
      "a ':' does not fit here; check the indentation, or put quotes around the value" },
    { "did not find expected key",
      "expected a key here; check the indentation, and put quotes around the whole of a value" },
    { "did not find expected '-'", "expected '- ' here; check the indentation of this list" },
    { "block sequence entries are not allowed",
      "a list item '- ' does not fit here; start the list on a line of its own" },
    { "unknown escape character",
      "no such escape; inside double quotes write '\\\\' for a '\\', or use single quotes" },
    { "invalid Unicode character escape code",
      "no character has this number; of one beyond U+FFFF both halves are needed, as in \"\\ud83d\\ude00\"" },
    { "hexdecimal", "this escape needs hexadecimal digits; for a plain '\\' use single quotes" },
    { "<document start>", "there is text after the end of the document; check the indentation" },
    { "directive", "'%' starts a YAML directive in the first column; indent or quote it" },
    { "%YAML", "a YAML directive is not needed here; delete the line" },
};

#define SAY(x, ...) snprintf((x)->say, sizeof (x)->say, __VA_ARGS__)

static void point(gp_yaml_problem *x, size_t from, size_t to)
{
    x->from = from, x->to = to;
}

/* Behind the characters of `set` that stand at `from`. The text has no NUL at its end. */
static size_t skip(const gp_yaml_problem *x, size_t from, const char *set)
{
    while (from < x->len && x->text[from] && strchr(set, x->text[from]))
        from++;
    return from;
}

static size_t line_end(const gp_yaml_problem *x, size_t from)
{
    const char *nl = memchr(x->text + from, '\n', x->len - from);
    size_t to = nl ? (size_t)(nl - x->text) : x->len;
    while (to > from && strchr(" \t\r", x->text[to - 1]))
        to--;
    return to;
}

/* Has a part of a line a ':' that ends a key? */
static bool has_key(const gp_yaml_problem *x, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (x->text[i] == ':' && (i + 1 == to || strchr(" \t\r", x->text[i + 1])))
            return true;
    return false;
}

/* Where the last line before `start`, itself the start of a line, begins in which something stands, blanks left out;
 * `start`: there is none. */
static size_t line_above(const gp_yaml_problem *x, size_t start)
{
    const char *text = x->text;
    for (size_t end = start, i; end; end = i) {
        for (i = end - 1; i && text[i - 1] != '\n'; i--)
            ;
        size_t from = skip(x, i, " \t\r");
        if (from + 1 < end && text[from] != '#')
            return from;
    }
    return start;
}

static size_t line_start(const gp_yaml_problem *x, size_t at)
{
    while (at && x->text[at - 1] != '\n')
        at--;
    return at;
}

/* A ':' does not fit at `at`. Is that because the line above has none? Then *from is where that begins. */
static bool is_above(const gp_yaml_problem *x, size_t at, size_t *from)
{
    const char *text = x->text;
    size_t start = line_start(x, at), first = skip(x, start, " "), above = line_above(x, start);
    bool items = first < x->len && text[first] == '-' && text[above] == '-';
    if (above == start || has_key(x, start, at) || items)
        return false;
    *from = skip(x, above, " -\t");
    return !has_key(x, *from, line_end(x, *from));
}

/* Says that the character at `at` is no blank, if it is one that is not seen. */
static bool say_no_blank(gp_yaml_problem *x, size_t at)
{
    unsigned c;
    size_t n = at < x->len ? gp_utf8(x->text + at, x->len - at, &c) : 0;
    const char *name = n ? gp_odd_name(c, false) : NULL;
    if (!name)
        return false;
    point(x, at, at + n);
    SAY(x, "this is no blank, but U+%04X (%s): write a blank, or delete it", c, name);
    return true;
}

/* The line from `from` to `to`, which has no key. */
static void say_no_colon(gp_yaml_problem *x, size_t from, size_t to)
{
    const char *text = x->text + from;
    int len = (int)(to - from), words = 0;
    point(x, from, to);
    SAY(x, "expected 'key: value'; there is no ': ' here");
    while (words < len && (isalnum((unsigned char)text[words]) || text[words] == '_'))
        words++;
    if (words && words == len && len < 60)
        SAY(x, "expected 'key: value'; after '%.*s' a ':' is missing", len, text);
    else if (words && words + 1 < len && text[words] == ':' && say_no_blank(x, from + (size_t)words + 1))
        return;
    else if (words && words + 1 < len && text[words] == ':' && text[words + 1] != ':' && words < 60)
        SAY(x, "expected 'key: value'; after '%.*s:' a space is missing", words, text);
}

/* Or is it a line of a text of several, below `key:` or `key: |`? */
static void explain_text(gp_yaml_problem *x, size_t at)
{
    size_t start = line_start(x, at), key = line_above(x, start), end = 0;
    bool code = false;
    for (size_t i = start; i < line_end(x, start); i++)
        code |= strchr("(){};\"", x->text[i]) != NULL;
    for (bool found = false; !found && key != start; key = found ? key : line_above(x, start)) {
        end = line_end(x, key);
        found = has_key(x, key, end);
        if (!found)
            code = true, start = line_start(x, key);
    }
    if (!code || key == start)
        return;
    key = skip(x, key, " -");
    int len = (int)strcspn(x->text + key, ":");
    char last = x->text[end - 1];
    if (len > 40 || (last != ':' && last != '|' && last != '>'))
        return;
    if (last == ':')
        SAY(x, "expected 'key: value'; a text of several lines needs a '|', as in '%.*s: |'", len, x->text + key);
    else
        SAY(x, "indent this further: the lines of a text stand deeper than its key, '%.*s'", len, x->text + key);
}

/* The value with a bracket at `at`, up to what ends it in [ ] or { }; false: that is not in its line. */
static bool find_value(const gp_yaml_problem *x, size_t at, size_t *from, size_t *to)
{
    const char *text = x->text;
    int deep = 0;
    for (*from = at; *from && !strchr(",{[\n", text[*from - 1])
         && !(text[*from - 1] == ' ' && *from > 1 && text[*from - 2] == ':'); --*from)
        ;
    while (text[*from] == ' ')
        ++*from;
    for (*to = at; *to < x->len && text[*to] && (deep || !strchr(",]}\n", text[*to])) && text[*to] != '\n'; ++*to)
        deep += strchr("[{", text[*to]) ? 1 : strchr("]}", text[*to]) ? -1 : 0;
    while (*to > at && text[*to - 1] == ' ')
        --*to;
    return !deep && *to - *from < 80;
}

/* In [ ] or { }. */
static void explain_flow(gp_yaml_problem *x)
{
    size_t at = x->at, open = x->context_at, from = at, to = at;
    char c = at < x->len ? x->text[at] : 0, before = at ? x->text[at - 1] : 0;
    bool glued = before && !strchr(" \t\n[]{},:\"'", before), dollar = before == '$';
    if (c && strchr("[{", c) && glued) {
        point(x, at - dollar, at + 1);
        bool found = find_value(x, at, &from, &to);
        SAY(x, "'%s%c' inside [ ] or { } ends the value before it; put quotes around the whole%s%.*s%s", dollar ? "$" : "",
            c, found ? ": \"" : " value", found ? (int)(to - from) : 0, x->text + from, found ? "\"" : "");
    } else if (strstr(x->context, "flow node")) {
        SAY(x, "expected a value here");
    } else if (!c) {
        point(x, open, open + 1);
        SAY(x, "this '%c' is never closed", x->text[open]);
    } else {
        SAY(x, "expected ',' or '%c'; close the '%c', or put quotes around the whole of a value",
            x->text[open] == '[' ? ']' : '}', x->text[open]);
    }
}

void gp_yaml_explain(gp_yaml_problem *x)
{
    const char *problem = x->problem, *context = x->context;
    char c = x->at < x->len ? x->text[x->at] : 0;
    size_t from = x->context_at;
    point(x, x->at, x->at + 1);
    SAY(x, "%s", problem);
    size_t line = line_start(x, x->at);
    if (c == '\t' || strstr(problem, " tab ")) {
        SAY(x, "a tab cannot indent YAML; use spaces");
    } else if (strstr(problem, "cannot start any token")) {
        SAY(x, "'%c' cannot start a value in YAML; put quotes around the value", c);
    } else if (strstr(context, "alias") || strstr(context, "anchor") || strstr(context, "a tag")) {
        point(x, from, from + 1);
        SAY(x, "'%c' at the start of a value has a meaning of its own in YAML; put quotes around the value",
            x->text[from]);
    } else if (strstr(context, "quoted scalar") && strstr(problem, "unexpected")) {
        point(x, from, from + 1);
        SAY(x, "this quote is never closed");
    } else if (strstr(context, "flow")) {
        explain_flow(x);
    } else if (say_no_blank(x, skip(x, line, " ")) || say_no_blank(x, line_above(x, line))) {
        return;
    } else if ((strstr(problem, "mapping values") || strstr(problem, "<document start>"))
               && is_above(x, x->at, &from)) {
        say_no_colon(x, from, line_end(x, from));
        explain_text(x, from);
    } else {
        for (size_t i = sizeof rewords / sizeof *rewords; i-- > 0;)
            if (strstr(problem, rewords[i].problem))
                SAY(x, "%s", rewords[i].say);
        if (strstr(problem, "could not find expected ':'"))
            say_no_colon(x, from, line_end(x, from)), explain_text(x, from);
    }
}
