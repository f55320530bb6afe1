/* test_network.c - what is declared of libzmq beside its header, where that is there; headers of messages that are
 * written and read again. What runs by it is in network.py. */
#include "suite.h"
#include "wire.h"
#include "zmq_library.h"

#if defined __has_include
#if __has_include(<zmq.h>)
#include <zmq.h>

_Static_assert(GP_ZMQ_PAIR == ZMQ_PAIR && GP_ZMQ_PUB == ZMQ_PUB && GP_ZMQ_SUB == ZMQ_SUB && GP_ZMQ_PULL == ZMQ_PULL
               && GP_ZMQ_PUSH == ZMQ_PUSH, "sockets");
_Static_assert(GP_ZMQ_SUBSCRIBE == ZMQ_SUBSCRIBE && GP_ZMQ_FD == ZMQ_FD && GP_ZMQ_EVENTS == ZMQ_EVENTS
               && GP_ZMQ_LINGER == ZMQ_LINGER && GP_ZMQ_MAXMSGSIZE == ZMQ_MAXMSGSIZE && GP_ZMQ_SNDHWM == ZMQ_SNDHWM
               && GP_ZMQ_RCVHWM == ZMQ_RCVHWM && GP_ZMQ_TCP_KEEPALIVE == ZMQ_TCP_KEEPALIVE
               && GP_ZMQ_TCP_KEEPALIVE_IDLE == ZMQ_TCP_KEEPALIVE_IDLE && GP_ZMQ_IPV6 == ZMQ_IPV6, "options");
_Static_assert(GP_ZMQ_IN == ZMQ_POLLIN && GP_ZMQ_OUT == ZMQ_POLLOUT && GP_ZMQ_DONTWAIT == ZMQ_DONTWAIT
               && GP_ZMQ_SNDMORE == ZMQ_SNDMORE && GP_ZMQ_EVENT_DISCONNECTED == ZMQ_EVENT_DISCONNECTED, "flags");
_Static_assert(sizeof(gp_zmq_msg) == sizeof(zmq_msg_t) && _Alignof(gp_zmq_msg) == _Alignof(zmq_msg_t), "messages");

/* They are refused by the compiler if the header has other parameters. zmq_msg_t stands for gp_zmq_msg. */
__attribute__((unused)) static void functions(gp_zmq_library *l)
{
    int (*init)(zmq_msg_t *) = zmq_msg_init, (*close)(zmq_msg_t *) = zmq_msg_close;
    int (*recv)(zmq_msg_t *, void *, int) = zmq_msg_recv, (*more)(const zmq_msg_t *) = zmq_msg_more;
    void *(*data)(zmq_msg_t *) = zmq_msg_data;
    size_t (*size)(const zmq_msg_t *) = zmq_msg_size;
    *l = (gp_zmq_library){
        .ctx_new = zmq_ctx_new, .ctx_term = zmq_ctx_term, .socket = zmq_socket, .close = zmq_close,
        .setsockopt = zmq_setsockopt, .getsockopt = zmq_getsockopt, .bind = zmq_bind, .connect = zmq_connect,
        .send = zmq_send, .recv = zmq_recv, .monitor = zmq_socket_monitor, .strerror = zmq_strerror };
    (void)init, (void)close, (void)recv, (void)more, (void)data, (void)size;
}
#endif
#endif

static const char *const keys[] = { "gain", "time", "exposure" };

static const gp_wire wires[] = {
    { .type = { GP_F32, 2, { 4, 256 } }, .frame = 7, .sender = "a" },
    { .type = { GP_C64, 8, { 1, 2, 3, 4, 5, 6, 7, 0 } }, .frame = INT64_MAX, .dropped = 3, .time_ns = 1700000000123456789,
      .name = "a \"b\" \\ \n \xc3\xa4 \xf0\x9f\x98\x80", .sender = "0123456789abcdef", .has = 5,
      .value = { 0.1, 0, -1.7976931348623157e308 } },
    { .end = true, .frame = 12, .dropped = 1, .sender = "b" },
};

TEST_EACH(again, wires)
{
    const gp_wire *w = &wires[_i];
    gp_wire is;
    char *text = NULL, why[GP_WHY] = "";
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ck_assert(gp_wire_write(f, w, keys, 3) && !fclose(f));
    ck_assert_msg(!strchr(text, '\n') && gp_wire_read(&is, text, n, keys, 3, why), "%s: %s", text, why);
    ck_assert_msg(is.numbered && is.end == w->end && is.frame == w->frame && is.dropped == w->dropped
                  && is.time_ns == w->time_ns && is.has == w->has && gp_type_same(&is.type, &w->type), "%s", text);
    ck_assert_str_eq(is.name, w->name);
    ck_assert_str_eq(is.sender, w->sender);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(is.value[i] == w->value[i], "%s", text);
    free(text);
}

/* json.dumps() writes all but ASCII so. */
TEST(escapes)
{
    static const char text[] = "{\"dtype\": \">u2\", \"shape\": [], \"name\": \"\\u00e4\\ud83d\\ude00\\/\"}";
    static const char good[] = "{\"dtype\": \">u2\", \"shape\": [], \"name\": \"\\u00e4\\ud83d\\ude00\"}";
    gp_wire w;
    char why[GP_WHY] = "";
    ck_assert(!gp_wire_read(&w, text, strlen(text), NULL, 0, why));
    ck_assert_msg(strstr(why, "in which there is a '/'"), "%s", why);
    ck_assert_msg(gp_wire_read(&w, good, strlen(good), NULL, 0, why), "%s", why);
    ck_assert_str_eq(w.name, "\xc3\xa4\xf0\x9f\x98\x80");
    ck_assert(w.big && w.type.dtype == GP_U16 && w.type.ndim == 1 && w.type.dim[0] == 1 && gp_wire_fits(&w, 2, why));
}

TEST_SUITE(network, NULL, NULL, 0)
