/* devices.c - the devices that a pipeline uses: the key `device`, of a pipeline and of a stage. */
#include <string.h>
#include "base/plural.h"
#include "compile/resolve.h"

/* Names as written: "cuda", "cuda:1", "cuda:0-3", "cpu:2". */
typedef struct gp_named { bool pretend; int64_t first, last; } gp_named;

static const char *read_index(const char *s, int64_t *out)
{
    size_t n = strspn(s, "0123456789");
    for (*out = 0; n && n <= 6 && n--; s++)
        *out = 10 * *out + (*s - '0');
    return s;
}

static bool read_name(const char *s, gp_named *out)
{
    bool gpu = !strncmp(s, "cuda", 4);
    *out = (gp_named){ .pretend = !gpu };
    if (!gpu && strncmp(s, "cpu", 3))
        return false;
    s += gpu ? 4 : 3;
    if (!*s)
        return gpu;
    if (*s++ != ':' || !strchr("0123456789", *s) || !*s)
        return false;
    s = read_index(s, &out->first);
    out->last = out->first;
    if (*s == '-' && s[1] && strchr("0123456789", s[1]))
        s = read_index(s + 1, &out->last);
    return !*s && out->last >= out->first;
}

static int find(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->ndevices; i++)
        if (!strcmp(g->device[i].name, name))
            return i;
    return -1;
}

static gp_device *room(gp_resolving *r)
{
    gp_graph *g = r->graph;
    if (!g->device)
        g->device = GP_NEW(r->arena, gp_device, GP_DEVICES);
    return g->ndevices < GP_DEVICES ? (gp_device *)&g->device[g->ndevices] : NULL;
}

/* Device `index`, which may be known. Its number in the graph; -1 after an error. */
static int add(gp_resolving *r, const gp_node *n, const char *text, bool pretend, int64_t index)
{
    const gp_machine *m = r->machine;
    gp_graph *g = r->graph;
    gp_device d = { .pretend = pretend, .index = (int)index };
    snprintf(d.name, sizeof d.name, "%s:%lld", pretend ? "cpu" : "cuda", (long long)index);
    int known = find(g, d.name);
    if (known >= 0)
        return known;
    if (g->ndevices && g->device[0].pretend != pretend)
        return AT(r, n->at, "'%s' and '%s' are not devices of one kind: gpipe runs on GPUs, or on the CPU", g->device[0].name,
                  d.name), -1;
    if (!pretend && !m->ndevices)
        return gp_fail(r->errs, GP_E_RESOURCE, n->at, "there is no device '%s': %s; write device: auto or cpu ('gpipe plan "
                       "--device %s' plans for one that is not here)", text,
                       *m->why ? m->why : "no CUDA device", text), -1;
    if (!pretend && index >= m->ndevices)
        return gp_fail(r->errs, GP_E_RESOURCE, n->at, "there is no device '%s'; this machine has %d, numbered from 0", text,
                       m->ndevices), -1;
    gp_device *to = room(r);
    if (!to || index >= GP_DEVICES)
        return AT(r, n->at, "a pipeline has at most %d devices, numbered from 0", (int)GP_DEVICES), -1;
    if (pretend)
        d.info = (gp_device_info){ .name = "a part of the CPU", .sms = m->cpus, .f64 = 1, .memory = m->memory };
    else
        d.info = m->device[index];
    *to = d;
    return g->ndevices++;
}

static void add_named(gp_resolving *r, const gp_node *n, const char *s)
{
    gp_named x;
    if (!read_name(s, &x)) {
        AT(r, n->at, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these, not '%.60s'", s);
        return;
    }
    for (int64_t i = x.first; i <= x.last; i++) {
        int before = r->graph->ndevices, at = add(r, n, s, x.pretend, i);
        if (at < 0)
            return;
        if (at < before) {
            AT(r, n->at, "device '%s' is named twice", r->graph->device[at].name);
            return;
        }
    }
}

/* With lanes the frames of a buffer come from all of them: they have to compute alike. */
static void check_alike(gp_resolving *r, const gp_node *n)
{
    const gp_graph *g = r->graph;
    for (int i = 1; i < g->ndevices; i++)
        if (strcmp(g->device[i].info.name, g->device[0].info.name)) {
            AT(r, n->at, "'%s' is %s and '%s' is %s: frames can be shared out only among devices of one model; place stages "
               "on one of them with 'device' in the stage", g->device[0].name, g->device[0].info.name, g->device[i].name,
               g->device[i].info.name);
            return;
        }
}

const char *gp_devices_text(const gp_resolving *r)
{
    const gp_graph *g = r->graph;
    const size_t each = sizeof g->device->name + 2;
    if (!g->ndevices)
        return "cpu";
    char *text = gp_alloc(r->arena, each * (size_t)g->ndevices), *end = text;
    for (int i = 0; i < g->ndevices; i++)
        end += snprintf(end, each, "%s%s", i ? ", " : "", g->device[i].name);
    return text;
}

/* Sizes that are alike to 128 MiB count as the same, so that of idle devices the first is taken. */
static size_t roughly(size_t bytes)
{
    return bytes >> 27;
}

static double in_gib(size_t bytes)
{
    return (double)bytes / (double)(1 << 30);
}

/* The device of a rank, by its number on this machine. `*why`: in words. */
static int of_rank(const gp_resolving *r, const char **why)
{
    int n = r->machine->ndevices, rank = r->read.env->local_rank;
    *why = gp_format(r->arena, "one of the %d GPU%s here for each rank", n, gp_plural(n));
    return rank % n;
}

/* The device that `auto` takes: the one with most free memory, where that is known of all. `*why` says so, or stays. */
static int choose(const gp_resolving *r, const char **why)
{
    const gp_machine *m = r->machine;
    int best = 0, next = -1;
    if (m->ndevices < 2)
        return 0;
    for (int i = 0; i < m->ndevices; i++) {
        if (!m->device[i].total) {
            *why = m->here ? "the first, since NVML does not say how much memory is free"
                : "the first, since free memory is not known";
            return 0;
        }
        if (roughly(m->device[i].free) > roughly(m->device[best].free))
            best = i;
    }
    for (int i = 0; i < m->ndevices; i++)
        if (i != best && (next < 0 || m->device[i].free > m->device[next].free))
            next = i;
    *why = gp_format(r->arena, "most free memory, %.1f of %.1f GiB; cuda:%d has %.1f", in_gib(m->device[best].free),
                     in_gib(m->device[best].total), next, in_gib(m->device[next].free));
    return best;
}

static void read_lanes(gp_resolving *r, const gp_node *n)
{
    gp_graph *g = r->graph;
    const gp_machine *m = r->machine;
    const char *s = n && n->kind != GP_SCALAR ? NULL : n ? gp_read_text(&r->read, n) : "auto";
    const char *why = *m->why ? m->why : "no CUDA device", *chosen = NULL;
    static const gp_node nowhere = { .kind = GP_SCALAR };
    const gp_node *at = n ? n : &nowhere;
    bool any = s && (!strcmp(s, "auto") || !strcmp(s, "all")), several = r->read.env && r->read.env->ranks > 1;
    if (n && n->kind == GP_LIST) {
        if (!n->n)
            AT(r, n->at, "'device' is an empty list: name a device");
        for (int i = 0; i < n->n; i++)
            if ((s = gp_read_text(&r->read, n->item[i])))
                add_named(r, n->item[i], s);
    } else if (n && n->kind != GP_SCALAR) {
        AT(r, n->at, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these");
    } else if (!s || !strcmp(s, "cpu")) {
        return;
    } else if (any && !m->ndevices) {
        g->device_why = gp_format(r->arena, "%s: %s", s, why);
        return;
    } else if (several && m->ndevices && (any || !strcmp(s, "cuda"))) {
        add(r, at, s, false, of_rank(r, &chosen));
    } else if (any && !strcmp(s, "auto")) {
        add(r, at, s, false, choose(r, &chosen));
    } else if (any) {
        for (int i = 0; i < m->ndevices; i++)
            add(r, at, s, false, i);
    } else {
        add_named(r, n, s);
    }
    if (!g->ndevices)
        return;
    g->device_why = gp_format(r->arena, "%s: %s", n && n->kind == GP_LIST ? gp_devices_text(r) : s, g->device[0].info.name);
    if (chosen)
        g->device_why = gp_format(r->arena, "%s; %s", g->device_why, chosen);
    check_alike(r, at);
}

void gp_devices_read(gp_resolving *r, const gp_node *n)
{
    gp_graph *g = r->graph;
    g->device_why = "cpu";
    if (n)
        g->device_at = n->at;
    read_lanes(r, n);
    g->lanes = g->ndevices ? g->ndevices : 1;
    if (g->lanes > 1 && g->launch == GP_LAUNCH_PERSISTENT)
        AT(r, n->at, "'launch: persistent' runs on one device, not on %s: name one, or set 'launch: graph'", gp_devices_text(r));
}

/* Where there is no GPU, a pipeline that leaves the device to the machine runs on the CPU, stages that name one,
 * too. */
void gp_devices_place(gp_resolving *r, gp_rstage *st, const gp_node *n)
{
    const gp_graph *g = r->graph;
    const char *s = gp_read_text(&r->read, n);
    gp_named x;
    if (!s)
        return;
    if (!read_name(s, &x) || x.first != x.last) {
        AT(r, n->at, "'device' of stage '%s' must be one device, as cuda:1, not '%.60s'", st->s.name, s);
        return;
    }
    if (!g->ndevices && !x.pretend && strcmp(g->device_why, "cpu"))
        return;
    if (!g->ndevices) {
        AT(r, n->at, "stage '%s' cannot run on '%.60s': the pipeline runs on the CPU; write 'device: %s:0' at its top",
           st->s.name, s, x.pretend ? "cpu" : "cuda");
        return;
    }
    if (g->launch == GP_LAUNCH_PERSISTENT)
        AT(r, n->at, "'launch: persistent' runs on one device: leave out 'device' of stage '%s', or set 'launch: graph'",
           st->s.name);
    int i = add(r, n, s, x.pretend, x.first);
    st->s.placed = i >= 0 ? i : -1;
}

/* From several devices frames come together on the host. */
void gp_devices_follow(const gp_resolving *r, gp_stage *st, const gp_stage *by)
{
    st->device = gp_stage_makes_on_device(by) && (st->cycle || gp_stage_lanes(by, r->graph->lanes) == 1);
    st->placed = by->placed;
}

/* Do its keys say something that only a stage of the host has? */
static bool says_of_host(const gp_graph *g, const gp_stage *st)
{
    return st->workers_said || st->on_error != g->on_error || st->max_dropped >= 0 || st->max_part >= 0;
}

void gp_devices_alone(gp_resolving *r)
{
    for (int i = 0; i < r->nstages && r->graph->ranks == 1 && r->graph->lanes == 1; i++) {
        gp_rstage *st = &r->stage[r->order[i]];
        bool may = !st->broken && st->s.kind->collective && st->s.kind->record && !says_of_host(r->graph, &st->s);
        int b = may ? st->s.in[0] : -1, by = b < 0 ? -1 : r->buffer[b].b.producer.stage;
        if (by >= 0 && r->stage[by].s.device && !gp_is_carry(&r->stage[by].s)) {
            st->s.device = true, st->s.placed = r->stage[by].s.placed;
            st->s.workers_auto = false;
        }
    }
}

/* What goes round a cycle stays on one device, what runs once runs on the first, and what ranks exchange is of
 * processes. */
void gp_devices_check(gp_arena *a, const gp_graph *g, gp_errs *errs)
{
    for (int i = 0; i < g->nprologue; i++)
        if (g->prologue[i].placed >= 0)
            gp_fail(errs, GP_E_SPEC, gp_node_at(g->prologue[i].node, "device", g->prologue[i].at), "'device' has no effect: stage "
                    "'%s' reads only constants and runs once, on the first device", g->prologue[i].name);
    for (int v = 0; v < g->nstages; v++)
        if (g->stage[v].kind->collective && g->ranks == 1 && g->lanes > 1)
            gp_fail(errs, GP_E_WARN, g->stage[v].at, "stage '%s' exchanges frames between processes, not between the %d "
                    "devices of one, and so does nothing here: start a process for each device, with 'mpirun -n %d gpipe "
                    "run'", g->stage[v].name, g->lanes, g->lanes);
    const gp_stage **first = GP_NEW(a, const gp_stage *, g->nstages + 1);      /* of each cycle, that is no carry */
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *s = &g->stage[v], *before = first[s->cycle];
        if (!s->cycle || !s->device || gp_is_carry(s))
            continue;
        first[s->cycle] = before ? before : s;
        if (!before || before->placed == s->placed)
            continue;
        const gp_stage *said = s->placed >= 0 ? s : before;
        gp_fail(errs, GP_E_SPEC, gp_node_at(said->node, "device", said->at), "stage '%s' is on a cycle with stage '%s': give both the same 'device'",
                said->name, said == s ? before->name : s->name);
        return;
    }
}

void gp_devices_drop_unused(gp_resolving *r)
{
    gp_graph *g = r->graph;
    int *number = GP_NEW(r->arena, int, g->ndevices + 1), n = 0;
    bool *used = GP_NEW(r->arena, bool, g->ndevices + 1), any = false, all = g->nprologue > 0;
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *s = &g->stage[v];
        all |= gp_stage_makes_on_device(s) && s->placed < 0;
        if (gp_stage_makes_on_device(s) && s->placed >= 0)
            any = used[s->placed] = true;
    }
    if (all || !any)
        return;
    gp_device *left = GP_NEW(r->arena, gp_device, g->ndevices);
    for (int i = 0; i < g->ndevices; i++)
        if (used[i])
            left[n] = g->device[i], number[i] = n++;
    for (int v = 0; v < g->nstages; v++)
        if (g->stage[v].placed >= 0)
            g->stage[v].placed = number[g->stage[v].placed];
    g->device = left, g->ndevices = n, g->lanes = 1;
    g->device_name = gp_devices_text(r);
}
