/* sound_whole.c - is a recording whole? The library takes one that is cut off for a shorter one, see sndfile.h. */
#include <stdlib.h>
#include <string.h>
#include "sndfile.h"

/* The size of data that nobody knew when the header was written: up to the end of the file. */
static bool is_open_end(uint64_t size)
{
    return size >= 0xffffff00 || (size >= 0x7ffff000 && size <= 0x80000000);
}

/* The checksum of a page of Ogg, whose own is 0: polynomial 0x04c11db7, from 0, the highest bit first (RFC 3533, 6). */
static uint32_t ogg_checksum(const unsigned char *p, size_t n)
{
    uint32_t part[16], crc = 0;
    for (uint32_t i = 0; i < 16; i++) {
        part[i] = i << 28;
        for (int k = 0; k < 4; k++)
            part[i] = part[i] << 1 ^ (part[i] >> 31 ? 0x04c11db7 : 0);
    }
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint32_t)p[i] << 24;
        crc = crc << 4 ^ part[crc >> 28];
        crc = crc << 4 ^ part[crc >> 28];
    }
    return crc;
}

/* The library goes on behind a page that is damaged or missing as if there had been none: rows would lie too early. */
static bool is_whole_ogg(gp_sound_bytes s, char err[GP_WHY])
{
    enum { FIXED = 27, LAST = 4, MOST = FIXED + 255 + 255 * 255 };
    unsigned char *p = malloc(MOST);
    bool ok = p || gp_why(err, GP_WHY_MEMORY), last = false, all = !s.head || (int64_t)s.n == s.size;
    uint64_t serial = 0;
    for (int64_t at = 0, page = 0; ok && at < s.size; page++) {
        s.at = at;
        int64_t got = gp_sound_get(p, MOST, &s), n = FIXED;
        if (!all && at + MOST > (int64_t)s.n)
            break;                     /* the rest is looked at when it is open */
        for (int i = 0; got >= FIXED && i < p[26]; i++)
            n += 1 + (FIXED + i < got ? p[FIXED + i] : 0);
        bool whole = got >= n && !memcmp(p, "OggS", 4);
        uint64_t sum = whole ? gp_number(p + 22, 4, false) : 0;
        if (whole)
            memset(p + 22, 0, 4);
        if (last)
            ok = gp_why(err, "holds several recordings, one behind the other, or goes on behind its end");
        else if (!whole || ogg_checksum(p, (size_t)n) != sum)
            ok = gp_why(err, "is cut off or damaged at byte %lld", (long long)at);
        else if (gp_number(p + 18, 4, false) != (uint64_t)page || (page && gp_number(p + 14, 4, false) != serial))
            ok = gp_why(err, "lacks a page before byte %lld, or holds several streams", (long long)at);
        if (ok)
            serial = gp_number(p + 14, 4, false), last = p[5] & LAST, at += n;
    }
    free(p);
    return ok && (last || !all || gp_why(err, "is cut off: its last page is not there"));
}

/* Is this how a chunk begins, of which all is there? */
static bool is_chunk(const unsigned char *p, int64_t there, bool big)
{
    for (int i = 0; i < 4; i++)
        if (p[i] < 0x20 || p[i] > 0x7e)
            return false;
    return there >= 8 && gp_number(p + 4, 4, big) <= (uint64_t)there - 8;
}

/* Each block of a FLAC file (RFC 9639) has so many rows at most, as its first bytes say, and 10 bytes at least. */
static bool can_hold_flac(const unsigned char *p, int64_t size, char err[GP_WHY])
{
    uint64_t block = gp_number(p + 10, 2, true), rows = gp_number(p + 18, 8, true) & 0xfffffffff;
    return rows <= block * ((uint64_t)size / 10)
        || gp_why(err, "is cut off or damaged: it says that it has %llu rows, for which %lld bytes are too few",
                  (unsigned long long)rows, (long long)size);
}

/* The bytes of a tag that begins like this, 0: it is none. ID3v2 is 10 bytes, of which four have 7 bits each of its
 * size, the rest, and maybe 10 more (ID3v2.4, 3.1); APE its header, the rest and its footer, or the last two; ID3v1
 * is 128. */
static int64_t tag_bytes(const unsigned char *p, int64_t got)
{
    enum { HEAD = 10, APE = 32, V1 = 128 };
    if (got >= HEAD && !memcmp(p, "ID3", 3) && !((p[6] | p[7] | p[8] | p[9]) & 0x80))
        return HEAD + ((int64_t)p[6] << 21 | p[7] << 14 | p[8] << 7 | p[9]) + (p[5] & 0x10 ? HEAD : 0);
    if (got >= APE && !memcmp(p, "APETAGEX", 8))
        return APE + (p[23] & 0x20 ? (int64_t)gp_number(p + 12, 4, false) : 0);
    return got >= 3 && !memcmp(p, "TAG", 3) ? V1 : 0;
}

static bool is_mpeg(const unsigned char *p, int64_t got)
{
    return got >= 4 && p[0] == 0xff && (p[1] & 0xe0) == 0xe0;
}

/* The first frame of an MP3 says how many there are and how many bytes they have, behind what would be the side
 * information (Xing's header, also called Info), or at 36 (VBRI). Without it the library guesses, and leaves out
 * what is behind its guess. It complains to standard error about tags behind the bytes that are said. */
bool gp_sound_says_length(gp_sound_bytes *s, char err[GP_WHY])
{
    enum { HEAD = 64, VBRI = 36, BOTH = 3 };
    unsigned char p[HEAD], next[HEAD];
    s->at = 0;
    int64_t got = gp_sound_get(p, HEAD, s), tag;
    if (!is_mpeg(p, got))
        return true;
    bool mono = p[3] >> 6 == 3, first = p[1] >> 3 & 1, vbri = got == HEAD && !memcmp(p + VBRI, "VBRI", 4);
    const unsigned char *x = p + 4 + (first ? mono ? 17 : 32 : mono ? 9 : 17) + (p[1] & 1 ? 0 : 2);
    bool xing = got == HEAD && (!memcmp(x, "Xing", 4) || !memcmp(x, "Info", 4)) && (x[7] & BOTH) == BOTH;
    if (!vbri && !xing)
        return gp_why(err, "does not say how long it is: its first frame has no Xing, Info or VBRI header, as where it "
                      "was streamed; 'ffmpeg -i IN.mp3 OUT.%s", (p[1] >> 1 & 3) == 1 ? "mp3 -c copy' adds it" :
                      "flac' makes a file that does");
    uint64_t bytes = vbri ? gp_number(p + VBRI + 10, 4, true) : gp_number(x + 12, 4, true), there = (uint64_t)s->size;
    if (bytes > there)
        return gp_why(err, "is cut off: its header says %llu bytes, %llu are there", (unsigned long long)bytes,
                      (unsigned long long)there);
    for (int64_t at = (int64_t)bytes;; at += tag) {
        s->at = at;
        got = gp_sound_get(next, HEAD, s);
        if (!(tag = tag_bytes(next, got)))
            break;
    }
    if (is_mpeg(next, got))
        return gp_why(err, "goes on behind the %llu bytes that its header says: it holds several recordings",
                      (unsigned long long)bytes);
    s->size = (int64_t)bytes, s->at = 0;
    s->n = s->n < bytes ? s->n : bytes;
    return true;
}

void gp_sound_skip_tags(gp_sound_bytes *s)
{
    enum { HEAD = 10 };
    unsigned char p[HEAD];
    int64_t n;
    for (s->at = 0; (n = tag_bytes(p, gp_sound_get(p, HEAD, s))); s->at = 0) {
        n = n < s->size ? n : s->size;
        if (s->head)
            s->head += n < (int64_t)s->n ? (size_t)n : s->n, s->n -= n < (int64_t)s->n ? (size_t)n : s->n;
        s->begins += n, s->size -= n;
    }
    s->at = 0;
}

/* The chunk of a WAV or AIFF that has its data. `there`: the bytes behind its head. */
typedef struct data { int64_t at; uint64_t size, there; bool wide, unsaid; } data;

/* How many bytes of data whose size is not said lie before the chunks that end with the file, if there are any in
 * its last 64 KiB. */
static uint64_t without_chunks(gp_sound_bytes *s, const data *d)
{
    enum { TAIL = 1 << 16 };
    int64_t n = d->there < TAIL ? (int64_t)d->there : TAIL;
    unsigned char *p = malloc(TAIL);
    s->at = s->size - n;
    n = p ? gp_sound_get(p, n, s) : 0;
    int64_t found = n;
    for (int64_t from = (int64_t)(d->there - (uint64_t)n) % 2; found == n && from + 8 < n; from += 2) {
        int64_t at = from;
        for (uint64_t size; at + 8 < n && is_chunk(p + at, n - at, false) && (size = gp_number(p + at + 4, 4, false)); )
            at += 8 + (int64_t)(size + size % 2);
        found = at >= n ? from : n;
    }
    free(p);
    return d->there - (uint64_t)(n - found);
}

static bool find_data(gp_sound_bytes *s, bool big, data *d)
{
    unsigned char p[26];
    uint64_t size, ds64 = 0;
    for (int64_t at = 12; at < s->size; at += 8 + (int64_t)(size + size % 2)) {
        s->at = at;
        int64_t got = gp_sound_get(p, sizeof p, s);
        if (got < 8)
            return false;
        size = gp_number(p + 4, 4, big);
        if (!memcmp(p, "ds64", 4) && got >= 24)
            ds64 = gp_number(p + 16, 8, false);
        if (memcmp(p, big ? "SSND" : "data", 4))
            continue;
        *d = (data){ .at = at, .size = size == UINT32_MAX && ds64 ? ds64 : size, .there = (uint64_t)(s->size - at - 8),
                     .wide = ds64 };
        d->unsaid = !d->size && !ds64 && got > 8 && !is_chunk(p + 8, got < 16 ? 0 : s->size - at - 8, big);
        if (!big && (d->unsaid || (!ds64 && is_open_end(d->size) && d->size > d->there)))
            d->there = without_chunks(s, d);
        return true;
    }
    return false;
}

void gp_sound_find_unsaid(gp_sound_bytes *s)
{
    char p[12];
    data d;
    s->at = 0, s->unsaid = 0;
    if (gp_sound_get(p, sizeof p, s) == sizeof p && !memcmp(p, "RIFF", 4) && find_data(s, false, &d)
        && (d.unsaid || (!d.wide && is_open_end(d.size) && d.size > d.there))) {
        s->unsaid = d.at + 4;
        for (int i = 0; i < 4; i++)
            s->says[i] = d.there < UINT32_MAX ? (unsigned char)(d.there >> 8 * i) : 0xff;
    }
    s->at = 0;
}

/* The header of a file of chunks (WAV, AIFF) says how much there is. */
bool gp_sound_is_whole(gp_sound_bytes s, bool lists, char fault[GP_WHY], char err[GP_WHY])
{
    unsigned char p[26];
    data d;
    s.at = 0, s.unsaid = 0;
    int64_t begins = gp_sound_get(p, sizeof p, &s);
    if (begins < 12)
        return true;
    if (!memcmp(p, "fLaC", 4) && begins == sizeof p)
        return can_hold_flac(p, s.size, err);
    if (!memcmp(p, "OggS", 4))
        return is_whole_ogg(s, err);
    bool big = !memcmp(p, "FORM", 4);
    if ((!big && memcmp(p, "RIFF", 4) && memcmp(p, "RF64", 4)) || !find_data(&s, big, &d))
        return true;
    if (d.unsaid)
        return gp_why(lists ? fault : err, "says that it holds no data, and %llu bytes follow: it was never finished",
                      (unsigned long long)d.there) || lists;
    return d.size <= d.there || (!d.wide && is_open_end(d.size))
        || gp_why(lists ? fault : err, "is cut off: its header says %llu bytes of data, %llu are there",
                  (unsigned long long)d.size, (unsigned long long)d.there) || lists;
}
