/* cache.c - see cache.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/cache.h"

/* ---- SHA-256 ----------------------------------------------------------- */

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void hash_block(uint32_t state[8], const unsigned char *p)
{
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
    while (bytes) {
        size_t at = h->bytes % 64, n = 64 - at < bytes ? 64 - at : bytes;
        memcpy(h->part + at, p, n);
        h->bytes += n, p += n, bytes -= n;
        if (h->bytes % 64 == 0)
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

char *gp_slurp(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), error;
    struct stat st;
    char *data = NULL;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && (data = malloc((size_t)st.st_size + 1))) {
        size_t n = 0;
        ssize_t got = 1;
        while (n < (size_t)st.st_size &&
               (got = read(fd, data + n, (size_t)st.st_size - n)) > 0)
            n += (size_t)got;
        if (got >= 0) {
            data[n] = 0;
            *bytes = n;
            close(fd);
            return data;
        }
    }
    error = errno;
    free(data);
    close(fd);
    errno = error;
    return NULL;
}

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

/* The folder. False when the environment names none. */
static bool folder(char path[PATH_MAX])
{
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    if (!base || base[0] != '/')
        base = getenv("HOME"), below = "/.cache";
    return base && base[0] == '/' &&
           snprintf(path, PATH_MAX, "%s%s/gpipe", base, below) < PATH_MAX - 100;
}

static bool name_of(const gp_key *key, const char *ext, char path[PATH_MAX])
{
    if (!folder(path))
        return false;
    size_t n = strlen(path);
    snprintf(path + n, PATH_MAX - n, "/%s%s", key->hex, ext);
    return true;
}

bool gp_cache_find(const gp_key *key, const char *ext, char path[PATH_MAX], void **data,
                   size_t *bytes)
{
    size_t n;
    char *file;
    if (!name_of(key, ext, path) || !(file = gp_slurp(path, &n)))
        return false;
    trailer t, want;
    bool ok = n >= sizeof t;
    if (ok) {
        n -= sizeof t;
        memcpy(&t, file + n, sizeof t);
        want = seal(key, file, n);
        ok = memcmp(&t, &want, sizeof t) == 0;
    }
    if (ok && data)
        *data = file, *bytes = n;
    else
        free(file);
    return ok;
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

static bool write_all(int fd, const void *data, size_t bytes)
{
    for (const char *p = data; bytes;) {
        ssize_t n = write(fd, p, bytes);
        if (n <= 0 && errno != EINTR)
            return false;
        if (n > 0)
            p += n, bytes -= (size_t)n;
    }
    return true;
}

bool gp_cache_store(const gp_key *key, const char *ext, const void *data, size_t bytes,
                    char path[PATH_MAX])
{
    char tmp[PATH_MAX];
    if (!folder(tmp))
        return false;
    make_folder(tmp);
    strcat(tmp, "/new-XXXXXX");
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0)
        return false;
    trailer t = seal(key, data, bytes);
    bool ok = write_all(fd, data, bytes) && write_all(fd, &t, sizeof t);
    ok = close(fd) == 0 && ok;
    ok = ok && name_of(key, ext, path) && rename(tmp, path) == 0;
    if (!ok)
        unlink(tmp);
    return ok;
}
