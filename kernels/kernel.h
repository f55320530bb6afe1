/* kernel.h - what every kernel may use, beyond CUDA C++ itself. Built-ins include
 * it; it stands before a user's source. The same text is read by nvcc, by NVRTC
 * (which has no system headers) and, after cpu.h, by a C++ compiler.
 *
 * A file of built-in kernels ends with GP_KERNELS(GP_K(name) GP_K(name) ...). All
 * else in it is static: on the CPU the files are linked together. */
#ifndef GP_KERNEL_H
#define GP_KERNEL_H

#ifndef GP_CPU
#define GP_K(name)
#define GP_KERNELS(...)
/* Dynamic shared memory as an array of T, inside a kernel; 16-byte aligned. */
#define GP_SHARED(T, name)                                     \
    alignas(16) extern __shared__ unsigned char gp_shared[];   \
    T *name = (T *)gp_shared
#endif

/* GP_EARLY(name), in a line of its own: the kernel may be launched while the one that it comes behind still runs
 * ("programmatic dependent launch", which GPUs have since compute capability 9.0). Before gp_grid_wait() it may read nothing
 * but constants (no states), and change nothing; behind it, all is there that kernels before have made. Every thread calls
 * it. gp_grid_next(): from now on the kernel behind may be launched, if it is such a one, and wait. */
#define GP_EARLY(name)

static __device__ __forceinline__ void gp_grid_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ void gp_grid_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#ifdef __CUDACC_RTC__
/* As libcu++ has them for NVRTC, since headers of the toolkit include that. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
#endif

/* A `frame` argument points to this; as in engine/include/gpipe/stage.h, 256 bytes apart: in a
 * batched kernel frame[blockIdx.z] is this frame's. */
struct alignas(32) gp_frame_info {
    unsigned long long index;
    unsigned valid;            /* rows of the first input */
    unsigned reserved;
    long long time_ns;         /* since 1970 */
    char unused[232];
};

struct alignas(8) gp_c64 { float re, im; };

/* f16 as it is stored. gp_to_half rounds to nearest even; every NaN becomes
 * 0x7fff, and 0x7fffffff the other way, on all devices. */
struct gp_half { unsigned short bits; };

static __device__ __forceinline__ gp_half gp_to_half(float x)
{
    unsigned u = __float_as_uint(x), a = u & 0x7fffffff;
    if (a > 0x7f800000)
        return { 0x7fff };
#ifdef GP_CPU
    unsigned h;
    if (a >= 0x47800000)           /* 65536 and up */
        h = 0x7c00;
    else if (a < 0x38800000)       /* below 2^-14: the sum rounds to 2^-24 */
        h = __float_as_uint(__uint_as_float(a) + 0.5f) - 0x3f000000;
    else
        h = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    return { (unsigned short)((u >> 16 & 0x8000) | h) };
#else
    gp_half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
    return h;
#endif
}

static __device__ __forceinline__ float gp_from_half(gp_half h)
{
    unsigned a = h.bits & 0x7fffu;
    if (a > 0x7c00)
        return __uint_as_float(0x7fffffff);
#ifdef GP_CPU
    float x = a == 0x7c00 ? INFINITY : __uint_as_float(a << 13) * 0x1p112f;
    return h.bits & 0x8000 ? -x : x;
#else
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
    return x;
#endif
}

/* Two of them side by side, which takes fewer instructions: NaNs may differ in their bits from device to device. */
static __device__ __forceinline__ void gp_from_halves(float to[2], unsigned pair)
{
#ifdef GP_CPU
    to[0] = gp_from_half({ (unsigned short)pair }), to[1] = gp_from_half({ (unsigned short)(pair >> 16) });
#else
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }" : "=f"(to[0]), "=f"(to[1]) : "r"(pair));
#endif
}

static __device__ __forceinline__ unsigned gp_to_halves(float a, float b)
{
#if defined GP_CPU || __CUDA_ARCH__ < 800
    return gp_to_half(a).bits | (unsigned)gp_to_half(b).bits << 16;
#else
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
#endif
}

#endif
