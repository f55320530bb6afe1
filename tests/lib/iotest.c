/* iotest.c - see iotest.h. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include "color_how.h"
#include "iotest.h"
#include "sndfile.h"
#include "video_how.h"
#include "y4m_file.h"

/* ---- running --------------------------------------------------------- */

const char *io_dir;
char io_here[400];

void io_set_up(void)
{
    io_dir = pipe_dir();
    ck_assert_ptr_nonnull(getcwd(io_here, sizeof io_here));
}

void io_set_up_in_memory(void)
{
    const char *was = getenv("TMPDIR");
    char kept[600] = "";
    snprintf(kept, sizeof kept, "%s", was ? was : "");
    if (!access("/dev/shm", W_OK))
        setenv("TMPDIR", "/dev/shm", 1);
    io_set_up();
    if (was)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
}

char *io_at(const char *name)
{
    return format("%s/%s", io_dir, name);
}

pipe_result io_go(const char *yaml)
{
    return pipe_run(io_dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true });
}

pipe_result io_go_limited(const char *yaml, size_t bytes)
{
    struct rlimit was, now;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    now = was, now.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
    pipe_result r = io_go(yaml);
    setrlimit(RLIMIT_FSIZE, &was);
    return r;
}

const char *io_error(const pipe_result *r)
{
    for (int i = 0; i < r->errs.n; i++)        /* warnings come before it */
        if (r->errs.e[i].code != GP_E_WARN && r->errs.e[i].code != GP_E_NOTE)
            return r->errs.e[i].msg;
    return pipe_said(&r->errs);
}

void io_told(const pipe_result *r, char path[PATH_MAX])
{
    static const char says[] = "what was written is kept as '";
    const char *from = NULL;
    int i = 0;
    while (i < r->errs.n && !(from = strstr(r->errs.e[i].msg, says)))
        i++;
    *path = 0;
    if (from)
        snprintf(path, PATH_MAX, "%.*s", (int)strlen(from + strlen(says)) - 1, from + strlen(says));
    for (i = 0; !from && i < r->errs.n; i++)
        if (r->errs.e[i].code == GP_E_NOTE)
            strncat(path, r->errs.e[i].msg, PATH_MAX - 1 - strlen(path));
}

pipe_result io_done(const char *yaml)
{
    pipe_result r = io_go(yaml);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s\n%s", io_error(&r), yaml);
    return r;
}

uint64_t io_runs(const char *yaml)
{
    pipe_result r = io_done(yaml);
    ck_assert_uint_eq(r.account[0].in, r.account[0].out);
    return r.account[0].out;
}

pipe_result io_fails(const char *yaml, int code, const char *text)
{
    pipe_result r = io_go(yaml);
    ck_assert_msg(r.outcome == GP_ERROR, "it did not fail:\n%s", yaml);
    ck_assert_msg(strstr(io_error(&r), text) != NULL, "'%s' is not in '%s'", text, io_error(&r));
    ck_assert_int_eq(gp_errs_exit(&r.errs), code);
    return r;
}

/* ---- files ----------------------------------------------------------- */

void io_count_npy(const char *name, gp_type type, int first)
{
    static char buf[1 << 20];
    size_t head = gp_npy_header(&type, buf, sizeof buf), n = gp_bytes(&type);
    ck_assert_uint_lt(head + n, sizeof buf);
    for (size_t i = 0; i < n; i++)
        buf[head + i] = (char)((size_t)first + i);
    pipe_file(io_dir, name, buf, head + n);
}

void io_count_raw(const char *name, size_t n)
{
    unsigned char buf[8192];
    for (size_t i = 0; i < n; i++)
        buf[i] = (unsigned char)i;
    pipe_file(io_dir, name, buf, n);
}

void io_holds(const char *name, const void *bytes, size_t n)
{
    size_t have = 0;
    OWNED char *data = pipe_read(io_dir, name, &have);
    ck_assert_msg(data != NULL, "no file '%s'", name);
    ck_assert_msg(have == n && !memcmp(data, bytes, n), "'%s' (%zu bytes) is not as expected", name, have);
}

void io_counts(const char *name, gp_type type, int first)
{
    size_t n = 0, data;
    gp_type have;
    bool fortran;
    char err[160] = "", a[128], b[128];
    OWNED char *file = pipe_read(io_dir, name, &n);
    ck_assert_msg(file != NULL, "no file '%s'", name);
    ck_assert_msg(gp_npy_parse(file, n, &have, &data, &fortran, err), "%s %s", name, err);
    ck_assert_str_eq(gp_type_text(&have, a), gp_type_text(&type, b));
    ck_assert_uint_eq(n, data + gp_bytes(&type));
    for (size_t i = 0; data + i < n; i++)
        ck_assert_msg((unsigned char)file[data + i] == (unsigned char)((size_t)first + i),
                      "'%s' differs at byte %zu of its data", name, i);
}

void io_link(const char *data, const char *as)
{
    ck_assert_int_eq(symlink(format("%s/tests/data/%s", io_here, data), io_at(as)), 0);
}

int io_files(const char *sub)
{
    int n = 0;
    DIR *d = opendir(io_at(sub));
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d)
        closedir(d);
    return n;
}

void io_stop_soon(gp_pipeline *p, void *level)
{
    pipe_await_out(p, 10);
    gp_cancel(p, *(int *)level);
}

bool io_has_mp3(void)
{
    char why[GP_WHY];
    bool has = gp_sf_load(why) && gp_sf.check(&(gp_sf_info){ .rate = 8000, .channels = 1, .format = SF_MPEG | SF_MP3 });
    if (!has)
        fprintf(stderr, "SKIPPED: this libsndfile has no MP3\n");
    return has;
}

bool io_has_video(void)
{
    char why[GP_WHY], note[GP_WHY];
    gp_y4m size = { .width = 8, .height = 8, .bits = 8 };
    gp_video_how how = { .codec = "png", .preset = "", .crf = -1, .matrix = -1, .from = GP_GRAY, .to = -1 };
    bool has = gp_video.fits(&(gp_rowsfile_how){ .video = &size, .encode = &how }, "a.mp4", note, why);
    if (!has)
        fprintf(stderr, "SKIPPED: a video %s\n", why);
    return has;
}
