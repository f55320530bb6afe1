/* onnx_model.c - see onnx_model.h.
 *
 * An axis that a model gives a name has one size in all inputs, and in the outputs where the name stands again. What
 * follows from these sizes by arithmetic the library finds, when it opens the model once more with the sizes in their
 * places. What it cannot find either is declared; and the library refuses outputs of another shape than it computes. */
#include <string.h>
#include "base/plural.h"
#include "onnx_model.h"

/* ---- sessions -------------------------------------------------------- */

void gp_onnx_close(const gp_ort *l, gp_onnx_session *s)
{
    if (s->session)
        l->release_session(s->session);
    if (s->env)
        l->release_env(s->env);
    *s = (gp_onnx_session){ NULL, NULL };
}

/* Sizes of symbols, each once. */
static void *fix_symbols(const gp_ort *l, const gp_onnx_bound *b, const gp_type *in, void *options)
{
    void *status = NULL;
    for (int p = 0; p < b->nin; p++)
        for (int k = 0; k < b->in[p].ndim && !status; k++)
            if (b->in[p].dim[k] < 0 && *b->in[p].symbol[k])
                status = l->fix_symbol(options, b->in[p].symbol[k], in[p].dim[k]);
    return status;
}

/* The GPU's own arithmetic for f32, as that of other stages; algorithms chosen by sizes, not by how fast they are at
 * the moment; and no more memory than is asked for. The stream comes last: the other call forgets it. */
static bool append_cuda(const gp_ort *l, const gp_onnx_gpu *gpu, void *options, char why[GP_WHY])
{
    char index[16];
    const char *const key[] = { "device_id", "use_tf32", "cudnn_conv_algo_search", "arena_extend_strategy" };
    const char *const value[] = { index, "0", "HEURISTIC", "kSameAsRequested" };
    void *cuda = NULL;
    snprintf(index, sizeof index, "%d", gpu->index);
    bool ok = !gp_ort_failed(l, l->create_cuda(&cuda), why)
           && !gp_ort_failed(l, l->set_cuda(cuda, key, value, sizeof key / sizeof *key), why)
           && !(gpu->stream && gp_ort_failed(l, l->set_cuda_stream(cuda, "user_compute_stream", gpu->stream), why))
           && !gp_ort_failed(l, l->append_cuda(options, cuda), why);
    if (cuda)
        l->release_cuda(cuda);
    return ok;
}

static bool set(const gp_ort *l, const gp_onnx_opts *o, const gp_onnx_use *use, void *options, char why[GP_WHY])
{
    int n = use->threads;
    return !gp_ort_failed(l, l->set_optimization(options, n ? GP_ORT_OPTIMIZED : GP_ORT_BASIC), why)
        && !gp_ort_failed(l, l->set_threads(options, n ? n : 1), why)
        && !gp_ort_failed(l, l->set_entry(options, "session.intra_op.allow_spinning", "0"), why)
        && !(use->in && gp_ort_failed(l, fix_symbols(l, o->bound, use->in, options), why))
        && (!use->gpu || append_cuda(l, use->gpu, options, why));
}

bool gp_onnx_open(const gp_ort *l, const gp_onnx_opts *o, const gp_onnx_use *use, gp_onnx_session *to,
                  char why[GP_WHY])
{
    void *options = NULL;
    bool ok = !gp_ort_failed(l, l->create_env(GP_ORT_FATAL, "gpipe", &to->env), why)
           && !gp_ort_failed(l, l->create_options(&options), why) && set(l, o, use, options, why)
           && !gp_ort_failed(l, l->create_session(to->env, o->model, options, &to->session), why);
    if (options)
        l->release_options(options);
    if (!ok)
        gp_onnx_close(l, to);
    return ok;
}

/* ---- the provider CUDA ----------------------------------------------- */

/* Was the library built with it? */
static bool is_listed(const gp_ort *l, bool *is, char why[GP_WHY])
{
    char **name = NULL;
    int n = 0;
    *is = false;
    if (gp_ort_failed(l, l->providers(&name, &n), why))
        return false;
    for (int i = 0; i < n; i++)
        *is |= !strcmp(name[i], "CUDAExecutionProvider");
    return !gp_ort_failed(l, l->release_providers(name, n), why);
}

/* The library logs what it looked for in vain, and the status does not say it. */
static bool loads(const gp_ort *l, int index, char why[GP_WHY])
{
    void *env = NULL, *options = NULL;
    bool ok = !gp_ort_failed(l, l->create_env(GP_ORT_FATAL, "gpipe", &env), why)
           && !gp_ort_failed(l, l->create_options(&options), why)
           && append_cuda(l, &(gp_onnx_gpu){ index, NULL }, options, why);
    if (options)
        l->release_options(options);
    if (env)
        l->release_env(env);
    return ok;
}

bool gp_onnx_has_cuda(const gp_ort *l, int index, char why[GP_WHY])
{
    char status[GP_WHY] = "";
    bool listed = false;
    if (!l->memory_in)
        return gp_why(why, "ONNX Runtime %s is too old for a GPU, which takes 1.%d or later", l->version, GP_ORT_GPU_TABLE);
    if (is_listed(l, &listed, status) && listed && loads(l, index, status))
        return true;
    if (!listed && !*status)
        return gp_why(why, "ONNX Runtime %s was built without CUDA", l->version);
    return gp_why(why, "ONNX Runtime %s does not load its provider for CUDA (%.120s; 'ldd "
                  "libonnxruntime_providers_cuda.so' shows which libraries it does not find)", l->version, status);
}

/* ---- running --------------------------------------------------------- */

bool gp_onnx_over(const gp_ort *l, const void *memory, const gp_onnx_port *x, const gp_view *v, gp_onnx_tensor *t,
                  char why[GP_WHY])
{
    if (t->value && t->data == v->data && gp_type_same(&t->type, &v->type))
        return true;
    if (t->value)
        l->release_value(t->value);
    *t = (gp_onnx_tensor){ v->data, v->type, NULL };
    return !gp_ort_failed(l, l->create_tensor(memory, v->data, gp_bytes(&v->type), v->type.dim, (size_t)x->ndim,
                                              x->element, &t->value), why);
}

bool gp_onnx_fail(gp_errs *errs, gp_loc at, const char *name, uint64_t frame, const char *model, const char *why)
{
    bool full = strstr(why, "out of memory") || strstr(why, "allocate memory");
    return gp_fail(errs, full ? GP_E_RESOURCE : GP_E_RUN, at, "stage '%s': frame %llu: ONNX Runtime cannot run '%s': "
                   "%s%s", name, (unsigned long long)frame, model, why, full ? ": lower a depth, or make smaller "
                   "batches" : "");
}

/* ---- what a model has ------------------------------------------------ */

static gp_dtype dtype_of(int element)
{
    static const gp_dtype of[] = {
        [GP_ORT_F32] = GP_F32, [GP_ORT_U8] = GP_U8, [GP_ORT_I8] = GP_I8, [GP_ORT_U16] = GP_U16, [GP_ORT_I16] = GP_I16,
        [GP_ORT_I32] = GP_I32, [GP_ORT_I64] = GP_I64, [GP_ORT_F16] = GP_F16, [GP_ORT_F64] = GP_F64,
        [GP_ORT_U32] = GP_U32, [GP_ORT_U64] = GP_U64,
    };
    return element > 0 && element < (int)(sizeof of / sizeof *of) ? of[element] : GP_NO_DTYPE;
}

/* Truths are u8. An input of them has to hold 0 and 1 alone, which is checked on the host only. */
static bool take_element(gp_onnx_port *to, bool is_input, const gp_onnx_opts *o)
{
    bool truths = to->element == GP_ORT_BOOL, unchecked = truths && is_input && o->by == GP_ONNX_CUDA;
    to->dtype = truths ? GP_U8 : dtype_of(to->element);
    to->refused = unchecked                      ? "holds truths, which a GPU does not check: set 'provider: cpu'"
                : to->dtype                      ? NULL
                : to->element == GP_ORT_STRING   ? "holds strings"
                                                 : "has elements of a type that gpipe does not have";
    return !to->refused;
}

static char *copy(gp_shape *s, const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(gp_shape_alloc(s, n), text, n);
}

static bool read_axes(gp_shape *s, const gp_ort *l, const void *tensor, gp_onnx_port *to, char why[GP_WHY])
{
    const char *symbol[GP_MAXDIM] = { NULL };
    size_t n;
    if (gp_ort_failed(l, l->count_dims(tensor, &n), why))
        return false;
    if (n > GP_MAXDIM) {
        to->refused = "has more than 8 axes";
        return true;
    }
    to->ndim = (int)n;
    if (gp_ort_failed(l, l->dims(tensor, to->dim, n), why) || gp_ort_failed(l, l->symbols(tensor, symbol, n), why))
        return false;
    for (size_t k = 0; k < n; k++)
        to->symbol[k] = copy(s, to->dim[k] < 0 && symbol[k] ? symbol[k] : "");
    return true;
}

static bool read_info(gp_shape *s, const gp_ort *l, const void *info, bool is_input, gp_onnx_port *to, char why[GP_WHY])
{
    const void *tensor = NULL;
    int kind;
    if (gp_ort_failed(l, l->value_kind(info, &kind), why))
        return false;
    to->refused = kind == GP_ORT_SEQUENCE ? "is a sequence" : kind == GP_ORT_MAP ? "is a map"
                : kind == GP_ORT_SPARSE   ? "is sparse" : kind == GP_ORT_OPTIONAL ? "may be absent"
                : kind == GP_ORT_TENSOR   ? NULL : "is no tensor";
    if (to->refused)
        return true;
    return !gp_ort_failed(l, l->tensor_info(info, &tensor), why)
        && !gp_ort_failed(l, l->element(tensor, &to->element), why)
        && (!take_element(to, is_input, s->opts) || read_axes(s, l, tensor, to, why));
}

static bool read_port(gp_shape *s, const gp_ort *l, void *session, size_t i, bool is_input, gp_onnx_port *to,
                      char why[GP_WHY])
{
    void *info = NULL, *allocator;
    char *name = NULL;
    bool ok = !gp_ort_failed(l, l->allocator(&allocator), why)
           && !gp_ort_failed(l, (is_input ? l->name_in : l->name_out)(session, i, allocator, &name), why)
           && !gp_ort_failed(l, (is_input ? l->info_in : l->info_out)(session, i, &info), why)
           && read_info(s, l, info, is_input, to, why);
    if (name)
        to->name = copy(s, name);
    if (info)
        l->release_info(info);
    if (name && gp_ort_failed(l, l->free_name(allocator, name), why))
        return false;
    return ok;
}

static bool read_ports(gp_shape *s, const gp_ort *l, void *session, bool is_input, gp_onnx_ports *to, char why[GP_WHY])
{
    size_t n = 0;
    if (gp_ort_failed(l, (is_input ? l->count_in : l->count_out)(session, &n), why))
        return false;
    to->n = (int)n;
    to->port = gp_shape_alloc(s, sizeof *to->port * (n + 1));
    for (size_t i = 0; i < n; i++)
        if (!read_port(s, l, session, i, is_input, &to->port[i], why))
            return false;
    return true;
}

/* ---- which is which -------------------------------------------------- */

/* "'a', 'b' and 'c'", as far as there is room. */
static const char *list(const gp_onnx_ports *has, char text[160])
{
    int n = 0;
    *text = 0;
    for (int i = 0; i < has->n && n < 120; i++)
        n += snprintf(text + n, (size_t)(160 - n), "%s'%.30s'", !i ? "" : i + 1 < has->n ? ", " : " and ",
                      has->port[i].name);
    return text;
}

/* The port that is named like one of a stage's, or is the only one where that has no name. NULL after an error. */
static const gp_onnx_port *find(gp_shape *s, const gp_onnx_ports *has, const char *name, bool is_input)
{
    const gp_onnx_opts *o = s->opts;
    const char *side = is_input ? "input" : "output";
    const gp_onnx_port *p = NULL;
    gp_near near = GP_NEAR(name);
    char text[160];
    for (int i = 0; i < has->n && !p; i++) {
        gp_near_try(&near, has->port[i].name);
        p = strcmp(has->port[i].name, name) ? NULL : &has->port[i];
    }
    if (!p && has->n == 1 && (is_input ? s->nin : s->nout) == 1 && !strcmp(name, is_input ? "in" : "out"))
        p = has->port;
    if (!p) {
        const char *like = gp_near_text(&near);
        if (*like)
            gp_shape_fail(s, NULL, "model '%s' has no %s '%s'%s", o->model, side, name, like);
        else
            gp_shape_fail(s, NULL, "model '%s' has no %s '%s', but %s: write %s: {%s: BUFFER}", o->model, side, name,
                          list(has, text), is_input ? "in" : "out", has->n ? has->port[0].name : "NAME");
    } else if (p->refused) {
        gp_shape_fail(s, NULL, "%s '%s' of model '%s' %s", side, p->name, o->model, p->refused);
    }
    return p && !p->refused ? p : NULL;
}

static bool find_all(gp_shape *s, const gp_onnx_ports *in, const gp_onnx_ports *out, gp_onnx_bound *b)
{
    const gp_onnx_opts *o = s->opts;
    char text[160];
    if (!in->n || !out->n)
        return gp_shape_fail(s, "model", "model '%s' has no %s", o->model,
                             in->n ? "outputs" : "inputs: let a Lua script be a source");
    if (!s->nin || !s->nout)
        return gp_shape_fail(s, NULL, "a model needs an %s; name one with '%s'", s->nin ? "output" : "input",
                             s->nin ? "out" : "in");
    b->nin = s->nin, b->nout = s->nout;
    b->in = gp_shape_alloc(s, sizeof *b->in * (size_t)(s->nin + 1));
    b->out = gp_shape_alloc(s, sizeof *b->out * (size_t)s->nout);
    for (int p = 0; p < s->nin; p++) {
        const gp_onnx_port *x = find(s, in, s->in_name[p], true);
        if (!x)
            return false;
        b->in[p] = *x;
    }
    if (s->nin < in->n)
        return gp_shape_fail(s, NULL, "model '%s' has %d input%s, %s, and %d %s given", o->model, in->n,
                             gp_plural(in->n), list(in, text), s->nin, s->nin == 1 ? "is" : "are");
    for (int p = 0; p < s->nout; p++) {
        const gp_onnx_port *x = find(s, out, s->out_name[p], false);
        if (!x)
            return false;
        b->out[p].port = *x;
    }
    return true;
}

/* ---- inputs ---------------------------------------------------------- */

/* "f32 [N, 3, ?]". */
enum { PORT_TEXT = 200 };
static const char *port_text(const gp_onnx_port *x, char text[PORT_TEXT])
{
    int n = snprintf(text, PORT_TEXT, "%s [", gp_dtype_name(x->dtype));
    for (int k = 0; k < x->ndim; k++)
        if (x->dim[k] >= 0)
            n += snprintf(text + n, (size_t)(PORT_TEXT - n), "%s%lld", k ? ", " : "", (long long)x->dim[k]);
        else
            n += snprintf(text + n, (size_t)(PORT_TEXT - n), "%s%.16s", k ? ", " : "",
                          *x->symbol[k] ? x->symbol[k] : "?");
    snprintf(text + n, (size_t)(PORT_TEXT - n), "]");
    return text;
}

/* Has a frame this shape, as far as the model says one? */
static bool fits(const gp_onnx_port *x, const gp_type *t)
{
    bool same = x->ndim ? x->ndim == t->ndim : t->ndim == 1 && t->dim[0] == 1;
    for (int k = 0; same && k < x->ndim; k++)
        same = x->dim[k] < 0 || x->dim[k] == t->dim[k];
    return same;
}

/* A symbol's first place among the inputs. */
static bool find_axis(const gp_onnx_bound *b, const char *symbol, gp_onnx_axis *a)
{
    for (int p = 0; *symbol && p < b->nin; p++)
        for (int k = 0; k < b->in[p].ndim; k++)
            if (b->in[p].dim[k] < 0 && !strcmp(b->in[p].symbol[k], symbol)) {
                a->input = p, a->of = k;
                return true;
            }
    return false;
}

/* Does a symbol have one size in all its places? */
static bool agree(gp_shape *s, const gp_onnx_bound *b, const char *model)
{
    gp_onnx_axis a;
    for (int p = 0; p < b->nin; p++)
        for (int k = 0; k < b->in[p].ndim; k++)
            if (b->in[p].dim[k] < 0 && find_axis(b, b->in[p].symbol[k], &a)
                && s->in[p].dim[k] != s->in[a.input].dim[a.of])
                return gp_shape_fail(s, NULL, "model '%s' takes one size as '%s', and it is %lld in axis %d of input "
                                     "'%s' and %lld in axis %d of '%s'", model, b->in[p].symbol[k],
                                     (long long)s->in[a.input].dim[a.of], a.of, b->in[a.input].name,
                                     (long long)s->in[p].dim[k], k, b->in[p].name);
    return true;
}

/* An advice that would make frames fit. */
static const char *advice(const gp_shape *s, const gp_onnx_port *x, const gp_type *t)
{
    return s->partial             ? "leave smaller frames out before"
         : t->dtype != x->dtype   ? "put a 'cast' before it"
         : x->ndim == t->ndim + 1 ? "put a 'group' before it, which makes batches, or a 'reshape'"
                                  : "put a 'reshape', 'resize', 'crop' or 'pad' before it";
}

static bool check_in(gp_shape *s, const gp_onnx_bound *b, const char *model)
{
    char wants[PORT_TEXT], is[128];
    for (int p = 0; p < b->nin; p++) {
        const gp_onnx_port *x = &b->in[p];
        const gp_type *t = &s->in[p];
        if (t->dtype != x->dtype || !fits(x, t))
            return gp_shape_fail(s, NULL, "model '%s' takes %s as input '%s', and not %s: %s", model,
                                 port_text(x, wants), x->name, gp_type_text(t, is), advice(s, x, t));
        for (int k = 0; !s->partial && k < x->ndim; k++)
            if (x->dim[k] >= 0 && s->in_varies[p] >> k & 1)
                return gp_shape_fail(s, NULL, "model '%s' takes %s as input '%s', and frames may be shorter than %s in "
                                     "axis %d: put a 'resize' or a 'pad' before it", model, port_text(x, wants),
                                     x->name, gp_type_text(t, is), k);
    }
    return agree(s, b, model);
}

/* ---- outputs --------------------------------------------------------- */

/* Says where axes come from; how many are not known. */
static int place_axes(const gp_onnx_bound *b)
{
    int unknown = 0;
    for (int p = 0; p < b->nout; p++)
        for (int k = 0; k < b->out[p].port.ndim; k++) {
            gp_onnx_axis *a = &b->out[p].axis[k];
            *a = (gp_onnx_axis){ -1, 0, b->out[p].port.dim[k], false };
            unknown += a->size < 0 && !find_axis(b, b->out[p].port.symbol[k], a);
        }
    return unknown;
}

/* Asks the library for sizes that follow from those of this stage's inputs. Sizes that it does not find stay -1. */
static bool ask_library(gp_shape *s, const gp_ort *l, const gp_onnx_bound *b, char why[GP_WHY])
{
    gp_onnx_session fixed = { NULL, NULL };
    gp_onnx_ports out;
    const gp_onnx_use look = { .in = s->in };
    bool ok = gp_onnx_open(l, s->opts, &look, &fixed, why) && read_ports(s, l, fixed.session, false, &out, why);
    gp_onnx_close(l, &fixed);
    for (int p = 0; ok && p < b->nout; p++)
        for (int i = 0; i < out.n; i++)
            for (int k = 0; k < b->out[p].port.ndim; k++)
                if (!strcmp(out.port[i].name, b->out[p].port.name) && out.port[i].ndim == b->out[p].port.ndim
                    && b->out[p].axis[k].input < 0 && b->out[p].axis[k].size < 0)
                    b->out[p].axis[k].size = out.port[i].dim[k];
    return ok;
}

static void type_of(const gp_onnx_output *x, const gp_type *in, gp_type *to)
{
    to->dtype = x->port.dtype;
    to->ndim = x->port.ndim ? x->port.ndim : 1;
    to->dim[0] = 1;
    for (int k = 0; k < x->port.ndim; k++)
        to->dim[k] = x->axis[k].input < 0 ? x->axis[k].size : in[x->axis[k].input].dim[x->axis[k].of];
}

/* Takes sizes that are declared where nothing else tells them. Where frames vary, sizes that do not follow from axes of
 * frames by their names alone are not known for smaller ones. */
static bool declare(gp_shape *s, gp_onnx_output *x, int p, const char *model)
{
    const gp_type *said = &s->out[p];
    const gp_onnx_opts *o = s->opts;
    bool derived = false, varies = false, bounded = false;
    char text[PORT_TEXT];
    for (int k = 0; k < x->port.ndim; k++) {
        gp_onnx_axis *a = &x->axis[k];
        derived |= a->input < 0 && x->port.dim[k] < 0;
        if (a->input >= 0 || a->size >= 0)
            continue;
        if (said->ndim != x->port.ndim)
            return gp_shape_fail(s, NULL, "model '%s' does not tell the size of axis %d of output '%s', %s: declare "
                                 "its shape under 'buffers', with bounds (\"<=100\") if frames differ in it", model, k,
                                 x->port.name, port_text(&x->port, text));
        a->size = said->dim[k];
        a->varies = s->out_varies[p] >> k & 1;
        x->declared = true, bounded |= a->varies;
    }
    if (bounded && o->by == GP_ONNX_CUDA)
        return gp_shape_fail(s, "provider", "frames of output '%s' of model '%s' differ in size, which only the host can "
                             "do: set 'provider: cpu'", x->port.name, model);
    for (int q = 0; q < s->nin; q++)
        varies |= (s->in_varies[q] & ~1u) != 0;
    return !(derived && varies && !bounded)
        || gp_shape_fail(s, NULL, "frames differ in shape, and model '%s' does not tell how output '%s', %s, follows "
                         "from them: put a 'resize' or a 'pad' before it", model, x->port.name,
                         port_text(&x->port, text));
}

static bool type_outputs(gp_shape *s, const gp_onnx_bound *b, const char *model)
{
    for (int p = 0; p < b->nout; p++) {
        if (!s->partial && !declare(s, &b->out[p], p, model))
            return false;
        gp_type t;
        type_of(&b->out[p], s->in, &t);
        for (int k = 0; k < t.ndim; k++)
            if (t.dim[k] < 1 && !s->partial)
                return gp_shape_fail(s, NULL, "output '%s' of model '%s' has no elements", b->out[p].port.name, model);
        s->out[p] = t;
    }
    return true;
}

bool gp_onnx_bind(gp_shape *s, const gp_ort *l)
{
    gp_onnx_opts *o = (gp_onnx_opts *)s->opts;
    gp_onnx_session as_it_is = { NULL, NULL };
    gp_onnx_ports in = { 0, NULL }, out = { 0, NULL };
    char why[GP_WHY];
    const gp_onnx_use look = { 0 };
    bool read = gp_onnx_open(l, o, &look, &as_it_is, why) && read_ports(s, l, as_it_is.session, true, &in, why)
             && read_ports(s, l, as_it_is.session, false, &out, why);
    gp_onnx_close(l, &as_it_is);
    if (!read)
        return gp_shape_fail(s, "model", "ONNX Runtime %s cannot run '%s': %s", l->version, o->model, why);
    o->bound = gp_shape_alloc(s, sizeof *o->bound);
    if (!find_all(s, &in, &out, o->bound) || !check_in(s, o->bound, o->model))
        return false;
    if (place_axes(o->bound) && !ask_library(s, l, o->bound, why))
        return gp_shape_fail(s, "model", "ONNX Runtime %s cannot run '%s' with these shapes: %s", l->version, o->model,
                             why);
    return type_outputs(s, o->bound, o->model);
}

bool gp_onnx_smaller(gp_shape *s)
{
    const gp_onnx_opts *o = s->opts;
    return check_in(s, o->bound, o->model) && type_outputs(s, o->bound, o->model);
}
