/* simulate_ranks.c - what a run in several ranks would refuse before it starts, so that no rate of it is predicted.
 *
 * The plan of each rank is made, and what ranks would tell each other by MPI (ranks_agree.c) is taken from it. */
#include <stdlib.h>
#include "cli/ranks_same.h"
#include "cli/simulate.h"
#include "simulate/simulate.h"

typedef struct asking {
    const gp_args *args;
    const gp_loaded *first;
    const gp_machine *machine;
    const gp_registry *registry;
    gp_rank_stage *stage; int nstages; /* of each rank so many, rank after rank */
} asking;

/* Which it is of those on its machine. */
static int local_of(const gp_args *args, int rank)
{
    int before = 0;
    while (before < rank && gp_node_of(rank - before - 1, args->ranks, args->nodes)
                            == gp_node_of(rank, args->ranks, args->nodes))
        before++;
    return before;
}

/* As a rank has it; its text is that of the first. */
static bool compile(const asking *x, int rank, gp_loaded *l, gp_errs *errs)
{
    *l = (gp_loaded){ .file = x->first->file, .text = x->first->text, .len = x->first->len };
    return gp_load_for_rank(l, x->args, rank, local_of(x->args, rank), x->machine, x->registry, errs);
}

static void note(const asking *x, int rank, const gp_pipeline *p)
{
    (void)gp_rank_stages(p, x->stage + rank * x->nstages, x->nstages);
}

/* Each rank compiles. False: one cannot, and its errors are printed. */
static bool ask(const asking *x, int *status)
{
    note(x, 0, x->first->pipeline);
    for (int r = 1; r < x->args->ranks; r++) {
        gp_errs errs = { .n = 0 };
        gp_loaded l;
        bool ok = compile(x, r, &l, &errs);
        if (ok)
            note(x, r, l.pipeline);
        else
            gp_print_errs_of_rank(x->args, r, &l, &errs), *status = gp_errs_exit(&errs);
        gp_pipeline_destroy(l.pipeline);
        if (!ok)
            return false;
    }
    return true;
}

/* Adds what they do not agree on; false. */
static bool compare(const asking *x, gp_errs *errs)
{
    gp_ranks_clash clash;
    int ranks = x->args->ranks;
    if (!gp_ranks_find_alike(x->first->pipeline, x->stage, x->nstages, ranks, errs))
        return false;
    if (!gp_ranks_clash_of(x->stage, x->nstages, ranks, &clash))
        return true;
    gp_errs ignored = { .n = 0 };
    gp_loaded l;                       /* the path in the error is one of that rank */
    if (compile(x, clash.a, &l, &ignored))
        gp_ranks_clash_fail(l.pipeline, x->stage, x->nstages, ranks, &clash, errs);
    else
        gp_errs_add(errs, &ignored);
    gp_pipeline_destroy(l.pipeline);
    return false;
}

bool gp_simulated_ranks_agree(const gp_args *args, const gp_loaded *first, const gp_machine *m,
                              const gp_registry *registry, int *status)
{
    asking x = { .args = args, .first = first, .machine = m, .registry = registry,
                 .nstages = gp_rank_stages(first->pipeline, NULL, 0) };
    gp_errs errs = { .n = 0 };
    if (args->ranks < 2)
        return true;
    x.stage = calloc((size_t)args->ranks * (size_t)x.nstages + 1, sizeof *x.stage);
    bool ok = x.stage || gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    ok = ok && ask(&x, status) && compare(&x, &errs);
    if (errs.failed)
        gp_print_errs(args, first, &errs), *status = gp_errs_exit(&errs);
    free(x.stage);
    return ok;
}
