/* sound_whole.c - is a recording whole? The library takes one that is cut off for a shorter one, see sndfile.h. */
#include <stdlib.h>
#include <string.h>
#include "sndfile.h"

static uint64_t number(const unsigned char *p, int bytes, bool big)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x = x << 8 | p[big ? i : bytes - 1 - i];
    return x;
}

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
        uint64_t sum = whole ? number(p + 22, 4, false) : 0;
        if (whole)
            memset(p + 22, 0, 4);
        if (last)
            ok = gp_why(err, "holds several recordings, one behind the other, or goes on behind its end");
        else if (!whole || ogg_checksum(p, (size_t)n) != sum)
            ok = gp_why(err, "is cut off or damaged at byte %lld", (long long)at);
        else if (number(p + 18, 4, false) != (uint64_t)page || (page && number(p + 14, 4, false) != serial))
            ok = gp_why(err, "lacks a page before byte %lld, or holds several streams", (long long)at);
        if (ok)
            serial = number(p + 14, 4, false), last = p[5] & LAST, at += n;
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
    return there >= 8 && number(p + 4, 4, big) <= (uint64_t)there - 8;
}

/* Each block of a FLAC file (RFC 9639) has so many rows at most, as its first bytes say, and 10 bytes at least. */
static bool can_hold_flac(const unsigned char *p, int64_t size, char err[GP_WHY])
{
    uint64_t block = number(p + 10, 2, true), rows = number(p + 18, 8, true) & 0xfffffffff;
    return rows <= block * ((uint64_t)size / 10)
        || gp_why(err, "is cut off or damaged: it says that it has %llu rows, for which %lld bytes are too few",
                  (unsigned long long)rows, (long long)size);
}

/* The first frame of an MP3 says how many there are and how many bytes they have, behind what would be the side
 * information (Xing's header, also called Info), or at 36 (VBRI). Without it the library guesses, and leaves out what
 * is behind its guess, as it leaves out what follows the bytes that are said. */
bool gp_sound_says_length(gp_sound_bytes s, char err[GP_WHY])
{
    enum { HEAD = 64, VBRI = 36, BOTH = 3 };
    unsigned char p[HEAD], next[3];
    s.at = 0;
    int64_t got = gp_sound_get(p, HEAD, &s);
    if (got < 4 || p[0] != 0xff || (p[1] & 0xe0) != 0xe0)
        return true;                   /* it is none */
    bool mono = p[3] >> 6 == 3, first = p[1] >> 3 & 1, vbri = got == HEAD && !memcmp(p + VBRI, "VBRI", 4);
    const unsigned char *x = p + 4 + (first ? mono ? 17 : 32 : mono ? 9 : 17) + (p[1] & 1 ? 0 : 2);
    bool xing = got == HEAD && (!memcmp(x, "Xing", 4) || !memcmp(x, "Info", 4)) && (x[7] & BOTH) == BOTH;
    if (!vbri && !xing)
        return gp_why(err, "does not say how long it is: its first frame has no Xing, Info or VBRI header, as where it "
                      "was streamed; 'ffmpeg -i IN.mp3 OUT.%s", (p[1] >> 1 & 3) == 1 ? "mp3 -c copy' adds it" :
                      "flac' makes a file that does");
    uint64_t bytes = vbri ? number(p + VBRI + 10, 4, true) : number(x + 12, 4, true), there = (uint64_t)s.size;
    if (bytes > there)
        return gp_why(err, "is cut off: its header says %llu bytes, %llu are there", (unsigned long long)bytes,
                      (unsigned long long)there);
    s.at = (int64_t)bytes;
    bool more = gp_sound_get(next, sizeof next, &s) == sizeof next
             && (!memcmp(next, "ID3", 3) || (next[0] == 0xff && (next[1] & 0xe0) == 0xe0));
    return !more || gp_why(err, "goes on behind the %llu bytes that its header says: it holds several recordings",
                           (unsigned long long)bytes);
}

/* Such a tag is 10 bytes, of which four have 7 bits each of its size, the rest, and maybe 10 more (ID3v2.4, 3.1). */
void gp_sound_skip_tags(gp_sound_bytes *s)
{
    enum { HEAD = 10 };
    unsigned char p[HEAD];
    for (;;) {
        s->at = 0;
        if (gp_sound_get(p, HEAD, s) != HEAD || memcmp(p, "ID3", 3) || (p[6] | p[7] | p[8] | p[9]) & 0x80)
            break;
        int64_t n = HEAD + ((int64_t)p[6] << 21 | p[7] << 14 | p[8] << 7 | p[9]) + (p[5] & 0x10 ? HEAD : 0);
        n = n < s->size ? n : s->size;
        if (s->head)
            s->head += n < (int64_t)s->n ? (size_t)n : s->n, s->n -= n < (int64_t)s->n ? (size_t)n : s->n;
        s->begins += n, s->size -= n;
    }
    s->at = 0;
}

/* The chunk of a WAV or AIFF that has its data. */
typedef struct data { int64_t at; uint64_t size, there; bool wide, unsaid; } data;

static bool find_data(gp_sound_bytes *s, bool big, data *d)
{
    unsigned char p[26];
    uint64_t size, ds64 = 0;
    for (int64_t at = 12; at < s->size; at += 8 + (int64_t)(size + size % 2)) {
        s->at = at;
        int64_t got = gp_sound_get(p, sizeof p, s);
        if (got < 8)
            return false;
        size = number(p + 4, 4, big);
        if (!memcmp(p, "ds64", 4) && got >= 24)
            ds64 = number(p + 16, 8, false);
        if (memcmp(p, big ? "SSND" : "data", 4))
            continue;
        *d = (data){ .at = at, .size = size == UINT32_MAX && ds64 ? ds64 : size, .there = (uint64_t)(s->size - at - 8), .wide = ds64 };
        d->unsaid = !d->size && !ds64 && got > 8 && !is_chunk(p + 8, got < 16 ? 0 : s->size - at - 8, big);
        return true;
    }
    return false;
}

int64_t gp_sound_unsaid(gp_sound_bytes s)
{
    char p[12];
    data d;
    s.at = 0, s.unsaid = 0;
    return gp_sound_get(p, sizeof p, &s) == sizeof p && !memcmp(p, "RIFF", 4) && find_data(&s, false, &d) && d.unsaid ? d.at + 4 : 0;
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
