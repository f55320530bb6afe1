// out = gain[0] * image + gain[1]; one thread per pixel.
extern "C" __global__ void contrast(const float *image, const float *gain, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = gain[0] * image[i] + gain[1];
}
