/* ranks.c - all frames of all ranks in one file, or to standard output, see writer.h.
 *
 * The first rank makes the file, and gives it its name at the end; each writes its own frames to it. Before that all
 * tell each other of the frames that they have, and how long these are. So all find the same places for them, in the
 * order of frames, with nothing left where a hole was, or the rows of a partial frame end. A frame has its place once
 * no rank can have one before it any more. After an error nothing is kept: nobody knows what others wrote by then. To
 * standard output frames go in the same order, by relay.c. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "base/npy.h"
#include "writer.h"

enum { RELAYED = 1 << 20 };            /* bytes that are sent at a time, about */
enum { THERE, ENDED, STOPPED };        /* STOPPED: it was asked to end before its frames did */

/* A rank tells this to all others: that it has `n` frames from firing `first` on, of so many bytes; HOLE: no frame. */
#define HOLE UINT64_MAX
typedef struct told { int64_t state; uint64_t first, n, bytes[GP_WRITE_RUN]; } told;

/* The first one tells this of the file. */
typedef struct shared { char name[NAME_MAX + 1]; uint64_t ino, head; } shared;

/* A frame, as the file has it. */
typedef struct piece { const char *data; size_t n; } piece;

/* Makes known to all which file it is. False: with `why`, or the run is over (*over). */
static bool reach(gp_writer *w, gp_call *c, bool *over, char why[GP_WHY])
{
    gp_outfile *f = &w->worker[0].file;
    shared mine = { .head = w->size };
    char path[PATH_MAX];
    struct stat st;
    *over = false;
    if (w->reached || w->relay)
        return true;
    if (!w->rank && w->nbegin) {
        if (!gp_ranges_put(w, w->begin, w->nbegin, 0, why))
            return false;
        mine.head = w->nbegin, w->nbegin = 0;
    }
    if (!w->rank && fstat(f->fd, &st))
        return gp_why(why, "cannot be written: %s", gp_strerror(errno));
    if (!w->rank) {
        strcpy(mine.name, f->tmp + gp_path_folder(f->tmp));
        mine.ino = st.st_ino;
    }
    const shared *of = gp_gather(c, &mine, sizeof mine);
    *over = !of;
    if (!of)
        return false;
    w->reached = true;
    w->size = w->end = of->head;
    return !w->rank || (gp_path_expand(path, w->o->path, 0, "", why) && gp_outfile_share(f, path, of->name, of->ino, why));
}

static bool any(const gp_writer *w, const told *of, int64_t state)
{
    for (int r = 0; r < w->ranks; r++)
        if (of[r].state == state)
            return true;
    return false;
}

/* Finds places for frames that lie before all those that a rank can still tell of. How many of them are this rank's;
 * `at`: their places. After a stop there are none, as the file ends with the first frame that is missing. */
static int place(gp_writer *w, const told *of, size_t at[GP_WRITE_RUN])
{
    uint64_t from = UINT64_MAX, to = UINT64_MAX;
    gp_write_relay *y = w->relay;
    int mine = 0;
    if (y)
        y->nparts = 0;
    for (int r = 0; r < w->ranks && !any(w, of, STOPPED); r++)
        if (of[r].state == THERE) {
            from = of[r].first < from ? of[r].first : from;
            to = of[r].first + of[r].n < to ? of[r].first + of[r].n : to;
        }
    for (uint64_t k = from; k < to; k++)
        for (int r = 0; r < w->ranks; r++) {
            if (of[r].state != THERE || k < of[r].first || k >= of[r].first + of[r].n)
                continue;
            if (r == w->rank)
                at[mine++] = w->end;
            if (of[r].bytes[k - of[r].first] == HOLE)
                continue;
            w->end += of[r].bytes[k - of[r].first];
            w->began = true;
            if (y)
                y->part[y->nparts++] = (gp_write_part){ r, of[r].bytes[k - of[r].first] };
        }
    return mine;
}

/* Are frames put together in memory before they are written? */
static bool encodes(const gp_writer *w)
{
    return w->relay || gp_write_is_text(w->o);
}

/* The rest of what is written of a frame that does not become text: all of it, where it is sent. */
static bool spell_bytes(gp_writer *w, const gp_view *in, char why[GP_WHY])
{
    char head[GP_NPY_HEADER_MAX];
    const char *before = gp_write_begins(w->o) ? gp_rowsfile_of(w->o->as)->before : "";
    size_t n = w->o->arrays ? gp_npy_header(&in->type, head, sizeof head) : 0;
    return gp_relay_add(w, before, strlen(before), why) && gp_relay_add(w, head, n, why)
        && gp_relay_add(w, in->data, gp_bytes(&in->type), why);
}

/* The frames as the file has them, up to the first that it cannot have. How many; 0 with an error. */
static int spell(gp_writer *w, gp_call *c, const gp_frame *f, int n, piece p[GP_WRITE_RUN], char why[GP_WHY])
{
    gp_growbuf *text = &w->worker[0].encoded;
    size_t at = 0;
    int k = 0;
    text->n = 0;
    for (; k < n && (!w->relay || text->n < RELAYED); k++) {
        const gp_view *in = &f[k].in[0];
        if (k && gp_writer_misfit(w->o, &f[k]))
            break;                     /* first those before it */
        if (!gp_writer_stacks(w, c, &f[k]))
            return 0;
        p[k] = (piece){ in->data, gp_bytes(&in->type) };
        if (!encodes(w))
            continue;
        if (!(gp_write_is_text(w->o) ? gp_writer_spell(w, c, &f[k], text, why) : spell_bytes(w, in, why))) {
            gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' %s", (unsigned long long)f[k].index, w->o->path, why);
            return 0;
        }
        p[k].n = text->n - at, at = text->n;
    }
    at = 0;
    for (int i = 0; i < k && encodes(w); at += p[i++].n)
        p[i].data = (const char *)text->data + at;
    return k;
}

static bool put(const gp_writer *w, const piece *p, size_t at, char why[GP_WHY])
{
    const char *before = gp_write_begins(w->o) ? gp_rowsfile_of(w->o->as)->before : "";
    size_t n = strlen(before);
    return gp_ranges_put(w, before, n, at, why) && gp_ranges_put(w, p->data, p->n, at + n, why);
}

/* The run is over, or MPI failed. */
static bool give_up(const gp_call *c, gp_frame *f, int before)
{
    f->status = c->errs->failed > before ? GP_FAILED : GP_STOPPED;
    return true;
}

/* To standard output. False: the run is over, or has an error. */
static bool pass_on(gp_writer *w, gp_call *c, const char *mine)
{
    char why[GP_WHY];
    gp_status s = gp_relay(w, c, mine, why);
    if (s == GP_FAILED)
        gp_fail(c->errs, errno == EPIPE ? GP_E_CLOSED : GP_E_RUN, w->o->at, "'%s' %s", w->o->path, why);
    return s == GP_OK;
}

bool gp_ranks_write(gp_writer *w, gp_call *c, gp_frame *f, int n)
{
    piece p[GP_WRITE_RUN];
    size_t at[GP_WRITE_RUN], more = gp_write_begins(w->o) && !w->relay ? strlen(gp_rowsfile_of(w->o->as)->before) : 0;
    char why[GP_WHY];
    bool over;
    int before = c->errs->failed, placed = 0;
    if (w->workers > 1 && !gp_wait_turn(c)) {
        f[0].status = GP_DROP;
        return true;
    }
    if (!reach(w, c, &over, why))
        return over ? give_up(c, f, before)
                    : gp_fail(c->errs, GP_E_RUN, w->o->at, "'%s' %s", w->o->path, why);
    int k = spell(w, c, f, n, p, why);
    if (!k)
        return false;
    told mine = { .state = THERE, .first = f[0].index / (uint64_t)w->ranks, .n = (uint64_t)k };
    for (int i = 0; i < k; i++)
        mine.bytes[i] = p[i].n + more;
    while (!placed) {
        const told *of = gp_gather(c, &mine, sizeof mine);
        if (!of)
            return give_up(c, f, before);
        placed = place(w, of, at);
        bool stopped = any(w, of, STOPPED);
        if (w->relay && !pass_on(w, c, p[0].data))
            return c->errs->failed == before && give_up(c, f, before);
        if (stopped)
            break;
    }
    for (int i = 0; i < placed && !w->relay; i++)
        if (!put(w, &p[i], at[i], why))
            return gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' %s", (unsigned long long)f[i].index, w->o->path,
                           why);
    for (int i = 0; i < k && !placed; i++)
        f[i].status = GP_DROP;
    if (placed ? placed < n : k < n)
        f[placed ? placed : k].status = GP_AGAIN;
    return true;
}

/* A rank that has holes alone for a while would have others wait. */
bool gp_ranks_skip(gp_call *c, uint64_t index)
{
    gp_writer *w = c->state;
    size_t at[GP_WRITE_RUN];
    char why[GP_WHY];
    bool over, stopped = false;
    int before = c->errs->failed, placed = 0;
    if (w->workers > 1 && !gp_wait_turn(c))
        return true;
    if (!reach(w, c, &over, why))
        return over ? c->errs->failed == before : gp_fail(c->errs, GP_E_RUN, w->o->at, "'%s' %s", w->o->path, why);
    told mine = { .state = THERE, .first = index / (uint64_t)w->ranks, .n = 1, .bytes = { HOLE } };
    while (!placed && !stopped) {
        const told *of = gp_gather(c, &mine, sizeof mine);
        if (!of)
            return c->errs->failed == before;
        placed = place(w, of, at);
        stopped = any(w, of, STOPPED);
        if (w->relay && !pass_on(w, c, NULL))
            return c->errs->failed == before;
    }
    return true;
}

/* This rank writes nothing more. What it wrote is where others see it, once the file is closed. */
static bool close_shared(gp_writer *w, char why[GP_WHY])
{
    gp_outfile *f = &w->worker[0].file;
    int bad = w->o->durable == GP_NOT_DURABLE ? 0 : gp_sync_file(f->fd);
    return bad ? gp_why(why, "cannot be written: %s", gp_strerror(bad)) : gp_outfile_commit(f, why);
}

/* The header says what all ranks wrote. */
static bool put_header(gp_writer *w, char why[GP_WHY])
{
    gp_type row = w->joined;
    row.dim[0] = 1;
    w->joined.dim[0] = (int64_t)((w->end - w->head) / gp_bytes(&row));
    return gp_writer_put_header(w, why);
}

bool gp_ranks_finish(gp_writer *w, gp_call *c)
{
    told mine = { .state = gp_stopping(c) ? STOPPED : ENDED };
    char why[GP_WHY];
    bool over, ok = reach(w, c, &over, why), more = ok;
    if (over)
        return false;
    while (more) {
        const told *of = gp_gather(c, &mine, sizeof mine);
        if (!of)
            return false;
        more = any(w, of, THERE);
        place(w, of, NULL);
        if (w->relay && !pass_on(w, c, NULL))
            return false;
    }
    w->size = w->end;
    if (w->relay)
        return ok && !w->rank;
    ok = ok && (!w->rank || close_shared(w, why));
    if (ok && !gp_gather(c, &ok, sizeof ok))           /* a rank in which it is not does not come here, and ends all */
        return false;
    ok = ok && (w->rank || w->o->as != GP_NPY || put_header(w, why));
    if (!ok)
        w->joined.dim[0] = 0;                          /* nothing is kept */
    return ok ? !w->rank : gp_fail(c->errs, GP_E_RUN, w->o->at, "'%s' %s", w->o->path, why);
}
