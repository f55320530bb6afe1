/* retune_answer.c - what a run answers who asks for settings, or for whom it has no room: a line of JSON. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/yaml.h"
#include "cli/retune.h"

void gp_answer(int fd, const char *line)
{
    ssize_t sent = line ? send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
    (void)sent;                        /* who asks and does not read has left */
    close(fd);
}

char *gp_answer_of_errors(const gp_args *args, const gp_errs *errs)
{
    gp_memfile m;
    size_t n;
    if (!gp_memfile_open(&m))
        return NULL;
    gp_json j = { .f = m.f, .level = 3 };
    gp_json_put(&j, "{exit: %d", gp_errs_exit(errs));
    GP_JSON_EACH(&j, "errors", i, errs->n) {
        const gp_err *e = &errs->e[i];
        char *option = gp_err_option(args, e);
        gp_json_put(&j, "{message: %s, code: %d", e->msg, (int)e->code);
        if (option || e->at.file)
            gp_json_str(&j, "file", option ? option : e->at.file);
        gp_json_put(&j, "line: %d, column: %d}", option ? 0 : e->at.line, option ? 0 : e->at.col);
        free(option);
    }
    gp_json_close(&j, '}');
    fputc('\n', m.f);
    return gp_memfile_close(&m, &n);
}

void gp_answer_errors(int fd, const gp_args *args, const gp_errs *errs)
{
    char *line = gp_answer_of_errors(args, errs);
    gp_answer(fd, line);
    free(line);
}

void gp_answer_text(int fd, const char *key, const char *text)
{
    gp_memfile m;
    size_t n;
    char *line = NULL;
    if (gp_memfile_open(&m)) {
        gp_json j = { .f = m.f, .level = 3 };
        gp_json_put(&j, "{exit: %d", 0);
        gp_json_str(&j, key, text);
        gp_json_close(&j, '}');
        fputc('\n', m.f);
        line = gp_memfile_close(&m, &n);
    }
    gp_answer(fd, line);
    free(line);
}

void gp_refuse(int fd, const char *why)
{
    gp_errs errs = { .n = 0 };
    gp_args none = { 0 };
    gp_usage(&errs, "%s", why);
    gp_answer_errors(fd, &none, &errs);
}

/* ---- the other end --------------------------------------------------- */

bool gp_is_answer(const char *line)
{
    return !strncmp(line, "{\"exit\"", 7) && strchr(line, '\n');
}

/* The text, fit for a terminal. */
static const char *plain(gp_arena *a, const char *text)
{
    char *copy = gp_strdup(a, text);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return copy;
}

static int print(gp_arena *a, const gp_args *args, const char *answer)
{
    gp_errs *ignored = GP_NEW(a, gp_errs, 1), *said = GP_NEW(a, gp_errs, 1);
    const gp_node *root = gp_yaml_value(a, answer, (gp_loc){ .file = "socket" }, ignored);
    const gp_node *errors = gp_node_list(root, "errors");
    for (int i = 0; errors && i < errors->n; i++) {
        const gp_node *e = errors->item[i];
        gp_loc at = { .line = atoi(gp_node_text(e, "line")), .col = atoi(gp_node_text(e, "column")) };
        if (gp_node_get(e, "file"))
            at.file = plain(a, gp_node_text(e, "file"));
        gp_fail(said, (gp_code)atoi(gp_node_text(e, "code")), at, "%s", plain(a, gp_node_text(e, "message")));
    }
    gp_print_errs(args, NULL, said);
    if (gp_node_get(root, "retuned"))
        printf("retuned: %s\n", plain(a, gp_node_text(root, "retuned")));
    else if (gp_node_get(root, "same"))
        printf("nothing changes\n");
    int status = root ? atoi(gp_node_text(root, "exit")) : 1;
    return status >= 0 && status < 128 ? status : 1;
}

int gp_answer_print(const gp_args *args, const char *answer, gp_errs *errs)
{
    GP_ARENA(a);
    GP_IF_OOM(&a) {
        gp_no_memory(errs);
        return gp_errs_exit(errs);
    }
    return print(&a, args, answer);
}
