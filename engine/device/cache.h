/* cache.h - compiled kernels on disk, and the hash that names them.
 *
 * The cache is a folder of files, $XDG_CACHE_HOME/gpipe or ~/.cache/gpipe. Where
 * it cannot be written nothing is cached, silently. A file holds what the
 * compiler made, then a trailer with its key, length and checksum; it appears
 * under its name only when whole, so that any number of processes may share the
 * folder. A shared library with the trailer can be loaded as it is. */
#ifndef GP_CACHE_H
#define GP_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Finds what is stored under `key`; `ext` is ".so", ".cubin", ... False when it
 * is not there, or is damaged. Sets `path` (PATH_MAX bytes); with `data` also
 * reads it, into malloc'd memory. */
bool gp_cache_find(const gp_key *key, const char *ext, char path[PATH_MAX], void **data,
                   size_t *bytes);
/* Stores; sets `path`. False when there is no cache. */
bool gp_cache_store(const gp_key *key, const char *ext, const void *data, size_t bytes,
                    char path[PATH_MAX]);

/* A whole file, malloc'd, with a NUL behind it. NULL with errno. */
char *gp_slurp(const char *path, size_t *bytes);

#endif
