/* zarr_file.h - Zarr stores, versions 2 and 3: folders in which each chunk of an array is a file.
 *
 * zarr_meta.c reads what an array says of itself, zarr_codec.c turns the bytes of a chunk into elements and back,
 * zarr_chunk.c finds a chunk, zarr_file.c makes frames of chunks, zarr_write.c chunks of frames. Formats:
 * zarr-specs.readthedocs.io (core v2, core v3.1, sharding-indexed v1.0), ngff.openmicroscopy.org (multiscales). Functions
 * that return bool put into `err` how the sentence goes on that begins with the store's name. */
#pragma once

#include "rows_file.h"

enum { GP_ZARR_CODECS = 6 };

/* What the bytes of a chunk went through, the first that was done first; at most one compresses. */
typedef enum gp_zarr_codec {
    GP_ZARR_CRC32C, GP_ZARR_GZIP, GP_ZARR_ZLIB, GP_ZARR_ZSTD, GP_ZARR_LZ4, GP_ZARR_BLOSC, GP_ZARR_NO_CODEC
} gp_zarr_codec;
typedef struct gp_zarr_chain { int n; gp_zarr_codec codec[GP_ZARR_CODECS]; } gp_zarr_chain;

typedef struct gp_zarr {
    gp_type whole;
    int64_t chunk[GP_MAXDIM];          /* what is decoded at once; those at the far edges have all elements, too */
    int64_t shard[GP_MAXDIM];          /* what is a file; not `chunk` only where that has an index of chunks */
    bool sharded, index_at_start, index_crc;
    int order[GP_MAXDIM];              /* axis k of a chunk, as it is stored, is this one of the array */
    bool big;                          /* its elements are big-endian */
    gp_zarr_chain chain;
    unsigned char fill[8];             /* the element of chunks that are not there, little-endian */
    const char *file;                  /* that says all this, in the array's folder */
    const char *prefix; char separator;        /* of the names of chunks */
    char folder[256];                  /* of the array, in that of the store; "": it is that */
} gp_zarr;

/* Files of the folder: as gp_rows_head has it. */
typedef struct gp_zarr_from {
    int64_t (*get)(void *user, const char *name, int64_t at, void *to, size_t n);
    void *user;
} gp_zarr_from;

/* Of a group of OME-Zarr the array of this level. */
bool gp_zarr_look(gp_zarr *z, const gp_zarr_from *from, int64_t level, char err[GP_WHY]);

/* Is it an array, whatever its elements are? */
bool gp_zarr_is_array(const gp_zarr_from *from, char err[GP_WHY]);

/* ---- codecs ---------------------------------------------------------- */

/* By the name that either version gives it. */
gp_zarr_codec gp_zarr_codec_of(const char *name);
const char *gp_zarr_codec_name(gp_zarr_codec c);
/* Opens the libraries of these codecs, if no array did before. */
bool gp_zarr_load(const gp_zarr_chain *c, char err[GP_WHY]);
uint32_t gp_crc32c(const void *data, size_t n);

/* What a worker needs for it. Zeroed before first use. */
typedef struct gp_zarr_work {
    void *zstd_in, *zstd_out;
    struct libdeflate_decompressor *deflate;
    gp_growbuf inner;
} gp_zarr_work;
void gp_zarr_leave(gp_zarr_work *w);

/* Can n bytes become `want`? Before memory is taken for either. */
bool gp_zarr_may_hold(const gp_zarr_chain *c, size_t n, size_t want, char err[GP_WHY]);
/* The n bytes become `want`, or that is an error. */
bool gp_zarr_decode(const gp_zarr_chain *c, gp_zarr_work *w, const void *from, size_t n, void *to, size_t want,
                    char err[GP_WHY]);
/* With zstd; what it makes replaces what is in `to`. */
bool gp_zarr_encode(gp_zarr_work *w, int level, const void *from, size_t n, gp_growbuf *to, char err[GP_WHY]);

/* ---- where a chunk is ------------------------------------------------ */

enum { GP_ZARR_NAME = 24 * GP_MAXDIM };

typedef struct gp_zarr_own {           /* a worker's */
    gp_zarr_work work;
    gp_growbuf file, chunk, index;
    int shard;                         /* the file whose index that is; -1: none is open */
    bool has_shard, no_shard;          /* no_shard: it is not there */
    int64_t at[GP_MAXDIM], size;       /* ... of this shard */
} gp_zarr_own;
gp_zarr_own *gp_zarr_new_own(void);    /* NULL: no memory */
void gp_zarr_close_own(void *o);

/* Bytes of a file in the folder that is open as *(int *)user, for gp_zarr_from. */
int64_t gp_zarr_beside(void *user, const char *name, int64_t at, void *to, size_t n);
/* The bytes of a chunk, which are to become `want`, in o->file, and the name of the file in the folder `in`. *there: it
 * has some. */
bool gp_zarr_bytes(const gp_zarr *is, int in, gp_zarr_own *o, const int64_t *chunk, size_t want, bool *there,
                   char name[GP_ZARR_NAME], char err[GP_WHY]);

/* ---- writing --------------------------------------------------------- */

gp_rows_out *gp_zarr_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY]);
bool gp_zarr_append(gp_rows_out *o, const void *rows, int64_t n, char err[GP_WHY]);
bool gp_zarr_finish(gp_rows_out *o, char err[GP_WHY]);
bool gp_zarr_may_replace(const char *path, char err[GP_WHY]);
