/* tiff_file.h - what the parts of the format share: tiff_dir.c (libtiff; which pages a file has), tiff_read.c (what is
 * in them), tiff_axes.c (which channels, slices and times they are), tiff_file.c (writing).
 *
 * TIFF 6.0 and BigTIFF: a file is a chain of directories, each of which has the tags of a page: [H, W] or [H, W, C].
 * All pages that are read have one type, so that the file is a list of them. Pages are counted from 0, without those
 * that are a smaller copy or a mask of another. */
#pragma once

#include "rows_file.h"

enum {
    GP_TIFF_NONE = 1, GP_TIFF_LZW = 5, GP_TIFF_OLD_JPEG = 6, GP_TIFF_JPEG = 7, GP_TIFF_DEFLATE = 8, GP_TIFF_PACKBITS = 32773,
    GP_TIFF_OTHER_DEFLATE = 32946
};                                     /* compressions */
enum { GP_TIFF_WHITE_IS_0, GP_TIFF_BLACK_IS_0, GP_TIFF_RGB, GP_TIFF_PALETTE, GP_TIFF_INKS = 5, GP_TIFF_YCBCR };     /* colors */

/* A file through libtiff. 1 thread. */
typedef struct gp_tiff_handle {
    int fd;                    /* -1: what can be read, `head` says */
    const gp_rows_head *head;
    int64_t size, at;          /* of the file; where libtiff reads next */
    int64_t max_pixels;        /* of a page; 0: any number */
    void *tiff;
    bool big, swap;            /* BigTIFF; its bytes are in the other order */
    int64_t first;             /* where the first directory is */
    int error;                 /* of the last read that failed */
    char said[GP_WHY];         /* what libtiff said of what it does now: the first error; "": none */
    char warned[GP_WHY];       /* ... the first warning of a page's tags */
    bool cut, decodes;         /* the link of a directory was cut off; it does pixels */
} gp_tiff_handle;

typedef struct gp_tiff_page {
    bool skipped;              /* a copy or mask, of which nothing below is filled in */
    gp_type type;              /* as its pixels are stored, or those that are made of */
    gp_type raw;               /* ... samples of such a type, each in so many */
    int bits;
    const uint16_t *palette[3];        /* the handle's, as `text` */
    int64_t rows, cols, samples;
    int compression, colors, orientation;
    bool separate, tiled;      /* a plane a sample; tiles, not strips */
    int64_t piece_rows, piece_cols;    /* of a strip or tile */
    const char *text;          /* its description, or ""; the handle's, until it goes to another page */
} gp_tiff_page;

/* Bytes of the file: how many were there, -1 with errno. */
int64_t gp_tiff_get(const gp_tiff_handle *h, int64_t at, void *to, size_t n);

/* Opens a file of which fd or head, and size, are filled in, and libtiff itself. gp_tiff_end() also after an error. */
bool gp_tiff_begin(gp_tiff_handle *h, char err[GP_WHY]);
void gp_tiff_end(gp_tiff_handle *h);

/* Goes to the page whose directory is at `at`; 0: to the next one. */
bool gp_tiff_go_to(gp_tiff_handle *h, int64_t at, gp_tiff_page *p, char err[GP_WHY]);

/* The pixels of strip or tile `piece` of the page it is at: `n` bytes, no more and no less. */
bool gp_tiff_piece(gp_tiff_handle *h, const gp_tiff_page *p, uint32_t piece, void *to, size_t n, char err[GP_WHY]);

/* Bytes of so many pixels of a row in a piece. */
static inline size_t gp_tiff_row(const gp_tiff_page *p, int64_t cols)
{
    return ((size_t)cols * (size_t)(p->separate ? 1 : p->samples) * (size_t)p->bits + 7) / 8;
}

/* Puts "(page N)" before the error. Returns false. */
bool gp_tiff_of_page(int64_t page, char err[GP_WHY]);

/* A page's type when it is upright, or as it is stored. */
gp_type gp_tiff_shown(const gp_tiff_page *p, bool keep_orientation);

/* Which pages a file has, all of one type. */
typedef struct gp_tiff_pages {
    gp_type whole;             /* [pages, H, W] or [pages, H, W, C] */
    gp_tiff_page first;        /* without its text */
    char fault[GP_WHY];        /* what is odd in tags of its pages; or "" */
    int64_t *at;               /* of each its directory; NULL: they lie one behind the other, */
    int64_t data, bytes;       /* from `data` on, each of so many bytes */
} gp_tiff_pages;

/* Finds the pages of a file that was begun. `at` is the caller's to free, also after an error. */
bool gp_tiff_find_pages(gp_tiff_handle *h, bool keep_orientation, gp_tiff_pages *pages, char err[GP_WHY]);

bool gp_tiff_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY]);
bool gp_tiff_cuts(const gp_rows_head *h, const gp_rowsfile_how *how, int64_t rows, char err[GP_WHY]);  /* tiff_axes.c */
gp_rows *gp_tiff_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY]);
bool gp_tiff_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY]);
bool gp_tiff_metadata(gp_rows *f, void *own, int64_t row, gp_filemeta *to, char err[GP_WHY]);
void gp_tiff_leave(void *own);
void gp_tiff_close(gp_rows *f);
