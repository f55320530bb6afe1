/* zmq_library.h - libzmq, opened by the first pipeline that has a stage `send` or `receive`, and a socket of such a stage.
 *
 * A socket is for one thread at a time. Nothing here waits: who has to waits for `fd`, and then asks gp_zmq_events()
 * again, without which `fd` tells of nothing more. */
#pragma once

#include "gpipe/stage.h"

/* The part that is used of <zmq.h>, whose ABI has not changed since version 4.0; tests/test_network.c compares it. */
typedef struct gp_zmq_msg { _Alignas(void *) unsigned char bytes[64]; } gp_zmq_msg;
enum { GP_ZMQ_PAIR = 0, GP_ZMQ_PUB = 1, GP_ZMQ_SUB = 2, GP_ZMQ_PULL = 7, GP_ZMQ_PUSH = 8 };
enum { GP_ZMQ_SUBSCRIBE = 6, GP_ZMQ_FD = 14, GP_ZMQ_EVENTS = 15, GP_ZMQ_LINGER = 17, GP_ZMQ_MAXMSGSIZE = 22,
       GP_ZMQ_SNDHWM = 23, GP_ZMQ_RCVHWM = 24, GP_ZMQ_TCP_KEEPALIVE = 34, GP_ZMQ_TCP_KEEPALIVE_IDLE = 36, GP_ZMQ_IPV6 = 42,
       GP_ZMQ_EVENT_DISCONNECTED = 0x200 };
enum { GP_ZMQ_IN = 1, GP_ZMQ_OUT = 2, GP_ZMQ_DONTWAIT = 1, GP_ZMQ_SNDMORE = 2 };

typedef struct gp_zmq_library {
    void *(*ctx_new)(void);
    int (*ctx_term)(void *ctx);
    void *(*socket)(void *ctx, int type);
    int (*close)(void *socket);
    int (*setsockopt)(void *socket, int option, const void *value, size_t n);
    int (*getsockopt)(void *socket, int option, void *value, size_t *n);
    int (*bind)(void *socket, const char *address);
    int (*connect)(void *socket, const char *address);
    int (*send)(void *socket, const void *data, size_t n, int flags);
    int (*recv)(void *socket, void *to, size_t n, int flags);
    int (*msg_init)(gp_zmq_msg *m);
    int (*msg_recv)(gp_zmq_msg *m, void *socket, int flags);
    int (*msg_close)(gp_zmq_msg *m);
    int (*msg_more)(const gp_zmq_msg *m);
    void *(*msg_data)(gp_zmq_msg *m);
    size_t (*msg_size)(const gp_zmq_msg *m);
    int (*monitor)(void *socket, const char *address, int events);
    const char *(*strerror)(int error);
} gp_zmq_library;
extern gp_zmq_library gp_zmq;          /* once gp_zmq_open() found it */

/* Where a stage's socket is, as its options say. */
typedef struct gp_zmq_where {
    const char *bind, *connect;        /* one of them */
    int64_t queue;                     /* frames; 0: as many as gp_zmq_queue() says */
    gp_loc at;
} gp_zmq_where;
/* What the options of both kinds that say so have in common. */
#define GP_ZMQ_WHERE(T) \
    { .name = "bind", .type = GP_OPT_TEXT, .off = GP_OFF(T, where.bind, const char *), .required = true, \
      .choices = "connect", .help = "the address of this machine where others connect: tcp://HOST:PORT, where * is all of " \
                                    "them, or ipc://PATH" }, \
    { .name = "connect", .type = GP_OPT_TEXT, .off = GP_OFF(T, where.connect, const char *), \
      .help = "in place of that, the address where another has bound: it may come later, and go and come again" }, \
    { .name = "queue", .type = GP_OPT_INT, .off = GP_OFF(T, where.queue, int64_t), .max = 1 << 20, .unit = "frames", \
      .help = "how many wait in it for each of the others; 0: 1 to 1000, so that they have 64 MiB" }

/* In shape(): checks the addresses, and makes the path of ipc:// relative to the file's folder. */
bool gp_zmq_shape(gp_shape *s, gp_zmq_where *w);

typedef struct gp_zmq_socket {
    void *ctx, *socket;
    int fd;
    const char *file;          /* that it is bound to, or NULL */
    void *monitor; int gone;   /* see gp_zmq_gone() */
} gp_zmq_socket;
/* In open(), for frames of type `t`. `topic` is that of a GP_ZMQ_SUB. */
bool gp_zmq_open(gp_zmq_socket *z, const gp_open *g, const gp_zmq_where *w, int type, const gp_type *t, const char *topic);
/* A set of GP_ZMQ_IN, GP_ZMQ_OUT: what would not have to wait. -1: errno, for gp_zmq.strerror(). */
int gp_zmq_events(const gp_zmq_socket *z);
/* Sends `n` parts as one message. 1: done; 0: there is no room; -1: errno. */
typedef struct gp_zmq_part { const void *data; size_t n; } gp_zmq_part;
int gp_zmq_put(const gp_zmq_socket *z, const gp_zmq_part *part, int n);
/* From then on, how many of the others have gone since; -1: errno. Once: begins to count. */
int gp_zmq_gone(gp_zmq_socket *z);
/* Waits until the others have taken what was sent, or the run is stopping or over (c NULL), and then for a second more.
 * False: they have not, and what is left is lost. */
bool gp_zmq_drain(gp_zmq_socket *z, gp_call *c);
void gp_zmq_close(gp_zmq_socket *z);   /* at once, also one that is not open */
