/* ranks_stream.c - text of any length, from another rank to rank 0: see ranks.h.
 *
 * The text is sent in pieces, each after its length, so that memory for one piece is enough. The time limit is that of
 * one piece, so that rank 0 notices a rank that is gone. Length 0 ends the text; -1 says that it is not whole. */
#include <stdlib.h>
#include "cli/ranks.h"

enum { PIECE = 1 << 20 };

typedef struct telling { int64_t ns; const char *why; } telling;

static ssize_t send_pieces(void *cookie, const char *text, size_t n)
{
    telling *t = cookie;
    for (size_t done = 0; !t->why && done < n;) {
        int size = n - done < PIECE ? (int)(n - done) : PIECE;
        t->why = gp_ranks_pass(gp_rank(), 0, &size, sizeof size, t->ns);
        if (!t->why)
            t->why = gp_ranks_pass(gp_rank(), 0, (char *)text + done, size, t->ns);
        done += (size_t)size;
    }
    return t->why ? 0 : (ssize_t)n;
}

const char *gp_ranks_tell(gp_ranks_writer *write, void *arg, int64_t ns)
{
    telling t = { .ns = ns };
    FILE *f = fopencookie(&t, "w", (cookie_io_functions_t){ .write = send_pieces });
    if (f)
        setvbuf(f, NULL, _IOFBF, PIECE);
    bool ok = f && write(arg, f);
    ok = f && !fclose(f) && ok;
    int end = ok ? 0 : -1;
    return t.why ? t.why : gp_ranks_pass(gp_rank(), 0, &end, sizeof end, ns);
}

const char *gp_ranks_hear(int r, FILE *to, bool *whole, int64_t ns)
{
    char *piece = gp_ranks_room(PIECE, 1);
    int size = 1;
    const char *why = NULL;
    *whole = false;
    while (!why && size > 0) {
        why = gp_ranks_pass(r, 0, &size, sizeof size, ns);
        if (!why && size > PIECE)
            why = "another rank says what it never would";
        if (!why && size > 0)
            why = gp_ranks_pass(r, 0, piece, size, ns);
        if (!why && size > 0 && to)
            fwrite(piece, 1, (size_t)size, to);
    }
    *whole = !why && !size;
    free(piece);
    return why;
}
