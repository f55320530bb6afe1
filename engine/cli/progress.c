/* progress.c - how a run goes, while it goes and at its end.
 *
 * A thread of its own looks at the counters of the run, which are atomic, and
 * prints; it holds nothing that the run waits for. While nobody looks it sleeps. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/plural.h"
#include "base/thread.h"
#include "cli/live.h"
#include "cli/retune.h"

enum { LOOK_MS = 50, DRAW_MS = 200, SAY_MS = 1000 };

struct gp_meter {
    gp_ranks *ranks;
    gp_shown shown;
    struct gp_retuner *retuner;        /* who is asked for settings; NULL: nobody */
    gp_progress how;
    gp_socket *socket;
    gp_viewers *viewers;
    pthread_t thread;
    int stop_fd;
    double start;
    bool service, ready, stopping;     /* a manager is told; it knows that */
    gp_glance view;
};

/* ---- what else is said on stderr meanwhile --------------------------- */

/* A script's print must not land in the lines: they make room, and are drawn anew
 * below it. The stream stays for good, as a script may have kept it. */
static struct {
    pthread_mutex_t lock;
    gp_screen screen;
    FILE *real, *around;
} lines = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ssize_t write_around(void *cookie, const char *text, size_t n)
{
    pthread_mutex_lock(&lines.lock);
    gp_screen_clear(&lines.screen);
    ssize_t done = write(STDERR_FILENO, text, n);
    pthread_mutex_unlock(&lines.lock);
    return done < 0 ? 0 : done;
}

static void lines_begin(void)
{
    lines.screen = gp_screen_on(STDERR_FILENO);
    if (!lines.around) {
        cookie_io_functions_t io = { .write = write_around };
        lines.real = stderr, lines.around = fopencookie(NULL, "w", io);
        if (lines.around)
            setvbuf(lines.around, NULL, _IOLBF, BUFSIZ);
    }
    if (lines.around && lines.screen.in_place)
        stderr = lines.around;
    gp_signals_lines(lines.screen.in_place);
}

static void lines_draw(const gp_glance *v)
{
    pthread_mutex_lock(&lines.lock);
    gp_screen_draw(&lines.screen, v);
    pthread_mutex_unlock(&lines.lock);
}

static void lines_end(void)
{
    if (stderr == lines.around) {
        fflush(stderr);
        stderr = lines.real;
    }
    gp_signals_lines(false);
    pthread_mutex_lock(&lines.lock);
    gp_screen_clear(&lines.screen);
    pthread_mutex_unlock(&lines.lock);
}

/* ---- the thread ------------------------------------------------------ */

static void look(gp_meter *m)
{
    gp_glance_look(&m->view, m->ranks, gp_shown_look(&m->shown), gp_seconds() - m->start);
}

/* The glance as JSON, for free(). NULL: out of memory. */
static char *json_of(const gp_glance *v, size_t *n)
{
    gp_memfile m;
    if (!gp_memfile_open(&m))
        return NULL;
    gp_glance_json(v, m.f);
    return gp_memfile_close(&m, n);
}

/* Once a second, and at the end. */
static void say(gp_meter *m)
{
    const gp_glance *v = &m->view;
    bool sends = m->socket && gp_socket_clients(m->socket);
    char behind[64] = "";
    if (gp_is_behind(v))
        snprintf(behind, sizeof behind, ", rank %d is behind with %" PRIu64, v->behind, v->behind_done);
    if (m->how == GP_PROGRESS_PLAIN && !v->ended)
        fprintf(stderr, "gpipe: %" PRIu64 " frame%s%s, %.0f frames/s, %.0f s%s%s\n", v->done ? v->done : v->in,
                gp_plural((int64_t)(v->done ? v->done : v->in)), gp_none_done(v), v->frames_s, v->seconds, behind,
                v->syncing ? ", syncing to disk" : "");
    if (m->how == GP_PROGRESS_JSON) {
        gp_glance_json(v, gp_say_begin());
        gp_say_end();
    }
    size_t n = 0;
    char *text = sends ? json_of(v, &n) : NULL;
    if (text)
        gp_socket_send(m->socket, text, n);
    free(text);
}

/* A service is ready when its run is set up. */
static void tell_manager(gp_meter *m, bool second)
{
    const gp_glance *v = &m->view;
    uint64_t n = v->done ? v->done : v->in;
    if (!m->service)
        return;
    if (!m->ready && v->nstages)
        m->ready = gp_service_tell(true, "READY=1");
    if (!m->stopping && (gp_signals_level() || v->ended))
        m->stopping = gp_service_tell(true, "STOPPING=1");
    if (second)
        gp_service_tell(false, "WATCHDOG=1\nSTATUS=%" PRIu64 " frame%s%s, %.0f frames/s%s%.100s%s", n, gp_plural((int64_t)n),
                        gp_none_done(v), v->frames_s, v->bound >= 0 ? ", '" : "",
                        v->bound >= 0 ? v->stage[v->bound].is.name : "", v->bound >= 0 ? "' holds back the rest" : "");
}

/* Without a descriptor for it the knocking would not end: it has to wait. */
static void let_in(gp_meter *m, struct pollfd *stop)
{
    size_t n = 0;
    look(m);
    char *text = json_of(&m->view, &n);
    if (!text || !gp_socket_accept(m->socket, text, n))
        poll(stop, 1, DRAW_MS);
    free(text);
}

/* Who asks for frames gets a thread, who asks for settings is answered by the retuner. */
static void hear(gp_meter *m)
{
    char *line;
    int fd;
    while (m->socket && (fd = gp_socket_take(m->socket, &line)) >= 0)
        if (gp_viewers_is_for(line))
            gp_viewers_take(m->viewers, fd, line);
        else
            gp_retuner_ask(m->retuner, fd, line);
}

void gp_meter_next(gp_meter *m, const gp_pipeline *p)
{
    if (m)
        atomic_store(&m->shown.next, p), gp_viewers_next(m->viewers, p);
}

static void *meter_thread(void *arg)
{
    gp_meter *m = arg;
    struct pollfd p[2] = { { m->stop_fd, POLLIN, 0 }, { -1, POLLIN, 0 } };
    double draw = DRAW_MS, next_say = SAY_MS, next = LOOK_MS;      /* ms from the start */
    if (m->socket)
        p[1].fd = gp_socket_fd(m->socket);
    for (;;) {
        bool watched = m->how != GP_PROGRESS_NONE || m->service || gp_socket_clients(m->socket);
        double now = 1e3 * (gp_seconds() - m->start);
        int wait = !watched ? -1 : now < next ? (int)(next - now) + 1 : 0;
        int ready = poll(p, 2, wait);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0 || p[0].revents)     /* without memory for poll nothing more is shown */
            return NULL;
        if (p[1].revents)
            let_in(m, p);
        now = 1e3 * (gp_seconds() - m->start);
        if (now < next)
            continue;
        look(m);
        gp_socket_flush(m->socket);
        hear(m);
        next = now + LOOK_MS;
        if (m->how == GP_PROGRESS_BAR && now >= draw) {
            lines_draw(&m->view);
            draw = now + DRAW_MS;
        }
        tell_manager(m, now >= next_say);
        if (now >= next_say) {
            say(m);
            next_say += SAY_MS * (1 + (double)(long)((now - next_say) / SAY_MS));
        }
    }
}

/* ---- start and stop -------------------------------------------------- */

static bool writes_stdout(const gp_pipeline *p)
{
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++)
        if (s.writes && !strcmp(s.writes, "stdout"))
            return true;
    return false;
}

/* What is drawn would be in the middle of data on the same terminal. */
static gp_progress decide(gp_progress how, const gp_pipeline *p)
{
    const char *term = getenv("TERM");
    if (how != GP_PROGRESS_AUTO)
        return how;
    if (!isatty(STDERR_FILENO)
        || (isatty(STDOUT_FILENO) && writes_stdout(p)))
        return GP_PROGRESS_NONE;
    return !term || !*term || !strcmp(term, "dumb") ? GP_PROGRESS_PLAIN : GP_PROGRESS_BAR;
}

gp_meter *gp_meter_start(gp_ranks *us, const gp_pipeline *p, gp_progress how, gp_socket *socket,
                         struct gp_retuner *retuner)
{
    bool service = gp_service_reload_fd() >= 0;
    how = service && how == GP_PROGRESS_AUTO ? GP_PROGRESS_NONE : decide(how, p);
    gp_meter *m = how == GP_PROGRESS_NONE && !socket && !service ? NULL : calloc(1, sizeof *m);
    if (!m)
        return NULL;
    gp_shown_begin(&m->shown, p);
    m->ranks = us, m->retuner = retuner, m->how = how, m->socket = socket, m->service = service, m->start = gp_seconds();
    m->viewers = socket ? gp_viewers_new(p) : NULL;
    m->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (how == GP_PROGRESS_BAR)
        lines_begin();
    if (m->stop_fd < 0 || gp_thread_start(&m->thread, meter_thread, m)) {
        if (m->stop_fd >= 0)
            close(m->stop_fd);
        if (how == GP_PROGRESS_BAR)
            lines_end();
        gp_viewers_free(m->viewers);
        free(m);
        return NULL;
    }
    return m;
}

void gp_meter_stop(gp_meter *m)
{
    if (!m)
        return;
    eventfd_write(m->stop_fd, 1);
    pthread_join(m->thread, NULL);
    close(m->stop_fd);
    gp_viewers_free(m->viewers);
    look(m);
    m->view.ended = true;
    tell_manager(m, false);
    if (m->how == GP_PROGRESS_BAR)
        lines_end();
    gp_socket_drain(m->socket);
    say(m);
    gp_glance_free(&m->view);
    free(m);
}

static void say_summary(const gp_account *a, int n, double seconds, gp_outcome outcome, int status,
                        const char *verdict)
{
    gp_json j = { .f = gp_say_begin(), .level = 3 };   /* all on one line */
    gp_json_put(&j, "{account: {outcome: %s, exit: %d, seconds: %g", gp_outcome_text(outcome), status, seconds);
    gp_accounts_json(&j, a, n, "cancelled");
    gp_json_put(&j, "verdict: %s}}", *verdict ? verdict : NULL);
    fputc('\n', j.f);
    gp_say_end();
}

/* " (3 late, 5 for lack of room)": of those that were dropped. */
static const char *why_text(const gp_account *a, char buf[120])
{
    const struct { uint64_t n; const char *why; } of[] = { { a->late, "late" }, { a->lost, "lost" }, { a->full, "for lack of room" } };
    int n = 0;
    *buf = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].n)
            n += snprintf(buf + n, 120 - (size_t)n, "%s%" PRIu64 " %s", n ? ", " : " (", of[i].n, of[i].why);
    if (n)
        snprintf(buf + n, 120 - (size_t)n, ")");
    return buf;
}

void gp_print_summary(gp_ranks *us, const gp_pipeline *p, double s, gp_outcome outcome, int status,
                      const char *verdict)
{
    gp_counters now = { 0 };
    gp_counters_read(&now, p);
    gp_account *a = now.source;
    int n = now.nsources;
    gp_account few[16];
    const int most = sizeof few / sizeof *few;
    if (!n && (n = gp_accounts(p, few, most)) > 0)     /* no memory is left: without it, then */
        a = few, n = n < most ? n : most;
    gp_ranks_sum(us, a, n);
    if (!gp_ranks_is_first(us))
        n = 0;
    else if (gp_says_json())
        say_summary(a, n, s, outcome, status, verdict);
    for (int i = 0; i < n && !gp_says_json(); i++) {
        double rate = s > 0 ? (double)gp_frames_done(&a[i], 1) / s : 0;
        char faulty[40] = "", why[120];
        if (a[i].faulty)
            snprintf(faulty, sizeof faulty, " (%" PRIu64 " faulty)", a[i].faulty);
        fprintf(stderr, "gpipe: %s%s%" PRIu64 " frame%s in, %" PRIu64 " out, %" PRIu64
                " dropped%s, %" PRIu64 " failed, %" PRIu64 " cancelled%s in %.3f s (%.*f frames/s)\n",
                n > 1 ? a[i].source : "", n > 1 ? ": " : "", a[i].in, gp_plural((int64_t)a[i].in), a[i].out, a[i].dropped,
                why_text(&a[i], why), a[i].failed, a[i].cancelled, faulty, s, rate > 0 && rate < 10 ? 2 : 0, rate);
    }
    gp_counters_free(&now);
}
