/* help.c - the reference, offline: the topics in topics/, which travel in the binary, as plain text and as the source
 * of a man page. */
#include <string.h>
#include "base/embed.h"
#include "base/memfile.h"
#include "cli/cli.h"

static const char *const topics[] = {
    "yaml", "files", "frames", "pictures", "signals", "models", "expr", "kernel", "lua", "retune", "devices", "ranks",
    "report", "exit", "limits", NULL
};

const char *gp_topic_name(int i)
{
    return topics[i];
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

/* "| what | means |": what, and below it what it means. */
static void put_row(FILE *to, const char *s, size_t n)
{
    const char *indent = "  ";
    bool code = false;
    for (size_t i = 1, from = 1; i < n; i++) {
        code ^= s[i] == '`';
        if (code || s[i] != '|')
            continue;
        while (from < i && s[from] == ' ')
            from++;
        size_t len = i - from;
        while (len && s[from + len - 1] == ' ')
            len--;
        if (len && s[from] != '-') {
            fputs(indent, to);
            put_inline(to, s + from, len, 0);
            fputc('\n', to);
        }
        indent = "        ";
        from = i + 1;
    }
}

/* How long a paragraph is that begins at s: its lines, up to one that is empty or of another sort. Links and code may go
 * on in the next line. */
static size_t paragraph(const char *s)
{
    size_t n = strcspn(s, "\n");
    while (s[n] && !strchr("\n|#", s[n + 1]) && strncmp(s + n + 1, "```", 3) && strncmp(s + n + 1, "![", 2))
        n += 1 + strcspn(s + n + 1, "\n");
    return n;
}

void gp_topic_print(FILE *to, const char *name)
{
    const gp_blob *b = gp_blobs;
    char path[64];
    bool fence = false;
    snprintf(path, sizeof path, "engine/cli/topics/%s.md", name);
    while (strcmp(b->name, path))
        b++;
    for (const char *s = (const char *)b->data; s < (const char *)b->end;) {
        size_t n = strcspn(s, "\n");
        if (!strncmp(s, "```", 3)) {
            fence = !fence;
        } else if (fence) {
            fprintf(to, "    %.*s\n", (int)n, s);
        } else if (*s == '|') {
            if (strncmp(s + n, "\n|-", 3) != 0)        /* the heading of a table would look like one of its rows */
                put_row(to, s, n);
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
