/* retune_edit.c - one edit of a run that goes on, see retuner.h.
 *
 * Of several ranks each makes it ready by itself, and pauses when all have; then all know on which it went on
 * (ranks/votes.c), and one tells. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report/report.h"
#include "cli/retuner.h"

enum { LOOK_US = 500, FEW = 8 };

/* ---- rates -------------------------------------------------------------- */

/* Frames that all ranks have moved. */
static uint64_t moved(gp_ranks *us, const gp_pipeline *p)
{
    gp_account few[FEW];
    int n = gp_accounts(p, few, FEW);
    n = n < FEW ? n : FEW;
    if (n > 0)
        gp_ranks_sum(us, few, n);
    return n > 0 ? gp_frames_moved(few, n) : 0;
}

static gp_pipeline *runs(const gp_retuner *r)
{
    return r->part[r->nparts - 1].l.pipeline;
}

static bool is_just_since(const gp_retuner *r)
{
    return gp_seconds() - r->since < GP_RATE_AFTER_S;
}

/* Frames a second since the run began, was retuned, or this was last asked. */
static double rate(gp_retuner *r, const gp_pipeline *p)
{
    double now = gp_seconds(), s = now - r->since;
    uint64_t n = moved(r->args->ranks, p);
    r->rate = s > 0 && n > r->moved ? (double)(n - r->moved) / s : 0;
    r->since = now, r->moved = n > r->moved ? n : r->moved;
    return r->rate;
}

static double rate_before(gp_retuner *r, const gp_pipeline *p)
{
    return is_just_since(r) && r->rate > 0 ? r->rate : rate(r, p);
}

void gp_retuner_tell(gp_retuner *r)
{
    char before[32], after[32], *line = NULL;
    if (!r->what)
        return;
    bool known = !is_just_since(r);    /* else the run is over already, or retuned again */
    gp_amount_text(r->before, "", before);
    gp_amount_text(known ? rate(r, runs(r)) : 0, "", after);
    if (asprintf(&line, "%s; pause %.1f ms (%.1f ms since sources stopped); %s frames/s before%s%s%s", r->what, r->pause_ms,
                 r->told_ms, before, known ? ", " : "", known ? after : "", known ? " after" : "") < 0)
        line = NULL;
    if (line && !r->args->quiet && gp_ranks_is_first(r->args->ranks))
        fprintf(stderr, "gpipe: retuned: %s\n", line);
    if (r->reply_fd >= 0)
        gp_answer_text(r->reply_fd, "retuned", line ? line : "");
    r->reply_fd = -1;
    free(line), free(r->what);
    r->what = NULL;
}

/* ---- its steps ------------------------------------------------------------ */

typedef struct gp_edit {
    gp_args args;
    gp_part x;
    gp_errs errs;
    char what[400];
    int items;                         /* that change */
    bool ok, tried, went_on;           /* ok: it was compiled */
    bool files, voted, all;            /* of ranks. files: they were saved; all: all have voted */
    double before, pause_ms, told_ms;
} edit;

void gp_retuner_drop(gp_part *x)
{
    gp_unload(&x->l);
    for (int i = 0; i < x->nown; i++)
        free(x->own[i]);
    free(x->own), free(x->set);
}

static bool same_path(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strcspn(b, "=") == n && !memcmp(a, b, n);
}

/* The settings of the newest part, but those that are set anew, and `n` more. */
static bool add_settings(gp_retuner *r, gp_part *x, const char *const *more, int n)
{
    const gp_part *was = &r->part[r->nparts - 1];
    x->set = malloc(sizeof *x->set * (size_t)(was->nset + n + 1));
    x->own = calloc((size_t)n + 1, sizeof *x->own);
    bool ok = x->set && x->own;
    for (int i = 0; ok && i < was->nset; i++) {
        bool anew = false;
        for (int k = 0; k < n; k++)
            anew |= same_path(was->set[i], more[k]);
        if (!anew)
            x->set[x->nset++] = was->set[i];
    }
    for (int i = 0; ok && i < n; i++)
        if ((ok = (x->own[x->nown] = strdup(more[i]))))
            x->set[x->nset++] = x->own[x->nown++];
    return ok;
}

/* With settings, the text that the run goes by: that the file has been edited meanwhile, or is half saved, is another
 * matter. */
static bool load(gp_retuner *r, edit *e, bool settings)
{
    const gp_loaded *now = &r->part[r->nparts - 1].l;
    gp_loaded *l = &e->x.l;
    if (!settings)
        return gp_load(l, e->args.operand[0], &e->args, r->registry, &e->errs);
    *l = (gp_loaded){ .file = now->file, .text = strndup(now->text, now->len), .len = now->len };
    return l->text ? gp_load_for(l, &e->args, NULL, r->registry, &e->errs) : gp_no_memory(&e->errs);
}

/* Where the file is wrong by itself, its errors are told, not that what 'gpipe set' has set is not in it. */
static void blame_file(gp_retuner *r, edit *e)
{
    gp_loaded alone = { 0 };
    gp_errs errs = { .n = 0 };
    if (gp_load(&alone, e->args.operand[0], r->args, r->registry, &errs)) {
        gp_unload(&alone);
    } else {
        gp_unload(&e->x.l);
        e->x.l = alone, e->errs = errs;
    }
}

static void compile(gp_retuner *r, edit *e, const char *const *more, int n)
{
    bool settings = GP_ROOM(r->part, r->nparts, r->cap) && add_settings(r, &e->x, more, n);
    e->args.set = e->x.set, e->args.nset = e->x.nset;
    if (!settings)
        gp_no_memory(&e->errs);
    e->ok = settings && load(r, e, n > 0);
    if (settings && !e->ok && !n && e->args.nset > r->args->nset)
        blame_file(r, e);
    e->items = e->ok ? gp_pipeline_changes(e->x.l.pipeline, runs(r), e->what, sizeof e->what) : 0;
}

static bool is_over(const gp_retuner *r)
{
    return r->stop || r->over;
}

static void try(gp_retuner *r, gp_pipeline *p)
{
    pthread_mutex_lock(&r->lock);
    r->trying = p, r->has_failed = false;
    if (p && r->stop)
        gp_cancel(p, 2);
    pthread_mutex_unlock(&r->lock);
}

/* Until the run under p has begun, or goes on as it was before an edit that failed: before, it cannot be retuned. */
static void wait_for(gp_retuner *r, const gp_pipeline *p)
{
    gp_stage_status s;
    while (!is_over(r) && (gp_pipeline_is_paused(p) || gp_stages_status(p, &s, 1) < 1))
        usleep(LOOK_US);
}

/* Until the run goes on under p, or it does not. */
static bool goes_on(gp_retuner *r, const gp_pipeline *p, gp_errs *errs)
{
    bool up = false, failed = false, over = false;
    while (!up && !failed && !over) {
        up = gp_pipeline_paused_ns(p, NULL) > 0;
        over = is_over(r);
        pthread_mutex_lock(&r->lock);
        failed = r->has_failed;
        if (failed)
            gp_errs_add(errs, &r->failure);
        pthread_mutex_unlock(&r->lock);
        if (!up && !failed && !over)
            usleep(LOOK_US);
    }
    return up || (over && !failed && gp_pipeline_paused_ns(p, NULL) > 0);
}

static void go_on(gp_retuner *r, edit *e)
{
    gp_pipeline *was = runs(r), *next = e->x.l.pipeline;
    int64_t told, paused;
    gp_retuner_tell(r);                /* its rate ends here */
    wait_for(r, was);
    try(r, next);
    if (gp_pipeline_retune(next, was, &r->options, &e->errs)) {
        e->tried = true;
        e->before = rate_before(r, was);
        e->went_on = goes_on(r, next, &e->errs);
    }
    try(r, NULL);
    if (!e->went_on)
        return;
    paused = gp_pipeline_paused_ns(next, &told);
    e->pause_ms = 1e-6 * (double)paused, e->told_ms = 1e-6 * (double)told;
}

static void usage_errors(const gp_args *args, gp_errs *errs)
{
    for (int i = 0; i < errs->n; i++) {
        char *option = gp_err_option(args, &errs->e[i]);
        if (option && errs->e[i].code == GP_E_SPEC)
            errs->e[i].code = GP_E_USAGE;
        free(option);
    }
}

/* What was compiled runs now, or it does not. */
static void keep(gp_retuner *r, edit *e)
{
    if (e->went_on) {
        r->part[r->nparts++] = e->x;
        r->times++;
        if (r->watched)
            gp_watch_files(r->watched, e->x.l.pipeline);
    } else if (!e->tried) {
        gp_retuner_drop(&e->x);
    } else if (gp_grow(&r->unused, (size_t)r->nunused + 1, sizeof *r->unused)) {   /* else it is not freed */
        r->unused[r->nunused++] = e->x;
    }
}

/* p: what runs now. */
static void changed(gp_retuner *r, const gp_pipeline *p, const char *what, double before, double pause_ms, double told_ms,
                    int fd)
{
    r->what = strdup(what), r->pause_ms = pause_ms, r->told_ms = told_ms, r->before = before;
    r->reply_fd = fd;
    r->since = gp_seconds(), r->moved = moved(r->args->ranks, p), r->rate = 0;
}

static void print_errors(const edit *e, bool goes_on)
{
    gp_print_errs(&e->args, &e->x.l, &e->errs);
    if (goes_on)
        fprintf(stderr, "gpipe: the run goes on as it was\n");
}

/* A file was saved, and says nothing new: it was wrong before, or it says no more than what 'gpipe set' has set. */
static void print_same(const gp_retuner *r, const edit *e)
{
    bool set = e->args.nset > r->args->nset;
    if (e->ok && !e->items && (set || r->was_wrong))
        fprintf(stderr, "gpipe: nothing changes%s\n", set ? "; what 'gpipe set' has set stays" : "");
}

/* ---- in one process ------------------------------------------------------- */

static void edit_alone(gp_retuner *r, edit *e, const char *const *more, int n, int fd)
{
    compile(r, e, more, n);
    if (e->ok && e->items)
        go_on(r, e);
    usage_errors(&e->args, &e->errs);
    if (fd < 0 || e->went_on)
        print_errors(e, fd < 0 && e->errs.failed);
    if (fd < 0)
        print_same(r, e);
    if (e->went_on)
        changed(r, e->x.l.pipeline, e->what, e->before, e->pause_ms, e->told_ms, fd);
    else if (fd >= 0 && e->errs.failed)
        gp_answer_errors(fd, &e->args, &e->errs);
    else if (fd >= 0 && e->ok && !e->items)
        gp_answer_text(fd, "same", "nothing changes");
    else if (fd >= 0)
        gp_refuse(fd, "the run is over");
}

/* ---- in several ranks ----------------------------------------------------- */

static void vote(edit *e, gp_vote vote, const char *words)
{
    const gp_loaded *l = &e->x.l;
    e->voted = true;
    e->all = gp_votes_cast(e->args.ranks, vote, e->files, l->text, l->len,
                            l->pipeline ? gp_pipeline_included(l->pipeline) : 0, words, e->pause_ms, e->told_ms);
}

bool gp_retuner_pause(void *arg)
{
    gp_retuner *r = arg;
    vote(r->edit, GP_VOTE_READY, r->edit->what);
    return r->edit->all && gp_votes_go(r->args->ranks);
}

/* With what follows from it for the other ranks, which the others may have to say. */
static void vote_errors(edit *e, gp_vote as, const char *follows)
{
    gp_errs errs = e->errs;
    gp_fail(&errs, GP_E_NOTE, (gp_loc){ 0 }, "this is rank %d, %s", gp_rank(e->args.ranks), follows);
    char *line = gp_answer_of_errors(&e->args, &errs);
    vote(e, as, line);
    free(line);
}

/* No rank has applied the edit. The one that asked for it is told why; of a saved file one rank alone says it. */
static void report_none(const gp_retuner *r, edit *e, bool files, int fd)
{
    gp_ranks *us = r->args->ranks;
    int first, refused = gp_votes_of(us, GP_VOTE_REFUSED, &first), other = files ? gp_votes_other_text(us) : -1;
    int failed = refused ? 0 : gp_votes_of(us, GP_VOTE_FAILED, &first), same;
    int over = gp_votes_of(us, GP_VOTE_OVER, &same);
    gp_errs errs = { .n = 0 };
    if (other >= 0 && !refused)
        gp_fail(&errs, GP_E_USAGE, (gp_loc){ .file = e->args.operand[0] }, "rank %d has another text of it than "
                "others: all run one pipeline", other);
    if (files && (refused || failed) && first == gp_rank(us))
        print_errors(e, true);
    else if (files && errs.failed && !gp_rank(us))
        gp_print_errs(&e->args, NULL, &errs), fprintf(stderr, "gpipe: the run goes on as it was\n");
    else if (files && !gp_rank(us))
        print_same(r, e);
    if (fd < 0)
        return;
    if (refused == gp_ranks_n(us))
        gp_answer_errors(fd, &e->args, &e->errs);
    else if (refused || failed)
        gp_answer(fd, gp_votes_words(us, first));
    else if (over)
        gp_refuse(fd, "the run is over");
    else
        gp_answer_text(fd, "same", "nothing changes");
}

static void report_all(gp_retuner *r, edit *e, int fd)
{
    gp_ranks *us = r->args->ranks;
    char what[1000];
    double pause_ms, told_ms;
    int first;
    gp_retuner_tell(r);
    if (e->errs.failed || !gp_rank(us))
        print_errors(e, e->errs.failed);
    if (gp_votes_of(us, GP_VOTE_FAILED, &first) && fd >= 0)
        gp_answer(fd, gp_votes_words(us, first)), fd = -1;
    gp_votes_changes(us, what, sizeof what, &pause_ms, &told_ms);
    changed(r, e->went_on ? e->x.l.pipeline : runs(r), what, e->tried ? e->before : rate_before(r, runs(r)), pause_ms,
            told_ms, fd);
}

static void edit_together(gp_retuner *r, edit *e, const char *const *more, int n, int fd)
{
    gp_ranks *us = r->args->ranks;
    int first;
    r->edit = e, e->files = !n;
    if (!n && r->watched)
        gp_watch_read(r->watched);     /* what was saved by now is compiled now */
    if (n < 0)
        gp_no_memory(&e->errs);
    else if (!is_over(r))
        compile(r, e, more, n);
    if (e->ok && e->items)
        go_on(r, e);
    usage_errors(&e->args, &e->errs);
    bool ready = e->voted;
    gp_vote as = e->ok && !e->items ? GP_VOTE_SAME : e->errs.failed ? GP_VOTE_REFUSED : GP_VOTE_OVER;
    if (!ready && as == GP_VOTE_REFUSED)
        vote_errors(e, as, "and no rank is changed");
    else if (!ready)
        vote(e, as, NULL);
    bool go = e->all && gp_votes_go(us);
    if (go && ready && !e->went_on && e->errs.failed)
        vote_errors(e, GP_VOTE_FAILED, "which goes on as it was, and may differ from others now");
    else if (go)
        vote(e, !ready ? as : e->went_on ? GP_VOTE_CHANGED : GP_VOTE_OVER, e->what);
    if (!e->all && fd >= 0)
        gp_refuse(fd, "the run is over");
    else if (e->all && gp_votes_of(us, GP_VOTE_CHANGED, &first))
        report_all(r, e, fd);
    else if (e->all)
        report_none(r, e, !n, fd);
}

void gp_retuner_edit(gp_retuner *r, const char *const *more, int n, int fd)
{
    edit e = { .args = *r->args };
    if (gp_ranks_n(r->args->ranks) > 1)
        edit_together(r, &e, more, n, fd);
    else
        edit_alone(r, &e, more, n, fd);
    if (!n)
        r->was_wrong = e.errs.failed;
    keep(r, &e);
}
