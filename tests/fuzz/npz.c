/* npz.c - .npz archives: the only member, one by its name, and the only one that is no number. */
#include <sys/mman.h>
#include <unistd.h>
#include "rows_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20 };

/* Reads what the head promises, in three pieces, and the numbers of its first rows. */
static void read_all(gp_rows *f)
{
    gp_rows_own own = { 0 };
    char err[GP_WHY] = "";
    char *to = malloc(gp_bytes(&f->whole) + 1);
    gp_type row = f->whole;
    row.dim[0] = 1;
    int64_t piece = f->whole.dim[0] / 3 + 1;
    for (int64_t at = 0, n; at < f->whole.dim[0]; at += n) {
        n = f->whole.dim[0] - at < piece ? f->whole.dim[0] - at : piece;
        bool ok = gp_rowsfile_read(f, &own, at, n, to + (size_t)at * gp_bytes(&row), err);
        MUST(ok || *err);
    }
    for (int64_t i = 0; i < f->whole.dim[0] && i < 40; i++) {
        gp_filemeta said = { .n = f->said.n, .key = f->said.key };
        MUST(gp_rowsfile_metadata(f, &own, i, &said, err) || *err);
    }
    gp_rowsfile_leave(&own);
    free(to);
}

static void one(const char *data, size_t n)
{
    static const char *const members[] = { "", "u", "" }, *const keys[] = { "u", "exposure", "time" };
    int fd = memfd_create("npz", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    for (int i = 0; i < 3; i++) {
        gp_rowsfile_how how = { .member = members[i], .key = keys, .nkeys = i == 2 ? 3 : 0 };
        gp_filetype as = gp_filetype_of("a.npz");
        gp_type none = { .dtype = GP_NO_DTYPE }, head = { 0 };
        char err[GP_WHY] = "", why[GP_WHY] = "";
        gp_rows_head all = { .data = data, .n = n, .size = (int64_t)n };
        bool ok = gp_rowsfile_head(&how, as, &all, &none, &head, why);
        gp_rows *f = gp_rowsfile_open(&how, as, fd, &none, err);
        MUST(i == 2 && ok && !f ? *err : ok ? f && gp_type_same(&f->whole, &head) : !f && *err && !strcmp(err, why));
        MUST(!f || !gp_rowsfile_of(as)->why_not(&f->whole, "a.npz"));
        if (f && gp_bytes(&f->whole) <= BYTES)
            read_all(f);
        gp_rowsfile_close(f);
    }
    close(fd);
}

const fuzz_harness fuzz_npz = { .name = "npz", .one = one };
