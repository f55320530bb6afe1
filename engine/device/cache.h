/* cache.h - compiled kernels on disk, and the hash that names them.
 *
 * The cache is a folder of files, $XDG_CACHE_HOME/gpipe or ~/.cache/gpipe. Where
 * it cannot be written nothing is cached, silently. A file holds what the
 * compiler made, then a trailer with its key, length and checksum; it appears
 * under its name only when whole, so that any number of processes may share the
 * folder. Nothing is taken from a folder or a file that another user owns or may write. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/outfile.h"
#include "gpipe/err.h"

/* SHA-256 (FIPS 180-4). */
typedef struct gp_hash {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char part[64];
} gp_hash;

typedef struct gp_key { char hex[65]; } gp_key;

void gp_hash_begin(gp_hash *h);
void gp_hash_add(gp_hash *h, const void *data, size_t bytes);
/* A string with its NUL, so that what follows cannot run into it. */
void gp_hash_text(gp_hash *h, const char *s);
gp_key gp_hash_end(gp_hash *h);

/* Finds what is stored under `key`; `ext` is ".so", ".cubin", ... and puts it into malloc'd
 * memory. False when it is not there, is damaged, or is somebody else's: of that the first
 * in this process is a warning in `errs`. */
bool gp_cache_find(const gp_key *key, const char *ext, void **data, size_t *bytes, gp_errs *errs);
/* False when there is no cache. */
bool gp_cache_store(const gp_key *key, const char *ext, const void *data, size_t bytes,
                    gp_errs *errs);

enum { GP_SOURCE_MAX = 16 << 20 };     /* bytes: no source is larger */

/* A whole regular file of at most `most` bytes, malloc'd, with a NUL behind it. NULL with
 * `err`, which goes on after the file's name. */
char *gp_slurp(const char *path, size_t most, size_t *bytes, char err[GP_WHY]);
