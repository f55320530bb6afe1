/* wire.h - the header of a message that has a frame, as `send` writes and `receive` reads it: one object of JSON.
 *
 * 'gpipe help network' is the contract with other programs. */
#pragma once

#include <stdio.h>
#include "base/arena.h"
#include "base/why.h"
#include "gpipe/stage.h"

enum { GP_WIRE_HEADER = 1 << 16, GP_WIRE_SENDER = 32, GP_WIRE_NAME = 256 };    /* bytes: the most of a header; with the NUL */

typedef struct gp_wire {
    bool end;                  /* it has no frame: its sender has ended well */
    gp_type type;              /* as it is sent, with axes that may be 0 */
    bool big;                  /* its elements are big-endian */
    bool numbered;
    uint64_t frame;            /* its number; of an end 1 more than the last */
    uint64_t dropped;          /* frames in a row before it that the sender did not have */
    int64_t time_ns;           /* 0: not said */
    char name[GP_WIRE_NAME], sender[GP_WIRE_SENDER];       /* "": not said */
    unsigned has; double value[GP_META_KEYS];      /* the numbers of the pipeline's `metadata` */
} gp_wire;

/* Writes it; `keys`: the names of the numbers. False: an error of the file. */
bool gp_wire_write(FILE *to, const gp_wire *w, const char *const *keys, int nkeys);
/* Reads `n` bytes that anybody may have sent. False with a text that goes on after what it is: "has no 'dtype'". */
bool gp_wire_read(gp_wire *w, const char *text, size_t n, const char *const *keys, int nkeys, char err[GP_WHY]);
/* Does a frame have so many bytes? */
bool gp_wire_fits(const gp_wire *w, size_t bytes, char err[GP_WHY]);
