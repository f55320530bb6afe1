/* test_cache.c - the hash and the cache of compiled kernels. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/cache.h"
#include "lib/cu.h"

Suite *suite_cache(void);

static gp_key key_of(const char *s)
{
    gp_hash h;
    gp_hash_begin(&h);
    gp_hash_add(&h, s, strlen(s));
    return gp_hash_end(&h);
}

/* FIPS 180-4 examples, and what coreutils say. */
static const struct { const char *text; int times; const char *hex; } hashes[] = {
    { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

START_TEST(sha256)
{
    gp_hash h;
    gp_hash_begin(&h);
    for (int i = 0; i < hashes[_i].times; i++)
        gp_hash_add(&h, hashes[_i].text, strlen(hashes[_i].text));
    ck_assert_str_eq(gp_hash_end(&h).hex, hashes[_i].hex);
}
END_TEST

START_TEST(texts_do_not_run_together)
{
    gp_hash a, b;
    gp_hash_begin(&a), gp_hash_begin(&b);
    gp_hash_text(&a, "ab"), gp_hash_text(&a, "c");
    gp_hash_text(&b, "a"), gp_hash_text(&b, "bc");
    ck_assert_str_ne(gp_hash_end(&a).hex, gp_hash_end(&b).hex);
}
END_TEST

static bool holds(const gp_key *key, const char *want)
{
    char path[PATH_MAX];
    void *data = NULL;
    size_t n = 0;
    bool found = gp_cache_find(key, ".x", path, &data, &n);
    if (found)
        found = n == strlen(want) && memcmp(data, want, n) == 0;
    free(data);
    return found;
}

START_TEST(stores_and_finds)
{
    char path[PATH_MAX];
    gp_key a = key_of("a"), b = key_of("b");
    ck_assert(!holds(&a, "first"));
    ck_assert(gp_cache_store(&a, ".x", "first", 5, path));
    ck_assert(gp_cache_store(&b, ".x", "", 0, path));
    ck_assert(holds(&a, "first"));
    ck_assert(holds(&b, ""));
    ck_assert(gp_cache_store(&a, ".x", "second", 6, path));
    ck_assert(holds(&a, "second"));
}
END_TEST

/* Any byte that changes, and any end that is missing, makes the entry unknown. */
START_TEST(damage_is_noticed)
{
    char path[PATH_MAX];
    gp_key k = key_of("damage");
    struct stat st;
    ck_assert(gp_cache_store(&k, ".x", "contents", 8, path));
    ck_assert_int_eq(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        int fd = open(path, O_RDWR);
        char c, flipped;
        ck_assert_int_eq(pread(fd, &c, 1, at), 1);
        flipped = (char)(c ^ 16);
        ck_assert_int_eq(pwrite(fd, &flipped, 1, at), 1);
        ck_assert(!holds(&k, "contents"));
        ck_assert_int_eq(pwrite(fd, &c, 1, at), 1);
        close(fd);
        ck_assert(holds(&k, "contents"));
    }
    for (off_t n = st.st_size - 1; n >= 0; n -= 7) {
        ck_assert_int_eq(truncate(path, n), 0);
        ck_assert(!holds(&k, "contents"));
    }
}
END_TEST

/* A file under another's name is not taken for it. */
START_TEST(names_are_checked)
{
    char a[PATH_MAX], b[PATH_MAX];
    gp_key ka = key_of("name a"), kb = key_of("name b");
    ck_assert(gp_cache_store(&ka, ".x", "one", 3, a));
    ck_assert(gp_cache_store(&kb, ".x", "two", 3, b));
    ck_assert_int_eq(rename(a, b), 0);
    ck_assert(!holds(&kb, "one"));
}
END_TEST

START_TEST(no_folder)
{
    char path[PATH_MAX];
    gp_key k = key_of("none");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert(!gp_cache_store(&k, ".x", "one", 3, path));
    ck_assert(!holds(&k, "one"));
    setenv("HOME", cu_path("home"), 1);
    ck_assert(gp_cache_store(&k, ".x", "one", 3, path));
    ck_assert_ptr_nonnull(strstr(path, "/home/.cache/gpipe/"));
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    ck_assert(holds(&k, "one"));
}
END_TEST

Suite *suite_cache(void)
{
    Suite *s = suite_create("cache");
    TCase *tc = tcase_create("files");
    tcase_add_unchecked_fixture(tc, cu_open, cu_close);
    tcase_add_loop_test(tc, sha256, 0, sizeof hashes / sizeof *hashes);
    tcase_add_test(tc, texts_do_not_run_together);
    tcase_add_test(tc, stores_and_finds);
    tcase_add_test(tc, damage_is_noticed);
    tcase_add_test(tc, names_are_checked);
    tcase_add_test(tc, no_folder);
    suite_add_tcase(s, tc);
    return s;
}
