/* simulate.c - gpipe simulate: what a run would be like, from the report of another one. */
#include <stdlib.h>
#include <string.h>
#include "api/forms.h"
#include "base/plural.h"
#include "cli/live.h"
#include "ranks/same.h"
#include "cli/report.h"
#include "cli/verb.h"
#include "simulate/simulate.h"

enum { FRAMES = 20000, OF_A_RANK = 300, SLICES = 20000 };

/* GPUs that settings name, and that the machine of the report has not, are like its first. */
static void add_devices(gp_machine *m, const gp_args *args)
{
    int last = -1;
    for (int i = 0; i < args->nset && m->ndevices; i++) {
        const char *s = args->set[i];
        if (strncmp(s, "device=", 7))
            continue;
        last = -1;
        for (s = strstr(s, "cuda:"); s; s = strstr(s + 5, "cuda:")) {
            int from = 0, to = 0, n = sscanf(s, "cuda:%9d-%9d", &from, &to);
            last = n > 0 && from > last ? from : last;
            last = n > 1 && to > last ? to : last;
        }
    }
    for (; m->ndevices <= last && m->ndevices < GP_DEVICES; m->ndevices++)
        m->device[m->ndevices] = m->device[0];
}

typedef struct simulating {
    const gp_args *args;
    const gp_registry *registry;
    gp_arena arena;
    gp_loaded run, plan, report, machine;  /* run: as it was in the report; plan: as it is asked for */
    const gp_costs *costs;             /* of the plan */
    int status;                        /* of errors that are printed already */
    gp_errs *errs;
} simulating;

/* Errors of a pipeline are shown with its text. */
static bool compile(simulating *s, gp_loaded *l, const gp_args *args, const gp_machine *m)
{
    gp_errs own = { .n = 0 };
    bool ok = gp_load_text(l, s->args->operand[0], &own) && gp_load_for(l, args, m, s->registry, &own);
    if (ok && l == &s->run)            /* the same warnings come again */
        return true;
    gp_print_errs(args, l, &own);
    if (!ok)
        s->status = gp_errs_exit(&own);
    return ok;
}

/* ---- what a run in several ranks would refuse before it starts -------- */

/* No rate is predicted of it: the plan of each rank is made, and what ranks would tell each other by MPI (ranks/agree.c)
 * is taken from it. */
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
    while (before < rank && gp_node_of(rank - before - 1, args->nranks, args->nodes)
                            == gp_node_of(rank, args->nranks, args->nodes))
        before++;
    return before;
}

/* As a rank has it; its text is that of the first. */
static bool compile_as(const asking *x, int rank, gp_loaded *l, gp_errs *errs)
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
    for (int r = 1; r < x->args->nranks; r++) {
        gp_errs errs = { .n = 0 };
        gp_loaded l;
        bool ok = compile_as(x, r, &l, &errs);
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
    int ranks = x->args->nranks;
    if (!gp_ranks_find_alike(x->first->pipeline, x->stage, x->nstages, ranks, errs))
        return false;
    if (!gp_ranks_clash_of(x->stage, x->nstages, ranks, &clash))
        return true;
    gp_errs ignored = { .n = 0 };
    gp_loaded l;                       /* the path in the error is one of that rank */
    if (compile_as(x, clash.a, &l, &ignored))
        gp_ranks_clash_fail(l.pipeline, x->stage, x->nstages, ranks, &clash, errs);
    else
        gp_errs_add(errs, &ignored);
    gp_pipeline_destroy(l.pipeline);
    return false;
}

/* Would a run in so many ranks (--ranks) start? `first` is the pipeline as rank 0 compiled it. False: errors are printed,
 * as those ranks would say them, and *status is the exit code. */
static bool ranks_agree(const gp_args *args, const gp_loaded *first, const gp_machine *m, const gp_registry *registry,
                        int *status)
{
    asking x = { .args = args, .first = first, .machine = m, .registry = registry,
                 .nstages = gp_rank_stages(first->pipeline, NULL, 0) };
    gp_errs errs = { .n = 0 };
    if (args->nranks < 2)
        return true;
    x.stage = calloc((size_t)args->nranks * (size_t)x.nstages + 1, sizeof *x.stage);
    bool ok = x.stage || gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    ok = ok && ask(&x, status) && compare(&x, &errs);
    if (errs.failed)
        gp_print_errs(args, first, &errs), *status = gp_errs_exit(&errs);
    free(x.stage);
    return ok;
}

/* ---- the simulation --------------------------------------------------- */

static const gp_simulated *simulate(simulating *s)
{
    const gp_args *args = s->args;
    gp_machine *here = GP_NEW(&s->arena, gp_machine, 1);       /* large, for a stack */
    gp_machine_file *other = GP_NEW(&s->arena, gp_machine_file, 1);
    if (!gp_load_text(&s->report, args->with, s->errs))
        return NULL;
    const gp_source_report *r = gp_source_report_read(&s->arena, s->report.text, s->report.len, s->report.file,
                                                      s->errs);
    if (!r)
        return NULL;
    gp_source_report_machine(r, here);
    other->machine = *here;
    if (args->machine
        && (!gp_load_text(&s->machine, args->machine, s->errs)
            || !gp_machine_file_read(&s->arena, s->machine.text, s->machine.len, s->machine.file, here, other,
                                     s->errs)))
        return NULL;
    const char *const *set;            /* the settings of the report come first */
    int n = gp_source_report_set(r, &set);
    gp_args as_run = *args;
    as_run.nset = 0;
    as_run = gp_args_with(&s->arena, &as_run, set, n);
    gp_args as_asked = gp_args_with(&s->arena, &as_run, args->set, args->nset);
    as_run.nranks = 0;
    if (!args->machine)
        add_devices(&other->machine, &as_asked);
    if (!compile(s, &s->run, &as_run, here) || !compile(s, &s->plan, &as_asked, &other->machine))
        return NULL;
    if (!ranks_agree(&as_asked, &s->plan, &other->machine, s->registry, &s->status))
        return NULL;
    const gp_plan *before = gp_pipeline_plan(s->run.pipeline), *plan = gp_pipeline_plan(s->plan.pipeline);
    const gp_costs *run = gp_costs_read(&s->arena, r, before, s->errs);
    gp_costs *c = run ? gp_costs_for(&s->arena, run, before, plan, s->errs) : NULL;
    if (!c)
        return NULL;
    c->ranks = args->nranks, c->nodes = args->nodes, s->costs = c;
    bool moved = !args->machine || gp_costs_move(c, plan, before, other, args->machine, s->errs);
    if (!gp_costs_suffice(c, plan, args->machine, s->errs) || !moved)
        return NULL;
    uint64_t of_ranks = (uint64_t)args->nranks * OF_A_RANK;
    return gp_simulate(&s->arena, plan, c, of_ranks > FRAMES ? of_ranks : FRAMES, SLICES, s->errs);
}

static void print(const gp_simulated *s, const gp_plan *plan, const gp_report_about *about)
{
    char rate[32], host[32], device[32];
    uint64_t frames = gp_frames_done(s->account, s->naccounts);
    gp_print_account(stdout, s->report);
    gp_amount_text(1e9 * (double)frames / (double)s->report->wall_ns, "", rate);
    bool ranks = plan->graph->ranks > 1;
    printf("simulated: %s frames/s%s%s of host memory", rate, ranks ? " of all ranks together; for each rank " : ", ",
           gp_amount_text((double)plan->host_bytes, "B", host));
    if (!plan->unified)
        printf(", %s on %s", gp_amount_text((double)plan->device_bytes, "B", device),
               plan->graph->ndevices > 1 ? "the devices" : "the device");
    printf("\n");
    for (int i = 0; i < about->nassumed; i++)
        printf("assumed: %s\n", about->assumed[i]);
}

static bool show(simulating *s, const gp_simulated *x)
{
    const gp_pipeline *p = s->plan.pipeline;
    gp_report_about about = { .simulated = true, .account = x->account, .naccounts = x->naccounts, .set = s->args->set,
                              .nset = s->args->nset, .environment = { .cores = x->report->cpus } };
    about.assumed = gp_costs_assume(&s->arena, s->costs, gp_pipeline_plan(p), &about.nassumed);
    gp_environment here;
    gp_environment_read(&here, -1, gp_commit);
    memcpy(about.environment.date, here.date, sizeof here.date);
    memcpy(about.environment.commit, here.commit, sizeof here.commit);
    gp_verdict_find(x->report, p);
    gp_links_judge(s->costs, gp_pipeline_plan(p), x->report);
    if (s->args->report && !gp_report_simulated(s->args->report, p, x, &about, s->errs))
        return false;
    if (s->args->json)
        gp_report_json(x->report, p, &about, stdout);
    else
        print(x, gp_pipeline_plan(p), &about);
    return true;
}

static int simulate_verb(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    if (!args->with) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 },
                "simulate needs the times of a run: gpipe run %s --report run.json, then "
                "--with run.json", args->operand[0]);
        return gp_errs_exit(errs);
    }
    int ranks = args->nranks ? args->nranks : 1;
    if (args->nodes > ranks) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--nodes %d: there %s %d rank%s, and each machine has at least one; "
                "say --ranks", args->nodes, ranks == 1 ? "is" : "are", ranks, gp_plural(ranks));
        return gp_errs_exit(errs);
    }
    simulating s = { .args = args, .registry = registry, .errs = errs };
    jmp_buf oom;
    s.arena.oom = &oom;
    if (!setjmp(oom)) {
        const gp_simulated *x = simulate(&s);
        if (x)
            show(&s, x);
    } else {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    }
    s.arena.oom = NULL;
    int status = s.status ? s.status : gp_errs_exit(errs);
    gp_print_errs(args, &s.machine, errs);
    *errs = (gp_errs){ 0 };
    gp_unload(&s.run), gp_unload(&s.plan), gp_unload(&s.report), gp_unload(&s.machine);
    gp_arena_free(&s.arena);
    return status;
}

const gp_verb gp_verb_simulate = {
    .name = "simulate", .operand = "FILE", .min = 1, .max = 1, .place = 50,
    .help = "predict a pipeline's rate and latency from the report of a run",
    .more = "gpipe run p.yaml --report run.json; gpipe simulate p.yaml --with run.json --set depth=8\n"
            "The pipeline is not run: its plan is simulated with the times that its stages,\n"
            "kernels, copies and launches took in that run. --set adds to the settings of that run.\n"
            "Kernels share the device, and threads the cores, evenly. Where the report lacks the\n"
            "times (another device, other stages) this is an error. --machine FILE is what\n"
            "'gpipe machine' printed, or has any of these keys:\n"
            "{\"cores\": 16, \"memory\": \"64GiB\", \"speed\": 1.5, \"gpu\": \"NVIDIA H200\",\n"
            "\"gpu_memory\": \"141GB\", \"kernels_speed\": 20, \"copy_in_gb_s\": 50, \"copy_out_gb_s\": 50};\n"
            "'speed' 1.5 is 1.5 times as fast as the machine of the report. --set device=cuda:0-7\n"
            "simulates several GPUs, --ranks N --nodes M several processes on several machines: what\n"
            "it takes for granted is printed, and 'gpipe help retune' has the keys for what links\n"
            "them. The result does not depend on the machine that simulates.\n",
    .target = GP_TARGET_TOLD, .run = simulate_verb,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_REPORT, GP_OPTION_WITH, GP_OPTION_MACHINE,
        { "ranks", 0, "N", GP_TO_COUNT(nranks),
          "simulate N processes, each with a share of the frames, as 'mpirun -n N' starts them" },
        { "nodes", 0, "M", GP_TO_COUNT(nodes), "the machines that these are on, all alike; default 1" },
        GP_OPTION_JSON, GP_OPTION_QUIET,
        { 0 } },
};
