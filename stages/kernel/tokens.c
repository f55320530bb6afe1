/* tokens.c - a user's source, with what it includes in quotes, as tokens; its macros apart. */
#include <ctype.h>
#include <string.h>
#include "code.h"

enum {
    FILES = 4096,
    DEEP = 200,                /* files that include each other: as many as compilers take */
    STEPS = 1 << 24,
    LEVELS = 64,               /* #if within #if */
    RAW = 17                   /* R"x(: at most 16 characters (C++ standard, [lex.string]) */
};

/* ---- tokens ------------------------------------------------------------ */

void *gp_cu_room(gp_cu *c, void *v, int n, int *cap, size_t each)
{
    if (n + 2 < *cap)
        return v;
    *cap = *cap ? 2 * *cap : 64;
    void *more = gp_shape_alloc(c->s, each * (size_t)*cap);
    if (n)
        memcpy(more, v, each * (size_t)n);
    return more;
}

/* Behind the last there are always two of kind 0. */
static void add(gp_cu *c, gp_toks *t, gp_tok tok)
{
    t->v = gp_cu_room(c, t->v, t->n, &t->cap, sizeof *t->v);
    t->v[t->n++] = tok;
    t->v[t->n] = t->v[t->n + 1] = (gp_tok){ 0 };
}

static void set_odd(gp_cu *c, const gp_tok *t, const char *why)
{
    if (c->odd)
        return;
    gp_tok *copy = gp_shape_alloc(c->s, sizeof *copy);
    *copy = *t;
    c->odd = copy, c->why = why;
}

static void cut(gp_cu *c, const gp_tok *t, const char *why)
{
    set_odd(c, t, why);
    c->cut = true;
}

bool gp_cu_step(gp_cu *c, const gp_tok *t)
{
    if (c->steps < STEPS)
        return c->steps++, true;
    cut(c, t, "takes too long to look through");
    return false;
}

const char *gp_cu_option(const gp_cu *c)
{
    return c->source->text ? "code" : "source";
}

gp_loc gp_cu_at(const gp_cu *c, const gp_tok *t)
{
    int col = 1;
    for (const char *p = t->p; t->line > 0 && p[-1] != '\n' && p[-1] != '\0'; p--)
        col++;
    if (!t->file && t->line > 0 && c->source->text && c->source->line)
        col += c->source->col - 1;
    return (gp_loc){ .file = c->path[t->file], .line = t->line, .col = col, .len = t->len };
}

/* ---- a file ------------------------------------------------------------ */

typedef struct reader {
    gp_cu *c;
    int file, line;
    const char *p, *end;
    bool fresh;                /* nothing but blanks since the line began */
    bool words;                /* what is read is not code: #error, #pragma */
    struct { int open, part; } level[LEVELS];  /* of each #if that is open: what was before it */
    int levels;
} reader;

static void read_file(gp_cu *c, const gp_file *f);

/* The end of the line that the backslash at `p` continues, blanks behind it or not; NULL: it
 * continues none. */
static const char *continued(const char *p, const char *end)
{
    while (++p < end && *p != '\n' && isspace((unsigned char)*p))
        ;
    return p < end && *p == '\n' ? p : NULL;
}

static gp_tok here(const reader *r)
{
    return (gp_tok){ .kind = GP_TOK_OTHER, .file = r->file, .line = r->line, .p = r->p, .len = 1 };
}

/* A line that goes on in the next: it must not go on within a word or an operator. */
static void follow(reader *r)
{
    const char *to = continued(r->p, r->end), *after = to + 1 < r->end ? to + 1 : to;
    gp_tok at = here(r);
    if (!isspace((unsigned char)*after) && !isspace((unsigned char)r->p[-1]) && r->p[-1]
        && !strchr("{};,()", r->p[-1]))
        cut(r->c, &at, "has a word that a backslash takes to the next line");
    r->line++, r->p = to;
}

/* Blanks, comments, and lines that are continued. In a directive it stops at the line's end. */
static void skip(reader *r, bool directive)
{
    for (; r->p < r->end; r->p++) {
        if (*r->p == '\n') {
            if (directive)
                return;
            r->line++, r->fresh = true;
        } else if (*r->p == '\\' && continued(r->p, r->end)) {
            follow(r);
        } else if (*r->p == '/' && r->p + 1 < r->end && r->p[1] == '/') {
            for (; r->p + 1 < r->end && r->p[1] != '\n'; r->p++)
                if (r->p[1] == '\\' && continued(r->p + 1, r->end)) {
                    gp_tok at = here(r);
                    cut(r->c, &at, "has a comment that a backslash takes to the next line");
                }
        } else if (*r->p == '/' && r->p + 1 < r->end && r->p[1] == '*') {
            const char *start = r->p;
            for (r->p += 2; r->p < r->end && !(r->p > start + 2 && r->p[-1] == '*' && *r->p == '/');
                 r->p++)
                r->line += *r->p == '\n';
        } else if (*r->p && !isspace((unsigned char)*r->p)) {
            return;
        }
    }
}

static bool in_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

/* The end of a string or character that begins at p; `raw`: R"x(...)x". */
static const char *text_end(reader *r, const char *p, bool raw)
{
    char quote = *p++;
    if (raw) {
        const char *open = memchr(p, '(', (size_t)(r->end - p < RAW ? r->end - p : RAW));
        for (size_t n = open ? (size_t)(open - p) : 0; open && open < r->end; open++)
            if (*open == ')' && (size_t)(r->end - open) > n + 1 && !memcmp(open + 1, p, n)
                && open[n + 1] == '"')
                return open + n + 2;
        return r->end;
    }
    while (p < r->end && *p != quote && *p != '\n') {
        gp_tok at = here(r);
        if (*p == '\\' && continued(p, r->end))
            cut(r->c, &at, "has a text that a backslash takes to the next line");
        p += *p == '\\' && p + 1 < r->end ? 2 : 1;
    }
    return p < r->end && *p == quote ? p + 1 : p;
}

/* u8R"..." and the like: what may stand before a text. */
static bool is_prefix(const char *word, size_t n)
{
    static const char *const prefix[] = { "R", "L", "u", "U", "u8", "LR", "uR", "UR", "u8R", NULL };
    int i = 0;
    while (prefix[i] && (strlen(prefix[i]) != n || memcmp(prefix[i], word, n)))
        i++;
    return prefix[i] != NULL;
}

/* <% %> <: :> %: and what is no character of C++ outside of words and texts. */
static void check_character(reader *r, const gp_tok *at)
{
    const char *p = at->p;
    char next = p + 1 < r->end ? p[1] : 0;
    gp_tok t = *at;
    t.len = 1;
    if (r->words)
        return;
    if (!*p || !strchr("{}()[]<>;:,.?=+-*/%&|^!~#", *p))
        cut(r->c, &t, "has a character that is not looked at outside of comments and texts");
    else if ((*p == '<' && (next == '%' || next == ':')) || (next == '>' && (*p == '%' || *p == ':'))
             || (*p == '%' && next == ':'))
        cut(r->c, &t, "has a bracket that is spelled with two characters");
}

/* The next token; kind 0 at the end, or in a directive at the line's end. */
static gp_tok next(reader *r, bool directive)
{
    static const char *const operators[] = { "<<=", ">>=", "...", "->*", "::", "->", "++", "--",
        "<<", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
        "##", NULL };
    skip(r, directive);
    gp_tok t = { .file = r->file, .line = r->line, .p = r->p };
    const char *p = r->p;
    if (p >= r->end || *p == '\n')
        return t;
    if (isdigit((unsigned char)*p) || (*p == '.' && p + 1 < r->end && isdigit((unsigned char)p[1]))) {
        t.kind = GP_TOK_NUMBER;
        for (p++; p < r->end && (in_word(*p) || *p == '.' || (*p == '\'' && in_word(p[1]))
                                 || ((*p == '+' || *p == '-') && strchr("eEpP", p[-1])
                                     && !(t.p[0] == '0' && (t.p[1] | 32) == 'x' && strchr("eE", p[-1])))); )
            p++;
    } else if (in_word(*p)) {
        t.kind = GP_TOK_WORD;
        while (p < r->end && in_word(*p))
            p++;
        if (p < r->end && *p == '"' && is_prefix(t.p, (size_t)(p - t.p)))
            t.kind = GP_TOK_TEXT, p = text_end(r, p, p[-1] == 'R');
    } else if (*p == '"' || *p == '\'') {
        t.kind = GP_TOK_TEXT, p = text_end(r, p, false);
    } else {
        int i = 0;
        while (operators[i] && ((size_t)(r->end - p) < strlen(operators[i])
                                || memcmp(p, operators[i], strlen(operators[i])) != 0))
            i++;
        t.kind = GP_TOK_OTHER, p += operators[i] ? strlen(operators[i]) : 1;
        check_character(r, &t);
    }
    for (const char *q = t.p; q < p; q++)
        r->line += *q == '\n';
    t.len = (int)(p - t.p);
    r->p = p;
    r->fresh = false;
    return t;
}

/* NAME BODY or NAME(A, B) BODY, up to the line's end. */
static void read_define(reader *r)
{
    gp_cu *c = r->c;
    gp_tok name = next(r, true), t;
    if (name.kind != GP_TOK_WORD)
        return;
    int from = c->text.n;
    bool takes = r->p < r->end && *r->p == '(';
    add(c, &c->text, name);
    while ((t = next(r, true)).kind)
        add(c, &c->text, t);
    int body = from + 1;
    while (takes && body < c->text.n && !gp_tok_is(&c->text.v[body++], ")"))
        ;
    c->macro = gp_cu_room(c, c->macro, c->nmacros, &c->macros_cap, sizeof *c->macro);
    c->macro[c->nmacros++] = (gp_macro){ from, body, c->text.n, -1 };
}

static const gp_file *find_include(gp_cu *c, const char *from, const char *name, size_t n)
{
    const char *slash = strrchr(from, '/');
    size_t dir = *name == '/' || !slash ? 0 : (size_t)(slash + 1 - from);
    char *path = gp_shape_alloc(c->s, dir + n + 1);
    memcpy(path, from, dir);
    memcpy(path + dir, name, n);
    const gp_file *f = gp_probe_file(c->s, path);
    return f && !f->error && f->kind == GP_FILE_REGULAR ? f : NULL;
}

/* Headers that come with a compiler, or with gpipe: they have no index, and no variable that a
 * kernel could change. */
static const char *const plain_headers[] = {
    "assert.h", "complex.h", "ctype.h", "cuComplex.h", "cuda_fp16.h", "cuda_runtime.h", "errno.h", "float.h",
    "inttypes.h", "limits.h", "math.h", "math_constants.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h", "time.h", "vector_functions.h", "vector_types.h",
    "algorithm", "array", "atomic", "bit", "bitset", "cassert", "cctype", "cerrno", "cfenv", "cfloat",
    "chrono", "cinttypes", "climits", "cmath", "complex", "concepts", "cstdarg", "cstddef", "cstdint",
    "cstdio", "cstdlib", "cstring", "ctime", "deque", "exception", "functional", "initializer_list",
    "iomanip", "iosfwd", "iostream", "iterator", "limits", "list", "map", "memory", "new", "numbers",
    "numeric", "optional", "ostream", "queue", "random", "ratio", "set", "span", "sstream", "stack",
    "stdexcept", "string", "string_view", "tuple", "type_traits", "typeinfo", "unordered_map",
    "unordered_set", "utility", "valarray", "variant", "vector", "version", NULL
};

/* Of the toolkit: they may have an index, or make one. */
static const char *const toolkit_headers[] = {
    "builtin_types.h", "channel_descriptor.h", "cooperative_groups.h", "cuda.h", "cuda_bf16.h", "cuda_fp8.h",
    "cuda_pipeline.h", "cuda_runtime_api.h", "curand.h", "curand_kernel.h", "device_atomic_functions.h",
    "device_functions.h", "device_launch_parameters.h", "driver_types.h", "math_functions.h", "mma.h",
    "sm_20_intrinsics.h", "sm_30_intrinsics.h", "texture_indirect_functions.h", NULL
};
static const char *const toolkit_folders[] = { "cooperative_groups/", "cub/", "cuda/", "nv/", "thrust/", NULL };

static bool is_listed(const char *const *list, const char *p, size_t n, bool folder)
{
    for (; *list; list++)
        if (folder ? n > strlen(*list) && !memcmp(p, *list, strlen(*list))
                   : n == strlen(*list) && !memcmp(p, *list, n))
            return true;
    return false;
}

/* <NAME>, whose name is the n characters at `p`: a file of that name beside the source may be
 * meant. */
static void check_header(reader *r, const gp_tok *at, const char *p, size_t n)
{
    gp_cu *c = r->c;
    if (find_include(c, c->source->path, p, n))
        cut(c, at, "includes a file that is not looked at; \"...\" is, <...> not");
    else if (is_listed(plain_headers, p, n, false))
        return;
    else if (is_listed(toolkit_headers, p, n, false) || is_listed(toolkit_folders, p, n, true))
        set_odd(c, at, "includes more than the C library");
    else
        cut(c, at, "includes a file that is not looked at; \"...\" is, <...> not");
}

static void read_include(reader *r)
{
    gp_cu *c = r->c;
    skip(r, true);
    const char *p = r->p, *end = p;
    gp_tok at = { .file = r->file, .line = r->line, .p = p, .len = 1, .kind = GP_TOK_TEXT };
    while (end < r->end && *end != '\n')
        end++;
    char close = p < end && *p == '"' ? '"' : p < end && *p == '<' ? '>' : 0;
    const char *stop = close && p + 1 < end ? memchr(p + 1, close, (size_t)(end - p - 1)) : NULL;
    size_t n = stop ? (size_t)(stop - p - 1) : 0;
    at.len = (int)n + 2;
    if (!n) {
        at.len = 1;
        cut(c, &at, "includes a file by a macro");
    } else if (close == '>') {
        check_header(r, &at, p + 1, n);
    } else {
        const gp_file *f = find_include(c, r->file ? c->path[r->file] : c->source->path, p + 1, n);
        if (!f)
            f = find_include(c, c->source->path, p + 1, n);
        if (c->open)
            set_odd(c, &at, "includes a file within brackets");
        if (!f && !is_listed(plain_headers, p + 1, n, false))
            cut(c, &at, "includes a file that is not there");
        else if (!f)
            ;                              /* it comes with a compiler */
        else if (c->deep == DEEP || c->nfiles == FILES)
            cut(c, &at, c->deep == DEEP ? "includes files that include each other too deep"
                                        : "includes too many files");
        else
            read_file(c, f);
    }
    r->p = end;
}

/* What an #if chooses must open and close the same brackets, else none belong together. */
static void read_if(reader *r, const gp_tok *word)
{
    bool begins = gp_tok_is(word, "if") || gp_tok_is(word, "ifdef") || gp_tok_is(word, "ifndef");
    gp_cu *c = r->c;
    if (begins && r->levels == LEVELS) {
        cut(c, word, "has #if within #if too deep");
    } else if (begins) {
        r->level[r->levels].open = c->open, r->level[r->levels++].part = c->part;
    } else if (r->levels && r->level[r->levels - 1].open != c->open) {
        cut(c, word, "has brackets that depend on #if");
    }
    bool ends = gp_tok_is(word, "endif");
    c->part = !ends ? ++c->parts : r->levels ? r->level[r->levels - 1].part : 0;
    r->levels -= ends && r->levels;
}

static void read_directive(reader *r)
{
    static const char *const chooses[] = { "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef",
                                           "else", "endif", NULL };
    static const char *const nothing[] = { "error", "warning", "pragma", "line", "ident", NULL };
    gp_tok word = next(r, true);
    r->words = gp_tok_among(&word, nothing);
    if (gp_tok_is(&word, "define"))
        read_define(r);
    else if (gp_tok_is(&word, "include") || gp_tok_is(&word, "include_next"))
        read_include(r);
    else if (gp_tok_among(&word, chooses))
        read_if(r, &word);
    else if (word.kind && !r->words && !gp_tok_is(&word, "undef"))
        cut(r->c, &word, "has a directive that is not known");
    while (next(r, true).kind)
        ;
    r->words = false;
    r->fresh = true;
}

/* Each file once. */
static void read_file(gp_cu *c, const gp_file *f)
{
    for (int i = 0; i < c->nfiles; i++)
        if (!strcmp(c->path[i], f->path))
            return;
    /* A NUL before the text, so that a column can be counted back to it. */
    char *text = gp_shape_alloc(c->s, f->nhead + 2);
    memcpy(text + 1, f->head, f->nhead);
    bool within = !c->nfiles && c->source->text && c->source->line;
    reader r = { .c = c, .file = c->nfiles, .line = within ? c->source->line : 1, .p = text + 1, .end = text + 1 + f->nhead,
                 .fresh = true };
    gp_tok at = { .kind = GP_TOK_OTHER, .file = r.file, .line = r.line, .len = 1, .p = r.p }, t;
    c->path = gp_cu_room(c, c->path, c->nfiles, &c->files_cap, sizeof *c->path);
    c->path[c->nfiles++] = f->path;
    if (f->size > (int64_t)f->nhead)
        cut(c, &at, "is longer than a source is looked at");
    c->deep++;
    for (;;) {
        skip(&r, false);
        bool fresh = r.fresh;
        t = next(&r, false);
        if (!t.kind)
            break;
        if (fresh && gp_tok_is(&t, "#")) {
            read_directive(&r);
            continue;
        }
        t.chosen = c->part;
        if (t.kind == GP_TOK_OTHER && t.len == 1)
            c->open += !!strchr("([{", *t.p) - !!strchr(")]}", *t.p);
        add(c, &c->main, t);
    }
    c->deep--;
}

/* A define of the stage is as one in the file. */
static void read_option(gp_cu *c, const char *define)
{
    size_t n = strlen(define);
    char *text = gp_shape_alloc(c->s, n + 2);
    memcpy(text + 1, define, n);
    char *value = strchr(text + 1, '=');
    gp_tok at = { .kind = GP_TOK_OTHER, .p = text + 1, .len = 1 };
    if (value)
        *value = ' ';
    if (strchr(text + 1, '\n'))
        cut(c, &at, "has a macro of several lines in 'define'");
    reader r = { .c = c, .line = 0, .p = text + 1, .end = text + 1 + n };
    read_define(&r);
}

gp_cu *gp_cu_read(gp_shape *s, const gp_source *src, const gp_file *f)
{
    gp_cu *c = gp_shape_alloc(s, sizeof *c);
    gp_file text = { .path = src->line ? src->path : "code", .head = src->text };
    c->s = s, c->source = src, c->entry = src->entry;
    if (src->text)
        text.nhead = strlen(src->text), text.size = (int64_t)text.nhead;
    add(c, &c->main, (gp_tok){ .kind = GP_TOK_OTHER, .p = ";", .len = 1 });
    add(c, &c->text, (gp_tok){ .kind = GP_TOK_OTHER, .p = ";", .len = 1 });
    read_file(c, src->text ? &text : f);
    for (int i = 0; i < src->ndefine; i++)
        read_option(c, src->define[i]);
    gp_cu_index(c);
    gp_cu_kernels(c);
    return c;
}
