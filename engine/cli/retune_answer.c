/* retune_answer.c - what a run answers who asks for settings: one line of JSON, see retune.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
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
    gp_json_open(&j, NULL, '{');
    gp_json_int(&j, "exit", gp_errs_exit(errs));
    GP_JSON_EACH(&j, "errors", i, errs->n) {
        const gp_err *e = &errs->e[i];
        char *option = gp_err_option(args, e);
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "message", e->msg);
        gp_json_int(&j, "code", e->code);
        if (option || e->at.file)
            gp_json_str(&j, "file", option ? option : e->at.file);
        gp_json_int(&j, "line", option ? 0 : e->at.line);
        gp_json_int(&j, "column", option ? 0 : e->at.col);
        gp_json_close(&j, '}');
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
        gp_json_open(&j, NULL, '{');
        gp_json_int(&j, "exit", 0);
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
    gp_fail(&errs, GP_E_USAGE, (gp_loc){ 0 }, "%s", why);
    gp_answer_errors(fd, &none, &errs);
}
