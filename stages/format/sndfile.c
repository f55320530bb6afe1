/* sndfile.c - libsndfile and the files that it reads and writes, see sndfile.h. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/dl.h"
#include "sndfile.h"

/* ---- the library ----------------------------------------------------- */

gp_sf_library gp_sf;

static struct {
    pthread_once_t once;
    bool ok;
    char why[GP_WHY];
    pthread_mutex_t opening;   /* why a file cannot be opened, the library keeps for the whole process */
} library = { .once = PTHREAD_ONCE_INIT, .opening = PTHREAD_MUTEX_INITIALIZER };

static void open_library(void)
{
    static const char *const names[] = { "libsndfile.so.1", "libsndfile.so", NULL };
    gp_sf_library *l = &gp_sf;
    const gp_dl_symbol symbol[] = {
        { "sf_open_virtual", &l->open },
        { "sf_close", &l->close },
        { "sf_seek", &l->seek },
        { "sf_strerror", &l->why },
        { "sf_format_check", &l->check },
        { "sf_command", &l->command },
        { "sf_readf_short", &l->get[GP_I16] },
        { "sf_readf_int", &l->get[GP_I32] },
        { "sf_readf_float", &l->get[GP_F32] },
        { "sf_readf_double", &l->get[GP_F64] },
        { "sf_writef_short", &l->put[GP_I16] },
        { "sf_writef_int", &l->put[GP_I32] },
        { "sf_writef_float", &l->put[GP_F32] },
        { "sf_writef_double", &l->put[GP_F64] },
        { 0 },
    };
    gp_errs errs = { .n = 0 };
    library.ok = gp_dl_open(names, symbol, "is a recording, which", "install libsndfile1 (Debian, Ubuntu)",
                            (gp_loc){ 0 }, &errs);
    if (!library.ok)
        gp_why(library.why, "%s", errs.e[0].msg);
}

bool gp_sf_load(char err[GP_WHY])
{
    pthread_once(&library.once, open_library);
    return library.ok || gp_why(err, "%s", library.why);
}

/* ---- where its bytes are --------------------------------------------- */

static int64_t size_of(void *user)
{
    return ((gp_sound_bytes *)user)->size;
}

static int64_t tell(void *user)
{
    return ((gp_sound_bytes *)user)->at;
}

static int64_t seek_to(int64_t offset, int whence, void *user)
{
    gp_sound_bytes *s = user;
    s->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->size);
    return s->at;
}

int64_t gp_sound_get(void *to, int64_t n, void *user)
{
    gp_sound_bytes *s = user;
    int64_t got = 0;
    if (s->at < 0)
        return 0;
    if (s->head && s->at < (int64_t)s->n) {
        got = (int64_t)s->n - s->at < n ? (int64_t)s->n - s->at : n;
        memcpy(to, s->head + s->at, (size_t)got);
    } else if (!s->head && s->fd >= 0) {
        got = gp_read_at(s->fd, to, (size_t)n, s->begins + s->at);
        if (got < 0)
            s->error = errno, got = 0;
    }
    for (int64_t i = s->unsaid; s->unsaid && i < s->unsaid + 4; i++)
        if (i >= s->at && i < s->at + got)
            ((unsigned char *)to)[i - s->at] = s->says[i - s->unsaid];
    s->at += got;
    return got;
}

/* All of it or nothing, so that the library counts no rows that are not there. After an error nothing is written any
 * more. */
static int64_t put_bytes(const void *from, int64_t n, void *user)
{
    gp_sound_bytes *s = user;
    int64_t put = 0;
    while (put < n && !s->error) {
        ssize_t k = pwrite(s->fd, (const char *)from + put, (size_t)(n - put), (off_t)(s->at + put));
        if (k < 0 && errno != EINTR)
            s->error = errno;
        put += k > 0 ? k : 0;
    }
    if (s->error) {
        int cut = put && s->at == s->size ? ftruncate(s->fd, (off_t)s->at) : 0;
        (void)cut;                     /* the header says how much there is */
        return 0;
    }
    s->at += put;
    s->size = s->at > s->size ? s->at : s->size;
    return put;
}

static gp_sf_io io = { size_of, seek_to, gp_sound_get, put_bytes, tell };

void *gp_sf_open(gp_sound_bytes *s, int mode, gp_sf_info *info, char err[GP_WHY])
{
    if (mode == SF_READ)
        gp_sound_find_unsaid(s);
    pthread_mutex_lock(&library.opening);
    void *file = gp_sf.open(&io, mode, info, s);
    if (!file && !s->error)
        gp_why(err, "%s: libsndfile says '%s'", mode == SF_WRITE ? "cannot be written"
               : "is not a recording that gpipe reads (WAV, FLAC, AIFF, Vorbis; by libsndfile 1.1 or later Opus, MP3)",
               gp_sf.why(NULL));
    pthread_mutex_unlock(&library.opening);
    if (s->error)
        gp_why(err, "cannot be %s: %s", mode == SF_READ ? "read" : "written", gp_strerror(s->error));
    if (file && s->error)
        gp_sf.close(file);
    return s->error ? NULL : file;
}
