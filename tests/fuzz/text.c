/* text.c - numbers as text: each input as CSV, TSV and JSON lines, of a type that its first byte picks, and of CSV
 * with a header or a decimal comma. */
#include <sys/mman.h>
#include <unistd.h>
#include "rows_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20 };

static int file_of(const void *data, size_t n)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    return fd;
}

/* All rows at once; NULL: one is wrong. */
static void *rows_of(gp_rows *f)
{
    gp_rows_own own = { 0 };
    char err[GP_WHY] = "";
    void *all = malloc(gp_bytes(&f->whole) + 1);
    bool ok = gp_rowsfile_read(f, &own, 0, f->whole.dim[0], all, err);
    MUST(ok || *err);
    gp_rowsfile_leave(&own);
    if (ok)
        return all;
    free(all);
    return NULL;
}

/* Rows one by one, from the last to the first, are those that are read at once. */
static void backwards(gp_rows *f, const char *all)
{
    gp_rows_own own = { 0 };
    char err[GP_WHY] = "";
    size_t row = gp_bytes(&f->whole) / (size_t)f->whole.dim[0];
    char *one = malloc(row);
    for (int64_t i = f->whole.dim[0] < 40 ? f->whole.dim[0] : 40; i-- > 0;)
        MUST(gp_rowsfile_read(f, &own, i, 1, one, err) && !memcmp(one, all + (size_t)i * row, row));
    free(one);
    gp_rowsfile_leave(&own);
}

/* What was read is written, and read again to the same bits. */
static void and_back(const gp_rowsfile *as, const gp_rows *f, const void *all)
{
    gp_growbuf text = { 0 };
    char err[GP_WHY] = "";
    MUST(!as->why_not(&f->whole, "") && as->encode(as, all, &f->whole, &text, err));
    int fd = file_of(text.data, text.n);
    gp_rows *again = as->open(fd, &(gp_rowsfile_how){ .as = as, .dtype = f->whole.dtype }, err);
    MUST(again && gp_type_same(&again->whole, &f->whole));
    again->as = as, again->serial = 1;
    char *copy = rows_of(again);
    MUST(copy != NULL);
    if (f->whole.dtype != GP_F32 && f->whole.dtype != GP_F64)  /* which have many NaNs */
        MUST(!memcmp(copy, all, gp_bytes(&f->whole)));
    gp_growbuf same = { 0 };
    MUST(as->encode(as, copy, &f->whole, &same, err) && same.n == text.n && !memcmp(same.data, text.data, text.n));
    free(copy), free(same.data), free(text.data);
    as->close(again);
    close(fd);
}

static void as_one(gp_filetype as, gp_rowsfile_how how, gp_dtype dtype, const char *data, size_t n)
{
    gp_type declared = { .dtype = dtype }, head = { 0 };
    char err[GP_WHY] = "", why[GP_WHY] = "", note[GP_WHY] = "";
    int fd = file_of(data, n);
    gp_rows_head whole = { .data = data, .n = n, .size = (int64_t)n, .note = note }, half = whole;
    half.n /= 2, whole.header_line = &how.header_line;
    bool ok = gp_rowsfile_head(&how, as, &whole, &declared, &head, why);
    gp_rows *f = gp_rowsfile_open(&how, as, fd, &declared, err);
    MUST(ok ? f && gp_type_same(&f->whole, &head) : !f && *err && !strcmp(err, why));
    MUST(!*note || (how.header == GP_HEADER_AUTO && as != gp_filetype_of("a.jsonl")));
    if (f && gp_bytes(&f->whole) <= BYTES) {
        char *all = rows_of(f);
        if (all) {
            backwards(f, all);
            and_back(gp_rowsfile_of(as), f, all);
        }
        free(all);
    }
    gp_rowsfile_close(f);
    close(fd);
    /* Of a part of the file the head says no less than that, and no more rows than there are; or nothing. */
    if (gp_rowsfile_head(&how, as, &half, &declared, &head, why))
        MUST(!head.ndim || (head.dim[0] == -1 && head.dtype == (dtype ? dtype : GP_F64)));
}

static void one(const char *data, size_t n)
{
    static const gp_dtype types[] = { GP_NO_DTYPE, GP_F32, GP_U8, GP_I16, GP_I64, GP_U64, GP_I8, GP_U16, GP_U32, GP_I32,
                                      GP_F16 };
    enum { TYPES = sizeof types / sizeof *types };
    int first = n ? (unsigned char)*data : 0;
    const gp_rowsfile_how how = { .header = first / TYPES % 3, .decimal_comma = first / TYPES / 3 % 2 };
    static const char *const names[] = { "a.csv", "a.tsv", "a.jsonl" };
    for (int i = 0; i < 3; i++)
        as_one(gp_filetype_of(names[i]), how, types[first % TYPES], data + (n > 0), n - (n > 0));
}

const fuzz_harness fuzz_text_rows = { .name = "text", .one = one };
