/* tiff.c - TIFF files: their pages, as far as they are no more than a MiB, upright and as they are stored. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rows_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20 };

/* The last page first; each is the same whenever it is read. */
static void read_pages(gp_rows *f)
{
    gp_rows_own own = { 0 };
    char err[GP_WHY] = "";
    size_t page = gp_bytes(&f->whole) / (size_t)f->whole.dim[0];
    char *to = malloc(page), *again = malloc(page);
    for (int64_t i = f->whole.dim[0]; i--; *err = 0) {
        bool ok = gp_rowsfile_read(f, &own, i, 1, to, err);
        MUST(ok || *err);
        if (ok && i < 3)
            MUST(gp_rowsfile_read(f, &own, i, 1, again, err) && !memcmp(to, again, page));
    }
    gp_rowsfile_leave(&own);
    free(to), free(again);
}

static void one(const char *data, size_t n)
{
    int fd = memfd_create("tiff", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    for (int i = 0; i < 2; i++) {
        gp_rowsfile_how how = { .keep_orientation = i };
        gp_filetype as = gp_rowsfile_named("a.tif");
        gp_type none = { .dtype = GP_NO_DTYPE }, head = { 0 };
        char err[GP_WHY] = "", why[GP_WHY] = "";
        gp_rows_head all = { .data = data, .n = n, .size = (int64_t)n };
        bool ok = gp_rowsfile_head(&how, as, &all, &none, &head, why);
        gp_rows *f = gp_rowsfile_open(&how, as, fd, &none, err);
        MUST(ok ? f && gp_type_same(&f->whole, &head) : !f && *err && !strcmp(err, why));
        MUST(!ok || (head.ndim >= 3 && head.ndim <= 4 && gp_count(&head) > 0));
        if (f && gp_bytes(&f->whole) <= BYTES)
            read_pages(f);
        gp_rowsfile_close(f);
    }
    close(fd);
}

const fuzz_harness fuzz_tiff = { .name = "tiff", .one = one };
