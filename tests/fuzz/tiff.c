/* tiff.c - TIFF files: their pages, as far as they are no more than a MiB, upright and as they are stored. */
#include <sys/mman.h>
#include <unistd.h>
#include "rows_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20 };

/* The numbers of a page, which come back from their text. */
static void read_numbers(gp_rows *f, int64_t page)
{
    static const char *const keys[] = { "a", "exposure", "time" };
    gp_filemeta said = { .n = 3, .key = keys }, again = said;
    char err[GP_WHY] = "", text[GP_FILEMETA_JSON];
    MUST(gp_rowsfile_metadata(f, &(gp_rows_own){ 0 }, page, &said, err) || *err);
    size_t n = gp_filemeta_to_json(&said, text);
    MUST(!n == !said.has && (!n || ((n + 1) % 8 == 0 && gp_filemeta_from_json(&again, text, err))));
    MUST(said.has == again.has);
    for (int i = 0; i < 2; i++)
        MUST(!(said.has & 1u << i) || !memcmp(&said.value[i], &again.value[i], sizeof said.value[i]));
    MUST(!(said.has & 1u << 2) || said.time_ns == again.time_ns);
}

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
        read_numbers(f, i);
        if (ok && i < 3)
            MUST(gp_rowsfile_read(f, &own, i, 1, again, err) && !memcmp(to, again, page));
    }
    gp_rowsfile_leave(&own);
    free(to), free(again);
}

/* Several pages a frame: the head and the open file agree whether that can be. */
static void cut(const gp_rowsfile_how *how, gp_filetype as, const gp_rows_head *h, int fd, const gp_type *whole)
{
    for (int64_t k = 2; k <= whole->dim[0] && k < 8; k++) {
        gp_type frame = *whole, found;
        char err[GP_WHY] = "", why[GP_WHY] = "";
        frame.dim[0] = k;
        bool ok = gp_rowsfile_head(how, as, h, &frame, &found, why);
        gp_rows *f = gp_rowsfile_open(how, as, fd, &frame, err);
        MUST(ok ? f != NULL : !f && *err && !strcmp(err, why));
        gp_rowsfile_close(f);
    }
}

static void one(const char *data, size_t n)
{
    int fd = memfd_create("tiff", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    for (int i = 0; i < 2; i++) {
        gp_rowsfile_how how = { .keep_orientation = i };
        gp_filetype as = gp_filetype_of("a.tif");
        gp_type none = { .dtype = GP_NO_DTYPE }, head = { 0 };
        char err[GP_WHY] = "", why[GP_WHY] = "";
        gp_rows_head all = { .data = data, .n = n, .size = (int64_t)n };
        bool ok = gp_rowsfile_head(&how, as, &all, &none, &head, why);
        gp_rows *f = gp_rowsfile_open(&how, as, fd, &none, err);
        MUST(ok ? f && gp_type_same(&f->whole, &head) : !f && *err && !strcmp(err, why));
        MUST(!ok || (head.ndim >= 3 && head.ndim <= 4 && gp_count(&head) > 0));
        if (f && gp_bytes(&f->whole) <= BYTES)
            read_pages(f);
        if (f)
            cut(&how, as, &all, fd, &head);
        gp_rowsfile_close(f);
    }
    close(fd);
}

const fuzz_harness fuzz_tiff = { .name = "tiff", .one = one };
