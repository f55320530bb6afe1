/* onnx_fake.c - a library with the functions of ONNX Runtime that gpipe calls, for tests without it, or of its
 * failures. Every file is one model, by default one that doubles: x, f32 ["N", 4], to y, f32 ["N", 4]. What it takes
 * for the memory of a GPU is that of the host. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "onnx_fake.h"
#include "ort_library.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN onnx_fake onnx_fake_does;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What handles point to. A release of one may be of any: all come from make(). */
typedef struct options { int gpu, symbols; } options;
typedef struct memory { int gpu, id; } memory;
typedef struct tensor { void *data; size_t bytes; int gpu; } tensor;
typedef struct info { const onnx_fake_port *port; int fixed; } info;
typedef struct run_options { int no_wait; } run_options;

static const onnx_fake_port doubles[] = {
    { .name = "x", .kind = GP_ORT_TENSOR, .element = GP_ORT_F32, .ndim = 2, .dim = { -1, 4 }, .symbol = { "N", "" } },
    { .name = "y", .kind = GP_ORT_TENSOR, .element = GP_ORT_F32, .ndim = 2, .dim = { -1, 4 }, .symbol = { "N", "" } },
};

static const onnx_fake_port *port(int is_input, size_t i)
{
    const onnx_fake *d = &onnx_fake_does;
    return is_input ? (d->in ? &d->in[i] : &doubles[0]) : d->out ? &d->out[i] : &doubles[1];
}

static void count(int by)
{
    pthread_mutex_lock(&lock);
    onnx_fake_does.live += by;
    pthread_mutex_unlock(&lock);
}

static void *make(size_t bytes)
{
    count(1);
    return calloc(1, bytes);
}

static void release(void *what)
{
    count(what ? -1 : 0);
    free(what);
}

/* A status, if the function is the one that fails. */
static void *status(const char *function)
{
    onnx_fake *d = &onnx_fake_does;
    pthread_mutex_lock(&lock);
    int fails = d->fails && !strcmp(d->fails, function) && d->after-- <= 0;
    pthread_mutex_unlock(&lock);
    return fails ? strcpy(make(strlen(d->says) + 1), d->says) : NULL;
}

static const char *status_text(const void *s)
{
    return s;
}

static void note(const char *fmt, ...)
{
    char *log = onnx_fake_does.log;
    va_list ap;
    pthread_mutex_lock(&lock);
    size_t n = strlen(log);
    va_start(ap, fmt);
    vsnprintf(log + n, ONNX_FAKE_LOG - n, fmt, ap);
    va_end(ap);
    pthread_mutex_unlock(&lock);
}

static void *refuse(const char *why)
{
    return strcpy(make(strlen(why) + 1), why);
}

/* The function fails, or makes something of so many bytes. */
#define MAKE(function, to, bytes) \
    do { void *failed = status(function); if (!failed) *(to) = make(bytes); return failed; } while (0)

static void *create_env(int level, const char *name, void **env)
{
    (void)level, (void)name;
    MAKE("create_env", env, 1);
}

static void *create_session(const void *env, const char *path, const void *how, void **session)
{
    (void)env, (void)path;
    void *failed = status("create_session");
    if (failed)
        return failed;
    options *o = *session = make(sizeof *o);
    *o = *(const options *)how;
    if (o->gpu)
        note("session; ");
    return NULL;
}

static void *create_run(void **how)
{
    MAKE("create_run", how, sizeof(run_options));
}

static void *set_run(void *how, const char *key, const char *value)
{
    ((run_options *)how)->no_wait = !strcmp(key, "disable_synchronize_execution_providers") && !strcmp(value, "1");
    return status("set_run");
}

/* Doubles, or clears the outputs of another model. A session on a GPU takes its memory alone, one on the CPU none. */
static void *run(void *session, const void *how, const char *const *in_name, const void *const *in, size_t nin,
                 const char *const *out_name, size_t nout, void **out)
{
    onnx_fake *d = &onnx_fake_does;
    const options *o = session;
    void *failed = status("run");
    if (failed)
        return failed;
    for (size_t i = 0; i < nin + nout; i++)
        if (((const tensor *)(i < nin ? in[i] : out[i - nin]))->gpu != o->gpu)
            return refuse("memory of another device");
    if (o->gpu) {
        pthread_mutex_lock(&lock);
        d->runs++, d->waits += !how || !((const run_options *)how)->no_wait;
        pthread_mutex_unlock(&lock);
    }
    for (size_t i = 0; d->out && i < nout; i++)
        memset(((tensor *)out[i])->data, 0, ((tensor *)out[i])->bytes);
    if (d->out)
        return NULL;
    const tensor *x = in[0];
    tensor *y = out[0];
    if (nin != 1 || nout != 1 || strcmp(in_name[0], "x") || strcmp(out_name[0], "y") || x->bytes != y->bytes)
        return refuse("other ports");
    for (size_t i = 0; i < x->bytes / sizeof(float); i++)
        ((float *)y->data)[i] = 2 * ((const float *)x->data)[i];
    return NULL;
}

static void *create_options(void **to)
{
    MAKE("create_options", to, sizeof(options));
}

static void *set_optimization(void *how, int level)
{
    (void)how, (void)level;
    return status("set_optimization");
}

static void *set_threads(void *how, int n)
{
    (void)how;
    onnx_fake_does.threads = n;
    return status("set_threads");
}

static void *set_entry(void *how, const char *key, const char *value)
{
    (void)how, (void)key, (void)value;
    return status("set_entry");
}

static void *fix_symbol(void *how, const char *symbol, int64_t size)
{
    (void)symbol, (void)size;
    ((options *)how)->symbols++;
    return status("fix_symbol");
}

/* ---- the model ------------------------------------------------------- */

static void *count_in(const void *session, size_t *n)
{
    (void)session;
    *n = onnx_fake_does.in ? (size_t)onnx_fake_does.nin : 1;
    return status("count_in");
}

static void *count_out(const void *session, size_t *n)
{
    (void)session;
    *n = onnx_fake_does.out ? (size_t)onnx_fake_does.nout : 1;
    return status("count_out");
}

static void *info_of(const char *function, const void *session, int is_input, size_t i, void **to)
{
    void *failed = status(function);
    if (!failed)
        *(info *)(*to = make(sizeof(info))) = (info){ port(is_input, i), ((const options *)session)->symbols > 0 };
    return failed;
}

static void *info_in(const void *session, size_t i, void **to)
{
    return info_of("info_in", session, 1, i, to);
}

static void *info_out(const void *session, size_t i, void **to)
{
    return info_of("info_out", session, 0, i, to);
}

static void *name_of(const char *function, int is_input, size_t i, char **name)
{
    void *failed = status(function);
    const char *is = port(is_input, i)->name;
    if (!failed)
        *name = strcpy(make(strlen(is) + 1), is);
    return failed;
}

static void *name_in(const void *session, size_t i, void *allocator, char **name)
{
    (void)session, (void)allocator;
    return name_of("name_in", 1, i, name);
}

static void *name_out(const void *session, size_t i, void *allocator, char **name)
{
    (void)session, (void)allocator;
    return name_of("name_out", 0, i, name);
}

static void *tensor_info(const void *of, const void **to)
{
    *to = of;
    return status("tensor_info");
}

static void *value_kind(const void *of, int *kind)
{
    *kind = ((const info *)of)->port->kind;
    return status("value_kind");
}

static void *element(const void *of, int *to)
{
    *to = ((const info *)of)->port->element;
    return status("element");
}

static void *count_dims(const void *of, size_t *n)
{
    *n = ((const info *)of)->port->ndim;
    return status("count_dims");
}

static void *dims(const void *of, int64_t *dim, size_t n)
{
    const info *x = of;
    for (size_t k = 0; k < n; k++)
        dim[k] = x->fixed && x->port->dim[k] < 0 ? x->port->fixed[k] : x->port->dim[k];
    return status("dims");
}

static void *symbols(const void *of, const char **symbol, size_t n)
{
    for (size_t k = 0; k < n; k++)
        symbol[k] = ((const info *)of)->port->symbol[k];
    return status("symbols");
}

/* What sessions on a GPU tell of where they read and write: a handle that is its name. */
static void *memory_of(const char *function, bool is_input, const void **to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = port(is_input, i)->host ? "Cpu" : "Cuda";
    return status(function);
}

static void *memory_in(const void *session, const void **to, size_t n)
{
    (void)session;
    return memory_of("memory_in", true, to, n);
}

static void *memory_out(const void *session, const void **to, size_t n)
{
    (void)session;
    return memory_of("memory_out", false, to, n);
}

static void *memory_name(const void *memory_, const char **name)
{
    *name = memory_;
    return status("memory_name");
}

/* ---- tensors --------------------------------------------------------- */

static void *create_memory(const char *name, int allocator, int id, int type, void **to)
{
    void *failed = status("create_memory");
    if (failed)
        return failed;
    if (allocator != GP_ORT_PLAIN_MEMORY || type != GP_ORT_MEMORY || (strcmp(name, "Cpu") && strcmp(name, "Cuda")))
        return refuse("other memory");
    *(memory *)(*to = make(sizeof(memory))) = (memory){ !strcmp(name, "Cuda"), id };
    if (!strcmp(name, "Cuda"))
        note("memory %d; ", id);
    return NULL;
}

static void *create_tensor(const void *where, void *data, size_t bytes, const int64_t *dim, size_t ndim, int element_,
                           void **value)
{
    void *failed = status("create_tensor");
    if (failed)
        return failed;
    if (!onnx_fake_does.out && (ndim != 2 || dim[1] != 4 || element_ != GP_ORT_F32 || bytes != (size_t)dim[0] * 16))
        return refuse("another tensor");
    *(tensor *)(*value = make(sizeof(tensor))) = (tensor){ data, bytes, ((const memory *)where)->gpu };
    pthread_mutex_lock(&lock);
    onnx_fake_does.tensors++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Of models whose outputs follow from data, which this one has none of. */
static void *value_shape(const void *value, void **shape)
{
    (void)value, (void)shape;
    return refuse("the shape of a value");
}

static void *elements(void *value, void **data_)
{
    (void)value, (void)data_;
    return refuse("the elements of a value");
}

/* ---- the provider CUDA ----------------------------------------------- */

static void *providers(char ***name, int *n)
{
    static const char *const all[] = { "CUDAExecutionProvider", "CPUExecutionProvider" };
    void *failed = status("providers");
    if (failed)
        return failed;
    int skipped = !onnx_fake_does.cuda;
    *n = 2 - skipped;
    *name = make(sizeof all);
    memcpy(*name, all + skipped, (size_t)*n * sizeof *all);
    return NULL;
}

static void *release_providers(char **name, int n)
{
    (void)n;
    release(name);
    return status("release_providers");
}

static void *create_cuda(void **cuda)
{
    if (!onnx_fake_does.cuda)
        return refuse("CUDA execution provider is not enabled in this build.");
    MAKE("create_cuda", cuda, 1);
}

static void *set_cuda(void *cuda, const char *const *key, const char *const *value, size_t n)
{
    (void)cuda;
    for (size_t i = 0; i < n; i++)
        note("%s=%s; ", key[i], value[i]);
    return status("set_cuda");
}

static void *set_cuda_stream(void *cuda, const char *key, void *value)
{
    (void)cuda;
    note("%s=%s; ", key, value ? "one" : "none");
    return status("set_cuda_stream");
}

static void *append_cuda(void *how, const void *cuda)
{
    (void)cuda;
    ((options *)how)->gpu = 1;
    note("provider; ");
    return status("append_cuda");
}

/* It is what tensors' names are freed with, and belongs to the library. */
static void *allocator(void **to)
{
    static int one;
    *to = &one;
    return status("allocator");
}

static void *free_name(void *allocator_, void *p)
{
    (void)allocator_;
    release(p);
    return status("free_name");
}

static const void *const *table(uint32_t version)
{
    static const void *all[382];
    /* A name in gp_ort whose function has another here. */
    void (*release_env)(void *) = release, (*release_status)(void *) = release, (*release_memory)(void *) = release;
    void (*release_session)(void *) = release, (*release_value)(void *) = release, (*release_info)(void *) = release;
    void (*release_options)(void *) = release, (*release_run)(void *) = release, (*release_cuda)(void *) = release;
    void (*release_shape)(void *) = release;
#define X(name, place, theirs, result, parameters)                   \
    do {                                                             \
        result (*f) parameters = name;                               \
        memcpy(&all[place], &f, sizeof f);                           \
    } while (0);
    GP_ORT_CALLS(X)
    GP_ORT_GPU_CALLS(X)
#undef X
    return version <= onnx_fake_does.newest ? all : NULL;
}

static const char *version(void)
{
    return onnx_fake_does.version;
}

typedef struct base { const void *const *(*table)(uint32_t version); const char *(*version)(void); } base;

SHOWN const base *OrtGetApiBase(void);
SHOWN const base *OrtGetApiBase(void)
{
    static const base it = { table, version };
    return &it;
}
