/* ort_library.h - the part of ONNX Runtime's C interface that a stage needs, which is opened when one asks for it.
 *
 * The library exports one function, which gives a table of pointers to all others. Tables only grow at their end, so
 * that a place in one means the same in each later version. Its header comes with packages for developers and is not
 * needed here: what it declares is said again in our words and, where that header is, compared with it by
 * tests/test_onnx.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "base/outfile.h"

/* The table that is asked for, which ONNX Runtime 1.GP_ORT_TABLE and later have; and that of what a GPU takes beside
 * it. */
enum { GP_ORT_TABLE = 19, GP_ORT_GPU_TABLE = 23 };

/* Only what ends the process is logged. Optimizations: those that sizes of outputs are known after, all. Memory without
 * an arena, of the sort that a provider computes in; "Cpu", "Cuda": whose. */
enum { GP_ORT_FATAL = 4, GP_ORT_BASIC = 1, GP_ORT_OPTIMIZED = 99, GP_ORT_PLAIN_MEMORY = 0, GP_ORT_MEMORY = 0 };

/* Sorts of values; types of the elements of a tensor. */
enum { GP_ORT_TENSOR = 1, GP_ORT_SEQUENCE, GP_ORT_MAP, GP_ORT_OPAQUE, GP_ORT_SPARSE, GP_ORT_OPTIONAL };
enum { GP_ORT_F32 = 1, GP_ORT_U8, GP_ORT_I8, GP_ORT_U16, GP_ORT_I16, GP_ORT_I32, GP_ORT_I64, GP_ORT_STRING, GP_ORT_BOOL,
       GP_ORT_F16, GP_ORT_F64, GP_ORT_U32, GP_ORT_U64 };

/* Our name, its place in the table, the library's name, the result, the parameters. A result of `void *` is a status,
 * NULL where all went well, which the caller releases. */
#define GP_ORT_CALLS(X)                                                                                               \
    X(status_text, 2, GetErrorMessage, const char *, (const void *status))                                            \
    X(create_env, 3, CreateEnv, void *, (int level, const char *name, void **env))                                    \
    X(create_session, 7, CreateSession, void *, (const void *env, const char *path, const void *options,              \
                                                 void **session))                                                     \
    X(run, 9, Run, void *, (void *session, const void *options, const char *const *in_name, const void *const *in,    \
                            size_t nin, const char *const *out_name, size_t nout, void **out))                        \
    X(create_options, 10, CreateSessionOptions, void *, (void **options))                                             \
    X(set_optimization, 23, SetSessionGraphOptimizationLevel, void *, (void *options, int level))                     \
    X(set_threads, 24, SetIntraOpNumThreads, void *, (void *options, int n))                                          \
    X(count_in, 30, SessionGetInputCount, void *, (const void *session, size_t *n))                                   \
    X(count_out, 31, SessionGetOutputCount, void *, (const void *session, size_t *n))                                 \
    X(info_in, 33, SessionGetInputTypeInfo, void *, (const void *session, size_t i, void **info))                     \
    X(info_out, 34, SessionGetOutputTypeInfo, void *, (const void *session, size_t i, void **info))                   \
    X(name_in, 36, SessionGetInputName, void *, (const void *session, size_t i, void *allocator, char **name))        \
    X(name_out, 37, SessionGetOutputName, void *, (const void *session, size_t i, void *allocator, char **name))      \
    X(create_run, 39, CreateRunOptions, void *, (void **options))                                                     \
    X(create_tensor, 49, CreateTensorWithDataAsOrtValue, void *, (const void *memory, void *data, size_t bytes,       \
                                                   const int64_t *dim, size_t ndim, int element, void **value))       \
    X(elements, 51, GetTensorMutableData, void *, (void *value, void **data))                                         \
    X(tensor_info, 55, CastTypeInfoToTensorInfo, void *, (const void *info, const void **tensor))                     \
    X(value_kind, 56, GetOnnxTypeFromTypeInfo, void *, (const void *info, int *kind))                                 \
    X(element, 60, GetTensorElementType, void *, (const void *tensor, int *element))                                  \
    X(count_dims, 61, GetDimensionsCount, void *, (const void *tensor, size_t *n))                                    \
    X(dims, 62, GetDimensions, void *, (const void *tensor, int64_t *dim, size_t n))                                  \
    X(symbols, 63, GetSymbolicDimensions, void *, (const void *tensor, const char **symbol, size_t n))                \
    X(value_shape, 65, GetTensorTypeAndShape, void *, (const void *value, void **shape))                              \
    X(create_memory, 68, CreateMemoryInfo, void *, (const char *name, int allocator, int id, int type, void **memory))\
    X(memory_name, 71, MemoryInfoGetName, void *, (const void *memory, const char **name))                            \
    X(free_name, 76, AllocatorFree, void *, (void *allocator, void *p))                                               \
    X(allocator, 78, GetAllocatorWithDefaultOptions, void *, (void **allocator))                                      \
    X(release_env, 92, ReleaseEnv, void, (void *env))                                                                 \
    X(release_status, 93, ReleaseStatus, void, (void *status))                                                        \
    X(release_memory, 94, ReleaseMemoryInfo, void, (void *memory))                                                    \
    X(release_session, 95, ReleaseSession, void, (void *session))                                                     \
    X(release_value, 96, ReleaseValue, void, (void *value))                                                           \
    X(release_run, 97, ReleaseRunOptions, void, (void *options))                                                      \
    X(release_info, 98, ReleaseTypeInfo, void, (void *info))                                                          \
    X(release_shape, 99, ReleaseTensorTypeAndShapeInfo, void, (void *shape))                                          \
    X(release_options, 100, ReleaseSessionOptions, void, (void *options))                                             \
    X(fix_symbol, 124, AddFreeDimensionOverrideByName, void *, (void *options, const char *symbol, int64_t size))     \
    X(providers, 125, GetAvailableProviders, void *, (char ***name, int *n))                                          \
    X(release_providers, 126, ReleaseAvailableProviders, void *, (char **name, int n))                                \
    X(set_entry, 130, AddSessionConfigEntry, void *, (void *options, const char *key, const char *value))             \
    X(set_run, 165, AddRunConfigEntry, void *, (void *options, const char *key, const char *value))                   \
    X(append_cuda, 204, SessionOptionsAppendExecutionProvider_CUDA_V2, void *, (void *options, const void *cuda))     \
    X(create_cuda, 205, CreateCUDAProviderOptions, void *, (void **cuda))                                             \
    X(set_cuda, 206, UpdateCUDAProviderOptions, void *, (void *cuda, const char *const *key,                          \
                                                         const char *const *value, size_t n))                         \
    X(release_cuda, 208, ReleaseCUDAProviderOptions, void, (void *cuda))                                              \
    X(set_cuda_stream, 263, UpdateCUDAProviderOptionsWithValue, void *, (void *cuda, const char *key, void *value))

/* For a GPU: where a session reads and writes. */
#define GP_ORT_GPU_CALLS(X)                                                                                           \
    X(memory_in, 380, SessionGetMemoryInfoForInputs, void *, (const void *session, const void **memory, size_t n))    \
    X(memory_out, 381, SessionGetMemoryInfoForOutputs, void *, (const void *session, const void **memory, size_t n))

/* Sessions are for all threads at once, all else is for one at a time. */
typedef struct gp_ort {
    const char *version;       /* "1.23.2" */
#define X(name, place, theirs, result, parameters) result (*name) parameters;
    GP_ORT_CALLS(X)
    GP_ORT_GPU_CALLS(X)        /* NULL: the library is older */
#undef X
} gp_ort;

/* The file that the environment's GPIPE_ONNXRUNTIME names, else what the loader finds. A pipeline cannot name it: to
 * check one of somebody else's runs no code of theirs. False after one error at `at`, which says what to install. */
bool gp_ort_open(gp_ort *l, gp_loc at, gp_errs *errs);

/* Is this status one? Then its text is in `why`, in one line and without its middle where it is long, and it is
 * released. */
bool gp_ort_failed(const gp_ort *l, void *status, char why[GP_WHY]);
