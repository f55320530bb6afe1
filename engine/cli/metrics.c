/* metrics.c - --metrics: what Prometheus scrapes, in its text format 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats).
 *
 * libmicrohttpd is opened when it is asked for: nothing else needs it. It answers on a thread of its own, from counters
 * that nobody waits for. Of several ranks each serves its own, with its number as a label. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/why.h"
#include "cli/live.h"
#include "base/json.h"
#include "base/memfile.h"

enum { LEAST = 13, MOST = 34 };        /* of latencies: 2^13 ns (8 us) to 2^34 ns (17 s) */

struct gp_metrics {
    gp_shown shown;
    const gp_pipeline *pipeline;       /* the one that is looked at */
    struct MHD_Daemon *daemon;
    double start;
    gp_hist latency;                   /* the server's thread's own, as is what follows */
    double *waited; int waited_cap;    /* s, as last told, of each stage: it never falls */
    gp_counters now;
    gp_view_page *view;                /* of --view; else NULL */
    bool local;                        /* it listens to this machine alone */
};

/* ---- the library ----------------------------------------------------- */

#define FUNCTIONS(F) F(start_daemon) F(stop_daemon) F(create_response_from_buffer) \
    F(add_response_header) F(queue_response) F(destroy_response) F(lookup_connection_value)
#define DECLARE(f) __typeof__(MHD_##f) *f;
static struct { FUNCTIONS(DECLARE) } mhd;

static bool load(gp_errs *errs)
{
    static const char *const names[] = { "libmicrohttpd.so.12", NULL };
#define PLACE(f) { "MHD_" #f, &mhd.f },
    static const gp_dl_symbol symbol[] = { FUNCTIONS(PLACE) { 0 } };
    return gp_dl_open(names, symbol, "--metrics", "install libmicrohttpd12 (Debian, Ubuntu)",
                      (gp_loc){ 0 }, errs);
}

/* ---- the text -------------------------------------------------------- */

static void family(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP gpipe_%s %s\n# TYPE gpipe_%s %s\n", name, help, name, type);
}

/* A label's value: UTF-8, with \ " and ends of lines escaped. */
static void value_of_label(FILE *f, const char *s)
{
    unsigned c;
    fputc('"', f);
    for (size_t n = strlen(s), len; n; n -= len, s += len) {
        bool good = (len = gp_utf8(s, n, &c)) > 0;
        len = good ? len : 1;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else
            fwrite(good ? s : "?", 1, len, f);
    }
    fputc('"', f);
}

static int rank = -1;                  /* of several ranks: this one */

/* A sample's name, and the label that it has of several ranks. Returns what stands before its next label. */
static char name_it(FILE *f, const char *name)
{
    fprintf(f, "gpipe_%s", name);
    if (rank >= 0)
        fprintf(f, "{rank=\"%d\"", rank);
    return rank >= 0 ? ',' : '{';
}

/* NAME */
static void alone(FILE *f, const char *name, double v)
{
    name_it(f, name);
    fprintf(f, "%s %.17g\n", rank >= 0 ? "}" : "", v);
}

/* NAME{label="value"} */
static void sample(FILE *f, const char *name, const char *label, const char *value, double v)
{
    fprintf(f, "%c%s=", name_it(f, name), label);
    value_of_label(f, value);
    fprintf(f, "} %.17g\n", v);
}

static void write_sources(FILE *f, const gp_account *a, int n)
{
    static const struct { const char *name, *help; size_t off; } of[] = {
        { "frames_in_total", "Frames that a source made.", offsetof(gp_account, in) },
        { "frames_out_total", "Frames that came out of every sink.", offsetof(gp_account, out) },
        { "frames_dropped_total", "Frames that a stage dropped.", offsetof(gp_account, dropped) },
        { "frames_dropped_late_total", "Of those: older than their deadline.", offsetof(gp_account, late) },
        { "frames_dropped_lost_total", "Of those: that the source did not get.", offsetof(gp_account, lost) },
        { "frames_dropped_full_total", "Of those: for which a stage with when_full had no room.", offsetof(gp_account, full) },
        { "frames_failed_total", "Frames that a stage failed on.", offsetof(gp_account, failed) },
    };
    for (size_t k = 0; n && k < sizeof of / sizeof *of; k++) {
        family(f, of[k].name, "counter", of[k].help);
        for (int i = 0; i < n; i++)
            sample(f, of[k].name, "source", a[i].source,
                   (double)*(const uint64_t *)((const char *)&a[i] + of[k].off));
    }
}

/* What a host stage's workers did not spend in it. A call that is under way shows when
 * it ends; until then the sum stands still rather than fall. */
static double waited(gp_metrics *m, int i, const gp_stage_status *s)
{
    double w = s->workers * (gp_seconds() - m->start) - 1e-9 * (double)s->busy_ns;
    return m->waited[i] = w > m->waited[i] ? w : m->waited[i];
}

static void write_stages(FILE *f, gp_metrics *m)
{
    enum { FRAMES, BYTES, WORKERS, BUSY, WAITING, FAMILIES };          /* from WORKERS on of host stages */
    static const struct { const char *name, *type, *help; } of[FAMILIES] = {
        { "stage_frames_total", "counter", "Frames that a stage or segment is done with." },
        { "stage_bytes_total", "counter", "Bytes of a stage's outputs; of a sink: its inputs." },
        { "stage_workers", "gauge", "Threads of a host stage." },
        { "stage_busy_seconds_total", "counter", "Time in a host stage, of all its workers." },
        { "stage_waiting_seconds_total", "counter",
          "Time of a host stage's workers not in it: for frames, slots or one another." },
    };
    int n = m->now.nstages, host = 0;
    if (!n || !gp_make_room(&m->waited, &m->waited_cap, n, sizeof *m->waited))
        return;
    for (int i = 0; i < n; i++)
        host += m->now.stage[i].workers > 0;
    for (int k = 0; k < (host ? FAMILIES : WORKERS); k++) {
        family(f, of[k].name, of[k].type, of[k].help);
        for (int i = 0; i < n; i++) {
            const gp_stage_status *s = &m->now.stage[i];
            if (k < WORKERS || s->workers)
                sample(f, of[k].name, "stage", s->name, k == FRAMES ? (double)s->frames : k == BYTES ? (double)s->bytes
                       : k == WORKERS ? s->workers : k == BUSY ? 1e-9 * (double)s->busy_ns : waited(m, i, s));
        }
    }
}

static void buffer_sample(FILE *f, const char *name, const gp_buffer_status *b, int v)
{
    const char *const label[] = { "buffer", "from", "to" }, *const value[] = { b->name, b->from,
                                                                              b->to };
    char before = name_it(f, name);
    for (int i = 0; i < 3; i++, before = ',') {
        fprintf(f, "%c%s=", before, label[i]);
        value_of_label(f, value[i]);
    }
    fprintf(f, "} %d\n", v);
}

static void write_buffers(FILE *f, const gp_buffer_status *b, int n)
{
    if (!n)
        return;
    family(f, "buffer_frames", "gauge", "Frames in a buffer that a reader is not done with.");
    for (int i = 0; i < n; i++)
        buffer_sample(f, "buffer_frames", &b[i], b[i].held);
    family(f, "buffer_slots", "gauge", "Frames that fit into a buffer: its slots in use, at first 6 of many.");
    for (int i = 0; i < n; i++)
        buffer_sample(f, "buffer_slots", &b[i], b[i].depth);
}

static void write_latency(FILE *f, gp_metrics *m)
{
    gp_hist *h = &m->latency;
    gp_latency(m->pipeline, h);
    family(f, "latency_seconds", "histogram", "From a frame's source, or its arrival with when_full: drop-newest, to the end "
                                              "of a sink.");
    char le[32];
    for (int k = LEAST; k <= MOST; k++) {
        snprintf(le, sizeof le, "%.11g", (double)((int64_t)1 << k) / 1e9);
        sample(f, "latency_seconds_bucket", "le", le, (double)gp_hist_below(h, (int64_t)1 << k));
    }
    sample(f, "latency_seconds_bucket", "le", "+Inf", (double)h->n);
    alone(f, "latency_seconds_sum", 1e-9 * (double)h->sum);
    alone(f, "latency_seconds_count", (double)h->n);
}

static void write_all(FILE *f, gp_metrics *m)
{
    family(f, "build_info", "gauge", "The program.");
    fprintf(f, "%cversion=\"%s\",commit=\"%s\",cuda=\"%d\"} 1\n", name_it(f, "build_info"), GP_VERSION,
            gp_commit, strstr(gp_built, "cuda") != NULL);
    family(f, "run_seconds_total", "counter", "Time since the start of the run.");
    alone(f, "run_seconds_total", gp_seconds() - m->start);
    m->pipeline = gp_shown_look(&m->shown);
    gp_counters_read(&m->now, m->pipeline);
    write_sources(f, m->now.source, m->now.nsources);
    write_stages(f, m);
    write_buffers(f, m->now.buffer, m->now.nbuffers);
    write_latency(f, m);
}

/* ---- the server ------------------------------------------------------ */

/* "127.0.0.1:9100", "localhost", "[::1]:9100": a name that no server of names gives another meaning. */
static bool is_of_here(const char *host)
{
    const char *colon = strrchr(host, ':');
    struct in_addr a;
    char name[16] = "";
    size_t n = colon && !strchr(colon, ']') ? (size_t)(colon - host) : strlen(host);
    if (n < sizeof name)
        memcpy(name, host, n);
    return !strcasecmp(name, "localhost") || !strcmp(name, "[::1]")
        || (inet_pton(AF_INET, name, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

/* Who listens to this machine alone does not answer pages of others' names, which may have been made to mean it. */
static bool is_asked_as(const gp_metrics *m, struct MHD_Connection *c)
{
    const char *host = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    return !m->local || !host || is_of_here(host);
}

static const char *argument(struct MHD_Connection *c, const char *key)
{
    const char *value = mhd.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, key);
    return value ? value : "";
}

/* What is at `url`; returns the status. */
static unsigned write_answer(gp_metrics *of, struct MHD_Connection *c, const char *url, FILE *to, const char **type)
{
    gp_account some;
    const char *health = gp_signals_level() ? "stopping" : gp_accounts(gp_shown_look(&of->shown), &some, 1) < 1 ? "starting"
        : "running";
    *type = "text/plain; version=0.0.4; charset=utf-8";
    if (!strcmp(url, "/health")) {
        fprintf(to, "%s\n", health);
        return *health == 'r' ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    if (!strcmp(url, "/metrics")) {
        write_all(to, of);
        return MHD_HTTP_OK;
    }
    if (of->view && !strncmp(url, "/view", 5))
        return !is_asked_as(of, c) ? MHD_HTTP_FORBIDDEN
             : gp_view_page_get(of->view, &(gp_view_ask){ atomic_load(&of->shown.next), url, argument(c, "buffer"),
                                                         argument(c, "after") }, to, type);
    fprintf(to, "GET /metrics or /health%s\n", of->view ? ", or /view" : "");
    return MHD_HTTP_NOT_FOUND;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    const char *type = "text/plain";
    unsigned status = MHD_HTTP_METHOD_NOT_ALLOWED;
    size_t n = 0;
    gp_memfile m;
    *upload_size = 0;
    if (!gp_memfile_open(&m))
        return MHD_NO;
    if (reads)
        status = write_answer(arg, c, url, m.f, &type);
    else
        fprintf(m.f, "GET /metrics or /health\n");
    char *text = gp_memfile_close(&m, &n);
    struct MHD_Response *r = !text ? NULL
        : mhd.create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        free(text);
        return MHD_NO;
    }
    mhd.add_response_header(r, "Content-Type", type);
    mhd.add_response_header(r, "Cache-Control", "no-store");
    enum MHD_Result queued = mhd.queue_response(c, status, r);
    mhd.destroy_response(r);
    return queued;
}

/* "9100", "0.0.0.0:9100", "[::1]:9100". Ranks on one machine have a port each, from that one on; 0: any. */
static bool split(const char *at, int local, char host[64], char port[16], gp_errs *errs)
{
    const char *colon = strrchr(at, ':'), *address = at, *first = colon ? colon + 1 : at;
    size_t n = colon ? (size_t)(colon - at) : 0;
    if (n > 1 && *at == '[' && at[n - 1] == ']')
        address++, n -= 2;
    char *end;
    long number = strtol(first, &end, 10);
    if (*first < '0' || *first > '9' || *end || number > 65535 || (colon && !n) || n > 63)
        return gp_usage(errs, "--metrics '%s' is not a port; write --metrics 9100, or 0.0.0.0:9100 for all of the "
                        "network", at);
    unsigned mine = number ? (unsigned)number + (unsigned)local : 0;
    if (mine > 65535)
        return gp_usage(errs, "--metrics '%s': rank %d would have port %u, and the last is 65535: choose a lower one",
                        at, rank, mine);
    snprintf(host, 64, "%.*s", colon ? (int)n : 9, colon ? address : "127.0.0.1");
    snprintf(port, 16, "%u", mine);
    return true;
}

/* Never blocks in accept(); -1: errno says why. */
static int listen_on(const struct addrinfo *a)
{
    const int one = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 16))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* A socket that listens; -1 after an error. */
static int listen_at(const char *at, int local, gp_errs *errs)
{
    char host[64], port[16];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *a = NULL;
    if (!split(at, local, host, port, errs))
        return -1;
    int e = getaddrinfo(host, port, &hints, &a);
    if (e == EAI_MEMORY || (e == EAI_SYSTEM && errno == ENOMEM)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--metrics '%s': out of memory", at);
        return -1;
    } else if (e) {
        gp_usage(errs, "--metrics '%s': %s; give an address of this machine", at, gai_strerror(e));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *i = a; i && fd < 0; i = i->ai_next)    /* 'localhost' has two */
        fd = listen_on(i);
    if (fd < 0)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--metrics '%s': port %s: %s; choose another port or "
                "address, or port 0 for a free one", at, port, gp_strerror(errno));
    freeaddrinfo(a);
    return fd;
}

/* Is it reached from this machine alone? */
static bool is_local(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr)
        : ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
}

static void say_where(const struct sockaddr_storage *at, const char *what)
{
    char host[64] = "", port[16] = "", whose[32] = "";
    bool six = at->ss_family == AF_INET6;
    getnameinfo((const struct sockaddr *)at, sizeof *at, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    if (rank >= 0)
        snprintf(whose, sizeof whose, "rank %d: ", rank);
    fprintf(stderr, "gpipe: %s%s: http://%s%s%s:%s/%s\n", whose, what, six ? "[" : "", host, six ? "]" : "", port, what);
}

gp_metrics *gp_metrics_start(const gp_args *args, const gp_pipeline *p, gp_errs *errs)
{
    rank = gp_ranks_n(args->ranks) > 1 ? gp_rank(args->ranks) : -1;
    const char *at = args->metrics;
    int fd = load(errs) ? listen_at(at, gp_local_rank(args->ranks), errs) : -1;
    if (fd < 0)
        return NULL;
    struct sockaddr_storage here = { 0 };
    getsockname(fd, (struct sockaddr *)&here, &(socklen_t){ sizeof here });
    gp_metrics *m = calloc(1, sizeof *m);
    if (m) {
        gp_shown_begin(&m->shown, p);
        m->pipeline = p, m->start = gp_seconds();
        m->view = args->view ? gp_view_page_new() : NULL;
        m->local = is_local(&here);
        m->daemon = args->view && !m->view ? NULL : mhd.start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL
                                     | MHD_USE_ITC, 0, NULL, NULL, answer, m,
                                     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, 64u,
                                     MHD_OPTION_PER_IP_CONNECTION_LIMIT, 48u,
                                     MHD_OPTION_CONNECTION_TIMEOUT, 2u, MHD_OPTION_END);
    }
    if (!m || !m->daemon) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--metrics '%s': cannot start the server", at);
        close(fd);
        gp_view_page_free(m ? m->view : NULL);
        free(m);
        return NULL;
    }
    if (!args->quiet)
        say_where(&here, "metrics");
    if (!args->quiet && args->view)
        say_where(&here, "view");
    return m;
}

void gp_metrics_stop(gp_metrics *m)
{
    if (!m)
        return;
    mhd.stop_daemon(m->daemon);
    gp_view_page_free(m->view);
    gp_counters_free(&m->now);
    free(m->waited);
    free(m);
}

void gp_metrics_next(gp_metrics *m, const gp_pipeline *p)
{
    if (m)
        atomic_store(&m->shown.next, p);
}
