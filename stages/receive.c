/* receive.c - frames of other programs from the network, by ZeroMQ: messages as `send` makes them, see zmq/wire.h.
 *
 * Numbers that are missing are holes before the frame that shows it. Of a message that makes no frame, whatever is in it,
 * the frame fails; none is kept back, and none is trusted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/table.h"
#include "cut.h"
#include "one_by_one.h"
#include "wire.h"
#include "zmq_library.h"

enum { MAX_RUN = 32, PARTS = 3, GONE = 8, MOST_NAMES = 100000, LOST_MOST = 1 << 24 };    /* what jumps further begins anew */
enum { PULL, SUB };
enum { HOLE, SKIP };

struct opts {
    gp_zmq_where where;
    const char *topic;
    int64_t senders, frames;
    int pattern, missing;
    bool reopen;
    unsigned varies;           /* of the output */
};

struct one {                   /* who sends */
    char id[GP_WIRE_SENDER];
    bool numbered, ended;
    uint64_t next;             /* the number that comes next, if it has any; */
    uint64_t heard;            /* ... the message that it sent last; 0: there is no such sender */
};

struct receiver {
    gp_zmq_socket z;
    gp_type type;
    gp_zmq_msg part[PARTS];
    int parts;                 /* of the message that is there; those beyond PARTS count, and are gone */
    char why[GP_WHY];          /* ... of which the header is good, but not the rest: why; else empty */
    bool is_held;              /* ... which is that of a frame, and waits until these holes are made: */
    uint64_t dropped, lost;
    gp_wire wire;
    struct one *one; int64_t ones, known;  /* opts.senders, and some that have gone, of whom messages may be left */
    int64_t ends;
    uint64_t messages, anew, missing, unnamed;
    gp_arena arena;            /* of names, which live as long as the stage */
    gp_table name;
};

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)(uintptr_t)s->opts;
    if (!s->out[0].dtype || !s->out[0].ndim)
        return gp_shape_fail(s, NULL, "what comes is not declared: declare dtype and shape of the output under 'buffers:'");
    if (s->partial)
        return true;
    if (o->pattern != SUB && !gp_shape_without(s, "topic", "'pattern: pull'"))
        return false;
    o->varies = s->out_varies ? s->out_varies[0] : 0;
    s->known.frames = o->frames;
    s->endless = o->reopen && !o->frames;
    s->once = true;
    return gp_zmq_shape(s, &o->where);
}

static void drop_parts(struct receiver *r)
{
    for (int i = 0; i < PARTS; i++)
        gp_zmq.msg_close(&r->part[i]), gp_zmq.msg_init(&r->part[i]);
}

static void close_receiver(void *state)
{
    struct receiver *r = state;
    if (!r)
        return;
    for (int i = 0; r->z.ctx && i < PARTS; i++)
        gp_zmq.msg_close(&r->part[i]);
    gp_zmq_close(&r->z);
    gp_table_free(&r->name);
    gp_arena_free(&r->arena);
    free(r->one), free(r);
}

static bool open_receiver(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    struct receiver *r = calloc(1, sizeof *r);
    *state = r;
    if (!r || !(r->one = calloc((size_t)o->senders + GONE, sizeof *r->one)))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    r->type = g->out[0], r->ones = o->senders + GONE;
    bool ok = gp_zmq_open(&r->z, g, &o->where, o->pattern == SUB ? GP_ZMQ_SUB : GP_ZMQ_PULL, &r->type, o->topic);
    for (int i = 0; r->z.ctx && i < PARTS; i++)
        gp_zmq.msg_init(&r->part[i]);
    return ok;
}

/* ---- messages ----------------------------------------------------------- */

/* Takes the one that is there. False: errno. */
static bool take(struct receiver *r)
{
    gp_zmq_msg more;
    bool go = true;
    drop_parts(r);
    for (r->parts = 0; go; r->parts++) {
        gp_zmq_msg *m = r->parts < PARTS ? &r->part[r->parts] : &more;
        if (m == &more)
            gp_zmq.msg_init(m);
        int n;
        while ((n = gp_zmq.msg_recv(m, r->z.socket, GP_ZMQ_DONTWAIT)) < 0 && errno == EINTR) {}
        int error = errno;
        go = n >= 0 && gp_zmq.msg_more(m);
        if (m == &more)
            gp_zmq.msg_close(m);
        errno = error;
        if (n < 0)
            return false;
    }
    r->messages++;
    return true;
}

static bool is_text(gp_zmq_msg *m, const char *text)
{
    return gp_zmq.msg_size(m) == strlen(text) && !memcmp(gp_zmq.msg_data(m), text, strlen(text));
}

/* Reads what was taken. False: why it is none that has a number, or an end. */
static bool understand(struct receiver *r, gp_call *c, char why[GP_WHY])
{
    const struct opts *o = c->opts;
    const char *const *keys;
    int nkeys = gp_meta_keys(c, &keys), first = o->topic != NULL;
    gp_zmq_msg *header = &r->part[first];
    if (r->parts <= first)
        return gp_why(why, "has no header behind its topic");
    if (!gp_wire_read(&r->wire, gp_zmq.msg_data(header), gp_zmq.msg_size(header), keys, nkeys, why))
        return false;
    int want = first + (r->wire.end ? 1 : 2);
    *r->why = 0;
    if (r->parts != want)
        gp_why(r->wire.end ? why : r->why, "has %d part%s, and it is one of %d", r->parts, r->parts == 1 ? "" : "s", want);
    else if (!r->wire.end)
        gp_wire_fits(&r->wire, gp_zmq.msg_size(&r->part[first + 1]), r->why);
    return r->parts == want || !r->wire.end;
}

static struct one *find_sender(struct receiver *r, const struct opts *o)
{
    struct one *to = &r->one[0];
    for (int64_t i = 0; i < r->ones; i++) {
        struct one *s = &r->one[i];
        if (s->heard && !strcmp(s->id, r->wire.sender))
            return s;
        to = s->heard < to->heard ? s : to;
    }
    r->anew += ++r->known > o->senders && !r->wire.end;
    *to = (struct one){ .heard = 0 };
    memcpy(to->id, r->wire.sender, sizeof to->id);
    return to;
}

/* Finds out which frames are missing before this message. */
static void follow(struct receiver *r, const struct opts *o)
{
    const gp_wire *w = &r->wire;
    struct one *s = find_sender(r, o);
    s->heard = r->messages;
    bool follows = s->numbered && w->numbered;
    if (follows && (w->frame < s->next || w->frame - s->next > LOST_MOST)) {
        r->anew++;
    } else if (follows && o->missing == HOLE) {
        uint64_t missing = w->frame - s->next;
        r->dropped = w->dropped < missing ? w->dropped : missing;
        r->lost = missing - r->dropped;
        r->missing += r->lost;
    }
    if (w->numbered)
        s->next = w->frame + !w->end, s->numbered = true;
    if (w->end && (!s->ended || !*s->id))
        r->ends++, s->ended = true;
    if (w->end && o->reopen)
        r->ends = 0, s->numbered = s->ended = false;
}

static gp_status is_wrong(const struct receiver *r, gp_call *c, const gp_frame *f, const char *why)
{
    const struct opts *o = c->opts;
    gp_fail(c->errs, GP_E_RUN, o->where.at, "stage '%s', frame %llu: message %llu %s", c->name,
            (unsigned long long)f->index, (unsigned long long)r->messages, why);
    return GP_FAILED;
}

/* The next message. GP_OK: it has the number of a frame; GP_DROP: it has none, and is done with. */
static gp_status next_message(struct receiver *r, gp_call *c, const gp_frame *f, bool first)
{
    const struct opts *o = c->opts;
    char why[GP_WHY];
    int events;
    gp_status s;
    while (!((events = gp_zmq_events(&r->z)) & GP_ZMQ_IN))
        if (r->ends >= o->senders)     /* what was there, of one that had gone before, is not lost */
            return GP_END;
        else if (!first)
            return GP_AGAIN;
        else if ((s = gp_wait_or_pause(c, r->z.fd, -1)) != GP_OK)
            return s;
    if (events < 0 || !take(r)) {
        if (events >= 0 && errno == EAGAIN)
            return GP_DROP;
        gp_fail(c->errs, GP_E_RUN, o->where.at, "stage '%s' cannot receive: %s", c->name, gp_zmq.strerror(errno));
        return GP_FAILED;
    }
    if (o->topic && !is_text(&r->part[0], o->topic))
        return GP_DROP;                /* one that only begins so */
    if (!understand(r, c, why))
        return is_wrong(r, c, f, why);
    follow(r, o);
    return r->wire.end ? GP_DROP : GP_OK;
}

/* ---- frames ------------------------------------------------------------- */

/* May a frame be so? A shorter one has fewer rows, as the end of a file has. */
static bool fits(const struct receiver *r, const struct opts *o)
{
    const gp_type *is = &r->wire.type, *most = &r->type;
    bool ok = is->dtype == most->dtype && is->ndim == most->ndim;
    for (int k = 0; ok && k < is->ndim; k++)
        ok = k == 0 || o->varies >> k & 1 ? is->dim[k] <= most->dim[k] : is->dim[k] == most->dim[k];
    return ok;
}

static const char *keep_name(struct receiver *r)
{
    const char *volatile name = NULL;
    if (!*r->wire.name)
        return NULL;
    const gp_entry *e = gp_table_find(&r->name, r->wire.name);
    if (e)
        return e->name;
    GP_UNLESS_OOM(&r->arena) {
        if (r->name.n < MOST_NAMES) {
            const char *kept = gp_strdup(&r->arena, r->wire.name);
            name = gp_table_put(&r->name, kept, 0) ? kept : NULL;
        }
    }
    r->unnamed += !name;
    return name;
}

static gp_status hand_on(struct receiver *r, gp_call *c, gp_frame *f)
{
    const struct opts *o = c->opts;
    const gp_wire *w = &r->wire;
    const char *const *keys;
    char is[128], most[GP_BOUNDS_TEXT], number[40] = "";
    gp_zmq_msg *data = &r->part[o->topic ? 2 : 1];
    r->is_held = false;
    if (*r->why)
        return is_wrong(r, c, f, r->why);
    if (!fits(r, o)) {
        if (w->numbered)
            snprintf(number, sizeof number, ", number %llu of its sender,", (unsigned long long)w->frame);
        gp_fail(c->errs, GP_E_RUN, o->where.at, "stage '%s', frame %llu: what came%s is %s, and %s is declared", c->name,
                (unsigned long long)f->index, number, gp_type_text(&w->type, is), gp_bounds_text(&r->type, o->varies, most));
        return GP_FAILED;
    }
    f->out[0].type = w->type;
    if (gp_zmq.msg_size(data))
        memcpy(f->out[0].data, gp_zmq.msg_data(data), gp_zmq.msg_size(data));
    if (w->big)
        gp_swap(f->out[0].data, &w->type);
    f->time_ns = w->time_ns, f->name = keep_name(r);
    int nkeys = gp_meta_keys(c, &keys);
    for (int i = 0; i < nkeys; i++)
        if (w->has >> i & 1)
            gp_meta_set(c, f, keys[i], &w->value[i]);
    drop_parts(r);
    return GP_OK;
}

static gp_status make(gp_call *c, gp_frame *f, bool first)
{
    struct receiver *r = c->state;
    const struct opts *o = c->opts;
    if (o->frames && f->index >= (uint64_t)o->frames)
        return GP_END;
    for (;;) {
        if (r->dropped || r->lost) {
            bool lost = !r->dropped;
            (*(lost ? &r->lost : &r->dropped))--;
            return lost ? GP_LOST : GP_DROP;
        }
        if (r->is_held)
            return hand_on(r, c, f);
        gp_status s = next_message(r, c, f, first);
        if (s != GP_OK && s != GP_DROP)
            return s;
        r->is_held = s == GP_OK;
        if (s == GP_DROP && (s = first ? gp_wait_or_pause(c, -1, 0) : GP_AGAIN) != GP_OK)
            return s;                  /* whatever comes, the run may stop or pause */
    }
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return gp_one_by_one(c, f, n, false, make);
}

static bool finish(gp_call *c)
{
    const struct receiver *r = c->state;
    const struct opts *o = c->opts;
    const gp_oddity odd[] = {
        { r->missing, "lost on the way, and are holes" }, { r->anew, "another sender, or numbers that begin anew" },
        { r->unnamed, "without their name, as there were too many names" } };
    char of[300];
    snprintf(of, sizeof of, "stage '%s': of the frames", c->name);
    gp_warn_of(c, o->where.at, of, odd, sizeof odd / sizeof *odd);
    return true;
}

static const gp_port out[] = { { "out", .help = "frames, as declared under 'buffers:'" }, { 0 } };

static const gp_opt options[] = {
    GP_ZMQ_WHERE(struct opts),
    { GP_ENUM(struct opts, pattern), .def = "pull", .choices = "pull|sub",
      .help = "pull: from one who pushes, of whose frames others that pull have theirs; sub: from one who publishes" },
    { GP_TEXT(struct opts, topic), .help = "sub: only messages with this text in front" },
    { GP_INT(struct opts, senders), .def = "1", .min = 1, .max = 10000,
      .help = "how many send: the stream has ended when so many have" },
    { GP_BOOL(struct opts, reopen), .help = "when the stream has ended, wait for the next sender" },
    { GP_ENUM(struct opts, missing), .def = "hole", .choices = "hole|skip",
      .help = "numbers that a sender leaves out: are frames that were lost; or are none of this one's, as of several "
              "that pull" },
    { GP_INT(struct opts, frames), .min = 0, .max = 1e18, .unit = "frames", .help = "stop after so many; 0: all" },
    { 0 }
};

const gp_kind gp_kind_receive = {
    GP_KIND("receive"), .field = "files",
    .also = "zmq zeromq pull sub subscribe",
    .help = "frames of other programs from the network, by ZeroMQ",
    .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN, .any_shape = true,
    .shape = shape, .open = open_receiver, .run = run, .finish = finish, .close = close_receiver,
};
