/* machine.c - gpipe machine: what this machine is like, for `--machine` of other verbs. */
#include "api/machine_file.h"
#include "cli/verb.h"

static int machine(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_machine *m = gp_machine_create(true);
    if (!m)
        gp_no_memory(errs);
    else if (!args->measure || gp_machine_measure(m, errs))
        gp_machine_print(m, stdout);
    gp_machine_destroy(m);
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_machine = {
    .name = "machine", .operand = "", .place = 120,
    .help = "print what this machine is like, as JSON, for --machine of other verbs",
    .more = "gpipe machine > big.json, and on another machine: gpipe plan p.yaml --machine big.json\n"
            "Devices are CUDA's, in its order; sizes are bytes. 'memory' of a device is what a plan may\n"
            "take of it, 'free_memory' what nobody used (null: NVML is not there), 'peers' the devices\n"
            "whose memory it can reach itself, 'f64_ratio' how many times as fast f32 is as f64.\n"
            "--measure has each GPU copy for less than a second, while nothing else should use it, and\n"
            "prints as 'launch' what a launch takes by who copies: 'copies: auto' goes by that on this\n"
            "machine from then on (it is kept in the cache), and elsewhere with --machine.\n",
    .options = (const gp_option[]){
        { "measure", 0, NULL, GP_TO_FLAG(measure), "measure launches on the GPUs, and keep that for plans" },
        { .name = NULL },
    },
    .run = machine,
};
