/* y4m.c - video: each input is the header of a stream and, with what follows, a file. */
#include <sys/mman.h>
#include <unistd.h>
#include "rows_file.h"
#include "y4m_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20 };

/* What was understood is written, and understood again as the same. */
static void and_back(const gp_y4m *v, const gp_type *frame)
{
    char line[GP_Y4M_LINE], err[GP_WHY];
    gp_y4m again, taken = *v;
    size_t n = gp_y4m_header(v, line);
    MUST(n < sizeof line && line[n - 1] == '\n');
    MUST(gp_y4m_parse(line, n - 1, &again, err));
    MUST(again.width == v->width && again.height == v->height && again.subsampling == v->subsampling);
    MUST(again.bits == v->bits && again.range == v->range && !memcmp(again.rate, v->rate, sizeof v->rate));
    MUST(!memcmp(again.aspect, v->aspect, sizeof v->aspect));
    MUST(gp_y4m_take(&taken, frame, err) && taken.width == v->width && taken.height == v->height);
}

static void as_header(const char *data, size_t n)
{
    gp_y4m v;
    gp_type frame;
    char err[GP_WHY] = "", text[GP_Y4M_LINE], is[80];
    const char *end = memchr(data, '\n', n);
    size_t len = end ? (size_t)(end - data) : n;
    bool ok = gp_y4m_parse(data, len, &v, err);
    MUST(ok || *err);
    if (ok && gp_y4m_type(&v, &frame, err)) {
        MUST(gp_count(&frame) > 0 && *gp_y4m_text(&v, is));
        and_back(&v, &frame);
    }
    int64_t ratio[2];
    snprintf(text, sizeof text, "%.*s", (int)(len < 40 ? len : 40), data);
    MUST(!gp_y4m_ratio(text, ratio) || (ratio[0] > 0 && ratio[1] > 0));
}

static void as_file(const char *data, size_t n)
{
    static const gp_rowsfile_how how;
    const gp_type any = { 0 };
    gp_filetype as = gp_filetype_of("a.y4m");
    gp_type head = { 0 };
    gp_rows_own own = { 0 };
    char err[GP_WHY] = "", why[GP_WHY] = "";
    int fd = memfd_create("y4m", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    bool ok = gp_rowsfile_head(&how, as, &(gp_rows_head){ .data = data, .n = n, .size = (int64_t)n }, &any, &head, why);
    gp_rows *f = gp_rowsfile_open(&how, as, fd, &any, err);
    MUST(ok == (f != NULL) && (f || !strcmp(err, why)));
    if (f)
        MUST(head.dim[0] < 0 || f->whole.dim[0] <= head.dim[0] || f->whole.dim[0] <= (int64_t)n);
    gp_type one = head;
    one.dim[0] = 1;
    char *frame = f && gp_bytes(&one) <= BYTES ? malloc(gp_bytes(&one)) : NULL;
    for (int64_t i = 0; frame && i < f->whole.dim[0] && i < 100; i++)  /* only the last one may be broken */
        MUST(gp_rowsfile_read(f, &own, i, 1, frame, err) || (*err && i == f->whole.dim[0] - 1));
    free(frame);
    gp_rowsfile_leave(&own);
    gp_rowsfile_close(f);
    close(fd);
}

static void one(const char *data, size_t n)
{
    as_header(data, n);
    as_file(data, n);
}

const fuzz_harness fuzz_y4m = { .name = "y4m", .one = one };
