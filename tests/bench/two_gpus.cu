// Two stages that pass a large frame on: `spread` makes n elements of few, `gather` few of n, with `iters`
// multiply-adds for each of the n.
extern "C" __global__ void spread(const float *in, float *out, int n, int few, int iters)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = in[i % few];
        for (int k = 0; k < iters; k++)
            v = fmaf(v, 1.000001f, 0.5f);
        out[i] = v;
    }
}

extern "C" __global__ void gather(const float *in, float *out, int n, int few, int iters)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < few; i += gridDim.x * blockDim.x) {
        float sum = 0;
        for (int j = i; j < n; j += few) {
            float v = in[j];
            for (int k = 0; k < iters; k++)
                v = fmaf(v, 1.000001f, 0.5f);
            sum += v;
        }
        out[i] = sum;
    }
}
