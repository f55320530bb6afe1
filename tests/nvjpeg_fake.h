/* nvjpeg_fake.h - what the library nvjpeg_fake.so is to do, and has done. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct nvjpeg_fake {
    int version;
    int create_status;         /* of making a handle for batches */
    size_t bad;                /* a file of so many bytes, and a batch with it, is this: */
    int bad_status;
    int room;                  /* a batch of more files is ALLOCATOR_FAILURE; 0: there is room for any */
    bool wider;                /* it finds a column more in each file */
    atomic_int in_batches, alone, most;    /* files that it decoded; most: in a batch */
} nvjpeg_fake;

extern nvjpeg_fake nvjpeg_fake_does;
