/* top.c - gpipe top: the live lines of a pipeline that runs elsewhere, and keys that change its settings. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include "base/yaml.h"
#include "cli/live.h"
#include "cli/verb.h"

static atomic_bool drawn;              /* lines that a signal has to remove */
static struct termios before;          /* how the terminal was; */
static atomic_bool changed;            /* it is not so now */

static void restore_terminal(void)
{
    if (atomic_exchange(&changed, false))
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_signal(int signal)
{
    ssize_t ignored = atomic_load(&drawn) ? write(STDOUT_FILENO, "\r\033[J", 4) : 0;
    (void)ignored;
    restore_terminal();
    _exit(128 + signal);
}

/* Keys come one by one, and are not shown. False: there are none. */
static bool read_keys(void)
{
    struct termios keys;
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &before))
        return false;
    keys = before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 1, keys.c_cc[VTIME] = 0;
    atomic_store(&changed, true);
    return !tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

typedef struct top {
    const gp_args *args;
    const char *name;          /* of the run: a process, or its socket */
    gp_screen screen;
    gp_glance *v;
    char *line; size_t n, cap;         /* what came since the last object */
    char *shown;                       /* that one */
    bool gone;                         /* no more will come */
    /* A change is asked for on a thread of its own, one at a time. */
    pthread_mutex_t lock;              /* of the rest */
    bool busy;
    char wanted[128], asked[128];      /* "depth=6" */
    char note[300];
} top;

/* ---- changes ------------------------------------------------------------- */

static void note_answer(top *t, const char *answer, const gp_errs *errs)
{
    gp_arena a = { 0 };
    jmp_buf oom;
    a.oom = &oom;
    if (!setjmp(oom)) {
        gp_errs *ignored = GP_NEW(&a, gp_errs, 1);
        const gp_node *root = answer ? gp_yaml_value(&a, answer, (gp_loc){ .file = "socket" }, ignored) : NULL;
        const gp_node *done = gp_node_get(root, "retuned"), *wrong = gp_node_list(root, "errors");
        const gp_node *first = wrong && wrong->n ? gp_node_get(wrong->item[0], "message") : NULL;
        const char *text = done ? done->text : first ? first->text : errs->n ? errs->e[0].msg : "nothing changes";
        snprintf(t->note, sizeof t->note, "%.280s", text);
        for (char *c = t->note; *c; c++)
            *c = *c < ' ' || *c == 0x7f ? ' ' : *c;
    }
    gp_arena_free(&a);
}

static void *change(void *arg)
{
    top *t = arg;
    pthread_mutex_lock(&t->lock);
    while (strcmp(t->asked, t->wanted) != 0) {
        gp_errs errs = { .n = 0 };
        const char *set = strcpy(t->asked, t->wanted);
        char copy[sizeof t->asked];
        strcpy(copy, set), set = copy;
        snprintf(t->note, sizeof t->note, "%s ...", copy);
        pthread_mutex_unlock(&t->lock);
        char *answer = gp_set_ask(t->name, &set, 1, &errs);
        pthread_mutex_lock(&t->lock);
        note_answer(t, answer, &errs);
        free(answer);
    }
    *t->wanted = *t->asked = 0;
    t->busy = false;
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* A time twice or half as long. Half of the least one is none, and twice none is the least one. */
static void step_time(double us, int by, char out[24])
{
    const double least = 50;
    us = by > 0 ? us > 0 ? 2 * us : least : us > least ? us / 2 : 0;
    snprintf(out, 24, "%.9gus", us);
}

/* The value beside this one. */
static void step(const char *path, const char *value, int by, char out[24])
{
    static const char *const launch[] = { "graph", "stream" }, *const sync[] = { "auto", "spin", "yield", "block" };
    char *end;
    long n = strtol(value, &end, 10);
    if (!strcmp(path, "batch_wait") || !strcmp(path, "latency")) {
        step_time(strtod(value, NULL), by, out);
        return;
    }
    snprintf(out, 24, "%s", value);
    if (end > value && !*end) {
        snprintf(out, 24, "%ld", n + by > 1 ? n + by : 1);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (!strcmp(value, launch[i]))
            snprintf(out, 24, "%s", launch[!i]);
    for (int i = 0; i < 4; i++)
        if (!strcmp(value, sync[i]))
            snprintf(out, 24, "%s", sync[(i + by + 4) % 4]);
}

static void change_chosen(top *t, int by)
{
    const gp_knob *k = &t->v->knob[t->v->chosen];
    char value[24];
    pthread_t thread;
    size_t n = strlen(k->path);
    pthread_mutex_lock(&t->lock);
    bool goes_on = t->busy && !strncmp(t->wanted, k->path, n) && t->wanted[n] == '=';
    bool is_auto = !strcmp(k->value, "auto") && strcmp(k->path, "sync") != 0;
    step(k->path, goes_on ? t->wanted + n + 1 : is_auto ? "1" : k->value, by, value);
    snprintf(t->wanted, sizeof t->wanted, "%s=%s", k->path, value);
    if (!t->busy && !pthread_create(&thread, NULL, change, t)) {
        pthread_detach(thread);
        t->busy = true;
    }
    pthread_mutex_unlock(&t->lock);
}

/* False: q. */
static bool take_keys(top *t)
{
    char key[64];
    ssize_t n = read(STDIN_FILENO, key, sizeof key);
    for (ssize_t i = 0; i < n; i++) {
        bool arrow = i + 2 < n && key[i] == '\033' && (key[i + 1] == '[' || key[i + 1] == 'O');
        char c = arrow ? key[i += 2] : key[i];
        if (!arrow && c == 'q')
            return false;
        if (!t->v->nknobs)
            continue;
        if (arrow && (c == 'C' || c == 'D'))
            t->v->chosen = (t->v->chosen + (c == 'C' ? 1 : t->v->nknobs - 1)) % t->v->nknobs;
        else if (!arrow && c == '\t')
            t->v->chosen = (t->v->chosen + 1) % t->v->nknobs;
        else if (c == '+' || c == '=' || (arrow && c == 'A'))
            change_chosen(t, 1);
        else if (c == '-' || (arrow && c == 'B'))
            change_chosen(t, -1);
    }
    return n > 0;
}

/* ---- lines ----------------------------------------------------------------- */

/* One object. False: nobody reads what is written, or an error. */
static bool show(top *t, const char *line, gp_errs *errs)
{
    gp_glance *v = t->v;
    gp_arena a = { 0 };
    jmp_buf oom;
    char note[sizeof t->note];
    if (setjmp(oom)) {
        gp_arena_free(&a);
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    }
    a.oom = &oom;
    bool ok = gp_glance_read(v, &a, line)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%s' is not the socket of a 'gpipe run'",
                   t->name);
    if (v->ended) {                    /* these lines stay */
        gp_screen_clear(&t->screen);
        t->screen.in_place = false;
        v->settings = v->keys = false;
    }
    v->chosen = v->chosen < v->nknobs ? v->chosen : 0;
    pthread_mutex_lock(&t->lock);
    strcpy(note, t->note);
    pthread_mutex_unlock(&t->lock);
    v->note = *note ? note : NULL;
    atomic_store(&drawn, t->screen.in_place && !t->args->json);
    ok = ok && (t->args->json ? printf("%s", line) > 0 && !fflush(stdout) : gp_screen_draw(&t->screen, v));
    v->note = NULL;
    gp_arena_free(&a);
    return ok;
}

/* What has come. False: the end, or an error. */
static bool take_lines(top *t, int fd, gp_errs *errs)
{
    if (t->cap - t->n < 4096) {
        char *more = realloc(t->line, t->cap = 2 * t->cap + 65536);
        if (!more)
            return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        t->line = more;
    }
    ssize_t n = read(fd, t->line + t->n, t->cap - t->n - 1);
    if (n < 0 && errno == EINTR)
        return true;
    t->gone = n <= 0;
    if (t->gone)
        return false;
    t->n += (size_t)n;
    t->line[t->n] = 0;
    for (char *end; !t->v->ended && (end = memchr(t->line, '\n', t->n));) {
        size_t len = (size_t)(end - t->line) + 1;
        free(t->shown);
        if (!(t->shown = strndup(t->line, len)))
            return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        memmove(t->line, t->line + len, t->n - len + 1);
        t->n -= len;
        if (!show(t, t->shown, errs))
            return false;
    }
    return true;
}

static int watch(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    (void)registry;
    struct sigaction action = { .sa_handler = on_signal };
    static char only[24];              /* a thread that is left behind may use it */
    if (!args->noperands && !gp_runs_choose(args, only, errs))
        return gp_errs_exit(errs);
    const char *name = args->noperands ? args->operand[0] : only;
    int fd = gp_socket_connect(name, errs);
    top *t = fd >= 0 ? calloc(1, sizeof *t) : NULL;
    if (t)
        t->v = calloc(1, sizeof *t->v);
    if (!t || !t->v) {
        if (fd >= 0)
            gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        free(t);
        return gp_errs_exit(errs);
    }
    t->args = args, t->name = name, t->screen = gp_screen_on(STDOUT_FILENO);
    pthread_mutex_init(&t->lock, NULL);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    t->v->settings = t->screen.in_place && !args->json;
    t->v->keys = t->v->settings && read_keys();
    struct pollfd p[2] = { { fd, POLLIN, 0 }, { t->v->keys ? STDIN_FILENO : -1, POLLIN, 0 } };
    bool ok = true, left = false;
    while (ok && !left && !t->v->ended) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        if (p[1].revents) {
            left = !take_keys(t);
            ok = left || !t->shown || show(t, t->shown, errs);
        }
        if (!left && p[0].revents)
            ok = take_lines(t, fd, errs);
    }
    if (t->gone && !t->v->ended)
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the pipeline has gone without a word");
    gp_screen_clear(&t->screen);
    restore_terminal();
    gp_glance_free(t->v);
    free(t->v);
    close(fd);
    pthread_mutex_lock(&t->lock);
    bool busy = t->busy;               /* then its thread uses it still */
    pthread_mutex_unlock(&t->lock);
    if (!busy)
        free(t->line), free(t->shown), free(t);
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_top = {
    .name = "top", .operand = "[PID|SOCKET]", .max = 1, .place = 70,
    .help = "watch a pipeline that runs elsewhere",
    .more = "Shows, each second, the same live lines as that 'gpipe run', until it ends or Ctrl-C. On a\n"
            "terminal it also shows its settings: left and right choose one, + and - change it as\n"
            "'gpipe set' does, q leaves.\n"
            "Without a process it shows the one that runs, or lists those that do, with --json as one\n"
            "object each. The ranks of one mpirun are one, shown by rank 0.\n"
            "The socket of a run is $XDG_RUNTIME_DIR/gpipe/PID.sock, or /tmp/gpipe-UID/PID.sock, for its\n"
            "owner alone. With --json it prints the objects that --progress json prints.\n",
    .run = watch,
    .options = (const gp_option[]){
        GP_OPTION_JSON,
        { 0 } },
};
