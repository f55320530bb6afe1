/* machine.c - gpipe machine: what this machine is like, for `--machine` of other verbs. */
#include "cli/cli.h"

int gp_cmd_machine(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    (void)args, (void)registry;
    gp_machine *m = gp_machine_create(true);
    if (m)
        gp_machine_print(m, stdout);
    else
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    gp_machine_destroy(m);
    return gp_errs_exit(errs);
}
