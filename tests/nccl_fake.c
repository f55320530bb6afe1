/* nccl_fake.c - a library in the place of NCCL, for tests without a GPU: processes of one machine that exchange what lies in
 * the host's memory, through a file in /dev/shm. Operations wait for all ranks, so that ranks which begin them in different
 * orders never end. NCCL_FAKE says what goes wrong: "init", "op" (the third one), "hang" (rank 1 never begins it). */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
enum { OK, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6, RANKS = 8, ROOM = 1 << 20, SENT = 2 };
enum { SUM = 0, MAX = 2, MIN = 3, AVG = 4 };

typedef struct id { char name[128]; } id;

/* Of all processes. What a rank sends by `send` lies in `to` of the rank that it is for. */
typedef struct hall {
    atomic_int here, round;
    struct { char data[ROOM]; struct { size_t n; int sent; char data[ROOM / 16]; } to[RANKS][SENT]; } of[RANKS];
} hall;

typedef struct comm { hall *hall; int ranks, rank, ops; atomic_bool gone; } comm;

SHOWN const int gp_nccl_pretends = 1;

static bool wrong(const char *what)
{
    const char *w = getenv("NCCL_FAKE");
    return w && !strcmp(w, what);
}

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* Waits for all. False: the communicator was aborted. */
static bool meet(comm *c)
{
    int round = atomic_load(&c->hall->round);
    if (atomic_fetch_add(&c->hall->here, 1) == c->ranks - 1) {
        atomic_store(&c->hall->here, 0);
        atomic_fetch_add(&c->hall->round, 1);
        return true;
    }
    while (atomic_load(&c->hall->round) == round && !atomic_load(&c->gone))
        rest();
    return !atomic_load(&c->gone);
}

static int begin(comm *c, size_t bytes)
{
    c->ops++;
    if (c->ops == 3 && c->rank == 1 && wrong("op"))
        return SYSTEM_ERROR;
    while (c->ops == 3 && c->rank == 1 && wrong("hang") && !atomic_load(&c->gone))
        rest();
    return bytes > ROOM ? INVALID_ARGUMENT : OK;
}

SHOWN int ncclGetVersion(int *v)
{
    *v = 22807;
    return OK;
}

SHOWN const char *ncclGetErrorString(int status)
{
    return status == SYSTEM_ERROR ? "unhandled system error" : status == INVALID_ARGUMENT ? "invalid argument"
         : status == REMOTE_ERROR ? "remote process exited or there was a network error" : "no error";
}

SHOWN int ncclGetUniqueId(id *of)
{
    snprintf(of->name, sizeof of->name, "/gpipe-nccl-fake-%d", (int)getpid());
    int fd = shm_open(of->name, O_RDWR | O_CREAT | O_TRUNC, 0600), bad = fd < 0 || ftruncate(fd, sizeof(hall));
    if (fd >= 0)
        close(fd);
    return bad ? SYSTEM_ERROR : OK;
}

SHOWN int ncclCommInitRank(comm **to, int ranks, id of, int rank)
{
    int fd = shm_open(of.name, O_RDWR, 0600);
    comm *c = calloc(1, sizeof *c);
    c->hall = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(hall), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (c->hall == MAP_FAILED || ranks > RANKS) {
        free(c);
        return SYSTEM_ERROR;
    }
    c->ranks = ranks, c->rank = rank;
    meet(c);
    if (!rank)
        shm_unlink(of.name);
    if (rank == 1 && wrong("init")) {
        munmap(c->hall, sizeof(hall)), free(c);
        return SYSTEM_ERROR;
    }
    *to = c;
    return OK;
}

SHOWN int ncclCommDestroy(comm *c)
{
    munmap(c->hall, sizeof(hall));
    free(c);
    return OK;
}

/* Operations that wait return, and may still look at it. */
SHOWN int ncclCommAbort(comm *c)
{
    atomic_store(&c->gone, true);
    return OK;
}

SHOWN int ncclCommGetAsyncError(comm *c, int *status)
{
    (void)c;
    *status = OK;
    return OK;
}

#define FOLD(type) do {                                                                      \
        type *y = to;                                                                        \
        for (size_t i = 0; i < n; i++) {                                                     \
            const type *x = (const type *)(const void *)c->hall->of[0].data;                 \
            y[i] = x[i];                                                                     \
            for (int r = 1; r < c->ranks; r++) {                                             \
                x = (const type *)(const void *)c->hall->of[r].data;                         \
                y[i] = op == MAX ? (x[i] > y[i] ? x[i] : y[i]) : op == MIN ? (x[i] < y[i] ? x[i] : y[i]) : (type)(y[i] + x[i]); \
            }                                                                                \
            y[i] = op == AVG ? y[i] / (type)c->ranks : y[i];                                 \
        }                                                                                    \
    } while (0)

static void fold(const comm *c, void *to, size_t n, int type, int op)
{
    switch (type) {
    case 2: FOLD(int32_t); break;
    case 3: FOLD(uint32_t); break;
    case 4: FOLD(int64_t); break;
    case 5: FOLD(uint64_t); break;
    case 7: FOLD(float); break;
    default: FOLD(double);
    }
}

SHOWN int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream)
{
    size_t each = type == 4 || type == 5 || type == 8 ? 8 : 4;
    int status = begin(c, n * each);
    (void)stream;
    if (status)
        return status;
    memcpy(c->hall->of[c->rank].data, from, n * each);
    if (meet(c))
        fold(c, to, n, type, op);
    return meet(c) ? OK : REMOTE_ERROR;
}

SHOWN int ncclAllGather(const void *from, void *to, size_t n, int type, comm *c, void *stream)
{
    int status = begin(c, n);
    (void)type, (void)stream;
    if (status)
        return status;
    memcpy(c->hall->of[c->rank].data, from, n);
    if (meet(c))
        for (int r = 0; r < c->ranks; r++)
            memcpy((char *)to + (size_t)r * n, c->hall->of[r].data, n);
    return meet(c) ? OK : REMOTE_ERROR;
}

SHOWN int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, comm *c, void *stream)
{
    int status = begin(c, n);
    (void)type, (void)stream;
    if (status)
        return status;
    if (c->rank == root)
        memcpy(c->hall->of[root].data, from, n);
    if (meet(c))
        memcpy(to, c->hall->of[root].data, n);
    return meet(c) ? OK : REMOTE_ERROR;
}

/* ---- a group of sends and receives, of one thread at a time ---------- */

static _Thread_local struct { comm *c; int n; struct { void *to; size_t n; int peer; } recv[2 * SENT]; } group;

SHOWN int ncclGroupStart(void)
{
    group.c = NULL, group.n = 0;
    return OK;
}

SHOWN int ncclSend(const void *from, size_t n, int type, int peer, comm *c, void *stream)
{
    (void)type, (void)stream;
    group.c = c;
    for (int k = 0; k < SENT; k++)
        if (!c->hall->of[peer].to[c->rank][k].sent && n <= ROOM / 16) {
            memcpy(c->hall->of[peer].to[c->rank][k].data, from, n);
            c->hall->of[peer].to[c->rank][k].n = n, c->hall->of[peer].to[c->rank][k].sent = 1;
            return OK;
        }
    return INVALID_ARGUMENT;
}

SHOWN int ncclRecv(void *to, size_t n, int type, int peer, comm *c, void *stream)
{
    (void)type, (void)stream;
    group.c = c;
    group.recv[group.n].to = to, group.recv[group.n].n = n, group.recv[group.n++].peer = peer;
    return OK;
}

SHOWN int ncclGroupEnd(void)
{
    comm *c = group.c;
    if (!c)
        return OK;
    int status = begin(c, 0);
    if (status || !meet(c))
        return status ? status : REMOTE_ERROR;
    for (int i = 0; i < group.n; i++)
        for (int k = 0; k < SENT; k++) {
            if (!c->hall->of[c->rank].to[group.recv[i].peer][k].sent)
                continue;
            if (c->hall->of[c->rank].to[group.recv[i].peer][k].n != group.recv[i].n)
                status = INVALID_ARGUMENT;
            else
                memcpy(group.recv[i].to, c->hall->of[c->rank].to[group.recv[i].peer][k].data, group.recv[i].n);
            c->hall->of[c->rank].to[group.recv[i].peer][k].sent = 0;
            break;
        }
    return meet(c) ? status : REMOTE_ERROR;
}
