/* resume.c - may a run go on where another was broken off ('resume')? Then all frames are made anew from that number on,
 * as those of one rank of several are: what makes a frame needs its number alone, and a sink notes what it has. */
#include <string.h>
#include "base/path.h"
#include "base/table.h"
#include "compile/ir.h"

static bool check_source(const gp_stage *st, gp_errs *errs)
{
    const char *why = !st->by_number             ? "does not find its frames by their numbers"
                    : gp_stage_starts_anew(st)   ? "starts anew at its end ('loop')" : NULL;
    return !why || gp_fail(errs, GP_E_SPEC, st->at, "source '%s' %s, so that a run cannot go on within them, as 'resume' says",
                           st->name, why);
}

static bool check_stage(const gp_stage *st, gp_errs *errs)
{
    const char *why = gp_stage_needs(st);
    bool keeps = !st->nout && !st->kind->save && (!st->any_length || st->kind->open);
    if (why)
        return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' %s, so that a run cannot go on between two frames, as 'resume' "
                       "says", st->name, why);
    return !keeps || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' does not note which frames it has had, so that a run cannot "
                             "go on behind them, as 'resume' says", st->name);
}

static bool is_file(gp_arena *a, const char *path, const char *other)
{
    return path && other && !strcmp(gp_path_plain(gp_alloc(a, strlen(path) + 1), path),
                                    gp_path_plain(gp_alloc(a, strlen(other) + 1), other));
}

/* A run goes on with what was saved of all states behind one frame. After a hole a state may be what it was at first, which
 * the file is not any more then. */
static bool check_state(gp_arena *a, const gp_graph *g, const gp_stage *st, const gp_buffer **first, gp_errs *errs)
{
    const gp_buffer *b = &g->buffer[st->out[0]];
    *first = *first ? *first : b;
    if (!b->save_every)
        return gp_fail(errs, GP_E_SPEC, b->at, "the state '%s' is not saved while the run goes on, so that no other can go on "
                       "with it, as 'resume' says: add save: FILE.npy, and save_every", b->name);
    if (b->save_every != (*first)->save_every)
        return gp_fail(errs, GP_E_SPEC, b->save_at, "the states '%s' and '%s' are not saved behind the same frames, so that a run "
                       "cannot go on with both, as 'resume' says: let 'save_every' be one number", (*first)->name, b->name);
    if (is_file(a, g->resume, b->save) || is_file(a, g->resume, gp_format(a, "%s.next", b->save)))
        return gp_fail(errs, GP_E_SPEC, g->resume_at, "'resume' is a file that the state '%s' is saved to, '%s', or '%s.next' "
                       "before: give it another name", b->name, b->save, b->save);
    return !is_file(a, b->save, st->in[1] < 0 ? b->missing : g->buffer[st->in[1]].path)
        || gp_fail(errs, GP_E_SPEC, b->save_at, "'save' of the state '%s' would replace its 'init', which a run that goes on "
                   "needs, as 'resume' says: give it another name", b->name);
}

bool gp_resume_check(gp_arena *a, gp_graph *g, gp_errs *errs)
{
    const gp_buffer *first = NULL;
    bool ok = g->ranks == 1 || gp_fail(errs, GP_E_SPEC, g->resume_at, "'resume' is for a run of one process, and this has %d "
                                       "ranks", g->ranks);
    for (int i = 0; i < g->nstages; i++) {
        gp_stage *st = &g->stage[i];
        ok &= !st->nin                             ? check_source(st, errs)
            : gp_is_carry(st) && st->states          ? check_state(a, g, st, &first, errs) : check_stage(st, errs);
        st->shared = true;
    }
    return ok;
}

/* The values that ${env:...} has in the texts, as a number. What ${date:...} would be in the next run is another date. */
uint64_t gp_resume_outside(gp_arena *a, const gp_node *n, const gp_env *env, gp_errs *errs)
{
    static const char of_env[] = "${env:", of_date[] = "${date:";
    uint64_t sum = 0;
    for (const char *p = n->text; (p = strchr(p, '$')); p += 1 + (p[1] == '$')) {
        if (!strncmp(p, of_date, strlen(of_date)))
            gp_fail(errs, GP_E_SPEC, gp_node_part(n, (size_t)(p - n->text), strcspn(p, "}") + 1), "the run that goes on from "
                    "this one, as 'resume' says, has another date: leave it out");
        if (strncmp(p, of_env, strlen(of_env)) != 0 || !env || !env->get)
            continue;
        const char *name = gp_strndup(a, p + strlen(of_env), strcspn(p + strlen(of_env), ":}"));
        const char *value = env->get(env->arg, name);
        sum += gp_text_hash(name) * gp_text_hash(value ? value : "");
    }
    for (int i = 0; i < n->n; i++)
        sum += gp_resume_outside(a, n->item[i], env, errs);
    return sum;
}
