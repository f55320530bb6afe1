/* cache.c - see cache.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif
#include "base/outfile.h"
#include "device/cache.h"

/* ---- SHA-256 ----------------------------------------------------------- */

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

#if defined __x86_64__
/* By the instructions that most processors have since 2019: ten times as fast. A state is two vectors, ABEF and CDGH. */
__attribute__((target("sha,sse4.1")))
static void hash_block_sha(uint32_t state[8], const unsigned char *p)
{
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i *at = (__m128i *)(void *)state, w[16], low = _mm_loadu_si128(at), high = _mm_loadu_si128(at + 1);
    __m128i abef = _mm_shuffle_epi32(_mm_unpacklo_epi64(high, low), 0xb1), was_abef = abef;
    __m128i cdgh = _mm_shuffle_epi32(_mm_unpackhi_epi64(high, low), 0xb1), was_cdgh = cdgh;
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        if (i < 4)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p + i), swap);
        else
            w[i] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]),
                                                      _mm_alignr_epi8(w[i - 1], w[i - 2], 4)), w[i - 1]);
        __m128i m = _mm_add_epi32(w[i], _mm_loadu_si128((const __m128i *)(const void *)k + i));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m, 0x0e));
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, was_abef), 0xb1);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, was_cdgh), 0xb1);
    _mm_storeu_si128(at, _mm_unpackhi_epi64(abef, cdgh));
    _mm_storeu_si128(at + 1, _mm_unpacklo_epi64(abef, cdgh));
}

static bool has_sha(void)
{
    static atomic_int known;           /* 1: no, 2: yes; asking takes long in a virtual machine */
    unsigned a, b = 0, c, d;
    if (!atomic_load(&known))
        atomic_store(&known, 1 + (__builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d)
                                  && (b & bit_SHA)));
    return atomic_load(&known) == 2;
}
#else
#define hash_block_sha hash_block
static bool has_sha(void)
{
    return false;
}
#endif

static void hash_block(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                     ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                     ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t;
        v[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void gp_hash_begin(gp_hash *h)
{
    *h = (gp_hash){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void gp_hash_add(gp_hash *h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    void (*const block)(uint32_t *, const unsigned char *) = has_sha() ? hash_block_sha : hash_block;
    while (bytes) {
        for (; h->bytes % 64 == 0 && bytes >= 64; h->bytes += 64, p += 64, bytes -= 64)
            block(h->state, p);
        size_t at = h->bytes % 64, n = 64 - at < bytes ? 64 - at : bytes;
        memcpy(h->part + at, p, n);
        h->bytes += n, p += n, bytes -= n;
        if (n && h->bytes % 64 == 0)
            hash_block(h->state, h->part);
    }
}

void gp_hash_text(gp_hash *h, const char *s)
{
    gp_hash_add(h, s, strlen(s) + 1);
}

gp_key gp_hash_end(gp_hash *h)
{
    uint64_t bits = h->bytes * 8;
    unsigned char end[8];
    for (int i = 0; i < 8; i++)
        end[i] = (unsigned char)(bits >> (56 - 8 * i));
    gp_hash_add(h, "\x80", 1);
    while (h->bytes % 64 != 56)
        gp_hash_add(h, "", 1);
    gp_hash_add(h, end, sizeof end);
    gp_key key;
    for (int i = 0; i < 8; i++)
        snprintf(key.hex + 8 * i, 9, "%08x", (unsigned)h->state[i]);
    return key;
}

/* ---- files --------------------------------------------------------------- */

/* All of an open file, malloc'd, with a NUL behind it. NULL with `err`; a file that is not
 * regular may have no end. */
static char *read_all(int fd, size_t most, size_t *bytes, char err[GP_WHY])
{
    struct stat st;
    char *data = NULL;
    ssize_t got = 1;
    size_t n = 0;
    if (fstat(fd, &st))
        gp_why(err, "cannot be read: %s", gp_strerror(errno));
    else if (!S_ISREG(st.st_mode))
        gp_why(err, "is not a regular file");
    else if ((size_t)st.st_size > most)
        gp_why(err, "is larger than %zu MiB", most >> 20);
    else if (!(data = malloc((size_t)st.st_size + 1)))
        gp_why(err, "cannot be read: %s", gp_strerror(ENOMEM));
    if (!data)
        return NULL;
    while (n < (size_t)st.st_size && (got = read(fd, data + n, (size_t)st.st_size - n)) != 0)
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    if (got < 0) {
        gp_why(err, "cannot be read: %s", gp_strerror(errno));
        free(data);
        return NULL;
    }
    data[n] = 0;
    *bytes = n;
    return data;
}

char *gp_slurp(const char *path, size_t most, size_t *bytes, char err[GP_WHY])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return GP_NULL(gp_why(err, "cannot be read: %s", gp_strerror(errno)));
    char *data = read_all(fd, most, bytes, err);
    close(fd);
    return data;
}

/* ---- the folder ---------------------------------------------------------- */

/* Stands at the end of each file of the cache. */
typedef struct trailer {
    char magic[8];
    uint64_t bytes;            /* of what is before it */
    char key[64], sum[64];     /* hex */
} trailer;

static trailer seal(const gp_key *key, const void *data, size_t bytes)
{
    trailer t = { .bytes = bytes };
    gp_hash h;
    gp_hash_begin(&h);
    gp_hash_add(&h, data, bytes);
    gp_key sum = gp_hash_end(&h);
    memcpy(t.magic, "gpcache1", sizeof t.magic);
    memcpy(t.key, key->hex, sizeof t.key);
    memcpy(t.sum, sum.hex, sizeof t.sum);
    return t;
}

/* The folder's path. False when the environment names none. */
static bool folder(char path[PATH_MAX])
{
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    if (!base || base[0] != '/')
        base = getenv("HOME"), below = "/.cache";
    return base && base[0] == '/' &&
           snprintf(path, PATH_MAX, "%s%s/gpipe", base, below) < PATH_MAX - 100;
}

/* mkdir -p, for the owner only. */
static void make_folder(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0700);
            *p = '/';
        }
    mkdir(path, 0700);
}

/* Why somebody else can have put there what we would run; NULL: nobody can. */
static const char *distrust(int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return "it cannot be looked at";
    if (st.st_uid != geteuid())
        return "it belongs to another user";
    return st.st_mode & 022 ? "others may write to it" : NULL;
}

/* Said once: it slows the start, and is no error. */
static void unused(const char *what, const char *path, const char *why, const char *advice,
                   gp_errs *errs)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        gp_fail(errs, GP_E_WARN, (gp_loc){ 0 }, "%s '%s' is not used, since %s; %s", what, path,
                why, advice);
}

/* The folder, open, and its path; -1: it is not there or not to be trusted. */
static int open_folder(char path[PATH_MAX], gp_errs *errs)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), e = errno;
    const char *why = fd < 0 ? (e == ELOOP || e == ENOTDIR ? "it is not a folder" : NULL)
                             : distrust(fd);
    if (why) {
        unused("the cache of compiled kernels in", path, why, "remove it, or set XDG_CACHE_HOME "
               "to a folder of your own", errs);
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    return fd;
}

bool gp_cache_find(const gp_key *key, const char *ext, void **data, size_t *bytes, gp_errs *errs)
{
    char path[PATH_MAX], name[100], err[GP_WHY], *file = NULL;
    int dir = folder(path) ? open_folder(path, errs) : -1, fd;
    if (dir < 0)
        return false;
    snprintf(name, sizeof name, "%s%s", key->hex, ext);
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    close(dir);
    if (fd < 0)
        return false;
    const char *why = distrust(fd);
    if (why)
        strcat(strcat(path, "/"), name),
        unused("the compiled kernel", path, why, "remove it", errs);
    else
        file = read_all(fd, SIZE_MAX / 2, bytes, err);
    close(fd);
    trailer t, want;
    bool ok = file && *bytes >= sizeof t;
    if (ok) {
        *bytes -= sizeof t;
        memcpy(&t, file + *bytes, sizeof t);
        want = seal(key, file, *bytes);
        ok = memcmp(&t, &want, sizeof t) == 0;
    }
    if (ok)
        *data = file;
    else
        free(file);
    return ok;
}

bool gp_cache_store(const gp_key *key, const char *ext, const void *data, size_t bytes,
                    gp_errs *errs)
{
    char path[PATH_MAX], name[160], err[GP_WHY];
    int dir;
    if (!folder(path))
        return false;
    make_folder(path);
    if ((dir = open_folder(path, errs)) < 0)
        return false;
    /* By the open folder, whatever lies under its path by now. */
    snprintf(name, sizeof name, "/proc/self/fd/%d/%s%s", dir, key->hex, ext);
    gp_outfile f = { .open = false };
    trailer t = seal(key, data, bytes);
    struct iovec v[] = { { (void *)data, bytes }, { &t, sizeof t } };
    unlink(name);                      /* or the new one would take over its owner and mode */
    bool ok = gp_outfile_open(&f, name, err) && fchmod(f.fd, 0600) == 0
        && gp_write_all(f.fd, v, 2, err) && gp_outfile_commit(&f, err);
    gp_outfile_drop(&f);
    close(dir);
    return ok;
}
