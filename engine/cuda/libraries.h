/* libraries.h - what libraries.c opens beside what stages call (device/libraries.h): that part of cuBLASLt of which
 * cublaslt.c makes products, and NVML. Their headers come with CUDA's packages for developers, and are not needed. */
#pragma once

#include "device/libraries.h"

/* For gp_dl_open(): the names that a library of CUDA 13 has and, before it, of CUDA 12; in CUDA's folder, too. */
#define GP_CUDA_FILES(name, new, old)                                                              \
    { name ".so." new, name ".so." old, name ".so", "/usr/local/cuda/lib64/" name ".so." new,      \
      "/usr/local/cuda/lib64/" name ".so." old, "/usr/local/cuda/lib64/" name ".so", NULL }

/* ---- cuBLASLt -------------------------------------------------------- */

/* The types of elements, and the type in which it computes. */
enum { GP_CUBLAS_F16 = 2, GP_CUBLAS_F32 = 0, GP_CUBLAS_F64 = 1 };
enum { GP_CUBLAS_IN_F32 = 68, GP_CUBLAS_IN_TF32 = 77, GP_CUBLAS_IN_F64 = 70 };

/* What can be set of an operation, of a layout, of a preference: the alignments of A, B, C and D follow each other. */
enum { GP_CUBLASLT_TURN_A = 3, GP_CUBLASLT_TURN_B = 4, GP_CUBLASLT_EPILOGUE = 7, GP_CUBLASLT_BIAS = 8,
       GP_CUBLASLT_BIAS_STEP = 10 };
enum { GP_CUBLASLT_BATCH = 5, GP_CUBLASLT_STEP = 6 };
enum { GP_CUBLASLT_ROOM = 1, GP_CUBLASLT_SUMS = 3, GP_CUBLASLT_ALIGNED = 5 };

/* An epilogue; partial sums are kept as they were computed, and are added in a separate step. */
enum { GP_CUBLASLT_ADDS_BIAS = 4 };
enum { GP_CUBLASLT_SUMS_IN_ORDER = 2 };

/* The library's, which it fills in; none needs to be destroyed. */
typedef struct gp_cublaslt_operation { uint64_t data[32]; } gp_cublaslt_operation;
typedef struct gp_cublaslt_layout { uint64_t data[8]; } gp_cublaslt_layout;
typedef struct gp_cublaslt_preference { uint64_t data[8]; } gp_cublaslt_preference;
typedef struct gp_cublaslt_found {
    uint64_t algorithm[8];
    size_t room;               /* bytes that it needs to work in */
    int status;
    float waves;
    int reserved[4];
} gp_cublaslt_found;

/* Matrices are column-major. */
typedef struct gp_cublaslt {
    const char *(*status_name)(int status);
    int (*operation)(gp_cublaslt_operation *o, size_t size, int computes, int scale);
    int (*set_operation)(gp_cublaslt_operation *o, int what, const void *value, size_t size);
    int (*layout)(gp_cublaslt_layout *l, size_t size, int type, uint64_t rows, uint64_t columns, int64_t to_next);
    int (*set_layout)(gp_cublaslt_layout *l, int what, const void *value, size_t size);
    int (*preference)(gp_cublaslt_preference *p, size_t size);
    int (*set_preference)(gp_cublaslt_preference *p, int what, const void *value, size_t size);
    int (*find)(void *handle, gp_cublaslt_operation *o, gp_cublaslt_layout *a, gp_cublaslt_layout *b,
                gp_cublaslt_layout *c, gp_cublaslt_layout *d, gp_cublaslt_preference *p, int want,
                gp_cublaslt_found *found, int *n);
    int (*check)(void *handle, gp_cublaslt_operation *o, gp_cublaslt_layout *a, gp_cublaslt_layout *b,
                 gp_cublaslt_layout *c, gp_cublaslt_layout *d, const uint64_t *algorithm, gp_cublaslt_found *found);
    int (*multiply)(void *handle, gp_cublaslt_operation *o, const void *alpha, const void *a, gp_cublaslt_layout *la,
                    const void *b, gp_cublaslt_layout *lb, const void *beta, const void *c, gp_cublaslt_layout *lc,
                    void *d, gp_cublaslt_layout *ld, const uint64_t *algorithm, void *work, size_t room, void *stream);
} gp_cublaslt;
extern gp_cublaslt gp_cublaslt_calls;

/* As gp_gpu.products has them. */
int gp_cublaslt_choose(void *handle, gp_gpu_choice *c);
int gp_cublaslt_multiply(void *handle, const gp_gpu_choice *c, const gp_product_frames *frames, const void *a,
                         const void *b, const void *bias, void *made, void *work, void *stream);

/* ---- NVML: how much memory of GPUs is free --------------------------- */

/* CUDA says it only of a GPU on which the process has a context, which takes memory and time there. NVML comes with
 * the driver and is opened when it is asked. A device is a handle, found by the address of the PCI bus, since NVML's
 * order is not CUDA's. Numbers are bytes; part of what is used may be reserved by the driver. */
typedef struct gp_nvml_memory { unsigned long long total, free, used; } gp_nvml_memory;

/* What NVML says of the device at that address, "0000:1b:00.0" as CUDA has it. */
typedef struct gp_nvml_device { const char *pci; gp_nvml_memory memory; } gp_nvml_device;

/* Asks `library`, NULL: the driver's, about all of `n` devices. False when not all are known. */
bool gp_nvml_look(const char *library, gp_nvml_device *device, int n);
