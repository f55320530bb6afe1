// The kernel of the speed figures: `iters` multiply-adds per element.
extern "C" __global__ void axpy(const float *in, size_t in_stride, float *out, size_t out_stride, int n, int iters)
{
    in += blockIdx.z * in_stride;
    out += blockIdx.z * out_stride;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = in[i];
        for (int k = 0; k < iters; k++)
            v = fmaf(v, 1.000001f, 0.5f);
        out[i] = v;
    }
}
