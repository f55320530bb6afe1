/* list.h - the CPU back end's recorded operations; cpu.c runs them. */
#pragma once

#include "cpu/kernel.h"
#include "device/backend.h"

struct gp_kernel {
    gp_cpu_entry entry;
    gp_source source;          /* of a user's kernel */
    void *dl;                  /* of a user's kernel */
    struct gp_kernel *next;
};

typedef enum gp_opcode { OP_KERNEL, OP_CALL, OP_COPY, OP_FILL, OP_WAIT, OP_PASS, OP_STAMP, OP_REPEAT, OP_AGAIN } gp_opcode;

typedef struct gp_cpuop {
    gp_opcode code;
    const gp_cpu_entry *kernel;
    const char *stage;         /* whose it is; NULL: not known */
    gp_dim3 grid, block;
    size_t shared;
    gp_library *call;
    gp_loc at;                 /* of OP_CALL: for its errors */
    size_t args;               /* of OP_KERNEL and OP_CALL: where arguments start in `bytes` */
    int nargs;
    bool cooperative;
    gp_check *check;           /* of a user's kernel that is to be checked */
    void *dst;
    const void *src;
    size_t n;
    int byte;
    int slot;                  /* of OP_WAIT, OP_PASS: index into dev->turn; of OP_STAMP; of OP_REPEAT: its OP_AGAIN, and
                                  the other way round */
    uint64_t turn;             /* ... and which turn, set at launch; of OP_REPEAT: how many, while `src` is 0 */
} gp_cpuop;

/* Recorded operations. Grows while it is recorded, then stays. */
typedef struct gp_list {
    gp_cpuop *op; int n, cap;
    char *bytes; size_t used, room;        /* arguments, each aligned to 16 */
} gp_list;

/* Records a body in place of what is in the list. `streams`: how many there are, all told; `slots`: turns of an order.
 * */
bool gp_list_record(gp_list *l, gp_dev *d, int streams, int slots, gp_body body, void *arg, gp_errs *errs);

void gp_list_free(gp_list *l);         /* what it has; the list itself is the caller's */
