/* libfuzzer.c - one harness under libFuzzer: run --NAME [its options] [folder or file]...
 * (libFuzzer ignores what begins with --, and passes it on where it starts itself again.) */
#include <stdio.h>
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
const char *__asan_default_options(void);

/* A size that is too large is an error of gpipe's, not an end. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const fuzz_harness *harness;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    harness = *argc > 1 && !strncmp((*argv)[1], "--", 2) ? fuzz_find((*argv)[1] + 2) : NULL;
    if (!harness) {
        fprintf(stderr, "usage: run --HARNESS [libFuzzer's options] [FOLDER or FILE]...\n");
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    harness->one((const char *)data, n);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
    return harness->mutate ? harness->mutate(data, n, max, seed, LLVMFuzzerMutate) : LLVMFuzzerMutate(data, n, max);
}
