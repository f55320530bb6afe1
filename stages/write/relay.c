/* relay.c - all frames of all ranks to standard output, which the first rank writes, see writer.h.
 *
 * Each rank sends its frames as they are to be written, a chunk of each rank at a time. There is nothing but a gather
 * to send by, so that each rank gets the bytes of all, for which it needs MOST bytes; the others but the first forget
 * them. */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "writer.h"

enum { CHUNK = 1 << 20, LEAST = 1 << 12, MOST = 1 << 26, PARTS = 256 };

static size_t chunk_of(int ranks)
{
    size_t n = MOST / (size_t)ranks;
    return n < LEAST ? LEAST : n < CHUNK ? n : CHUNK;
}

bool gp_relay_open(gp_writer *w)
{
    gp_write_relay *y = w->relay = calloc(1, sizeof *y);
    size_t ranks = (size_t)w->ranks;
    return y && (y->part = calloc(ranks * GP_WRITE_RUN, sizeof *y->part)) && (y->chunk = malloc(chunk_of(w->ranks)))
        && (y->has = calloc(ranks, sizeof *y->has)) && (y->all = calloc(ranks, sizeof *y->all));
}

void gp_relay_close(gp_writer *w)
{
    gp_write_relay *y = w->relay;
    if (!y)
        return;
    for (int r = 0; y->all && r < w->ranks; r++)
        free(y->all[r].data);
    free(y->all), free(y->has), free(y->chunk), free(y->part), free(y);
}

bool gp_relay_add(gp_writer *w, const void *data, size_t n, char why[GP_WHY])
{
    gp_growbuf *to = &w->worker[0].encoded;
    if (!n)
        return true;
    if (!gp_growbuf_need(to, to->n + n))
        return gp_why(why, "cannot be written: " GP_WHY_MEMORY);
    memcpy(to->data + to->n, data, n);
    to->n += n;
    return true;
}

/* Keeps what each rank has of the k bytes from `at` on. */
static bool keep(gp_writer *w, const char *came, size_t at, size_t k)
{
    for (int r = 0; r < w->ranks; r++) {
        gp_growbuf *to = &w->relay->all[r];
        size_t has = w->relay->has[r], n = has > at ? has - at : 0;
        n = n < k ? n : k;
        if (!n)
            continue;
        if (!gp_growbuf_need(to, at + n))
            return false;
        memcpy(to->data + at, came + (size_t)r * k, n);
    }
    return true;
}

static bool put(gp_writer *w, char why[GP_WHY])
{
    gp_write_relay *y = w->relay;
    struct iovec v[PARTS];
    memset(y->has, 0, sizeof *y->has * (size_t)w->ranks);      /* now what has been written of each rank's */
    for (int i = 0, k; i < y->nparts; i += k) {
        int first = 0;
        if (w->nbegin)
            v[first++] = (struct iovec){ (char *)w->begin, w->nbegin };
        for (k = 0; first + k < PARTS && i + k < y->nparts; k++) {
            const gp_write_part *p = &y->part[i + k];
            v[first + k] = (struct iovec){ y->all[p->rank].data + y->has[p->rank], p->n };
            y->has[p->rank] += p->n;
        }
        w->nbegin = 0;
        if (!gp_write_all(w->worker[0].file.fd, v, first + k, why))
            return false;
    }
    return true;
}

gp_status gp_relay(gp_writer *w, gp_call *c, const char *mine, char why[GP_WHY])
{
    gp_write_relay *y = w->relay;
    size_t most = 0, chunk = chunk_of(w->ranks);
    memset(y->has, 0, sizeof *y->has * (size_t)w->ranks);
    for (int i = 0; i < y->nparts; i++)
        y->has[y->part[i].rank] += y->part[i].n;
    for (int r = 0; r < w->ranks; r++)
        most = y->has[r] > most ? y->has[r] : most;
    size_t own = y->has[w->rank];
    for (size_t at = 0, k; at < most; at += k) {
        size_t left = own > at ? own - at : 0;
        k = most - at < chunk ? most - at : chunk;
        left = left < k ? left : k;
        if (left)
            memcpy(y->chunk, mine + at, left);
        memset(y->chunk + left, 0, k - left);
        const char *came = gp_gather(c, y->chunk, k);
        if (!came)
            return GP_STOPPED;
        if (!w->rank && !keep(w, came, at, k)) {
            gp_why(why, "cannot be written: " GP_WHY_MEMORY);
            return GP_FAILED;
        }
    }
    return w->rank || put(w, why) ? GP_OK : GP_FAILED;
}
