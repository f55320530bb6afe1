/* resume.c - how far a run has come is noted in a file ('resume'), so that the next run begins there if this one is
 * broken off, by whatever.
 *
 * What the file says is true at any time: what sinks have is asked first, then all that was written is put on disk, and
 * then the file is replaced. Of the frames behind that, some may be written, too, which are written once more. When the
 * run comes to its end the file is removed. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/filetable.h"
#include "base/num.h"
#include "base/table.h"
#include "base/thread.h"
#include "run/host.h"
#include "run/setup.h"

enum {
    LEAST_MS = 20, MOST_MS = 2000,     /* between two notes; */
    SHARE = 9,                 /* ... and in between this many times as long as a note takes */
};

typedef struct gp_resume {
    gp_run *run;
    gp_saved *saved;           /* of each stage, as the file said; NULL: there was none */
    gp_outfile file;
    uint64_t id;
    uint64_t states;           /* behind how many frames its states are saved; 0: they begin anew; */
    uint64_t *of, *of_next;    /* ... of each buffer, a number of its bytes then, and of those that are saved next */
    pthread_t thread;
    bool started, stop;
    pthread_mutex_t lock, noting;
    pthread_cond_t wake;
    char *next;                /* room for what it is to say; with `noting`, as what follows: */
    char last[];               /* what the file says, room() bytes */
} gp_resume;

static bool failed(const gp_run *run, gp_errs *errs, const char *why)
{
    return gp_fail(errs, GP_E_RUN, run->graph->resume_at, "'%s' %s", run->graph->resume, why);
}

static uint64_t mixed(uint64_t h, uint64_t more)
{
    h = (h ^ more) * 0x9e3779b97f4a7c15;
    return h ^ h >> 32;
}

static uint64_t of_status(uint64_t h, const struct stat *st)
{
    return mixed(mixed(mixed(h, (uint64_t)st->st_size), (uint64_t)st->st_mtim.tv_sec), (uint64_t)st->st_mtim.tv_nsec);
}

static _Thread_local uint64_t all_within;

static int add_within(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    all_within += type == FTW_NS ? gp_text_hash(path) : of_status(gp_text_hash(path), st);
    return 0;
}

/* A file that is read, by its name, its size and when it was written; a folder, which is a store of chunks, by all that is
 * in it, in whichever order. */
static uint64_t of_file(uint64_t h, const char *path)
{
    struct stat st = { .st_size = -1 };
    stat(path, &st);
    all_within = 0;
    if (S_ISDIR(st.st_mode))
        nftw(path, add_within, 16, 0);
    return mixed(of_status(mixed(h, gp_text_hash(path)), &st), all_within);
}

/* A constant that stands in the pipeline. */
static uint64_t of_numbers(uint64_t h, const gp_buffer *b)
{
    const gp_num *x = b->numbers ? b->numbers : &b->value;
    for (int64_t i = 0, n = b->numbers ? gp_count(&b->type) : 1; i < n; i++) {
        uint64_t bits = 0;             /* an element has at most 8 bytes */
        gp_num_store(&bits, &x[i], b->type.dtype);
        h = mixed(h, bits);
    }
    return h;
}

/* What decides which frames there are, and what is made of them; but not how many. */
static uint64_t identify(const gp_graph *g)
{
    uint64_t h = g->outside;
    for (int i = 0; i < g->ndigests; i++)
        h = mixed(mixed(h, gp_text_hash(g->digest[i].stage)), gp_text_hash(g->digest[i].of));
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        h = mixed(h, gp_text_hash(s->name));
        for (int k = 0; k < s->nin + s->nout; k++)
            h = mixed(h, (uint64_t)(k < s->nin ? s->in[k] : s->out[k - s->nin]));
        for (int k = 0; k < s->nreads; k++)
            h = of_file(h, s->reads[k]);
    }
    for (int i = 0; i < g->nbuffers; i++) {
        char text[128];
        h = mixed(h, gp_text_hash(gp_type_text(&g->buffer[i].type, text)));
        h = g->buffer[i].path ? of_file(h, g->buffer[i].path) : h;
        h = gp_is_const(&g->buffer[i]) && !g->buffer[i].path ? of_numbers(h, &g->buffer[i]) : h;
    }
    for (int i = 0; i < g->nprologue; i++)
        for (int k = 0; k < g->prologue[i].nreads; k++)
            h = of_file(h, g->prologue[i].reads[k]);
    return h;
}

/* ---- the file --------------------------------------------------------- */

static const char head[] = "gpipe resume 1";

static size_t room(const gp_graph *g)
{
    size_t n = 100;
    for (int i = 0; i < g->nstages; i++)
        n += strlen(g->stage[i].name) + 100;
    return n + 17 * (size_t)g->nbuffers;
}

static const gp_stage *sink_of(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].nout && !strcmp(g->stage[i].name, name))
            return &g->stage[i];
    return NULL;
}

/* False: a sink has had more frames than there are. */
static bool fits(const gp_resume *r)
{
    const gp_graph *g = r->run->graph;
    uint64_t most = 0;
    for (int i = 0; i < g->nstages; i++)
        most = !g->stage[i].nout && r->saved[i].next > most ? r->saved[i].next : most;
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].nin && g->stage[i].known.frames && (uint64_t)g->stage[i].known.frames < most)
            return false;
    return true;
}

static bool has_states(const gp_graph *g)
{
    bool has = false;
    for (int i = 0; i < g->nbuffers; i++)
        has |= g->buffer[i].save_every > 0;
    return has;
}

static bool parse_states(gp_resume *r, const char *line)
{
    const gp_graph *g = r->run->graph;
    int n = -1, more = 0;
    bool ok = line && sscanf(line, "states %" SCNu64 "%n", &r->states, &n) == 1;
    for (int i = 0; ok && i < g->nbuffers; i++, n += more, more = 0)
        ok = !g->buffer[i].save_every || sscanf(line + n, " %" SCNx64 "%n", &r->of[i], &more) == 1;
    return ok && !line[n];
}

/* A line for the states, if there are any, and one for each sink. */
static bool parse(gp_resume *r, char *text)
{
    const gp_graph *g = r->run->graph;
    char *line = strtok_r(text, "\n", &text);
    uint64_t id, least = UINT64_MAX;
    int at = -1, sinks = 0, n;
    if (!line || strncmp(line, head, strlen(head)) != 0 || sscanf(line + strlen(head), "%" SCNx64 "%n", &id, &at) != 1
        || line[strlen(head) + (size_t)at] || id != r->id)
        return false;
    if (has_states(g) && !parse_states(r, strtok_r(NULL, "\n", &text)))
        return false;
    while ((line = strtok_r(NULL, "\n", &text))) {
        gp_saved s;
        n = -1;
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &s.next, &s.own[0], &s.own[1], &s.own[2], &n) != 4
            || n < 0)
            return false;
        const gp_stage *sink = sink_of(g, line + n);
        if (!sink)
            return false;
        r->saved[sink - g->stage] = s;
        least = s.next < least ? s.next : least;
        sinks++;
    }
    for (int i = 0; i < g->nstages; i++)
        sinks -= !g->stage[i].nout;
    ((gp_graph *)g)->from = has_states(g) ? r->states : least;
    return !sinks && g->from <= least;
}

static bool read_file(gp_resume *r, gp_errs *errs)
{
    const gp_graph *g = r->run->graph;
    size_t most = room(g);
    FILE *f = fopen(g->resume, "re");
    if (!f)
        return errno == ENOENT || failed(r->run, errs, gp_strerror(errno));
    size_t n = fread(r->last, 1, most - 1, f);
    fclose(f);
    r->last[n] = 0;
    r->saved = calloc((size_t)g->nstages, sizeof *r->saved);
    if (!r->saved)
        return gp_fail(errs, GP_E_RESOURCE, g->resume_at, "out of memory");
    bool ok = parse(r, r->last);
    r->last[0] = 0;
    if (!ok)
        return failed(r->run, errs, "notes how far another pipeline has come, or this one with other files: to begin from the "
                      "first frame, remove it");
    if (!fits(r))
        return failed(r->run, errs, "notes more frames than there are by now: to begin from the first one, remove it");
    return gp_fail(errs, GP_E_WARN, g->resume_at, "the run goes on at frame %llu, as '%s' says", (unsigned long long)g->from,
                   g->resume), true;
}

/* ---- notes ------------------------------------------------------------ */

static size_t put_states(const gp_resume *r, char *text)
{
    size_t n = (size_t)sprintf(text, "states %" PRIu64, r->states);
    for (int i = 0; i < r->run->graph->nbuffers; i++)
        n += r->run->graph->buffer[i].save_every ? (size_t)sprintf(text + n, " %016" PRIx64, r->of[i]) : 0;
    text[n] = '\n';
    return n + 1;
}

/* False: nothing new; or the run gives up frames by now, so that who has had them has not written them; or not all sinks
 * have what the states are saved behind. */
static bool collect(gp_resume *r, char *text)
{
    gp_run *run = r->run;
    bool has = true;
    size_t n = (size_t)sprintf(text, "%s %016" PRIx64 "\n", head, r->id);
    n += has_states(run->graph) ? put_states(r, text + n) : 0;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (p->kind != GP_ACTOR_HOST || p->nout || !p->stage || p->stage->nout)
            continue;
        long k = p->stage - run->graph->stage;
        gp_saved s = { .next = gp_actor_number(p, atomic_load(&p->host->head)) };
        if (r->saved && r->saved[k].next > s.next)
            s.next = r->saved[k].next;
        if (p->stage->kind->save)
            p->stage->kind->save(run->state[k], &s);
        has &= s.next >= r->states;
        n += (size_t)sprintf(text + n, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", s.next, s.own[0], s.own[1],
                             s.own[2], p->stage->name);
    }
    return has && atomic_load(&run->level) < 2 && strcmp(text, r->last) != 0;
}

static bool put(gp_resume *r, const char *text, char why[GP_WHY])
{
    struct iovec v = { (char *)text, strlen(text) };
    bool ok = gp_outfile_open(&r->file, r->run->graph->resume, why) && gp_write_all(r->file.fd, &v, 1, why)
           && gp_outfile_commit(&r->file, why);
    gp_outfile_drop(&r->file);
    return ok;
}

/* With the lock; false: it has not. */
static bool note_all(gp_resume *r)
{
    char why[GP_WHY], *text = r->next;
    gp_errs errs = { .n = 0 };
    if (!collect(r, text))
        return false;
    gp_filetable_sync(r->run->pipeline->files, &errs);
    if (!errs.failed && !put(r, text, why))
        failed(r->run, &errs, why);
    if (errs.failed)
        gp_run_fail(r->run, &errs);
    strcpy(r->last, text);
    return !errs.failed;
}

static void note(gp_resume *r)
{
    pthread_mutex_lock(&r->noting);
    note_all(r);
    pthread_mutex_unlock(&r->noting);
}

static uint64_t of_state(const gp_buffer *b, const void *data)
{
    const char *p = data;
    uint64_t h = 0, part = 0;
    for (size_t left = gp_bytes(&b->type), n; left; left -= n, p += n) {
        n = left < sizeof part ? left : sizeof part;
        memcpy(&part, p, n);
        h = mixed(h, part);
    }
    return h;
}

void gp_resume_state(const gp_run *run, const gp_buffer *state, const void *data)
{
    run->resume->of_next[state - run->graph->buffer] = of_state(state, data);
}

bool gp_resume_is_state(const gp_run *run, const gp_buffer *state, const void *data)
{
    return run->resume->of[state - run->graph->buffer] == of_state(state, data);
}

static void swap_states(gp_resume *r, uint64_t *states)
{
    uint64_t was = r->states, *of = r->of;
    r->states = *states, r->of = r->of_next;
    *states = was, r->of_next = of;
}

bool gp_resume_states(gp_run *run, uint64_t frames)
{
    gp_resume *r = run->resume;
    pthread_mutex_lock(&r->noting);
    bool ok = r->states == frames;
    if (!ok) {
        swap_states(r, &frames);
        if (!(ok = note_all(r)))
            swap_states(r, &frames);
    }
    pthread_mutex_unlock(&r->noting);
    return ok;
}

static void *resume_main(void *arg)
{
    gp_resume *r = arg;
    for (bool stop = false; !stop;) {
        int64_t began = gp_now_ns();
        note(r);
        int64_t wait = (gp_now_ns() - began) * SHARE, least = LEAST_MS * 1000000LL, most = MOST_MS * 1000000LL;
        wait = wait < least ? least : wait > most ? most : wait;
        struct timespec till = gp_moment(gp_now_ns() + wait);
        pthread_mutex_lock(&r->lock);
        while (!r->stop && pthread_cond_timedwait(&r->wake, &r->lock, &till) != ETIMEDOUT)
            ;
        stop = r->stop;
        pthread_mutex_unlock(&r->lock);
        if (stop)
            note(r);
    }
    return NULL;
}

/* ---- a run ------------------------------------------------------------ */

bool gp_resume_open(gp_run *run, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    char why[GP_WHY];
    if (!g->resume || run->options.no_sinks)
        return true;
    gp_resume *r = run->resume = calloc(1, sizeof *r + 2 * room(g));
    if (!r)
        return gp_fail(errs, GP_E_RESOURCE, g->resume_at, "out of memory");
    r->of = calloc((size_t)g->nbuffers + 1, sizeof *r->of), r->of_next = calloc((size_t)g->nbuffers + 1, sizeof *r->of);
    pthread_mutex_init(&r->lock, NULL), pthread_mutex_init(&r->noting, NULL);
    gp_cond_init(&r->wake);
    ((gp_graph *)g)->from = 0;
    r->run = run, r->id = identify(g), r->next = r->last + room(g);
    r->file.by = gp_filetable_writer(run->files, "'resume'", (gp_loc){ 0 }, g->resume);
    r->file.durable = GP_DURABLE_FILE, r->file.is_sole = true;
    if (!r->file.by || !r->of || !r->of_next)
        return gp_fail(errs, GP_E_RESOURCE, g->resume_at, "out of memory");
    if (!gp_outfile_claim(&r->file, g->resume, why))
        return failed(run, errs, why);
    return r->file.in_place ? failed(run, errs, "is no regular file") : read_file(r, errs);
}

const gp_saved *gp_resume_saved(const gp_run *run, int stage)
{
    return run->resume && run->resume->saved && !run->graph->stage[stage].nout ? &run->resume->saved[stage] : NULL;
}

/* What is there before frame 0 is noted first: a file that frames are added to has another length from then on. */
void gp_resume_start(gp_run *run)
{
    gp_errs errs = { .n = 0 };
    gp_resume *r = run->resume;
    if (r)
        note(r);
    int e = r ? gp_thread_start(&r->thread, resume_main, r) : 0;
    if (e)
        gp_fail(&errs, GP_E_RESOURCE, run->graph->resume_at, "cannot start a thread: %s", gp_strerror(e));
    gp_run_fail(run, &errs);
    if (r)
        r->started = !e;
}

void gp_resume_stop(gp_run *run)
{
    gp_resume *r = run->resume;
    if (!r || !r->started)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    r->started = false;
}

bool gp_resume_done(gp_run *run, gp_errs *errs)
{
    if (!run->resume)
        return false;
    int bad = unlink(run->resume->file.path) && errno != ENOENT ? errno : gp_sync_folder(run->resume->file.path);
    if (bad)
        gp_fail(errs, GP_E_WARN, run->graph->resume_at, "'%s' cannot be removed, though the run is done: %s", run->graph->resume,
                gp_strerror(bad));
    return !bad;
}

void gp_resume_free(gp_run *run)
{
    gp_resume *r = run->resume;
    if (!r)
        return;
    gp_resume_stop(run);
    pthread_mutex_destroy(&r->lock), pthread_mutex_destroy(&r->noting);
    pthread_cond_destroy(&r->wake);
    free(r->saved), free(r->of), free(r->of_next);
    free(r);
}
