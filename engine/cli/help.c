/* help.c - the reference, offline: the topics in topics/, which travel in the binary, as plain text and as the source
 * of a man page. */
#include <string.h>
#include "base/embed.h"
#include "base/memfile.h"
#include "cli/cli.h"

static const char *const topics[] = {
    "yaml", "files", "frames", "pictures", "signals", "models", "expr", "kernel", "lua", "retune", "devices", "ranks",
    "report", "exit", "limits", "words", NULL
};

const char *gp_topic_name(int i)
{
    return topics[i];
}

/* The text of a topic that there is; it ends with a newline. */
static const gp_blob *topic(const char *name)
{
    const gp_blob *b = gp_blobs;
    char path[64];
    snprintf(path, sizeof path, "engine/cli/topics/%s.md", name);
    while (strcmp(b->name, path))
        b++;
    return b;
}

/* Does a text have `word` as code, as in `word` or `word: value`? */
static bool has_code(const char *s, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = s; n && (at = strstr(at, word)); at++)
        if (at > s && at[-1] == '`' && strchr("`:([ ", at[n]))
            return true;
    return false;
}

const char *gp_topics_with(const char *word)
{
    static char list[256];
    *list = 0;
    for (int i = 0; topics[i]; i++)
        if (has_code((const char *)topic(topics[i])->data, word))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", topics[i]);
    return list;
}

/* Markdown within a cell, or lines of a paragraph: code has quotes (`quote`, or 0 for none), of a link there is what is
 * shown. */
static void put_inline(FILE *to, const char *s, size_t n, char quote)
{
    bool code = false;
    for (size_t i = 0; i < n; i++) {
        const char *close = s[i] == '[' && !code ? memchr(s + i, ']', n - i) : NULL;
        if (s[i] == '`') {
            code = !code;
            if (quote)
                fputc(quote, to);
        } else if (!code && n - i > 1 && s[i] == '*' && s[i + 1] == '*') {
            i++;
        } else if (close && close + 1 < s + n && close[1] == '(') {
            const char *last = memchr(close, ')', (size_t)(s + n - close));
            put_inline(to, s + i + 1, (size_t)(close - s) - i - 1, quote);
            i = last ? (size_t)(last - s) : n;
        } else {
            fputc(s[i], to);
        }
    }
}

/* The cell that begins at *at, behind a bar, without spaces around it; moves *at behind the next bar. False: there is none. */
static bool next_cell(const char **at, const char *end, const char **cell, size_t *len)
{
    const char *s = *at, *to = s;
    bool code = false;
    while (to < end && (code || *to != '|'))
        code ^= *to++ == '`';
    if (to >= end)
        return false;
    while (s < to && *s == ' ')
        s++;
    *at = to + 1, *cell = s, *len = (size_t)(to - s);
    while (*len && s[*len - 1] == ' ')
        --*len;
    return true;
}

/* "| what | means |": what, and below it what it means; of more than two columns, with what the heading calls each. */
static void put_row(FILE *to, const char *s, const char *end, const char *heading)
{
    const char *head_end = heading + strcspn(heading, "\n"), *cell, *name, *at = heading + 1;
    size_t len, n, columns = 0;
    while (next_cell(&at, head_end, &name, &n))
        columns++;
    heading++, s++;
    for (int k = 0; next_cell(&s, end, &cell, &len); k++) {
        n = 0;
        next_cell(&heading, head_end, &name, &n);
        if (!len || *cell == '-')
            continue;
        fputs(k ? "        " : "  ", to);
        if (k && n && columns > 2) {
            fputc('[', to);
            put_inline(to, name, n, 0);
            fputs("] ", to);
        }
        put_inline(to, cell, len, 0);
        fputc('\n', to);
    }
}

/* A row of a table, in a list, too. */
static bool is_row(const char *s)
{
    return s[strspn(s, " ")] == '|';
}

/* How long a paragraph is that begins at s: its lines, up to one that is empty or of another sort. Links and code may go
 * on in the next line. */
static size_t paragraph(const char *s)
{
    size_t n = strcspn(s, "\n");
    while (s[n] && !strchr("\n#", s[n + 1]) && !is_row(s + n + 1) && strncmp(s + n + 1, "```", 3) && strncmp(s + n + 1, "![", 2))
        n += 1 + strcspn(s + n + 1, "\n");
    return n;
}

void gp_topic_print(FILE *to, const char *name)
{
    const gp_blob *b = topic(name);
    const char *heading = "|";
    bool fence = false;
    for (const char *s = (const char *)b->data; s < (const char *)b->end;) {
        size_t n = strcspn(s, "\n");
        if (!strncmp(s, "```", 3)) {
            fence = !fence;
        } else if (fence) {
            fprintf(to, "    %.*s\n", (int)n, s);
        } else if (is_row(s)) {
            const char *row = strchr(s, '|'), *next = s + n + 1;
            if (is_row(next) && !strncmp(strchr(next, '|'), "|-", 2))
                heading = row;
            else
                put_row(to, row, s + n, heading);
        } else if (*s == '#') {
            fprintf(to, "%.*s\n", (int)n - 2, s + 2);
        } else if (strncmp(s, "![", 2)) {
            put_inline(to, s, n = paragraph(s), '\'');
            fputc('\n', to);
        }
        s += n + 1;
    }
}

void gp_man_text(FILE *to, const char *text)
{
    bool begins = true;
    fputs(".nf\n", to);
    for (; *text; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
    }
    fputs(begins ? ".fi\n" : "\n.fi\n", to);
}
