/* lsp.c - gpipe lsp: a server of the Language Server Protocol 3.17, for editors: messages, documents, diagnostics.
 *
 * One thread. What cannot be read as a message is answered as an error, and reading goes on at the next header. A text
 * is checked when no more messages wait, so that fast typing is checked once. It runs nothing and writes no file. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/memfile.h"
#include "cli/lsp.h"
#include "cli/verb.h"

enum { LARGEST = 64 << 20, LONGEST_HEADER = 4096 };
enum { PARSE_ERROR = -32700, INVALID_REQUEST = -32600, NO_METHOD = -32601, INVALID_PARAMS = -32602,
       NOT_INITIALIZED = -32002 };

/* ---- places: bytes here, lines and UTF-16 units there ------------------- */

static size_t line_start(const gp_doc *d, size_t line)
{
    const char *s = d->text, *end = d->text + d->len, *nl;
    for (; line && (nl = memchr(s, '\n', (size_t)(end - s))); line--)
        s = nl + 1;
    return line ? d->len : (size_t)(s - d->text);
}

static size_t line_end(const gp_doc *d, size_t at)
{
    const char *nl = memchr(d->text + at, '\n', d->len - at);
    size_t end = nl ? (size_t)(nl - d->text) : d->len;
    return end - (end > at && d->text[end - 1] == '\r');
}

/* Steps over a character, which has *units. */
static size_t step(const gp_doc *d, size_t at, size_t *units)
{
    unsigned c;
    size_t n = gp_utf8(d->text + at, d->len - at, &c);
    *units = n == 4 ? 2 : 1;
    return at + (n ? n : 1);
}

/* False: it is no position. One behind the end of its line is that end. */
static bool byte_of(const gp_doc *d, json_t *position, size_t *at)
{
    json_int_t line, unit;
    size_t units;
    if (!position || json_unpack(position, "{s:I, s:I}", "line", &line, "character", &unit) || line < 0 || unit < 0)
        return false;
    *at = line_start(d, (size_t)line);
    for (size_t end = line_end(d, *at), next; unit > 0 && *at < end; *at = next, unit -= (json_int_t)units)
        if (next = step(d, *at, &units), units > (size_t)unit)
            break;
    return true;
}

static gp_position position_of(const gp_doc *d, size_t at)
{
    gp_position p = { 0 };
    size_t units, from = 0;
    for (const char *nl; (nl = memchr(d->text + from, '\n', at - from)); p.line++)
        from = (size_t)(nl - d->text) + 1;
    for (; from < at; p.unit += (int64_t)units)
        from = step(d, from, &units);
    return p;
}

gp_range gp_lsp_range(const gp_doc *d, size_t at, size_t len)
{
    return (gp_range){ position_of(d, at), position_of(d, at + len) };
}

void gp_lsp_put_range(gp_json *j, gp_range range)
{
    gp_json_put(j, "range: {start: {line: %jd, character: %jd}, end: {line: %jd, character: %jd}}", range.start.line,
                range.start.unit, range.end.line, range.end.unit);
}

size_t gp_lsp_place(const gp_doc *d, gp_loc at, size_t *len)
{
    size_t from = at.line ? line_start(d, (size_t)at.line - 1) : 0, end = line_end(d, from);
    if (!at.line || !at.col) {
        *len = at.line ? end - from : 0;
        return from;
    }
    from = from + (size_t)at.col - 1 < end ? from + (size_t)at.col - 1 : end;
    size_t units, least = from < end ? step(d, from, &units) - from : 0, asked = at.len > 0 ? (size_t)at.len : 0;
    *len = asked < least ? least : asked > end - from ? end - from : asked;
    return from;
}

/* ---- messages that are sent --------------------------------------------- */

typedef struct message { gp_memfile m; gp_json j; } message;

static gp_json *begin(gp_lsp *l, message *m)
{
    if (!gp_memfile_open(&m->m))
        longjmp(*l->oom, 1);
    m->j = (gp_json){ .f = m->m.f, .level = 3 };       /* all on one line */
    gp_json_put(&m->j, "{jsonrpc: %s", "2.0");
    return &m->j;
}

static void end(gp_lsp *l, message *m)
{
    size_t n;
    gp_json_close(&m->j, '}');
    char *text = gp_memfile_close(&m->m, &n);
    if (!text)
        longjmp(*l->oom, 1);
    printf("Content-Length: %zu\r\n\r\n", n);
    fwrite(text, 1, n, stdout);
    l->ended |= fflush(stdout) != 0;           /* nobody reads it any more: main() finds out why */
    free(text);
}

static void put_id(gp_json *j, const json_t *id)
{
    if (json_is_integer(id))
        gp_json_int(j, "id", json_integer_value(id));
    else
        gp_json_strn(j, "id", json_string_value(id), json_string_length(id));
}

static void refuse(gp_lsp *l, const json_t *id, int code, const char *what, const char *about)
{
    message m;
    char text[256];
    gp_json *j = begin(l, &m);
    snprintf(text, sizeof text, "%s%s%.200s", what, *about ? ": " : "", about);
    put_id(j, id);
    gp_json_put(j, "error: {code: %d, message: %s}", code, text);
    end(l, &m);
}

/* ---- documents ----------------------------------------------------------- */

/* The path of a file:// URI; another URI as it is. */
static char *path_of(const char *uri)
{
    char *path = strdup(uri), *to = path;
    const char *s = strncmp(uri, "file://", 7) ? NULL : strchr(uri + 7, '/');
    unsigned c;
    for (; path && s && *s; s++) {
        bool coded = *s == '%' && strspn(s + 1, "0123456789abcdefABCDEF") >= 2 && sscanf(s + 1, "%2x", &c) == 1 && c;
        *to++ = coded ? (char)c : *s;
        s += coded ? 2 : 0;
        *to = 0;
    }
    return path;
}

static gp_doc *find(const gp_lsp *l, const char *uri)
{
    gp_doc *d = l->docs;
    while (d && strcmp(d->uri, uri))
        d = d->next;
    return d;
}

static void set_text(gp_lsp *l, gp_doc *d, size_t from, size_t to, const json_t *text)
{
    size_t n = json_string_length(text), rest = d->len - to;
    char *all = malloc(from + n + rest + 1);
    if (!all)
        longjmp(*l->oom, 1);
    memcpy(all, d->text, from);
    memcpy(all + from, json_string_value(text), n);
    memcpy(all + from + n, d->text + to, rest);
    all[from + n + rest] = 0;
    free(d->text);
    d->text = all, d->len = from + n + rest, d->changed = true;
}

static void drop(gp_lsp *l, gp_doc *d)
{
    gp_doc **at = &l->docs;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    gp_arena_free(&d->arena);
    free(d->uri), free(d->path), free(d->text), free(d->sound);
    free(d);
}

/* ---- diagnostics --------------------------------------------------------- */

/* Error i and its notes; returns how many entries that were. What is of another file, as of a script, names it. */
static int put_diagnostic(gp_json *j, const gp_doc *d, const gp_errs *errs, int i)
{
    const gp_err *e = &errs->e[i];
    bool here = !e->at.file || !strcmp(e->at.file, d->path);
    char text[8 * sizeof e->msg];
    gp_loc of = here ? e->at : (gp_loc){ 0 };
    int n = 1;
    for (int k = i + 1; !of.line && k < errs->n && errs->e[k].code == GP_E_NOTE; k++)      /* where it is included */
        if (errs->e[k].at.file && !strcmp(errs->e[k].at.file, d->path))
            of = errs->e[k].at;
    size_t len, at = gp_lsp_place(d, of, &len);
    size_t used = here ? 0 : (size_t)snprintf(text, sizeof text, "%.200s:%d:%d: ", e->at.file, e->at.line, e->at.col);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", e->msg);
    for (; i + n < errs->n && errs->e[i + n].code == GP_E_NOTE; n++)
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "\n%s", errs->e[i + n].msg);
    gp_json_open(j, NULL, '{');
    gp_lsp_put_range(j, gp_lsp_range(d, at, len));
    gp_json_put(j, "severity: %d, source: %s, message: %s}", e->code == GP_E_WARN ? 2 : 1, "gpipe", text);
    return n;
}

static void publish(gp_lsp *l, const gp_doc *d, const gp_errs *errs)
{
    message m;
    gp_json *j = begin(l, &m);
    gp_json_put(j, "method: %s, params: {uri: %s, version: %jd, diagnostics: [", "textDocument/publishDiagnostics",
                d->uri, d->version);
    for (int i = 0; i < errs->n;)
        i += put_diagnostic(j, d, errs, i);
    gp_json_put(j, "]}");
    end(l, &m);
}

/* The names stay those of before where the text is no map. */
static void read_names(gp_lsp *l, gp_doc *d)
{
    gp_arena a = { .oom = l->oom };
    gp_names names;
    char *text = gp_strndup(&a, d->text, d->len);
    if (!gp_names_read(&a, &names, text, d->len, d->path, l->registry)) {
        gp_arena_free(&a);
        return;
    }
    gp_arena_free(&d->arena);
    d->arena = a, d->names = names;
}

static void check(gp_lsp *l, gp_doc *d)
{
    gp_loaded x = { .file = d->path, .text = d->text, .len = d->len };
    gp_errs errs = { 0 };
    d->changed = false;
    if (gp_load_for(&x, l->args, l->machine, l->registry, &errs)) {
        gp_pipeline_lint(x.pipeline, l->machine, &errs);
        free(d->sound);
        d->sound_len = (d->sound = malloc(d->len + 1)) ? d->len : 0;
        if (d->sound)
            memcpy(d->sound, d->text, d->len + 1);
    }
    publish(l, d, &errs);
    x.text = NULL;                     /* the document's */
    gp_unload(&x);
    read_names(l, d);
}

static void check_changed(gp_lsp *l)
{
    for (gp_doc *d = l->docs; d; d = d->next)
        if (d->changed)
            check(l, d);
}

/* ---- what is asked and told ---------------------------------------------- */

static bool initialize(gp_lsp *l, json_t *params, gp_json *j)
{
    gp_json_raw(j, "result",
                "{\"capabilities\": {\"textDocumentSync\": {\"openClose\": true, \"change\": 2, \"save\": true}, "
                "\"hoverProvider\": true, \"definitionProvider\": true, "
                "\"completionProvider\": {\"triggerCharacters\": [\" \", \"[\", \"{\", \",\"]}}, "
                "\"serverInfo\": {\"name\": \"gpipe\", \"version\": \"" GP_VERSION "\"}}");
    return l->ready = true;
}

static bool shut(gp_lsp *l, json_t *params, gp_json *j)
{
    gp_json_str(j, "result", NULL);
    return l->shut = true;
}

static bool leave(gp_lsp *l, json_t *params, gp_json *j)
{
    return l->ended = true;
}

static int64_t version_of(const json_t *params)
{
    return json_integer_value(json_object_get(json_object_get(params, "textDocument"), "version"));
}

static bool did_open(gp_lsp *l, json_t *params, gp_json *j)
{
    const char *uri;
    json_t *text;
    if (json_unpack(params, "{s:{s:s, s:o}}", "textDocument", "uri", &uri, "text", &text) || !json_is_string(text))
        return false;
    if (find(l, uri))                  /* opened twice: the last one counts */
        drop(l, find(l, uri));
    gp_doc *d = calloc(1, sizeof *d);
    if (!d)
        longjmp(*l->oom, 1);
    d->next = l->docs, l->docs = d, d->version = version_of(params);
    if (!(d->uri = strdup(uri)) || !(d->path = path_of(uri)) || !(d->text = strdup("")))
        longjmp(*l->oom, 1);
    set_text(l, d, 0, 0, text);
    return true;
}

static bool did_change(gp_lsp *l, json_t *params, gp_json *j)
{
    const char *uri;
    json_t *changes, *change;
    size_t i;
    gp_doc *d = json_unpack(params, "{s:{s:s}, s:o}", "textDocument", "uri", &uri, "contentChanges", &changes) ? NULL
        : find(l, uri);
    if (!d)
        return false;
    json_array_foreach(changes, i, change) {
        json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
        size_t from = 0, to = d->len;
        if (!json_is_string(text) || (range && !json_is_null(range) && (!byte_of(d, json_object_get(range, "start"), &from)
                                                || !byte_of(d, json_object_get(range, "end"), &to))))
            return false;
        set_text(l, d, from, to < from ? from : to, text);
    }
    d->version = version_of(params);   /* that of before tells the editor that diagnostics are of another text */
    return true;
}

static gp_doc *named(gp_lsp *l, json_t *params)
{
    const char *uri;
    return json_unpack(params, "{s:{s:s}}", "textDocument", "uri", &uri) ? NULL : find(l, uri);
}

static bool did_save(gp_lsp *l, json_t *params, gp_json *j)
{
    gp_doc *d = named(l, params);
    for (gp_doc *other = l->docs; d && other; other = other->next)     /* which may include it */
        other->changed = true;
    return d;
}

static bool did_close(gp_lsp *l, json_t *params, gp_json *j)
{
    gp_doc *d = named(l, params);
    if (d) {
        publish(l, d, &(gp_errs){ .n = 0 });
        drop(l, d);
    }
    return d;
}

/* Answers about a place of a document. */
static bool ask(gp_lsp *l, json_t *params, gp_json *j,
                void (*answer)(const gp_lsp *, gp_json *, gp_arena *, const gp_doc *, size_t))
{
    size_t at;
    gp_doc *d = named(l, params);
    if (!d || !byte_of(d, json_object_get(params, "position"), &at))
        return false;
    if (d->changed)
        read_names(l, d);
    gp_arena a = { .oom = l->oom };
    answer(l, j, &a, d, at);
    gp_arena_free(&a);
    return true;
}

static bool hover(gp_lsp *l, json_t *params, gp_json *j) { return ask(l, params, j, gp_lsp_hover); }
static bool complete(gp_lsp *l, json_t *params, gp_json *j) { return ask(l, params, j, gp_lsp_complete); }
static bool define(gp_lsp *l, json_t *params, gp_json *j) { return ask(l, params, j, gp_lsp_define); }

/* A request writes its result; false: its parameters are not what it needs. */
static const struct { const char *name; bool (*run)(gp_lsp *, json_t *params, gp_json *j); bool request; } methods[] = {
    { "initialize", initialize, true }, { "shutdown", shut, true }, { "exit", leave, false },
    { "textDocument/didOpen", did_open, false }, { "textDocument/didChange", did_change, false },
    { "textDocument/didSave", did_save, false }, { "textDocument/didClose", did_close, false },
    { "textDocument/hover", hover, true }, { "textDocument/completion", complete, true },
    { "textDocument/definition", define, true },
};
enum { NMETHODS = sizeof methods / sizeof *methods };

static void request(gp_lsp *l, const json_t *id, int i, json_t *params)
{
    message m;
    gp_json *j = begin(l, &m);
    size_t n;
    put_id(j, id);
    if (methods[i].run(l, params, j)) {
        end(l, &m);
        return;
    }
    free(gp_memfile_close(&m.m, &n));
    refuse(l, id, INVALID_PARAMS, "no such document or position", "");
}

/* To a notification there is no answer: one that says nothing is told to the user. */
static void complain(gp_lsp *l, const char *method)
{
    message m;
    char text[128];
    gp_json *j = begin(l, &m);
    snprintf(text, sizeof text, "gpipe: '%.64s' names no document that is open, or no place in it", method);
    gp_json_put(j, "method: %s, params: {type: %d, message: %s}", "window/logMessage", 1, text);
    end(l, &m);
}

static void take(gp_lsp *l, json_t *msg)
{
    const json_t *id = json_object_get(msg, "id");
    const char *method = json_string_value(json_object_get(msg, "method"));
    json_t *params = json_object_get(msg, "params");
    int i = 0;
    if (!json_is_object(msg) || (!method && !json_object_get(msg, "result") && !json_object_get(msg, "error")))
        refuse(l, id, INVALID_REQUEST, "this is no request", "");
    if (!method)
        return;                        /* the answer to a question that was not asked */
    while (i < NMETHODS && strcmp(methods[i].name, method))
        i++;
    bool first = !strcmp(method, "initialize"), last = !strcmp(method, "exit");
    if (!l->ready && id && !first)
        refuse(l, id, NOT_INITIALIZED, "the first request must be 'initialize'", "");
    else if (id && (l->shut || (l->ready && first)))
        refuse(l, id, INVALID_REQUEST, l->shut ? "the server is shut down" : "initialized already", "");
    else if (id && (i == NMETHODS || !methods[i].request))
        refuse(l, id, NO_METHOD, "no such request", method);
    else if (id)
        request(l, id, i, params);
    else if (i < NMETHODS && !methods[i].request && (last || (l->ready && !l->shut))
             && !methods[i].run(l, params, NULL))
        complain(l, method);
}

/* ---- messages that are read ---------------------------------------------- */

static void forget(gp_lsp *l, size_t n)
{
    memmove(l->in, l->in + n, l->n -= n);
}

/* False: what was read has no whole message. What is before a header, or is none, is skipped. */
static bool take_next(gp_lsp *l)
{
    static const char name[] = "Content-Length:";
    enum { N = sizeof name - 1 };
    const char *at = l->in;
    while (l->n >= N && at <= l->in + l->n - N && strncasecmp(at, name, N))
        at++;
    if (l->n < N || at > l->in + l->n - N) {
        if (l->n >= N)
            forget(l, l->n - (N - 1));
        return false;
    }
    forget(l, (size_t)(at - l->in));
    const char *body = memmem(l->in, l->n, "\r\n\r\n", 4);
    if (!body && l->n <= LONGEST_HEADER)
        return false;
    char *s = l->in + N, *behind = s;
    size_t len = 0;
    if (body && (s += strspn(s, " ")) && *s >= '0' && *s <= '9')
        len = strtoul(s, &behind, 10), behind += strspn(behind, " ");
    if (!body || behind <= s || len > LARGEST || *behind != '\r') {
        forget(l, N);
        refuse(l, NULL, PARSE_ERROR, "no valid length in a header", "");
        return true;
    }
    size_t from = (size_t)(body - l->in) + 4;
    if (l->n - from < len)
        return false;
    json_error_t e;
    json_t *msg = json_loadb(l->in + from, len, JSON_ALLOW_NUL, &e);
    forget(l, from + len);
    if (msg)
        take(l, msg);
    else
        refuse(l, NULL, PARSE_ERROR, "not JSON", e.text);
    json_decref(msg);
    return true;
}

static bool more_waits(void)
{
    struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
    return poll(&p, 1, 0) > 0;
}

/* Until `exit`, or the end of what is read. */
static void serve(gp_lsp *l)
{
    enum { ROOM = 65536 };
    for (;;) {
        while (!l->ended && take_next(l))
            ;
        if (!l->ended && !more_waits())
            check_changed(l);
        if (l->ended)
            return;
        if (l->cap - l->n < ROOM && !gp_grow(&l->in, l->cap = 2 * l->cap + ROOM, 1))
            longjmp(*l->oom, 1);
        ssize_t got = read(STDIN_FILENO, l->in + l->n, l->cap - l->n);
        if (got > 0)
            l->n += (size_t)got;
        else if (!got || errno != EINTR)
            break;
    }
    check_changed(l);
}

static int lsp(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    jmp_buf oom;
    gp_lsp *l = calloc(1, sizeof *l);
    if (l)
        *l = (gp_lsp){ .args = args, .registry = registry, .machine = gp_machine_create_fixed(1), .oom = &oom };
    if (!l || !l->machine || setjmp(oom))
        gp_no_memory(errs);
    else
        serve(l);
    bool ok = l && l->shut;
    while (l && l->docs)
        drop(l, l->docs);
    if (l)
        gp_machine_destroy(l->machine), free(l->in);
    free(l);
    return errs->failed ? gp_errs_exit(errs) : !ok;
}

const gp_verb gp_verb_lsp = {
    .name = "lsp", .operand = "", .place = 112,
    .help = "check, explain and complete pipelines in an editor: a language server on stdin and stdout",
    .more = "How to set up an editor: gpipe help editor. A text is checked while it is typed, as 'gpipe check' does,\n"
            "for an H200; no device is opened, and nothing is run or written.\n",
    .target = GP_TARGET_ANY, .run = lsp,
    .options = (const gp_option[]){ GP_OPTION_SET, GP_OPTION_PLUGIN, { 0 } },
};
