/* machine.c - another machine than that of the report, from a file. JSON is YAML: the reader of YAML reads it.
 *
 *   {"cores": 16, "memory": "64GiB", "speed": 1.5, "gpu": "NVIDIA H200", "gpu_memory": "141GB",
 *    "kernels_speed": 20, "copy_in_gb_s": 50, "copy_out_gb_s": 50} */
#include <stdlib.h>
#include <string.h>
#include "base/yaml.h"
#include "simulate/simulate.h"

static const double MOST = 1e6;

static bool read_number(const gp_node *n, const char *key, double least, double most, double *to, gp_errs *errs)
{
    gp_num v;
    if (n->kind != GP_SCALAR)
        return gp_fail(errs, GP_E_USAGE, n->at, "'%s' takes a number", key);
    if (!gp_eval(n, NULL, &v, errs)) {
        errs->e[errs->n - 1].code = GP_E_USAGE;
        return false;
    }
    *to = v.f;
    return (v.f >= least && v.f <= most)
        || gp_fail(errs, GP_E_USAGE, n->at, "'%s' must be a number from %.6g to %.6g", key, least, most);
}

static bool set_gpu(const gp_node *n, gp_machine *m, gp_errs *errs)
{
    if (n->kind != GP_SCALAR)
        return gp_fail(errs, GP_E_USAGE, n->at, "'gpu' takes a name, or none");
    bool none = !n->quoted && (!strcmp(n->text, "none") || !strcmp(n->text, "null") || !n->len);
    m->ndevices = none ? 0 : m->ndevices > 0 ? m->ndevices : 1;
    m->unified = none;
    if (none)
        snprintf(m->why, sizeof m->why, "the machine has none");
    for (int i = 0; i < m->ndevices; i++) {
        if (!m->device[i].memory)
            m->device[i] = (gp_device_info){ .cc = 90, .sms = 132, .f64 = 2, .memory = (size_t)80 << 30 };
        snprintf(m->device[i].name, sizeof m->device[i].name, "%s", n->text);
    }
    return true;
}

bool gp_other_machine_read(gp_arena *a, const char *text, size_t len, const char *file, const gp_machine *m,
                           gp_other_machine *out, gp_errs *errs)
{
    double cores = m->cpus, memory = (double)m->memory, gpu_memory = 0;
    const struct { const char *key; double least, most; double *to; } keys[] = {
        { "cores", 1, 4096, &cores }, { "memory", 1 << 20, 1e15, &memory }, { "speed", 1 / MOST, MOST,
                                                                              &out->host_speed },
        { "kernels_speed", 1 / MOST, MOST, &out->device_speed }, { "gpu_memory", 1 << 20, 1e15, &gpu_memory },
        { "copy_in_gb_s", 1e-3, MOST, &out->copy_in }, { "copy_out_gb_s", 1e-3, MOST, &out->copy_out },
    };
    enum { KEYS = sizeof keys / sizeof *keys };
    *out = (gp_other_machine){ .machine = *m, .host_speed = 1 };
    const gp_node *root = gp_yaml_parse(a, text, len, file, errs);
    if (!root || root->kind != GP_MAP)
        return errs->failed ? false : gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = file },
                                              "a machine is an object, like "
                                              "{\"cores\": 16, \"speed\": 1.5}");
    for (int i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text;
        gp_near near = GP_NEAR(key);
        int k = 0;
        for (; k < KEYS && strcmp(keys[k].key, key); k++)
            gp_near_try(&near, keys[k].key);
        gp_near_try(&near, "gpu");
        if (k < KEYS ? !read_number(root->item[i], key, keys[k].least, keys[k].most, keys[k].to, errs)
            : !strcmp(key, "gpu") ? !set_gpu(root->item[i], &out->machine, errs)
            : !gp_fail(errs, GP_E_USAGE, root->key[i]->at, "a machine has no '%s'%s", key, gp_near_text(&near)))
            return false;
    }
    out->machine.cpus = (int)cores;
    out->machine.memory = (size_t)memory, out->machine.pin_limit = out->machine.memory / 4 * 3;
    out->machine.here = false;
    out->copy_in *= 1e9, out->copy_out *= 1e9;
    for (int i = 0; i < out->machine.ndevices && gpu_memory > 0; i++)
        out->machine.device[i].memory = (size_t)gpu_memory;
    return true;
}

bool gp_costs_move(gp_costs *c, const gp_plan *plan, bool unified_before, const gp_other_machine *m, const char *file,
                   gp_errs *errs)
{
    gp_loc at = { .file = file };
    double kernels = m->device_speed > 0 ? m->device_speed : plan->unified ? m->host_speed : 1;
    if (plan->nsegments && unified_before != plan->unified && !(m->device_speed > 0))
        return gp_fail(errs, GP_E_USAGE, at,
                       "kernels ran on %s in the report, and this machine has %s: say how many times "
                       "as fast they are there ('kernels_speed')", unified_before ? "the CPU" : "a GPU",
                       unified_before ? "a GPU" : "none");
    c->copy_in = m->copy_in > 0 ? m->copy_in : c->copy_in;
    c->copy_out = m->copy_out > 0 ? m->copy_out : c->copy_out;
    if (!plan->unified && ((plan->copy_in_bytes && !(c->copy_in > 0)) || (plan->copy_out_bytes && !(c->copy_out > 0))))
        return gp_fail(errs, GP_E_USAGE, at,
                       "how fast it copies to and from the GPU is not known: say 'copy_in_gb_s' and "
                       "'copy_out_gb_s'");
    for (int v = 0; v < c->nstages; v++)
        c->stage[v].cpu_ns /= m->host_speed;
    for (int k = 0; k < c->nsegments; k++) {
        c->segment[k].launch_ns /= m->host_speed;
        c->segment[k].kernels_ns /= kernels, c->segment[k].fixed_ns /= kernels;
    }
    c->wake_ns /= m->host_speed;
    c->cores = m->machine.cpus, c->others = 0;
    return true;
}
