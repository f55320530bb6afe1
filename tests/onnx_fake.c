/* onnx_fake.c - a library with the functions of ONNX Runtime that gpipe calls, for tests without it, or of its
 * failures. Every file is a model that doubles: x, f32 ["N", 4], to y, f32 ["N", 4]. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "onnx_fake.h"
#include "ort_library.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN onnx_fake onnx_fake_does;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct tensor { float *data; int64_t n; } tensor;

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

/* The function fails, or makes something of so many bytes. */
#define MAKE(function, to, bytes) \
    do { void *failed = status(function); if (!failed) *(to) = make(bytes); return failed; } while (0)

static void *create_env(int level, const char *name, void **env)
{
    (void)level, (void)name;
    MAKE("create_env", env, 1);
}

static void *create_session(const void *env, const char *path, const void *options, void **session)
{
    (void)env, (void)path, (void)options;
    MAKE("create_session", session, 1);
}

static void *run(void *session, const void *options, const char *const *in_name, const void *const *in, size_t nin,
                 const char *const *out_name, size_t nout, void **out)
{
    const tensor *x = in[0];
    tensor *y = out[0];
    void *failed = status("run");
    (void)session, (void)options;
    if (failed)
        return failed;
    if (nin != 1 || nout != 1 || strcmp(in_name[0], "x") || strcmp(out_name[0], "y") || x->n != y->n)
        return strcpy(make(20), "other ports");
    for (int64_t i = 0; i < x->n; i++)
        y->data[i] = 2 * x->data[i];
    return NULL;
}

static void *create_options(void **options)
{
    MAKE("create_options", options, 1);
}

static void *set_optimization(void *options, int level)
{
    (void)options, (void)level;
    return status("set_optimization");
}

static void *set_threads(void *options, int n)
{
    (void)options;
    onnx_fake_does.threads = n;
    return status("set_threads");
}

static void *set_entry(void *options, const char *key, const char *value)
{
    (void)options, (void)key, (void)value;
    return status("set_entry");
}

static void *fix_symbol(void *options, const char *symbol, int64_t size)
{
    (void)options, (void)symbol, (void)size;
    return status("fix_symbol");
}

static void *count_in(const void *session, size_t *n)
{
    (void)session;
    *n = 1;
    return status("count_in");
}

static void *count_out(const void *session, size_t *n)
{
    (void)session;
    *n = 1;
    return status("count_out");
}

static void *info_in(const void *session, size_t i, void **info)
{
    (void)session, (void)i;
    MAKE("info_in", info, 1);
}

static void *info_out(const void *session, size_t i, void **info)
{
    (void)session, (void)i;
    MAKE("info_out", info, 1);
}

static void *name_in(const void *session, size_t i, void *allocator, char **name)
{
    void *failed = status("name_in");
    (void)session, (void)i, (void)allocator;
    if (!failed)
        *name = strcpy(make(2), "x");
    return failed;
}

static void *name_out(const void *session, size_t i, void *allocator, char **name)
{
    void *failed = status("name_out");
    (void)session, (void)i, (void)allocator;
    if (!failed)
        *name = strcpy(make(2), "y");
    return failed;
}

static void *create_tensor(const void *memory, void *data, size_t bytes, const int64_t *dim, size_t ndim, int element,
                           void **value)
{
    void *failed = status("create_tensor");
    (void)memory;
    if (failed)
        return failed;
    if (ndim != 2 || dim[1] != 4 || element != GP_ORT_F32 || bytes != (size_t)dim[0] * 16)
        return strcpy(make(20), "another tensor");
    tensor *t = make(sizeof *t);
    t->data = data, t->n = dim[0] * 4;
    *value = t;
    pthread_mutex_lock(&lock);
    onnx_fake_does.tensors++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *tensor_info(const void *info, const void **to)
{
    *to = info;
    return status("tensor_info");
}

static void *value_kind(const void *info, int *kind)
{
    (void)info;
    *kind = GP_ORT_TENSOR;
    return status("value_kind");
}

static void *element(const void *info, int *to)
{
    (void)info;
    *to = GP_ORT_F32;
    return status("element");
}

static void *count_dims(const void *info, size_t *n)
{
    (void)info;
    *n = 2;
    return status("count_dims");
}

static void *dims(const void *info, int64_t *dim, size_t n)
{
    (void)info, (void)n;
    dim[0] = -1, dim[1] = 4;
    return status("dims");
}

static void *symbols(const void *info, const char **symbol, size_t n)
{
    (void)info, (void)n;
    symbol[0] = "N", symbol[1] = "";
    return status("symbols");
}

static void *create_memory(int allocator, int type, void **memory)
{
    (void)allocator, (void)type;
    MAKE("create_memory", memory, 1);
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
    static const void *all[131];
    /* A name in gp_ort whose function has another here. */
    void (*release_env)(void *) = release, (*release_status)(void *) = release, (*release_memory)(void *) = release;
    void (*release_session)(void *) = release, (*release_value)(void *) = release, (*release_info)(void *) = release;
    void (*release_options)(void *) = release;
#define X(name, place, theirs, result, parameters)                   \
    do {                                                             \
        result (*f) parameters = name;                               \
        memcpy(&all[place], &f, sizeof f);                           \
    } while (0);
    GP_ORT_CALLS(X)
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
