/* machine_file.c - a machine as JSON. JSON is YAML: the reader of YAML reads it.
 *
 *   {"format": 1, "gpipe": "0.1.0", "cores": 16, "memory": "64GiB", "page_size": 4096,
 *    "devices": [{"name": "NVIDIA H200", "compute_capability": 9.0, "sms": 132, "f64_ratio": 2, "memory": "141GB",
 *                 "total_memory": "150GB", "free_memory": "149GB", "copy_engines": 3, "pci": "0000:1b:00.0",
 *                 "peers": [1], "launch": {"engine_us": 8.2, "engine_gb_s": 25, "kernel_us": 5, "kernel_gb_s": 20,
 *                                          "mapped_us": 3.1, "mapped_gb_s": 21}}]}
 *
 * and what no machine says of itself, but a person of one that is compared with that of a report:
 *
 *   {"speed": 1.5, "gpu": "NVIDIA H200", "gpu_memory": "141GB", "kernels_speed": 20, "copy_in_gb_s": 50,
 *    "copy_out_gb_s": 50, "host_memory_gb_s": 150, "peer_gb_s": 280, "peer_us": 3.4, "process_gb_s": 5,
 *    "process_us": 2, "network_gb_s": 400, "network_us": 10, "nccl_us": 20} */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/machine_file.h"
#include "base/c_locale.h"
#include "base/json.h"
#include "base/yaml.h"

enum { FORMAT = 1 };
static const double MOST = 1e6, MOST_BYTES = 1e15;

/* ---- reading ---------------------------------------------------------- */

typedef struct reading {
    gp_machine_file *out;
    const char *file;
    gp_errs *errs;
    uint64_t no_peer;          /* of the device that is read; */
    gp_link *launch;           /* ... likewise */
} reading;

#define AT(r, at, ...) gp_fail((r)->errs, GP_E_USAGE, (at), __VA_ARGS__)

/* A key of an object: a number from `least` to `most`; a text (`size` bytes); or what `read` reads. With none of these
 * it is known, and nothing asks for it. */
typedef struct gp_field {
    const char *key;
    double least, most, *number;
    char *text; size_t size;
    bool (*read)(reading *r, const gp_node *n);
    bool or_null;
} gp_field;

static bool is_null(const gp_node *n)
{
    return n->kind == GP_SCALAR && !n->quoted && (!strcmp(n->text, "null") || !n->len);
}

static bool read_number(const reading *r, const gp_field *f, const gp_node *n)
{
    gp_num v;
    if (n->kind != GP_SCALAR)
        return AT(r, n->at, "'%s' takes a number", f->key);
    if (!gp_eval(n, NULL, &v, r->errs)) {
        r->errs->e[r->errs->n - 1].code = GP_E_USAGE;
        return false;
    }
    *f->number = v.f;
    return (v.f >= f->least && v.f <= f->most)
        || AT(r, n->at, "'%s' must be a number from %.6g to %.6g", f->key, f->least, f->most);
}

static bool read_field(reading *r, const gp_field *f, const gp_node *n)
{
    if (f->or_null && is_null(n))
        return true;
    if (f->read)
        return f->read(r, n);
    if (f->number)
        return read_number(r, f, n);
    if (!f->text)
        return true;
    if (n->kind != GP_SCALAR)
        return AT(r, n->at, "'%s' takes a text", f->key);
    snprintf(f->text, f->size, "%s", n->text);
    return true;
}

/* `what`: "a machine", "a device". */
static bool read_object(reading *r, const gp_node *n, const char *what, const gp_field *field, int nfields)
{
    for (int i = 0; i < n->n; i++) {
        const char *key = n->key[i]->text;
        gp_near near = GP_NEAR(key);
        int k = 0;
        for (; k < nfields && strcmp(field[k].key, key); k++)
            gp_near_try(&near, field[k].key);
        if (k == nfields)
            return AT(r, n->key[i]->at, "%s has no '%s'%s", what, key, gp_near_text(&near));
        if (!read_field(r, &field[k], n->item[i]))
            return false;
    }
    return true;
}

static bool read_format(reading *r, const gp_node *n)
{
    double format;
    const gp_field f = { .key = "format", .least = 1, .most = MOST, .number = &format };
    return read_number(r, &f, n)
        && (format == FORMAT
            || AT(r, n->at, "this file has format %.6g of machines, and gpipe %s reads format %d: use the gpipe that "
                  "wrote it", format, GP_VERSION, (int)FORMAT));
}

static bool read_gpu(reading *r, const gp_node *n)
{
    gp_machine *m = &r->out->machine;
    if (n->kind != GP_SCALAR)
        return AT(r, n->at, "'gpu' takes a name, or none");
    if (r->out->says_devices)
        return AT(r, n->at, "'gpu' and 'devices' exclude each other");
    r->out->says_devices = true;
    bool none = is_null(n) || (!n->quoted && !strcmp(n->text, "none"));
    m->ndevices = none ? 0 : m->ndevices > 0 ? m->ndevices : 1;
    for (int i = 0; i < m->ndevices; i++) {
        if (!m->device[i].memory)
            m->device[i] = (gp_device_info){ .cc = 90, .sms = 132, .f64 = 2, .memory = (size_t)80 << 30 };
        snprintf(m->device[i].name, sizeof m->device[i].name, "%s", n->text);
    }
    return true;
}

/* Numbers of devices: of those that the file has, which is known when all are read. */
static bool read_peers(reading *r, const gp_node *n)
{
    double number;
    const gp_field f = { .key = "peers", .least = 0, .most = GP_DEVICES - 1, .number = &number };
    if (n->kind != GP_LIST)
        return AT(r, n->at, "'peers' takes a list of numbers of devices");
    r->no_peer = ~UINT64_C(0);
    for (int i = 0; i < n->n; i++)
        if (!read_number(r, &f, n->item[i]))
            return false;
        else if (number < 64)
            r->no_peer &= ~(UINT64_C(1) << (int)number);
    return true;
}

/* What 'gpipe machine --measure' found. */
static bool read_launch(reading *r, const gp_node *n)
{
    gp_link *l = r->launch;
    const gp_field fields[] = {
        { .key = "engine_us", .most = MOST, .number = &l[GP_COPY_DMA].step_ns },
        { .key = "engine_gb_s", .least = 1e-3, .most = MOST, .number = &l[GP_COPY_DMA].rate },
        { .key = "kernel_us", .most = MOST, .number = &l[GP_COPY_KERNEL].step_ns },
        { .key = "kernel_gb_s", .least = 1e-3, .most = MOST, .number = &l[GP_COPY_KERNEL].rate },
        { .key = "mapped_us", .most = MOST, .number = &l[GP_COPY_MAPPED].step_ns },
        { .key = "mapped_gb_s", .least = 1e-3, .most = MOST, .number = &l[GP_COPY_MAPPED].rate },
    };
    if (n->kind != GP_MAP)
        return AT(r, n->at, "'launch' is an object, as 'gpipe machine --measure' prints it");
    bool ok = read_object(r, n, "a launch", fields, sizeof fields / sizeof *fields);
    for (int i = 0; i < GP_COPYINGS; i++)
        l[i].rate *= 1e9, l[i].step_ns *= 1e3;
    return ok;
}

static bool read_device(reading *r, const gp_node *n, gp_device_info *d)
{
    double index, cc = 0, sms = 132, f64 = 2, memory = 0, total = 0, free = -1, copies = 0;
    const gp_field fields[] = {
        { .key = "index", .most = GP_DEVICES - 1, .number = &index },
        { .key = "name", .text = d->name, .size = sizeof d->name },
        { .key = "compute_capability", .least = 7.5, .most = 99, .number = &cc },
        { .key = "sms", .least = 1, .most = MOST, .number = &sms },
        { .key = "f64_ratio", .least = 1, .most = MOST, .number = &f64 },
        { .key = "memory", .least = 1 << 20, .most = MOST_BYTES, .number = &memory },
        { .key = "total_memory", .most = MOST_BYTES, .number = &total, .or_null = true },
        { .key = "free_memory", .most = MOST_BYTES, .number = &free, .or_null = true },
        { .key = "copy_engines", .most = MOST, .number = &copies, .or_null = true },
        { .key = "pci", .text = d->pci, .size = sizeof d->pci, .or_null = true },
        { .key = "peers", .read = read_peers }, { .key = "launch", .read = read_launch, .or_null = true },
    };
    if (n->kind != GP_MAP)
        return AT(r, n->at, "a device is an object, like {\"name\": \"NVIDIA H200\", \"compute_capability\": 9.0, "
                  "\"memory\": \"141GB\"}");
    r->launch = d->launch;
    r->no_peer = 0;                    /* where nothing is said all are peers */
    if (!read_object(r, n, "a device", fields, sizeof fields / sizeof *fields))
        return false;
    if (!*d->name || cc <= 0 || memory <= 0)
        return AT(r, n->at, "a device needs '%s'", !*d->name ? "name" : cc <= 0 ? "compute_capability" : "memory");
    d->cc = (int)lround(10 * cc), d->sms = (int)sms, d->f64 = (int)f64, d->memory = (size_t)memory;
    d->copy_engines = (int)copies, d->no_peer = r->no_peer;
    if (free >= 0)
        d->free = (size_t)free, d->total = (size_t)(total > 0 ? total : memory);
    return true;
}

static bool read_devices(reading *r, const gp_node *n)
{
    gp_machine *m = &r->out->machine;
    if (n->kind != GP_LIST)
        return AT(r, n->at, "'devices' takes a list of devices; without a GPU it is []");
    if (r->out->says_devices)
        return AT(r, n->at, "'gpu' and 'devices' exclude each other");
    if (n->n > GP_DEVICES)
        return AT(r, n->at, "'devices' has %d, and gpipe takes at most %d", n->n, (int)GP_DEVICES);
    r->out->says_devices = true;
    m->ndevices = n->n;
    memset(m->device, 0, sizeof m->device);
    for (int i = 0; i < n->n; i++)
        if (!read_device(r, n->item[i], &m->device[i]))
            return false;
    return true;
}

bool gp_machine_file_read(gp_arena *a, const char *text, size_t len, const char *file, const gp_machine *m,
                          gp_machine_file *out, gp_errs *errs)
{
    memset(out, 0, sizeof *out);
    out->machine = *m, out->host_speed = 1;
    reading r = { .out = out, .file = file, .errs = errs };
    gp_machine *to = &out->machine;
    double cores = m->cpus, memory = (double)m->memory, gpu_memory = 0, driver = m->cuda_driver;
    const gp_field fields[] = {
        { .key = "format" }, { .key = "gpipe" }, { .key = "page_size" }, { .key = "cuda" },
        { .key = "cores", .least = 1, .most = 4096, .number = &cores },
        { .key = "memory", .least = 1 << 20, .most = MOST_BYTES, .number = &memory },
        { .key = "cuda_driver", .most = MOST, .number = &driver, .or_null = true },
        { .key = "devices", .read = read_devices },
        { .key = "why", .text = to->why, .size = sizeof to->why, .or_null = true },
        { .key = "speed", .least = 1 / MOST, .most = MOST, .number = &out->host_speed },
        { .key = "kernels_speed", .least = 1 / MOST, .most = MOST, .number = &out->device_speed },
        { .key = "gpu", .read = read_gpu },
        { .key = "gpu_memory", .least = 1 << 20, .most = MOST_BYTES, .number = &gpu_memory },
        { .key = "copy_in_gb_s", .least = 1e-3, .most = MOST, .number = &out->copy_in },
        { .key = "copy_out_gb_s", .least = 1e-3, .most = MOST, .number = &out->copy_out },
        { .key = "host_memory_gb_s", .least = 1e-3, .most = MOST, .number = &out->memory },
        { .key = "peer_gb_s", .least = 1e-3, .most = MOST, .number = &out->peer.rate },
        { .key = "peer_us", .most = MOST, .number = &out->peer.step_ns },
        { .key = "process_gb_s", .least = 1e-3, .most = MOST, .number = &out->process.rate },
        { .key = "process_us", .most = MOST, .number = &out->process.step_ns },
        { .key = "network_gb_s", .least = 1e-3, .most = MOST, .number = &out->network.rate },
        { .key = "network_us", .most = MOST, .number = &out->network.step_ns },
        { .key = "nccl_us", .most = MOST, .number = &out->nccl_ns },
    };
    const gp_node *root = gp_yaml_parse(a, text, len, file, errs);
    if (!root || root->kind != GP_MAP) {
        for (int i = 0; i < errs->n; i++)      /* the text is not the pipeline's */
            errs->e[i].code = errs->e[i].code == GP_E_SPEC ? GP_E_USAGE : errs->e[i].code;
        return errs->failed ? false : AT(&r, root ? root->at : (gp_loc){ .file = file },
                                         "a machine is an object, like {\"cores\": 16, \"speed\": 1.5}");
    }
    to->why[0] = '\0', out->at = root->at;
    const gp_node *format = gp_node_get(root, "format");
    if ((format && !read_format(&r, format))
        || !read_object(&r, root, "a machine", fields, sizeof fields / sizeof *fields))
        return false;
    if (!to->ndevices && !*to->why)
        snprintf(to->why, sizeof to->why, "the machine has none");
    to->unified = !to->ndevices;
    out->says_cores = gp_node_get(root, "cores") != NULL;
    to->cpus = (int)cores, to->cuda_driver = (int)driver;
    to->memory = (size_t)memory, to->pin_limit = to->memory / 4 * 3;
    to->here = false;
    out->copy_in *= 1e9, out->copy_out *= 1e9, out->memory *= 1e9;
    gp_link *link[] = { &out->peer, &out->process, &out->network };
    for (int i = 0; i < 3; i++)
        link[i]->rate *= 1e9, link[i]->step_ns *= 1e3;
    out->nccl_ns *= 1e3;
    for (int i = 0; i < to->ndevices && gpu_memory > 0; i++)
        to->device[i].memory = (size_t)gpu_memory;
    return true;
}

gp_machine *gp_machine_create_from(const char *text, size_t len, const char *file, gp_errs *errs)
{
    GP_C_LOCALE;
    gp_machine_file *out = malloc(sizeof *out);
    gp_machine *m = gp_machine_create_fixed(0);
    gp_arena arena = { 0 };
    jmp_buf oom;
    bool ok = out && m;
    arena.oom = &oom;
    if (!ok || setjmp(oom))
        ok = gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    else
        ok = gp_machine_file_read(&arena, text, len, file, m, out, errs)
            && (out->says_devices
                || gp_fail(errs, GP_E_USAGE, out->at, "a plan needs the machine's 'devices', as 'gpipe machine' prints "
                           "them; without a GPU they are []"));
    gp_arena_free(&arena);
    if (ok)
        *m = out->machine;
    free(out);
    if (ok)
        return m;
    gp_machine_destroy(m);
    return NULL;
}

/* ---- writing ---------------------------------------------------------- */

static void size_or_null(gp_json *j, const char *key, size_t n, bool known)
{
    if (known)
        gp_json_size(j, key, n);
    else
        gp_json_str(j, key, NULL);
}

void gp_launch_json(gp_json *j, const gp_link launch[GP_COPYINGS])
{
    static const char *const key[GP_COPYINGS][2] = {
        { "engine_us", "engine_gb_s" }, { "kernel_us", "kernel_gb_s" }, { "mapped_us", "mapped_gb_s" },
    };
    bool any = false;
    for (int i = 0; i < GP_COPYINGS; i++) {
        if (!(launch[i].rate > 0))
            continue;
        if (!any)
            gp_json_open(j, "launch", '{');
        any = true;
        gp_json_num(j, key[i][0], 1e-3 * launch[i].step_ns);
        gp_json_num(j, key[i][1], 1e-9 * launch[i].rate);
    }
    if (any)
        gp_json_close(j, '}');
    else
        gp_json_str(j, "launch", NULL);
}

bool gp_launch_read(const gp_node *of, gp_link launch[GP_COPYINGS], gp_errs *errs)
{
    reading r = { .errs = errs, .launch = launch };
    return is_null(of) || read_launch(&r, of);
}

static void put_device(gp_json *j, const gp_machine *m, int i)
{
    const gp_device_info *d = &m->device[i];
    int peer[64], n = 0;
    for (int k = 0; k < 64 && k < m->ndevices; k++)
        if (k != i && !(d->no_peer >> k & 1))
            peer[n++] = k;
    gp_json_put(j, "{index: %d, name: %s, compute_capability: %g, sms: %d, f64_ratio: %d, memory: %zu", i, d->name,
                d->cc / 10.0, d->sms, d->f64, d->memory);
    size_or_null(j, "total_memory", d->total, d->total);
    size_or_null(j, "free_memory", d->free, d->total);
    size_or_null(j, "copy_engines", (size_t)d->copy_engines, d->copy_engines);
    gp_json_str(j, "pci", *d->pci ? d->pci : NULL);
    gp_json_ints(j, "peers", peer, n);
    gp_launch_json(j, d->launch);
    gp_json_close(j, '}');
}

void gp_machine_print(const gp_machine *m, FILE *to)
{
    GP_C_LOCALE;
    gp_json j = { .f = to };
    gp_machine_info is;
    gp_machine_about(m, &is);
    gp_json_put(&j, "{format: %d, gpipe: %s, cores: %d, memory: %zu, page_size: %zd, cuda: %d, cuda_driver: %d", FORMAT,
                GP_VERSION, m->cpus, m->memory, sysconf(_SC_PAGESIZE), is.cuda, m->cuda_driver);
    if (!m->ndevices)
        gp_json_str(&j, "why", m->why);
    GP_JSON_EACH(&j, "devices", i, m->ndevices)
        put_device(&j, m, i);
    gp_json_close(&j, '}');
    fputc('\n', to);
}
