/* help.c - gpipe help: the verbs, and the reference, offline: the topics in topics/, which travel in the binary, as
 * plain text and as the source of a man page. */
#include <stdlib.h>
#include <string.h>
#include "base/embed.h"
#include "cli/verb.h"
#include "draw/dump.h"

static const char *const topics[] = {
    "yaml", "reuse", "files", "network", "frames", "pictures", "signals", "models", "expr", "kernel", "lua", "plugins", "embed", "retune", "devices",
    "ranks", "report", "record", "looking", "python", "editor", "service", "exit", "limits", "words", NULL
};

/* The text of a topic that there is; it ends with a newline. */
static const gp_blob *topic(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "engine/cli/topics/%s.md", name);
    return gp_blob_find(path);
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

/* The topics in which a word stands as code, with commas between; valid until the next call. */
static const char *topics_with(const char *word)
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

/* The cell that begins at *at, behind a bar, without spaces around it; moves *at behind the next bar. False: there is
 * none. */
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

/* How long a paragraph is that begins at s: its lines, up to one that is empty or of another sort. Links and code may
 * go on in the next line. */
static size_t paragraph(const char *s)
{
    size_t n = strcspn(s, "\n");
    while (s[n] && !strchr("\n#", s[n + 1]) && !is_row(s + n + 1) && strncmp(s + n + 1, "```", 3) && strncmp(s + n + 1, "![", 2))
        n += 1 + strcspn(s + n + 1, "\n");
    return n;
}

static void print_part(FILE *to, const char *s, const char *end)
{
    const char *heading = "|";
    bool fence = false;
    while (s < end) {
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
            n = paragraph(s);
            n = s + n < end ? n : (size_t)(end - s) - 1;       /* items of a list are one */
            put_inline(to, s, n, '\'');
            fputc('\n', to);
        }
        s += n + 1;
    }
}

static void print_topic(FILE *to, const char *name)
{
    const gp_blob *b = topic(name);
    print_part(to, (const char *)b->data, (const char *)b->end);
}

/* The section that begins at s or behind it, "* **NAME.**" or "**NAME.**" below an empty line; its name has n bytes.
 * NULL: there is none. */
static const char *next_section(const char *s, const char **name, size_t *n)
{
    for (; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        const char *at = s + (strncmp(s, "* ", 2) ? 0 : 2);
        const char *close = strncmp(at, "**", 2) || (at == s && s[-2] != '\n') ? NULL : strstr(at + 2, "**");
        if (!close)
            continue;
        *name = at + 2, *n = (size_t)(close - *name) - (close[-1] == '.');
        return s;
    }
    return NULL;
}

/* The sections of a topic whose names (or, with `any`, whose texts) have the word; all names in a line where it is NULL.
 * How many. */
static int print_sections(const char *of, const char *word, bool any)
{
    const char *name = NULL, *next;
    size_t n = 0, more = 0;
    int found = 0;
    for (const char *s = next_section((const char *)topic(of)->data, &name, &n); s; s = next, n = more) {
        const char *shown = name;
        next = next_section(strchr(s, '\n') + 1, &name, &more);
        char *text = word ? strndup(any ? s : shown, any ? (next ? (size_t)(next - s) : strlen(s)) : n) : NULL;
        if (word && !(text && strcasestr(text, word)))
            shown = NULL;
        free(text);
        if (shown && !word && !found)
            printf("\nSections, of which 'gpipe help %s WORD' shows those about a word:\n  ", of);
        if (shown && !word)
            fputs(found ? "; " : "", stdout), put_inline(stdout, shown, n, '\'');
        else if (shown)
            print_part(stdout, s, next ? next : s + strlen(s));
        found += shown != NULL;
    }
    fputs(found && !word ? "\n" : "", stdout);
    return found;
}

void gp_help_print(FILE *to)
{
    fprintf(to, "usage: gpipe VERB ...\n\n");
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));)
        fprintf(to, "  %-8s %-10s  %s\n", v->name, v->operand, v->help);
    fprintf(to, "\n  gpipe VERB --help shows the options of a verb\n"
            "  gpipe --version   shows the version and the back ends\n"
            "  gpipe help NAME   shows a stage, or a topic of the reference:\n                    ");
    for (int i = 0; topics[i]; i++)
        fprintf(to, "%s%s", i ? ", " : "", topics[i]);
    fprintf(to, "\n\n"
            "exit: 0 ok, 1 failed at run time, 2 usage, 3 invalid pipeline, 4 not enough\n"
            "resources, 5 stalled, 6 'compare' found a difference, 129/130/143 interrupted, 141\n"
            "nobody reads stdout, 128 + n ended by signal n: 139 (132, 134 to 136) is a fault, as\n"
            "of a kernel on the CPU\n");
}

void gp_help_print_verb(FILE *to, const gp_verb *v)
{
    fprintf(to, "usage: gpipe %s [OPTION]...%s%s\n\n%s\n%s%s\n", v->name, *v->operand ? " " : "", v->operand, v->help,
            v->more ? "\n" : "", v->more ? v->more : "");
    gp_args_help(to, v);
}

/* The source of a man page. What is written to `text` is shown as it is. */
typedef struct man { FILE *text; bool inside, begins; } man;   /* inside: of a section; begins: a line */

static ssize_t put_as_is(void *cookie, const char *text, size_t n)
{
    man *m = cookie;
    for (const char *c = text; c < text + n; c++) {
        if (m->begins && strchr(".'", *c))
            fputs("\\&", stdout);
        if (strchr("\\-", *c))
            putchar('\\');
        putchar(*c == '\\' ? 'e' : *c);
        m->begins = *c == '\n';
    }
    return (ssize_t)n;
}

static FILE *section(man *m, const char *title, const char *name)
{
    fflush(m->text);
    printf("%s.SH \"%s%s\"\n.nf\n", m->inside ? ".fi\n" : "", title, name);
    m->inside = m->begins = true;
    return m->text;
}

static int print_man(const gp_registry *registry, gp_errs *errs)
{
    const gp_kind *k;
    man m = { .text = fopencookie(&m, "w", (cookie_io_functions_t){ .write = put_as_is }) };
    if (!m.text)
        return gp_no_memory(errs);
    printf(".TH GPIPE 1 \"\" \"gpipe %s\" \"User Commands\"\n.SH NAME\ngpipe \\- a declarative GPU "
           "pipeline engine\n", GP_VERSION);
    gp_help_print(section(&m, "SYNOPSIS", ""));
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));)
        gp_help_print_verb(section(&m, "gpipe ", v->name), v);
    for (int i = 0; topics[i]; i++)
        print_topic(section(&m, "TOPIC ", topics[i]), topics[i]);
    for (int i = 0; (k = gp_kind_at(registry, i)); i++)
        gp_kind_print(section(&m, "STAGE ", k->name), registry, k);
    fclose(m.text);
    printf(".fi\n");
    return 0;
}

/* What has this name: a verb, a topic, a stage; `lua` is the latter two. */
static int help_of(const char *name, const gp_registry *registry, gp_errs *errs)
{
    gp_near near = GP_NEAR(name);
    const gp_kind *k;
    int found = 0;
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));) {
        gp_near_try(&near, v->name);
        if (!strcmp(v->name, name))
            gp_help_print_verb(stdout, v), found++;
    }
    for (int i = 0; topics[i]; i++) {
        gp_near_try(&near, topics[i]);
        if (!strcmp(topics[i], name)) {
            const gp_blob *b = topic(name);
            const char *title = (const char *)b->data, *rest = strchr(title, '\n') + 1;
            print_part(stdout, title, rest);
            print_sections(name, NULL, false);
            print_part(stdout, rest, (const char *)b->end), found++;
        }
    }
    for (int i = 0; (k = gp_kind_at(registry, i)); i++) {
        gp_near_try(&near, k->name);
        if (!strcmp(k->name, name))
            gp_kind_print(stdout, registry, k), found++;
    }
    const char *did = gp_near_text(&near);
    const char *in = topics_with(name);
    if (!found && *in)
        gp_usage(errs, "no help on '%s' by itself; these topics say something of it: %s", name, in);
    else if (!found)
        gp_usage(errs, "no help on '%s'%s", name, *did ? did : "; 'gpipe help' lists verbs and topics, 'gpipe stages' "
                 "the stages");
    gp_errs why = { .n = 0 };
    if (!found && !*in)                /* what became of plug-ins */
        gp_kinds_print(registry, name, GP_KINDS_TEXT, stdout, &why);
    for (int i = 0; i < why.n; i++)
        if (why.e[i].code == GP_E_NOTE)
            gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "%s", why.e[i].msg);
    return gp_errs_exit(errs);
}

static int help(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    if (args->man && args->noperands)
        return gp_usage(errs, "'--man' is all of the reference; leave out '%s'", args->operand[0]);
    if (args->man)
        return print_man(registry, errs);
    for (int i = 0; args->noperands > 1 && topics[i]; i++)
        if (!strcmp(topics[i], args->operand[0]))
            return print_sections(topics[i], args->operand[1], false) || print_sections(topics[i], args->operand[1], true)
                ? 0 : gp_usage(errs, "no section of topic '%s' is about '%s'", topics[i], args->operand[1]);
    if (args->noperands > 1)
        return gp_usage(errs, "'%s' is no topic, which alone has sections: leave out '%s'", args->operand[0], args->operand[1]);
    if (args->noperands)
        return help_of(args->operand[0], registry, errs);
    gp_help_print(stdout);
    return 0;
}

const gp_verb gp_verb_help = {
    .name = "help", .operand = "[NAME [WORD]]", .max = 2, .place = 130,
    .help = "list the verbs, or show one of them, a stage or a topic, or what that says of a word",
    .kinds = true, .run = help,
    .options = (const gp_option[]){
        GP_OPTION_PLUGIN,
        { "man", 0, NULL, GP_TO_FLAG(man), "all of the reference, as the source of a man page" },
        { 0 } },
};
