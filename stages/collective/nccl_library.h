/* nccl_library.h - what gpipe uses of NCCL 2.14 or newer, which is opened when a pipeline needs it: its functions, as
 * nccl.h declares them (tests/test_nccl.c compares both where that header is there). A status of 0 is success. */
#ifndef GP_NCCL_LIBRARY_H
#define GP_NCCL_LIBRARY_H

#include "gpipe/stage.h"

typedef struct gp_nccl_id { char bytes[128]; } gp_nccl_id;

enum { GP_NCCL_SUM = 0, GP_NCCL_MAX = 2, GP_NCCL_MIN = 3, GP_NCCL_MEAN = 4 };
enum { GP_NCCL_U8 = 1, GP_NCCL_I32 = 2, GP_NCCL_U32 = 3, GP_NCCL_I64 = 4, GP_NCCL_U64 = 5, GP_NCCL_F32 = 7, GP_NCCL_F64 = 8 };
enum { GP_NCCL_IN_PROGRESS = 7 };

typedef struct gp_nccl {
    int (*version)(int *version);              /* 22807 is 2.28.7 */
    int (*unique_id)(gp_nccl_id *id);
    int (*init)(void **comm, int ranks, gp_nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *status);
    const char *(*error_text)(int status);
    int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
    int (*all_gather)(const void *from, void *to, size_t n, int type, void *comm, void *stream);
    int (*broadcast)(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);
    int (*recv)(void *to, size_t n, int type, int peer, void *comm, void *stream);
} gp_nccl;

/* The library, which stays open; NULL after an error at `at`. *text: "NCCL 2.28.7". Any thread. */
const gp_nccl *gp_nccl_open(char text[24], const char *what, gp_loc at, gp_errs *errs);
/* Does it work on memory of the host, too, as the one in its place in tests does? */
bool gp_nccl_pretends(void);

/* The type of nccl.h, for numbers that it can reduce; -1: it has none. */
int gp_nccl_type(gp_dtype t);

#endif
