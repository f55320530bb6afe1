/* convert.cpp - see convert.h. */
#include "base/convert.h"
#include "map.h"

template <class From, class To> static void convert_all(void *dst, const void *src, size_t n)
{
    To *__restrict to = (To *)dst;
    const From *__restrict from = (const From *)src;
    for (size_t i = 0; i < n; i++)
        to[i] = cast_to<To>(from[i]);
}

/* In the order of gp_dtype, from GP_U8 on. */
#define FROM(name, From)                                                                                             \
    { convert_all<From, uint8_t>, convert_all<From, int8_t>, convert_all<From, uint16_t>, convert_all<From, int16_t>, \
      convert_all<From, uint32_t>, convert_all<From, int32_t>, convert_all<From, uint64_t>,                           \
      convert_all<From, int64_t>, convert_all<From, gp_half>, convert_all<From, float>, convert_all<From, double> },
static void (*const converts[][11])(void *, const void *, size_t) = { GP_REALS(FROM) };

extern "C" void gp_convert(void *dst, int to, const void *src, int from, size_t n)
{
    converts[from - 1][to - 1](dst, src, n);
}

GP_KERNELS()
