/* sndfile.h - libsndfile, opened by the first pipeline that has a recording, and the files that it reads and writes. */
#pragma once

#include "rows_file.h"

/* The part that is used of <sndfile.h>, whose ABI has not changed since version 1.0. */
typedef struct gp_sf_info { int64_t rows; int rate, channels, format, sections, seekable; } gp_sf_info;
typedef struct gp_sf_io {
    int64_t (*size)(void *user);
    int64_t (*seek)(int64_t offset, int whence, void *user);
    int64_t (*read)(void *to, int64_t n, void *user);
    int64_t (*write)(const void *from, int64_t n, void *user);
    int64_t (*tell)(void *user);
} gp_sf_io;
enum { SF_READ = 0x10, SF_WRITE = 0x20, SF_CONTAINER = 0x0fff0000, SF_CODEC = 0xffff };
enum { SF_UPDATE_HEADER = 0x1060, SF_PEAK_CHUNK = 0x1050, SF_VBR_QUALITY = 0x1300 };
enum { SF_WAV = 0x010000, SF_AIFF = 0x020000, SF_WAVEX = 0x130000, SF_FLAC = 0x170000, SF_OGG = 0x200000,
       SF_RF64 = 0x220000, SF_MPEG = 0x230000 };
enum { SF_S8 = 1, SF_16, SF_24, SF_32, SF_U8, SF_FLOAT, SF_DOUBLE, SF_ULAW = 0x10, SF_ALAW, SF_VORBIS = 0x60,
       SF_OPUS = 0x64, SF_MP1 = 0x80, SF_MP2, SF_MP3 };

typedef struct gp_sf_library {
    void *(*open)(gp_sf_io *io, int mode, gp_sf_info *info, void *user);
    int (*close)(void *file);
    int64_t (*seek)(void *file, int64_t rows, int whence);
    const char *(*why)(void *file);
    int (*check)(const gp_sf_info *info);
    int (*command)(void *file, int command, void *data, int bytes);
    int64_t (*get[GP_NDTYPES])(void *file, void *to, int64_t rows);
    int64_t (*put[GP_NDTYPES])(void *file, const void *from, int64_t rows);
} gp_sf_library;

/* Its functions, once gp_sf_load() found it. False: it is not there, and why. */
extern gp_sf_library gp_sf;
bool gp_sf_load(char err[GP_WHY]);

/* The bytes of a file, and where in it one is. */
typedef struct gp_sound_bytes {
    int fd;                    /* -1: there is none (any more) */
    const char *head;          /* not NULL: only the first n bytes can be read */
    size_t n;
    int64_t begins;            /* what lies before is a tag, and none of the bytes */
    int64_t size, at;
    int error;                 /* of reading or writing; 0: none */
    int64_t unsaid;            /* where a WAV does not say the size of its data; 0: it does; */
    unsigned char says[4];     /* ... what is to be there */
} gp_sound_bytes;

/* A handle of the library, for one thread at a time, which uses `s` as long as it is open; NULL: an error. */
void *gp_sf_open(gp_sound_bytes *s, int mode, gp_sf_info *info, char err[GP_WHY]);

/* Reads at most n bytes, and goes on behind them. How many there were; after an error, which is in `error`, 0. */
int64_t gp_sound_get(void *to, int64_t n, void *s);

/* sound_whole.c: leaves out the tags (ID3v2) that a file begins with. */
void gp_sound_skip_tags(gp_sound_bytes *s);
/* Leaves out what is behind the bytes that an MP3 says, as tags. False, before it is opened, for one that does not
 * say how long it is, or is not that long. */
bool gp_sound_says_length(gp_sound_bytes *s, char err[GP_WHY]);
/* sound_whole.c: where a WAV says that it has no data, or any size, and some follow: fills in `unsaid` and `says`. */
void gp_sound_find_unsaid(gp_sound_bytes *s);
/* False where a file is cut off or damaged in a way that the library does not notice. `lists`: its rows stand as
 * they are, one behind the other; those that are there are then whole, and that others are not is no error but a
 * text in `fault`, which was empty. */
bool gp_sound_is_whole(gp_sound_bytes s, bool lists, char fault[GP_WHY], char err[GP_WHY]);
