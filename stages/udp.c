/* udp.c - frames of the packets of a UDP stream (RFC 768), as instruments send them.
 *
 * A frame has so many packets as its bytes need. With a sequence number in each packet these find their places, whatever
 * the order in which they come: a window of frames is open at a time, and a frame is handed on when it has all packets,
 * or when one comes that is so far behind it that those which are missing will not come any more. The numbers of frames
 * follow from those of packets, so that what is lost is known: a frame of which nothing came is a hole. Nothing here
 * waits for room: what comes when there is none is lost in the kernel's buffer, and shows in the same way.
 *
 * A number that is far from the last one counts only once the packet behind it has the next number, as in RFC 3550,
 * A.1: then packets were lost, or the sender began anew. One packet that anybody sent does no harm. */
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/why.h"
#include "cut.h"
#include "one_by_one.h"

enum { BATCH = 64, MAX_RUN = 32, LARGEST = 65507, CONTROL = 64 };
enum { NEAR = 64, LOST_MOST = 1 << 24 };       /* packets: a jump is more than so many; what jumps further begins anew */
enum { NO_SEQUENCE, U8, U16, U32, U64 };
enum { LITTLE, BIG };
enum { FILL, DROP };

struct opts {
    const char *address, *interface;
    int64_t port, packet, header, trailer, sequence_at, reorder, receive_buffer, frames;
    int sequence, sequence_order, endian, incomplete;
    gp_loc at;                 /* of the port */
};

typedef struct slot {
    uint64_t n;                /* packets that are there */
    uint64_t sequence;         /* of the first of all, which may be lost */
    int64_t time_ns, came_ns;  /* when the first came: CLOCK_REALTIME, CLOCK_MONOTONIC */
} slot;

struct receiver {
    const struct opts *o;
    gp_type type;
    int fd;
    size_t whole, bytes;       /* of a packet, of a frame */
    uint64_t per_frame, reorder;
    slot *slot; size_t nslots;         /* frame f is in slot f % nslots: */
    unsigned char *there;      /* ... a byte for each packet, 1: it is there, */
    char *frames;              /* ... and its data */
    uint64_t next;             /* the frame that is handed on next */
    uint64_t high;             /* 1 more than the highest number of a packet; 0: there was none */
    /* Sequence numbers: */
    bool begun, waits;         /* packet number `last` had `last_seq`; it waits for the end of frame `first` of them */
    uint64_t last, last_seq, first, near;
    bool jumped;               /* a packet did, which had: */
    uint64_t jump_seq;
    char *jump;                /* its data; */
    bool is_due; uint64_t due; /* it counts, and has this number */
    /* Packets that were received, from `at` on: */
    struct mmsghdr msg[BATCH];
    struct iovec iov[BATCH];
    _Alignas(struct cmsghdr) char control[BATCH][CONTROL];
    char *data;
    int got, at;
    bool is_known; uint64_t number;    /* of the packet at `at`, which is too far ahead for now */
    int64_t time_ns, came_ns;
    uint64_t lost, late, odd, strays, restarts;
    uint32_t overflows;        /* as SO_RXQ_OVFL counts */
};

/* ---- what is asked for ---------------------------------------------------- */

/* The frames that are open at a time. */
static int64_t window_of(const struct opts *o, int64_t bytes)
{
    int64_t per_frame = bytes / o->packet, reorder = o->reorder ? o->reorder : per_frame;
    return o->sequence ? (reorder + per_frame - 1) / per_frame + 2 : 1;
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)(uintptr_t)s->opts;
    static const int width[] = { 0, 1, 2, 4, 8 };
    if (!s->out[0].dtype || !s->out[0].ndim)
        return gp_shape_fail(s, NULL, "what comes is not declared: declare dtype and shape of the output under 'buffers:'");
    int64_t bytes = (int64_t)gp_bytes(&s->out[0]), whole = o->header + o->packet + o->trailer;
    if (bytes % o->packet)
        return gp_shape_fail(s, "packet", "a frame has %lld bytes, which are no whole packets of %lld", (long long)bytes,
                             (long long)o->packet);
    if (o->packet % (int64_t)gp_dtype_size(s->out[0].dtype))
        return gp_shape_fail(s, "packet", "%lld bytes are no whole elements of %s", (long long)o->packet,
                             gp_dtype_name(s->out[0].dtype));
    if (whole > LARGEST)
        return gp_shape_fail(s, "packet", "'header', 'packet' and 'trailer' together are %lld bytes, and a UDP packet has "
                             "at most %d", (long long)whole, LARGEST);
    if (o->sequence && o->sequence_at + width[o->sequence] > whole)
        return gp_shape_fail(s, "sequence_at", "the sequence number ends at byte %lld of a packet, which has %lld bytes",
                             (long long)o->sequence_at + width[o->sequence], (long long)whole);
    const int64_t most = (int64_t)1 << 30, per_frame = bytes / o->packet, reorder = o->reorder ? o->reorder : per_frame;
    if (o->sequence && o->sequence < U64 && reorder + per_frame > (int64_t)1 << (8 * width[o->sequence] - 1))
        return gp_shape_fail(s, "sequence", "packets come in any order within %lld, the packets of a frame and 'reorder': "
                             "half of what a number of %d bits counts must be more", (long long)(reorder + per_frame),
                             8 * width[o->sequence]);
    if (window_of(o, bytes) > most / (bytes + 128))
        return gp_shape_fail(s, o->reorder ? "reorder" : NULL, "%lld frames of %lld bytes are open at a time, which need more "
                             "than 1 GiB", (long long)window_of(o, bytes), (long long)bytes);
    static const char *const of_sequence[] = { "sequence_at", "sequence_order", "reorder", "incomplete" };
    for (int i = 0; !o->sequence && i < 4; i++)
        if (!gp_shape_without(s, of_sequence[i], "packets without 'sequence'"))
            return false;
    o->at = gp_shape_loc(s, "port");
    s->known.frames = o->frames;
    s->endless = !o->frames;
    s->once = true;
    return true;
}

/* ---- the socket ------------------------------------------------------------ */

static bool is_group(const struct sockaddr *a)
{
    const struct sockaddr_in *four = (const void *)a;
    const struct sockaddr_in6 *six = (const void *)a;
    return a->sa_family == AF_INET ? IN_MULTICAST(ntohl(four->sin_addr.s_addr)) : IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
}

static bool join(int fd, const struct addrinfo *a, const struct opts *o)
{
    struct group_req g = { .gr_interface = o->interface ? if_nametoindex(o->interface) : 0 };
    if (o->interface && !g.gr_interface)
        return false;
    memcpy(&g.gr_group, a->ai_addr, a->ai_addrlen);
    return !setsockopt(fd, a->ai_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &g, sizeof g);
}

/* -1: errno says why. */
static int open_socket(const struct addrinfo *a, const struct opts *o)
{
    const int one = 1, none = 0, room = (int)o->receive_buffer;
    bool group = is_group(a->ai_addr);
    int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))        /* which needs CAP_NET_ADMIN */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof one);
    if (a->ai_family == AF_INET6)      /* IPv4 comes there, too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    if (group)                         /* others may listen, too */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && (!group || join(fd, a, o)))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool listen_at(struct receiver *r, const gp_open *g)
{
    const struct opts *o = r->o;
    struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST }, *a = NULL;
    char port[16];
    snprintf(port, sizeof port, "%lld", (long long)o->port);
    int e = getaddrinfo(o->address ? o->address : "::", port, &hints, &a);
    if (e)
        return gp_fail(g->errs, GP_E_RUN, o->at, "stage '%s': address '%s': %s", g->name, o->address, gai_strerror(e));
    if (o->interface && !is_group(a->ai_addr)) {
        freeaddrinfo(a);
        return gp_fail(g->errs, GP_E_SPEC, o->at, "stage '%s': 'interface' is of a multicast group, which '%s' is not",
                       g->name, o->address ? o->address : "all addresses");
    }
    r->fd = open_socket(a, o);
    freeaddrinfo(a);
    if (r->fd < 0 && !o->address && errno == EAFNOSUPPORT && !getaddrinfo("0.0.0.0", port, &hints, &a)) {
        r->fd = open_socket(a, o);
        freeaddrinfo(a);
    }
    return r->fd >= 0 || gp_fail(g->errs, GP_E_RESOURCE, o->at, "stage '%s': port %s of '%s': %s", g->name, port,
                                 o->address ? o->address : "all addresses", gp_strerror(errno));
}

static void close_receiver(void *state)
{
    struct receiver *r = state;
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    free(r->slot), free(r->there), free(r->frames), free(r->jump), free(r->data), free(r);
}

static bool open_receiver(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    struct receiver *r = calloc(1, sizeof *r);
    *state = r;
    bool ok = r;
    if (ok) {
        r->o = o, r->type = g->out[0], r->fd = -1, r->bytes = gp_bytes(&r->type);
        r->whole = (size_t)(o->header + o->packet + o->trailer);
        r->per_frame = r->bytes / (size_t)o->packet;
        r->reorder = o->reorder ? (uint64_t)o->reorder : r->per_frame;
        r->near = r->reorder + r->per_frame > NEAR ? r->reorder + r->per_frame : NEAR;
        r->nslots = (size_t)window_of(o, (int64_t)r->bytes);
        r->slot = calloc(r->nslots, sizeof *r->slot);
        r->there = calloc(r->nslots, r->per_frame);
        r->frames = calloc(r->nslots, r->bytes);
        r->jump = malloc((size_t)o->packet);
        r->data = malloc(BATCH * (r->whole + 1));
        ok = r->slot && r->there && r->frames && r->jump && r->data;
    }
    if (!ok)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    for (int i = 0; i < BATCH; i++) {  /* 1 byte more: whether a packet is longer */
        r->iov[i] = (struct iovec){ r->data + (size_t)i * (r->whole + 1), r->whole + 1 };
        r->msg[i].msg_hdr.msg_iov = &r->iov[i], r->msg[i].msg_hdr.msg_iovlen = 1;
    }
    return listen_at(r, g);
}

/* ---- packets --------------------------------------------------------------- */

/* False: none is there at this moment, or errno says what is wrong. */
static bool receive(struct receiver *r)
{
    struct timespec now;
    for (int i = 0; i < BATCH; i++)
        r->msg[i].msg_hdr.msg_control = r->control[i], r->msg[i].msg_hdr.msg_controllen = CONTROL;
    r->at = 0;
    r->got = recvmmsg(r->fd, r->msg, BATCH, MSG_DONTWAIT, NULL);
    if (r->got <= 0)
        return (r->got = 0);
    clock_gettime(CLOCK_REALTIME, &now);
    r->time_ns = now.tv_sec * 1000000000LL + now.tv_nsec, r->came_ns = gp_now_ns();
    struct msghdr *last = &r->msg[r->got - 1].msg_hdr;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(last); c; c = CMSG_NXTHDR(last, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
            memcpy(&r->overflows, CMSG_DATA(c), sizeof r->overflows);
    return true;
}

static uint64_t sequence_of(const struct receiver *r, const char *packet, int *bits)
{
    const unsigned char *p = (const unsigned char *)packet + r->o->sequence_at;
    const int n = 1 << (r->o->sequence - U8);
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[r->o->sequence_order == BIG ? i : n - 1 - i];
    *bits = 8 * n;
    return v;
}

/* The stream begins with a whole frame of sequence numbers, so that receivers of one stream cut it at the same places. */
static bool begin(struct receiver *r, uint64_t seq, uint64_t *number)
{
    uint64_t frame = seq / r->per_frame, at = seq % r->per_frame;
    if (at && (!r->waits || r->first == frame)) {
        r->waits = true, r->first = frame;
        return false;
    }
    *number = r->last = at;
    r->last_seq = seq, r->begun = true;
    return true;
}

/* One whose number is far from the last: false, until the next packet shows that it was no stray. */
static bool follows_jump(struct receiver *r, const char *packet, uint64_t seq, int64_t ahead, uint64_t *number)
{
    const struct opts *o = r->o;
    uint64_t next = (r->jump_seq + 1) & UINT64_MAX >> (64 - (8 << (o->sequence - U8))), at = seq % r->per_frame;
    if (!r->jumped || seq != next) {
        r->strays += r->jumped;
        r->jumped = true, r->jump_seq = seq;
        memcpy(r->jump, packet + o->header, (size_t)o->packet);
        return false;
    }
    r->jumped = false;
    bool anew = ahead < 0 || ahead > LOST_MOST;
    *number = anew ? ((r->high - 1) / r->per_frame + 1) * r->per_frame + at : r->last + (uint64_t)ahead;
    r->restarts += anew;
    r->is_due = at || !anew, r->due = *number - 1;
    r->last = *number, r->last_seq = seq;
    return true;
}

/* The number of a packet, over all; false: it is left out. */
static bool find_number(struct receiver *r, const char *packet, uint64_t *number)
{
    int bits;
    if (!r->o->sequence) {
        *number = r->high;
        return true;
    }
    uint64_t seq = sequence_of(r, packet, &bits);
    if (!r->begun)
        return begin(r, seq, number);
    int64_t ahead = (int64_t)((seq - r->last_seq) << (64 - bits)) >> (64 - bits);
    if (ahead > (int64_t)r->near || ahead < -(int64_t)r->near)
        return follows_jump(r, packet, seq, ahead, number);
    *number = r->last + (uint64_t)ahead;
    if ((ahead < 0 && (uint64_t)-ahead > r->last) || *number / r->per_frame < r->next) {
        r->late++;
        return false;
    }
    if (ahead > 0)
        r->last = *number, r->last_seq = seq;
    return true;
}

/* Puts a packet to its place. False: its frame cannot be open before others are handed on. */
static bool place(struct receiver *r, uint64_t number, const char *data)
{
    uint64_t frame = number / r->per_frame, at = number % r->per_frame, i = frame % r->nslots;
    slot *s = &r->slot[i];
    r->high = number >= r->high ? number + 1 : r->high;
    if (frame >= r->next + r->nslots)
        return false;
    unsigned char *there = &r->there[i * r->per_frame + at];
    if (frame < r->next || *there) {
        r->late++;
        return true;
    }
    if (!s->n) {
        s->time_ns = r->time_ns, s->came_ns = r->came_ns;
        s->sequence = r->last_seq - (r->last - (number - at));
    }
    memcpy(r->frames + i * r->bytes + at * (size_t)r->o->packet, data, (size_t)r->o->packet);
    *there = 1, s->n++;
    return true;
}

/* Takes the next packet. False: not before frames are handed on. */
static bool take(struct receiver *r)
{
    const char *packet = r->iov[r->at].iov_base;
    if (!r->is_known && r->msg[r->at].msg_len != r->whole) {
        r->odd++;
        return true;
    }
    if (!r->is_known && !find_number(r, packet, &r->number))
        return true;
    r->is_known = true;
    if (r->is_due && !place(r, r->due, r->jump))
        return false;
    r->is_due = false;
    r->is_known = !place(r, r->number, packet + r->o->header);
    return !r->is_known;
}

/* ---- frames ---------------------------------------------------------------- */

static bool is_over(const struct receiver *r, uint64_t frame)
{
    return r->slot[frame % r->nslots].n == r->per_frame || r->high > (frame + 1) * r->per_frame + r->reorder;
}

static void tell(const struct receiver *r, const gp_call *c, gp_frame *f, const slot *s, uint64_t lost)
{
    double is_lost = (double)lost;
    gp_meta_set(c, f, "lost", &is_lost);
    if (r->o->sequence) {
        double first = (double)(s->sequence & UINT64_MAX >> (64 - (8 << (r->o->sequence - U8))));
        gp_meta_set(c, f, "sequence", &first);
    }
}

/* Hands on the next frame. */
static gp_status hand_on(struct receiver *r, gp_call *c, gp_frame *f)
{
    const struct opts *o = r->o;
    size_t i = r->next % r->nslots, packet = (size_t)o->packet;
    slot *s = &r->slot[i];
    unsigned char *there = r->there + i * r->per_frame;
    uint64_t lost = r->per_frame - s->n;
    bool whole = !lost || (s->n && o->incomplete == FILL);
    r->lost += lost;
    if (whole) {
        char *to = f->out[0].data;
        memcpy(to, r->frames + i * r->bytes, r->bytes);
        for (uint64_t k = 0; lost && k < r->per_frame; k++)
            if (!there[k])
                memset(to + k * packet, 0, packet);
        if (o->endian == BIG)
            gp_swap(to, &r->type);
        f->time_ns = s->time_ns;
        gp_source_came(c, f, s->came_ns);
        tell(r, c, f, s, lost);
    }
    memset(there, 0, s->n ? r->per_frame : 0);
    s->n = 0, r->next++;
    return whole ? GP_OK : GP_LOST;
}

/* Between batches of packets the run may stop or pause, however fast they come. */
static gp_status make(gp_call *c, gp_frame *f, bool first)
{
    struct receiver *r = c->state;
    gp_status s;
    if (r->o->frames && f->index >= (uint64_t)r->o->frames)
        return GP_END;
    while (!is_over(r, r->next)) {
        if (r->at < r->got) {
            r->at += take(r);
        } else if (!first) {
            return GP_AGAIN;
        } else if ((s = gp_wait_or_pause(c, r->fd, -1)) != GP_OK) {
            return s;
        } else if (!receive(r) && errno != EAGAIN && errno != EINTR) {
            gp_fail(c->errs, GP_E_RUN, r->o->at, "stage '%s': cannot receive: %s", c->name, gp_strerror(errno));
            return GP_FAILED;
        }
    }
    return hand_on(r, c, f);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return gp_one_by_one(c, f, n, false, make);
}

static bool finish(gp_call *c)
{
    const struct receiver *r = c->state;
    const gp_oddity odd[] = {
        { r->lost, r->o->incomplete == FILL ? "lost, and are zeros" : "lost, and their frames left out" },
        { r->overflows, "without room in the kernel's buffer ('receive_buffer'; net.core.rmem_max limits it)" },
        { r->late, "late or twice ('reorder')" }, { r->strays + r->jumped, "with a number far from all others" },
        { r->odd, "of another length" }, { r->restarts, "a begin anew of the sequence" } };
    char of[60];
    snprintf(of, sizeof of, "port %lld: of the packets", (long long)r->o->port);
    gp_warn_of(c, r->o->at, of, odd, sizeof odd / sizeof *odd);
    return true;
}

static const gp_port out[] = { { "out", .help = "frames, as declared under 'buffers:'" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, port), .required = true, .min = 1, .max = 65535, .help = "where packets come" },
    { GP_TEXT(struct opts, address),
      .help = "an address of this machine, or a multicast group, which is joined; else all addresses, of IPv4 and IPv6" },
    { GP_TEXT(struct opts, interface), .help = "of a multicast group, as eth0; else the system chooses" },
    { GP_INT(struct opts, packet), .required = true, .min = 1, .max = LARGEST, .unit = "bytes",
      .help = "data of each packet: a frame has a whole number of them" },
    { GP_INT(struct opts, header), .min = 0, .max = LARGEST, .unit = "bytes", .help = "before the data, left out" },
    { GP_INT(struct opts, trailer), .min = 0, .max = LARGEST, .unit = "bytes", .help = "behind the data, left out" },
    { GP_ENUM(struct opts, sequence), .def = "none", .choices = "none|u8|u16|u32|u64",
      .help = "a number that each packet counts up by one, beginning anew after the largest: packets find their places by "
              "it, and what is lost is known" },
    { GP_INT(struct opts, sequence_at), .min = 0, .max = LARGEST, .unit = "bytes", .help = "where it stands in a packet" },
    { GP_ENUM(struct opts, sequence_order), .def = "big", .choices = "little|big", .help = "the order of its bytes" },
    { GP_ENUM(struct opts, endian), .def = "little", .choices = "little|big", .help = "the order of bytes in an element" },
    { GP_INT(struct opts, reorder), .min = 0, .max = 1e9, .unit = "packets",
      .help = "how far behind others a packet may come; 0: as many as a frame has" },
    { GP_ENUM(struct opts, incomplete), .def = "fill", .choices = "fill|drop",
      .help = "a frame of which packets are lost: has zeros for them, or is dropped; one of which nothing came is dropped" },
    { GP_INT(struct opts, receive_buffer), .def = "67108864", .min = 4096, .max = 1 << 30, .unit = "bytes",
      .help = "the kernel's, in which packets wait; without rights net.core.rmem_max limits it" },
    { GP_INT(struct opts, frames), .min = 0, .max = 1e18, .unit = "frames", .help = "stop after so many; 0: all" },
    { 0 }
};

const gp_kind gp_kind_udp = {
    GP_KIND("udp"), .field = "files",
    .help = "frames of UDP packets: in order, with what is lost known",
    .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN,
    .shape = shape, .open = open_receiver, .run = run, .finish = finish, .close = close_receiver,
};
