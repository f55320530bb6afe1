/* send.c - frames to other programs over the network, by ZeroMQ: a message for each, of a header (zmq/wire.h) and its
 * data.
 *
 * A hole is no message: the next one says how many frames before it were dropped here. The last message says that the
 * stream has ended, but not of a run that is stopped or fails, so that receivers wait for the next one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"
#include "one_by_one.h"
#include "wire.h"
#include "zmq_library.h"

enum { MAX_RUN = 32 };
enum { PUSH, PUB };

struct opts {
    gp_zmq_where where;
    const char *topic;
    int64_t receivers;
    int pattern;
};

struct sender {
    gp_zmq_socket z;
    char id[GP_WIRE_SENDER];
    FILE *f; char *header; size_t room;    /* in memory, from its beginning for each frame */
    uint64_t next, dropped;    /* 1 more than the last number; holes before the next frame that count as dropped */
    bool is_ready; size_t n;   /* the header of frame `ready` is made, which waits for room */
    uint64_t ready;
    const char *name; gp_loc at;           /* of the stage */
};

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)(uintptr_t)s->opts;
    if (s->partial)
        return true;
    if ((o->pattern != PUB && !gp_shape_without(s, "topic", "'pattern: push'"))
        || (o->pattern == PUB && !gp_shape_without(s, "receivers", "'pattern: pub', which tells the end to all")))
        return false;
    s->serial = true, s->any_length = true;
    return gp_zmq_shape(s, &o->where);
}

static void close_sender(void *state)
{
    struct sender *r = state;
    if (!r)
        return;
    gp_zmq_close(&r->z);
    if (r->f)
        fclose(r->f);
    free(r->header), free(r);
}

static bool open_sender(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    struct sender *r = calloc(1, sizeof *r);
    uint64_t id = (uint64_t)gp_now_ns();
    if ((*state = r))
        r->name = g->name, r->at = o->where.at;
    if (!r || !(r->f = open_memstream(&r->header, &r->room)))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) < 0)
        id += (uint64_t)(uintptr_t)r;
    snprintf(r->id, sizeof r->id, "%016llx", (unsigned long long)id);
    return gp_zmq_open(&r->z, g, &o->where, o->pattern == PUB ? GP_ZMQ_PUB : GP_ZMQ_PUSH, &g->in[0], NULL);
}

static bool failed(const struct opts *o, gp_call *c, int error)
{
    return gp_fail(c->errs, GP_E_RUN, o->where.at, "stage '%s' cannot send: %s", c->name, gp_zmq.strerror(error));
}

/* How long it is; 0: no memory. */
static size_t make_header(struct sender *r, gp_call *c, const gp_wire *w)
{
    const char *const *keys;
    int nkeys = gp_meta_keys(c, &keys);
    rewind(r->f);
    bool ok = gp_wire_write(r->f, w, keys, nkeys) && !fflush(r->f);
    long n = ok ? ftell(r->f) : 0;
    return n > 0 ? (size_t)n : 0;
}

static size_t header_of(struct sender *r, gp_call *c, const gp_frame *f)
{
    const char *const *keys;
    gp_wire w = { .type = f->in[0].type, .frame = f->index, .dropped = r->dropped, .time_ns = f->time_ns };
    int nkeys = gp_meta_keys(c, &keys);
    for (int i = 0; i < nkeys; i++)
        if (strcmp(keys[i], "time") && gp_meta_get(c, f, keys[i], &w.value[i]))
            w.has |= 1u << i;
    snprintf(w.name, sizeof w.name, "%s", f->name ? f->name : "");
    memcpy(w.sender, r->id, sizeof w.sender);
    return make_header(r, c, &w);
}

/* 1: sent; 0: not without waiting; -1: errno. */
static int put(const struct sender *r, const struct opts *o, size_t n, const gp_view *data)
{
    gp_zmq_part part[3];
    int parts = 0, events = o->pattern == PUSH ? gp_zmq_events(&r->z) : GP_ZMQ_OUT;
    if (events < 0 || !(events & GP_ZMQ_OUT))
        return events < 0 ? -1 : 0;
    if (o->topic)
        part[parts++] = (gp_zmq_part){ o->topic, strlen(o->topic) };
    part[parts++] = (gp_zmq_part){ r->header, n };
    if (data)
        part[parts++] = (gp_zmq_part){ data->data, gp_bytes(&data->type) };
    return gp_zmq_put(&r->z, part, parts);
}

static gp_status send_frame(gp_call *c, gp_frame *f, bool first)
{
    struct sender *r = c->state;
    const struct opts *o = c->opts;
    int sent;
    gp_status s;
    if (!r->is_ready || r->ready != f->index)
        r->n = header_of(r, c, f), r->ready = f->index, r->is_ready = r->n;
    if (!r->n) {
        gp_fail(c->errs, GP_E_RESOURCE, c->at, "stage '%s': out of memory", c->name);
        return GP_FAILED;
    }
    while (!(sent = put(r, o, r->n, &f->in[0])))
        if (!first)
            return GP_AGAIN;
        else if ((s = gp_wait_or_pause(c, r->z.fd, -1)) != GP_OK)
            return s;
    if (sent < 0) {
        failed(o, c, errno);
        return GP_FAILED;
    }
    r->is_ready = false, r->dropped = 0, r->next = f->index + 1;
    return GP_OK;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return gp_one_by_one(c, f, n, true, send_frame);
}

static bool skipped(gp_call *c, uint64_t index)
{
    struct sender *r = c->state;
    r->dropped += c->hole != GP_LOST;
    r->next = index + 1;
    return true;
}

/* With 'push' it is for one, who leaves. That another of several got it, as this one had no room, shows when so many have
 * left. With 'pub' it is for all that have room, as each message is. */
static bool send_end(struct sender *r, gp_call *c)
{
    enum { LOOK_NS = 100000000 };
    const struct opts *o = c->opts;
    gp_wire w = { .end = true, .frame = r->next, .dropped = r->dropped };
    memcpy(w.sender, r->id, sizeof w.sender);
    size_t n = make_header(r, c, &w);
    int64_t several = o->receivers > 1 ? o->receivers : 0;
    int sent = 0, gone = several ? gp_zmq_gone(&r->z) : 0;
    bool waits = true;
    if (!n)
        return gp_fail(c->errs, GP_E_RESOURCE, c->at, "stage '%s': out of memory", c->name);
    while (waits && sent >= 0 && gone >= 0 && (several ? gone < several : !sent && o->receivers)) {
        sent = put(r, o, n, NULL);
        if (sent > 0 && !several)
            break;
        waits = several ? gp_wait_until(c, gp_now_ns() + LOOK_NS) : gp_wait_fd(c, r->z.fd);
        gone = several ? gp_zmq_gone(&r->z) : 0;
    }
    return (sent >= 0 && gone >= 0) || failed(o, c, errno);
}

/* c: NULL where the run is over. */
static void drain(struct sender *r, gp_call *c, gp_errs *errs)
{
    if (r->z.ctx && r->next && !gp_zmq_drain(&r->z, c))
        gp_fail(errs, GP_E_WARN, r->at, "stage '%s': those who receive have not taken all that was sent: what is left is lost",
                r->name);
}

static bool finish(gp_call *c)
{
    struct sender *r = c->state;
    if (!gp_stopping(c) && !send_end(r, c))
        return false;
    drain(r, c, c->errs);
    return true;
}

static void break_off(void *state, const char *why, gp_errs *errs)
{
    (void)why;
    drain(state, NULL, errs);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };

static const gp_opt options[] = {
    GP_ZMQ_WHERE(struct opts),
    { GP_ENUM(struct opts, pattern), .def = "push", .choices = "push|pub",
      .help = "push: each frame goes to one of those who receive, and waits for room; pub: to all that are there, and not "
              "to one that has no room" },
    { GP_TEXT(struct opts, topic), .help = "pub: a text in front of each message, by which receivers choose" },
    { GP_INT(struct opts, receivers), .def = "1", .min = 0, .max = 10000,
      .help = "push: how many are told the end; of several each has to leave then, as 'receive' does" },
    { 0 }
};

const gp_kind gp_kind_send = {
    GP_KIND("send"), .field = "files",
    .also = "zmq zeromq push pub publish",
    .help = "frames to other programs over the network, by ZeroMQ",
    .in = in, .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN, .any_shape = true,
    .shape = shape, .open = open_sender, .run = run, .skipped = skipped, .finish = finish,
    .break_off = break_off, .close = close_sender,
};
