/* test_cache.c - the hash and the cache of compiled kernels. */
#include <fcntl.h>
#include <sys/stat.h>
#include "device/cache.h"
#include "lib/cu.h"
#include "suite.h"

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

TEST_EACH(sha256, hashes)
{
    gp_hash h;
    gp_hash_begin(&h);
    for (int i = 0; i < hashes[_i].times; i++)
        gp_hash_add(&h, hashes[_i].text, strlen(hashes[_i].text));
    ck_assert_str_eq(gp_hash_end(&h).hex, hashes[_i].hex);
}

TEST(texts_do_not_run_together)
{
    gp_hash a, b;
    gp_hash_begin(&a), gp_hash_begin(&b);
    gp_hash_text(&a, "ab"), gp_hash_text(&a, "c");
    gp_hash_text(&b, "a"), gp_hash_text(&b, "bc");
    ck_assert_str_ne(gp_hash_end(&a).hex, gp_hash_end(&b).hex);
}

static bool holds(const gp_key *key, const char *want)
{
    void *data = NULL;
    size_t n = 0;
    gp_errs errs = { .n = 0 };
    bool found = gp_cache_find(key, ".x", &data, &n, &errs);
    ck_assert_int_eq(errs.n, 0);
    if (found)
        found = n == strlen(want) && memcmp(data, want, n) == 0;
    free(data);
    return found;
}

static bool store(const gp_key *key, const char *data)
{
    gp_errs errs = { .n = 0 };
    return gp_cache_store(key, ".x", data, strlen(data), &errs);
}

/* Where it lies. */
static const char *file_of(const gp_key *key)
{
    return cu_path(format("cache/gpipe/%s.x", key->hex));
}

TEST(stores_and_finds)
{
    gp_key a = key_of("a"), b = key_of("b");
    ck_assert(!holds(&a, "first"));
    ck_assert(store(&a, "first"));
    ck_assert(store(&b, ""));
    ck_assert(holds(&a, "first"));
    ck_assert(holds(&b, ""));
    ck_assert(store(&a, "second"));
    ck_assert(holds(&a, "second"));
}

/* Any byte that changes, and any end that is missing, makes the entry unknown. */
TEST(damage_is_noticed)
{
    gp_key k = key_of("damage");
    const char *path = file_of(&k);
    struct stat st;
    ck_assert(store(&k, "contents"));
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

/* A file under another's name is not taken for it. */
TEST(names_are_checked)
{
    gp_key ka = key_of("name a"), kb = key_of("name b");
    ck_assert(store(&ka, "one"));
    ck_assert(store(&kb, "two"));
    ck_assert_int_eq(rename(file_of(&ka), file_of(&kb)), 0);
    ck_assert(!holds(&kb, "one"));
}

TEST(no_folder)
{
    struct stat st;
    gp_key k = key_of("none");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert(!store(&k, "one"));
    ck_assert(!holds(&k, "one"));
    setenv("HOME", cu_path("home"), 1);
    ck_assert(store(&k, "one"));
    ck_assert_int_eq(stat(cu_path("home/.cache/gpipe"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    ck_assert(holds(&k, "one"));
}

/* ---- whose it is ------------------------------------------------------------- */

static void folder_open(const char *folder, const char *file) { (void)file, chmod(folder, 0777); }
static void folder_of_group(const char *folder, const char *file) { (void)file, chmod(folder, 0770); }
static void file_open(const char *folder, const char *file) { (void)folder, chmod(file, 0606); }

static void folder_of_another(const char *folder, const char *file)
{
    ck_assert_int_eq(chown(folder, 65534, 65534), 0);
}

static void file_of_another(const char *folder, const char *file)
{
    ck_assert_int_eq(chown(file, 65534, 65534), 0);
}

static void folder_linked(const char *folder, const char *file)
{
    ck_assert_int_eq(rename(folder, cu_path("elsewhere")), 0);
    ck_assert_int_eq(symlink(cu_path("elsewhere"), folder), 0);
}

static void file_linked(const char *folder, const char *file)
{
    ck_assert_int_eq(rename(file, cu_path("elsewhere.x")), 0);
    ck_assert_int_eq(symlink(cu_path("elsewhere.x"), file), 0);
}

static void file_is_fifo(const char *folder, const char *file)
{
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(mkfifo(file, 0600), 0);
}

static const struct {
    void (*change)(const char *folder, const char *file);
    const char *why;           /* in the warning; NULL: there is none */
    bool root;                 /* only root can do that */
    bool stores;
} owned[] = {
    { folder_open, "others may write to it; remove it, or set XDG_CACHE_HOME", false, false },
    { folder_of_group, "others may write to it", false, false },
    { folder_of_another, "it belongs to another user", true, false },
    { folder_linked, "it is not a folder", false, false },
    { file_open, "others may write to it; remove it", false, true },
    { file_of_another, "it belongs to another user; remove it", true, true },
    { file_linked, NULL, false, true },
    { file_is_fifo, NULL, false, false },
};

/* What somebody else may have put there is not found, which is said once. */
TEST_EACH(only_what_is_ours_is_used, owned)
{
    gp_errs errs = { .n = 0 };
    gp_key k = key_of("ours");
    void *data;
    size_t n;
    if (owned[_i].root && geteuid() != 0)
        return;
    const char *base = cu_path(format("home%d", _i));
    setenv("XDG_CACHE_HOME", base, 1);
    char *folder = format("%s/gpipe", base);
    char *file = format("%s/%s.x", folder, k.hex);
    ck_assert(store(&k, "ours"));
    ck_assert(holds(&k, "ours"));
    owned[_i].change(folder, file);
    ck_assert(!gp_cache_find(&k, ".x", &data, &n, &errs));
    ck_assert_int_eq(errs.failed, 0);
    ck_assert_int_eq(errs.n, owned[_i].why != NULL);
    if (errs.n)
        ck_assert_msg(strstr(errs.e[0].msg, owned[_i].why) != NULL, "%s", errs.e[0].msg);
    ck_assert(!gp_cache_find(&k, ".x", &data, &n, &errs));
    if (owned[_i].stores)
        ck_assert(store(&k, "new") && holds(&k, "new"));
    else if (owned[_i].why)
        ck_assert(!store(&k, "new"));
    ck_assert_int_eq(errs.n, owned[_i].why != NULL);
    unlink(cu_path("elsewhere.x"));
}

/* Whatever the mask: a file that others may write would not be used. */
TEST(made_for_the_owner_only)
{
    struct stat st;
    gp_key k = key_of("mask");
    umask(0);
    setenv("XDG_CACHE_HOME", cu_path("deep/down"), 1);
    ck_assert(store(&k, "ours"));
    ck_assert(holds(&k, "ours"));
    ck_assert_int_eq(stat(cu_path("deep"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(cu_path("deep/down/gpipe"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
}

SUITE(cache, tcase_add_unchecked_fixture(tc, cu_open, cu_close))
