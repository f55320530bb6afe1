/* half.h - IEEE half precision (f16) to and from C's types, in plain C. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float gp_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, bits;
    float f;
    if (!e) {
        f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (e == 31 ? 0x7f800000 : (e + 112) << 23) | m << 13;
    memcpy(&f, &bits, 4);
    return f;
}

/* To nearest, ties to even; too large gives infinity. Rounds once. */
static inline uint16_t gp_half_from_double(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t m = bits & 0xfffffffffffff;
    if (e == 1024)
        return (uint16_t)(sign | 0x7c00 | (m ? 0x200 : 0));
    if (e > 15)
        return (uint16_t)(sign | 0x7c00);
    if (e < -25)
        return (uint16_t)sign;
    m |= UINT64_C(1) << 52;
    int drop = 42 + (e < -14 ? -14 - e : 0);          /* of the 53 bits, 11 stay */
    uint64_t q = m >> drop, rest = m & ((UINT64_C(1) << drop) - 1), tie = UINT64_C(1) << (drop - 1);
    q += rest > tie || (rest == tie && (q & 1));
    return (uint16_t)(sign + (e < -14 ? q : ((uint64_t)(e + 14) << 10) + q));
}
