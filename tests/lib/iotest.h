/* iotest.h - what tests of files share: a folder for each test, pipelines that
 * must run or must fail, files of bytes that count up. */
#pragma once

#include <limits.h>
#include "base/npy.h"
#include "pipe.h"

/* A checked fixture makes the folder of the test that runs. */
extern const char *io_dir;
extern char io_here[400];      /* where the test was started */
void io_set_up(void);
void io_set_up_in_memory(void);        /* where what is to be on disk is so at once */
char *io_at(const char *name);                 /* its path there, a text of its own */
/* A file of tests/data by another name in that folder. */
void io_link(const char *data, const char *as);
/* How many files a folder in it has; 0 when it is not there. */
int io_files(const char *sub);

/* printf into an array; the array. */
#define TEXT(buf, ...) (snprintf(buf, sizeof buf, __VA_ARGS__), buf)

pipe_result io_go(const char *yaml);
/* The same where no file can have more than so many bytes. */
pipe_result io_go_limited(const char *yaml, size_t bytes);
const char *io_error(const pipe_result *r);            /* the first one's text */
/* Where a run that failed says that it kept what it wrote. */
void io_told(const pipe_result *r, char path[PATH_MAX]);
/* Runs `yaml`; it must come to a good end; io_runs: with all frames, of which it returns the number. */
pipe_result io_done(const char *yaml);
uint64_t io_runs(const char *yaml);
/* Runs `yaml`; it must fail with this exit code and a message that has `text`. */
pipe_result io_fails(const char *yaml, int code, const char *text);

/* For pipe_run_with(): cancels when ten frames came out; *level: how. */
void io_stop_soon(gp_pipeline *p, void *level);

/* Does libsndfile read and write MP3? It does from 1.1 on; if not, it is said. */
bool io_has_mp3(void);
/* The same of FFmpeg's libraries, and that gpipe was built with them. */
bool io_has_video(void);

#define U8(...) ((gp_type){ GP_U8, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } })

/* A .npy of `type` whose bytes are first, first + 1, ...; such a raw file from 0. */
void io_count_npy(const char *name, gp_type type, int first);
void io_count_raw(const char *name, size_t n);
/* The .npy `name` must be one that io_count_npy would have made. */
void io_counts(const char *name, gp_type type, int first);
/* The file `name` must hold these bytes and no more. */
void io_holds(const char *name, const void *bytes, size_t n);
