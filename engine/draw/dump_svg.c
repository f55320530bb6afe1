/* dump_svg.c - a graph or plan as a drawing: dot (Graphviz) makes it of what dump_dot.c writes. It gets a style sheet
 * for dark screens; the colors on paper stand in its elements. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/spawn.h"
#include "draw/dump.h"

static const char style[] =
    "<style>.heat text{fill:#1c2530!important}@media screen and (prefers-color-scheme:dark){"
    ".graph>title+polygon{fill:#10151c}text[fill=\"#1c2530\"]{fill:#e4e9ef}text[fill=\"#56616e\"]{fill:#a0abb8}"
    ".edge path{stroke:#7d8a99}.cluster path{fill:#111f18}.cluster:not(.heat) path{stroke:#2f6346}"
    ".host:not(.heat) polygon{fill:#1d2838;stroke:#7f9cc4}.device:not(.heat) path{fill:#194430;stroke:#4fb37d}"
    ".buffer path{fill:#272110;stroke:#a8842f}.copy:not(.heat) polygon{fill:#2a2144;stroke:#9f84e4}"
    ".const polygon{fill:#1f2328;stroke:#8d949c}.head:not(.heat) polygon{fill:#18352a}}</style>";

enum { LONGEST_MS = 30000 };

/* Waits for the child, at most so long, or until a signal comes; then it is killed. Its status of waitpid(). */
static int await(pid_t pid)
{
    struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
    int status = 0;
    if (end.fd >= 0 && poll(&end, 1, LONGEST_MS) <= 0)
        kill(pid, SIGKILL);
    if (end.fd >= 0)
        close(end.fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Its exit status, 128 where it was killed, or -1 with errno. */
static int run_dot(int in, int out)
{
    const gp_spawn dot = { .argv = (const char *const[]){ "dot", "-Tsvg", NULL }, .fd = { in, out, GP_SPAWN_OURS },
                           .nfd = 3, .group = -1 };
    pid_t pid;
    int e = gp_spawn_start(&pid, &dot);
    errno = e;
    if (e)
        return -1;
    int status = await(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Of a file the element alone, which may stand in HTML; no drawing is larger than memory. */
static bool put_svg(FILE *to, int fd)
{
    size_t n = (size_t)lseek(fd, 0, SEEK_END);
    const char *text = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (text == MAP_FAILED)
        return false;
    const char *svg = memmem(text, n, "<svg", 4), *inside = svg ? memchr(svg, '>', n - (size_t)(svg - text)) : NULL;
    if (inside) {
        fwrite(svg, 1, (size_t)(++inside - svg), to);
        fputs(style, to);
        fwrite(inside, 1, n - (size_t)(inside - text), to);
    }
    munmap((void *)text, n);
    return inside;
}

static FILE *open_memory(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!f && fd >= 0)
        close(fd);
    return f;
}

bool gp_dump_svg(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m, gp_errs *errs)
{
    FILE *in = open_memory("plan.dot"), *out = open_memory("plan.svg");
    bool ok = in && out;
    if (!ok) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory, or of open files");
    } else if ((ok = gp_dump_dot(in, g, p, m, errs))) {
        int e = fseek(in, 0, SEEK_SET) ? -1 : run_dot(fileno(in), fileno(out));
        ok = !e && put_svg(f, fileno(out));
        if (e < 0 && (errno == ENOENT || errno == EACCES || errno == ENOTDIR))      /* of the folders of PATH */
            gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "drawing needs the program 'dot', which is not in PATH: install "
                    "Graphviz (package graphviz), or take 'gpipe plan --dot' to where it is");
        else if (!ok)
            gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the program 'dot' (Graphviz) made no drawing: %s",
                    e < 0 ? strerror(errno) : e == 128 ? "it was stopped, by a signal, or after 30 s"
                    : e ? "it failed" : "it wrote none");
    }
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    return ok;
}
