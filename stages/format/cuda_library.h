/* cuda_library.h - a library that comes with CUDA: the names that it may have, for gp_dl_open, and what to do without
 * it. */
#ifndef CUDA_LIBRARY_H
#define CUDA_LIBRARY_H

#include "base/dl.h"

/* Names of NAME.so.NEW and, before CUDA 13, NAME.so.OLD; in CUDA's folder, too. */
#define GP_CUDA_LIBRARY(name, new, old)                                                    \
    { name ".so." new, name ".so." old, name ".so", "/usr/local/cuda/lib64/" name ".so." new, \
      "/usr/local/cuda/lib64/" name ".so." old, "/usr/local/cuda/lib64/" name ".so", NULL }

/* `package`: of CUDA's repository; `wheel`: of pip; `option`: what needs no such library. */
#define GP_CUDA_INSTALL(package, wheel, option)                                            \
    "install the package " package " of NVIDIA's CUDA repository, or pip's " wheel         \
    " with its folder in LD_LIBRARY_PATH, or set '" option "'"

#endif
