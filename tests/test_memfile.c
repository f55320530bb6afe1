/* test_memfile.c - texts in memory, and what is said when they do not fit into it. */
#include "base/memfile.h"
#include "suite.h"

TEST_LOOP(keeps_all, 0, 7)
{
    static const size_t lengths[] = { 0, 1, 255, 256, 257, 4096, 1000000 };
    gp_memfile m;
    size_t n, want = lengths[_i];
    ck_assert(gp_memfile_open(&m));
    for (size_t i = 0; i < want; i++)
        fputc('a' + (int)(i % 26), m.f);
    OWNED char *text = gp_memfile_close(&m, &n);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(n, want);
    ck_assert_uint_eq(strlen(text), want);
    size_t good = 0;
    while (good < want && text[good] == 'a' + (int)(good % 26))
        good++;
    ck_assert_uint_eq(good, want);
}

/* What does not fit is said, wherever memory runs out: half way, or at the very end. */
TEST_LOOP(says_what_does_not_fit, 0, 2)
{
    static char block[1 << 20];
    gp_memfile m;
    size_t n;
    if (!suite_leave_memory(64 << 20))
        return;
    ck_assert(gp_memfile_open(&m));
    memset(block, 'x', sizeof block);
    size_t most = _i ? 256 : 33;       /* MiB; what there is doubles, so 32 fit and 64 do not */
    for (size_t i = 0; i < most; i++)
        fwrite(block, 1, sizeof block, m.f);
    for (int i = 0; !_i && i < 100; i++)
        fputc('y', m.f);               /* these are in the stream's own buffer */
    ck_assert_ptr_null(gp_memfile_close(&m, &n));
}

TEST_SUITE(memfile, NULL, NULL, 0)
