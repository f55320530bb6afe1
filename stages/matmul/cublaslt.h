/* cublaslt.h - products on a GPU (cublaslt.c). */
#ifndef GP_CUBLASLT_H
#define GP_CUBLASLT_H

#include "cublaslt_library.h"
#include "product.h"

/* A product, and the algorithm for it. `p` is zeroed where nothing has been chosen. */
typedef struct gp_cublaslt_choice {
    gp_product p;
    bool tf32, bias;           /* adds a bias to each row */
    size_t room;               /* gp_cublaslt_room() */
    gp_cublaslt_algorithm algorithm;
} gp_cublaslt_choice;

/* Bytes that it may work in: no more for a frame with fewer elements. */
size_t gp_cublaslt_room(const gp_product *p);
/* Finds the algorithm for c->p, which depends on *c, the device and the library alone. Each returns the library's
 * status. */
int gp_cublaslt_choose(const gp_cublaslt *l, void *handle, gp_cublaslt_choice *c);
/* Queues it. `bias` is that of c->bias; all begin at multiples of 256 bytes. */
int gp_cublaslt_multiply(const gp_cublaslt *l, void *handle, const gp_cublaslt_choice *c, const void *a, const void *b,
                         const void *bias, void *made, void *work, void *stream);

#endif
