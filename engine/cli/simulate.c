/* simulate.c - gpipe simulate: what a run would be like, from the report of another one. */
#include <string.h>
#include "api/forms.h"
#include "base/plural.h"
#include "ranks/same.h"
#include "cli/report.h"
#include "cli/verb.h"
#include "simulate/simulate.h"

enum { FRAMES = 20000, OF_A_RANK = 300, SLICES = 20000 };

/* GPUs that settings name, and that the machine of the report has not, are like its first. */
static void add_devices(gp_machine *m, const gp_args *args)
{
    int n = 0;
    for (int i = 0; i < args->nset; i++)
        if (!strncmp(args->set[i], "device=", 7))
            n = gp_gpus_named(args->set[i]);
    for (; m->ndevices && m->ndevices < n && m->ndevices < GP_DEVICES; m->ndevices++)
        m->device[m->ndevices] = m->device[0];
}

typedef struct simulating {
    const gp_args *args;
    const gp_registry *registry;
    gp_arena arena;
    gp_loaded run, plan, report, machine;  /* run: as it was in the report; plan: as it is asked for */
    gp_args asked;                     /* with the settings of the report */
    gp_machine_file *on;               /* the machine that is asked for */
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

/* The plan of a rank; its text is that of the first. */
static bool compile_as(const simulating *s, int rank, gp_loaded *l, gp_errs *errs)
{
    int ranks = s->asked.nranks, nodes = s->asked.nodes, first = rank;      /* first: on its machine */
    while (first && gp_node_of(first - 1, ranks, nodes) == gp_node_of(rank, ranks, nodes))
        first--;
    *l = (gp_loaded){ .file = s->plan.file, .text = s->plan.text, .len = s->plan.len };
    return gp_load_for_rank(l, &s->asked, rank, rank - first, &s->on->machine, s->registry, errs);
}

/* Would a run in so many ranks (--ranks) start? No rate is predicted of it: the plan of each rank is made, and what
 * ranks would tell each other by MPI (ranks/agree.c) is taken from it. False: errors are printed, as those ranks would
 * say them. */
static bool ranks_agree(simulating *s)
{
    int ranks = s->asked.nranks, n = gp_rank_stages(s->plan.pipeline, NULL, 0);
    gp_rank_stage *stage = GP_NEW(&s->arena, gp_rank_stage, (size_t)ranks * (size_t)n);
    gp_ranks_clash clash;
    gp_loaded l;
    for (int r = 0; r < ranks; r++) {
        gp_errs own = { .n = 0 };
        bool ok = compile_as(s, r, &l, &own);
        if (ok)
            (void)gp_rank_stages(l.pipeline, stage + r * n, n);
        else
            gp_print_errs_of_rank(&s->asked, r, &l, &own), s->status = gp_errs_exit(&own);
        gp_pipeline_destroy(l.pipeline);
        if (!ok)
            return false;
    }
    gp_errs errs = { .n = 0 }, ignored = { .n = 0 };
    if (gp_ranks_find_alike(s->plan.pipeline, stage, n, ranks, &errs)) {
        if (!gp_ranks_clash_of(stage, n, ranks, &clash))
            return true;
        if (compile_as(s, clash.a, &l, &ignored))      /* the path in the error is one of that rank */
            gp_ranks_clash_fail(l.pipeline, stage, n, ranks, &clash, &errs);
        else
            gp_errs_add(&errs, &ignored);
        gp_pipeline_destroy(l.pipeline);
    }
    gp_print_errs(&s->asked, &s->plan, &errs), s->status = gp_errs_exit(&errs);
    return false;
}

/* ---- the simulation --------------------------------------------------- */

static const gp_simulated *simulate(simulating *s)
{
    const gp_args *args = s->args;
    gp_machine *here = GP_NEW(&s->arena, gp_machine, 1);       /* large, for a stack */
    s->on = GP_NEW(&s->arena, gp_machine_file, 1);
    const gp_source_report *r = gp_load_text(&s->report, args->with, s->errs)
        ? gp_source_report_read(&s->arena, s->report.text, s->report.len, s->report.file, s->errs) : NULL;
    if (!r)
        return NULL;
    gp_source_report_machine(r, here);
    s->on->machine = *here;
    const gp_loaded *m = &s->machine;
    if (args->machine && (!gp_load_text(&s->machine, args->machine, s->errs)
                          || !gp_machine_file_read(&s->arena, m->text, m->len, m->file, here, s->on, s->errs)))
        return NULL;
    gp_args as_run = *args;
    as_run.nset = 0;
    as_run = gp_args_with(&s->arena, &as_run, (const char *const *)r->set, r->nset);     /* these come first */
    s->asked = gp_args_with(&s->arena, &as_run, args->set, args->nset);
    as_run.nranks = 0;
    if (!args->machine)
        add_devices(&s->on->machine, &s->asked);
    if (!compile(s, &s->run, &as_run, here) || !compile(s, &s->plan, &s->asked, &s->on->machine)
        || (args->nranks > 1 && !ranks_agree(s)))
        return NULL;
    const gp_plan *before = gp_pipeline_plan(s->run.pipeline), *plan = gp_pipeline_plan(s->plan.pipeline);
    const gp_costs *run = gp_costs_read(&s->arena, r, before, s->errs);
    gp_costs *c = run ? gp_costs_for(&s->arena, run, before, plan, s->errs) : NULL;
    if (!c)
        return NULL;
    c->ranks = args->nranks, c->nodes = args->nodes, s->costs = c;
    bool moved = !args->machine || gp_costs_move(c, plan, before, s->on, args->machine, s->errs);
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
    int ranks = args->nranks ? args->nranks : 1;
    if (!args->with)
        return gp_usage(errs, "simulate needs the times of a run: gpipe run %s --report run.json, then --with run.json",
                        args->operand[0]);
    if (args->nodes > ranks)
        return gp_usage(errs, "--nodes %d: there %s %d rank%s, and each machine has at least one; say --ranks",
                        args->nodes, ranks == 1 ? "is" : "are", ranks, gp_plural(ranks));
    simulating s = { .args = args, .registry = registry, .errs = errs };
    GP_UNLESS_OOM(&s.arena) {
        const gp_simulated *x = simulate(&s);
        if (x)
            show(&s, x);
    } else {
        gp_no_memory(errs);
    }
    s.arena.oom = NULL;
    int status = gp_tell_errs(args, &s.machine, errs);
    gp_unload(&s.run), gp_unload(&s.plan), gp_unload(&s.report), gp_unload(&s.machine);
    gp_arena_free(&s.arena);
    return s.status ? s.status : status;
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
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN, GP_OPTION_REPORT, GP_OPTION_WITH, GP_OPTION_MACHINE,
        { "ranks", 0, "N", GP_TO_COUNT(nranks),
          "simulate N processes, each with a share of the frames, as 'mpirun -n N' starts them" },
        { "nodes", 0, "M", GP_TO_COUNT(nodes), "the machines that these are on, all alike; default 1" },
        GP_OPTION_JSON, GP_OPTION_QUIET,
        { 0 } },
};
